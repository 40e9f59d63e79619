// What a repository has, told from memory (mechanisms.md, "Advertisement and ls-refs from memory"): the answers of
// `info/refs` in protocol v0, v1 and v2, for fetching and for pushing. The capabilities are those of the installed git,
// asked once at start. Built once for each table and service, then sent as it is.

import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Oid } from "../nostr/ids.js";
import { encodePkt, flushPkt, lineOf, readAllPkts } from "./pkt-line.js";
import { createRepositoryFiles } from "./repository-files.js";
import type { Git } from "./run.js";
import { TableAnswers } from "./table-answers.js";
import type { RefTable } from "./types.js";

export type GitService = "git-upload-pack" | "git-receive-pack";
export type ProtocolVersion = 0 | 1 | 2;

export interface Capabilities {
  /** v0 tokens of upload-pack without `symref=`. */
  readonly upload: string;
  readonly receive: string;
  /** v2 capability lines after `version 2`. */
  readonly v2: readonly string[];
}

/** Asks the installed git, with a scratch repository that has one commit (an empty one tells less). */
export async function askCapabilities(git: Git): Promise<Capabilities> {
  const directory = join(git.launcher.scratchDirectory, "template.git");
  await createRepositoryFiles(directory, "template");
  try {
    const env = { GIT_AUTHOR_DATE: "1700000000 +0000", GIT_COMMITTER_DATE: "1700000000 +0000" };
    const tree = (await git.mustRun(["hash-object", "-w", "-t", "tree", "--stdin"], { directory })).toString().trim();
    const commit = (await git.mustRun(["commit-tree", "-m", "template", tree], { directory, env })).toString().trim();
    await git.mustRun(["update-ref", "refs/heads/master", commit], { directory });
    const ask = (protocol: string): Promise<Buffer> =>
      git.mustRun(["upload-pack", "--http-backend-info-refs", directory], { env: { GIT_PROTOCOL: protocol } });
    return capabilitiesFrom(await ask("version=0"), await ask("version=2"), git.version);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

export function capabilitiesFrom(v0: Buffer, v2: Buffer, version: string): Capabilities {
  const [first] = readAllPkts(v0);
  const text = first?.type === "data" ? lineOf(first.payload) : "";
  const tokens = text
    .slice(text.indexOf("\0") + 1)
    .trim()
    .split(" ");
  const upload = tokens.filter((token) => !token.startsWith("symref=")).join(" ");
  const lines = [...readAllPkts(v2)].flatMap((pkt) => (pkt.type === "data" ? [lineOf(pkt.payload)] : []));
  return {
    upload,
    receive: `report-status delete-refs side-band-64k quiet atomic ofs-delta object-format=sha1 agent=git/${version}`,
    v2: lines.filter((line) => line !== "version 2" && !line.startsWith("object-info")),
  };
}

const absent = "0".repeat(40);

export class Advertiser {
  readonly #answers = new TableAnswers(4);
  readonly #v2: Buffer;

  constructor(readonly capabilities: Capabilities) {
    this.#v2 = Buffer.concat([
      encodePkt("version 2\n"),
      ...capabilities.v2.map((line) => encodePkt(`${line}\n`)),
      flushPkt,
    ]);
  }

  answer(table: RefTable, service: GitService, version: ProtocolVersion): Buffer {
    if (service === "git-upload-pack" && version === 2) return this.#v2;
    const key = `${service} ${version === 1 ? 1 : 0}`;
    return this.#answers.get(table, key, () => this.#build(table, service, version));
  }

  #build(table: RefTable, service: GitService, version: ProtocolVersion): Buffer {
    const lines = service === "git-upload-pack" ? uploadLines(table) : receiveLines(table);
    const headOid = table.refs.get(table.head)?.oid;
    const symref = headOid ? ` symref=HEAD:${table.head}` : "";
    const tokens = service === "git-upload-pack" ? this.capabilities.upload + symref : this.capabilities.receive;
    if (lines.length === 0) lines.push(`${absent} capabilities^{}`);
    const [first = "", ...others] = lines;
    return Buffer.concat([
      encodePkt(`# service=${service}\n`),
      flushPkt,
      ...(version === 1 ? [encodePkt("version 1\n")] : []),
      encodePkt(`${first}\0${tokens}\n`),
      ...others.map((line) => encodePkt(`${line}\n`)),
      flushPkt,
    ]);
  }
}

function uploadLines({ refs, head }: RefTable): string[] {
  const lines: string[] = [];
  const headOid: Oid | undefined = refs.get(head)?.oid;
  if (headOid) lines.push(`${headOid} HEAD`);
  for (const [name, { oid, peeled }] of refs) {
    lines.push(`${oid} ${name}`);
    if (peeled) lines.push(`${peeled} ${name}^{}`);
  }
  return lines;
}

const receiveLines = ({ refs }: RefTable): string[] => [...refs].map(([name, { oid }]) => `${oid} ${name}`);
