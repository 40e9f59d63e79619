// What a repository has, told from memory (mechanisms.md, "Advertisement and ls-refs from memory"): the answers of
// `info/refs` in protocol v0, v1 and v2, for fetching and for pushing, and of protocol v2's `ls-refs`. The capabilities are
// those of the installed git, asked once at start. An answer is built once for each table, then sent as it is.

import { createHash } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { formatName, type ObjectFormat, type Oid, oidDigits } from "../nostr/nip34.js";
import { encodePkt, flushPkt, lineOf, type Pkt, readAllPkts } from "./pkt-line.js";
import type { RefTable } from "./ref-tables.js";
import { createRepositoryFiles } from "./repository-files.js";
import type { Git } from "./run.js";

export type GitService = "git-upload-pack" | "git-receive-pack";
export type ProtocolVersion = 0 | 1 | 2;

/** As for a SHA-1 repository; for the other format one token differs. */
export interface Capabilities {
  /** v0 tokens of upload-pack without `symref=`. */
  readonly upload: string;
  readonly receive: string;
  /** v2 capability lines after `version 2`. */
  readonly v2: readonly string[];
}

/** Stock git never gets here: it reads the format from the advertisement. */
export const otherFormatReason = (here: ObjectFormat, asked: ObjectFormat, by: "request" | "push"): string =>
  `this repository names its objects by ${formatName(here)}, the ${by} by ${formatName(asked)}: clone it with a client that knows ${formatName(here)}`;

/** Without this token clients take a repository for SHA-1. */
const formatToken = "object-format=";

const inFormat = (tokens: string, format: ObjectFormat): string =>
  tokens.replace(`${formatToken}sha1`, formatToken + format);

