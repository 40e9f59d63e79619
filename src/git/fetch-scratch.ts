// The git-dir a fetch from another server runs in: ours, made for this one fetch, gone after it. Never the repository's
// own: git honours its config, and a planted `url.….insteadOf` or `http.proxy` would rewrite the checked URL
// (mechanisms.md, "Fetch for hunting"). The repository's refs are copied in as text, so that git asks for what is new only.

import { randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { removeAll } from "../base/durable-files.js";
import { repositoryConfig } from "./repository-files.js";
import type { RefTable } from "./types.js";

/** More haves cost more than they save. */
const maxRefs = 2_000;

export interface ScratchDirectory {
  readonly directory: string;
  drop(): Promise<void>;
}

export async function makeScratch(root: string, known: RefTable | undefined): Promise<ScratchDirectory> {
  const directory = join(root, `fetch-${randomBytes(8).toString("hex")}`);
  await mkdir(join(directory, "refs"), { recursive: true, mode: 0o700 });
  await mkdir(join(directory, "objects"));
  await writeFile(join(directory, "HEAD"), "ref: refs/heads/none\n");
  await writeFile(join(directory, "config"), repositoryConfig);
  const lines = known ? [...known.refs].slice(0, maxRefs).map(([ref, { oid }]) => `${oid} ${ref}\n`) : [];
  await writeFile(join(directory, "packed-refs"), lines.join(""));
  return { directory, drop: () => removeAll(directory) };
}
