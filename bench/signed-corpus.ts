// Signed issues about one repository, made once and kept in the temporary directory: signing takes longer than the
// benchmark. The fingerprint says which corpus was used.

import { createHash } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SecretKey, signEvent } from "../src/nostr/keys.js";
import { seededRandom, zipfIndex } from "./corpus.js";

export interface SignedCorpus {
  readonly file: string;
  readonly events: number;
  readonly fingerprint: string;
}

const version = 1;
const authors = 200;
const newestSeconds = 1_700_000_000;

const bytesOf = (seed: string) => (length: number) => createHash("sha256").update(seed).digest().subarray(0, length);

export function signedIssues(events: number, repository: string, seed = 11): SignedCorpus {
  const name = createHash("sha256").update(`${version} ${events} ${repository} ${seed}`).digest("hex").slice(0, 12);
  const file = join(tmpdir(), `holdfast-bench-issues-${name}.jsonl`);
  if (!existsSync(file)) {
    const random = seededRandom(seed);
    const keys = Array.from({ length: authors }, (_, index) => SecretKey.generate(bytesOf(`author ${seed} ${index}`)));
    const lines: string[] = [];
    for (let index = 0; index < events; index++) {
      const key = keys[zipfIndex(random, authors)] as SecretKey;
      const words = Array.from({ length: 60 }, () => Math.floor(random() * 2 ** 32).toString(36));
      const tags = [
        ["a", repository],
        ["p", repository.split(":")[1] ?? ""],
        ["subject", words.slice(0, 6).join(" ")],
        ["t", "bug"],
      ];
      const draft = { kind: 1621, created_at: newestSeconds + index, tags, content: words.join(" ") };
      lines.push(signEvent(key, draft, bytesOf(`nonce ${index}`)).raw);
    }
    writeFileSync(`${file}.new`, lines.join("\n"));
    renameSync(`${file}.new`, file);
  }
  const fingerprint = createHash("sha256").update(readFileSync(file)).digest("hex").slice(0, 12);
  return { file, events, fingerprint };
}