/** Asks the installed git, with a scratch repository that has one commit (an empty one tells less). */
export async function askCapabilities(git: Git): Promise<Capabilities> {
  const directory = join(git.launcher.scratchDirectory, "template.git");
  await createRepositoryFiles(directory, "template");
  try {
    await writeOneCommit(directory);
    const ask = (protocol: string): Promise<Buffer> =>
      git.mustRun(["upload-pack", "--http-backend-info-refs", directory], { env: { GIT_PROTOCOL: protocol } });
    const [v0, v2] = await Promise.all([ask("version=0"), ask("version=2")]);
    return capabilitiesFrom(v0, v2, git.version);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** git knows this tree without being given it. */
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/** As git writes it: a process for the commit and one for its branch would take a good part of a server's start. */
async function writeOneCommit(directory: string): Promise<void> {
  const who = "holdfast <holdfast> 1700000000 +0000";
  const text = `tree ${emptyTree}\nauthor ${who}\ncommitter ${who}\n\ntemplate\n`;
  const object = Buffer.from(`commit ${text.length}\0${text}`);
  const oid = createHash("sha1").update(object).digest("hex");
  const folder = join(directory, "objects", oid.slice(0, 2));
  await mkdir(folder);
  await writeFile(join(folder, oid.slice(2)), deflateSync(object));
  await writeFile(join(directory, "refs", "heads", "master"), `${oid}\n`);
}

function capabilitiesFrom(v0: Buffer, v2: Buffer, version: string): Capabilities {
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

const absent = (format: ObjectFormat): string => "0".repeat(oidDigits[format]);

export class Advertiser {
  readonly #answers = new RefAnswerCache(4);
  readonly #v2: Readonly<Record<ObjectFormat, Buffer>>;

  constructor(readonly capabilities: Capabilities) {
    const answer = (format: ObjectFormat): Buffer =>
      Buffer.concat([
        encodePkt("version 2\n"),
        ...capabilities.v2.map((line) => encodePkt(`${inFormat(line, format)}\n`)),
        flushPkt,
      ]);
    this.#v2 = { sha1: answer("sha1"), sha256: answer("sha256") };
  }

  answer(table: RefTable, service: GitService, version: ProtocolVersion): Buffer {
    if (service === "git-upload-pack" && version === 2) return this.#v2[table.format];
    const key = `${service} ${version === 1 ? 1 : 0}`;
    return this.#answers.get(table, key, () => this.#build(table, service, version));
  }

  #build(table: RefTable, service: GitService, version: ProtocolVersion): Buffer {
    const lines = service === "git-upload-pack" ? uploadLines(table) : receiveLines(table);
    const headOid = table.refs.get(table.head)?.oid;
    const symref = headOid ? ` symref=HEAD:${table.head}` : "";
    const { upload, receive } = this.capabilities;
    const tokens = inFormat(service === "git-upload-pack" ? upload : receive, table.format);
    const shown = service === "git-upload-pack" ? tokens + symref : tokens;
    if (lines.length === 0) lines.push(`${absent(table.format)} capabilities^{}`);
    const [first = "", ...others] = lines;
    return Buffer.concat([
      encodePkt(`# service=${service}\n`),
      flushPkt,
      ...(version === 1 ? [encodePkt("version 1\n")] : []),
      encodePkt(`${first}\0${shown}\n`),
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

interface LsRefsRequest {
  readonly symrefs: boolean;
  readonly peel: boolean;
  readonly unborn: boolean;
  readonly prefixes: readonly string[];
}

/** Prefixes only save bytes: with more than this we answer everything, as the protocol allows. */
const maxPrefixes = 256;

/** The command a v2 request names. */
export function v2Command(pkts: readonly Pkt[]): string | undefined {
  const [first] = pkts;
  if (first?.type !== "data") return undefined;
  return /^command=([a-z-]{1,32})$/.exec(lineOf(first.payload))?.[1];
}

/** The format a v2 request is written in: whoever names none means SHA-1. Undefined: one that git does not know. */
export function v2Format(pkts: readonly Pkt[]): ObjectFormat | undefined {
  const end = pkts.findIndex(({ type }) => type !== "data");
  const named = pkts
    .slice(0, end < 0 ? undefined : end)
    .flatMap((pkt) => (pkt.type === "data" ? [lineOf(pkt.payload)] : []))
    .findLast((line) => line.startsWith(formatToken));
  const format = named?.slice(formatToken.length) ?? "sha1";
  return format === "sha1" || format === "sha256" ? format : undefined;
}

/** Undefined when it is not exactly one well-formed ls-refs request. */
export function parseLsRefs(pkts: readonly Pkt[]): LsRefsRequest | undefined {
  const lines = pkts.map((pkt) => (pkt.type === "data" ? lineOf(pkt.payload) : pkt.type));
  if (pkts.at(-1)?.type !== "flush" || pkts.slice(0, -1).some(({ type }) => type === "flush")) return undefined;
  const divider = pkts.findIndex(({ type }) => type === "delimiter");
  const args = divider < 0 ? [] : lines.slice(divider + 1, -1);
  const prefixes = args.filter((arg) => arg.startsWith("ref-prefix ")).map((arg) => arg.slice("ref-prefix ".length));
  const flags = args.filter((arg) => !arg.startsWith("ref-prefix "));
  if (flags.some((flag) => flag !== "peel" && flag !== "symrefs" && flag !== "unborn")) return undefined;
  return {
    symrefs: flags.includes("symrefs"),
    peel: flags.includes("peel"),
    unborn: flags.includes("unborn"),
    prefixes: prefixes.length > maxPrefixes ? [] : prefixes,
  };
}

function answerLsRefs({ refs, head }: RefTable, request: LsRefsRequest): Buffer {
  const { prefixes, symrefs, peel, unborn } = request;
  const isWanted = (name: string): boolean =>
    prefixes.length === 0 || prefixes.some((prefix) => name.startsWith(prefix));
  const lines: Buffer[] = [];
  const target = symrefs ? ` symref-target:${head}` : "";
  const headValue = refs.get(head);
  if (isWanted("HEAD")) {
    if (headValue) lines.push(encodePkt(`${headValue.oid} HEAD${target}\n`));
    else if (unborn && symrefs) lines.push(encodePkt(`unborn HEAD${target}\n`));
  }
  for (const [name, { oid, peeled }] of refs) {
    if (isWanted(name)) lines.push(encodePkt(`${oid} ${name}${peel && peeled ? ` peeled:${peeled}` : ""}\n`));
  }
  return Buffer.concat([...lines, flushPkt]);
}

/** Longer requests are rare and not worth keeping as keys. */
const maxKeptRequestBytes = 2_048;

/** Clones of one repository all send the same bytes: the answer is kept under them. */
export class LsRefsAnswers {
  readonly #answers = new RefAnswerCache(8);

  /** Undefined when the request is not well formed. */
  answer(table: RefTable, body: Buffer, pkts: () => readonly Pkt[]): Buffer | undefined {
    const build = (): Buffer | undefined => {
      const lines = pkts();
      const request = parseLsRefs(lines);
      const format = v2Format(lines);
      if (!request || !format) return undefined;
      if (format === table.format) return answerLsRefs(table, request);
      return encodePkt(`ERR ${otherFormatReason(table.format, format, "request")}\n`);
    };
    if (body.length > maxKeptRequestBytes) return build();
    return this.#answers.get(table, body.toString("latin1"), build);
  }
}

export const isLsRefs = (body: Buffer): boolean => lsRefsStart.test(body.toString("latin1", 0, 32));
const lsRefsStart = /^00(?:13command=ls-refs|14command=ls-refs\n)/;

/** Answers built from a ref table, kept with it: they go when the table goes, so they can never be stale. */
class RefAnswerCache {
  readonly #byTable = new WeakMap<RefTable, Map<string, Buffer>>();

  constructor(readonly maxPerTable: number) {}

  get<Built extends Buffer | undefined>(table: RefTable, key: string, build: () => Built): Buffer | Built {
    const answers = this.#byTable.get(table) ?? new Map<string, Buffer>();
    this.#byTable.set(table, answers);
    const kept = answers.get(key);
    if (kept) return kept;
    const built = build();
    if (!built) return built;
    if (answers.size >= this.maxPerTable) answers.clear();
    answers.set(key, built);
    return built;
  }
}
