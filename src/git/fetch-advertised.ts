// What another server says it has: the answers to `info/refs` and `ls-refs`, as refs and as object ids. Pure.
// Strict, because a stranger wrote them: whatever is not git's is `undefined` (threats.md row 7).

import { isOid, type Oid } from "../nostr/nip34.js";
import { delimiterPkt, encodePkt, flushPkt, lineOf, listPkts, type Pkt, PktError } from "./pkt-line.js";

export interface RemoteRefs {
  /** Everything that is named, peeled tags included. */
  readonly ids: ReadonlySet<Oid>;
  /** By name, as it was written: a stranger's text. */
  readonly refs: ReadonlyMap<string, Oid>;
}

type RemoteAdvertisement =
  /** Refs came with it. */
  | ({ readonly type: "refs" } & RemoteRefs)
  /** Protocol 2: refs are told to those who ask with `ls-refs`. */
  | { readonly type: "ask-ls-refs" };

/** As many as 16 MiB of real lines are; shorter ones name nothing. */
const maxLines = 400_000;

export const infoRefsSuffix = "/info/refs?service=git-upload-pack";
export const advertisementType = "application/x-git-upload-pack-advertisement";
export const lsRefsTypes = {
  request: "application/x-git-upload-pack-request",
  answer: "application/x-git-upload-pack-result",
} as const;

/** Only what states and pull requests name: forges keep a ref for every pull request they ever had. */
export function lsRefsQuestion(): Buffer {
  const prefixes = ["HEAD", "refs/heads/", "refs/tags/", "refs/nostr/"].map((name) => `ref-prefix ${name}\n`);
  return Buffer.concat([
    encodePkt("command=ls-refs\n"),
    encodePkt("object-format=sha1"),
    delimiterPkt,
    ...["peel\n", ...prefixes].map((line) => encodePkt(line)),
    flushPkt,
  ]);
}

export function readAdvertisement(body: Buffer): RemoteAdvertisement | undefined {
  const pkts = pktsOf(body);
  if (!pkts) return undefined;
  const rest = withoutServiceLine(pkts);
  const first = rest[0];
  if (first?.type !== "data") return undefined;
  const line = lineOf(first.payload);
  if (line === "version 2") return { type: "ask-ls-refs" };
  const refs = line === "version 1" ? rest.slice(1) : rest;
  const found = { ids: new Set<Oid>(), refs: new Map<string, Oid>() };
  for (const pkt of refs) {
    if (pkt.type !== "data") continue;
    const text = lineOf(pkt.payload);
    const id = idOfLine(text);
    if (id === undefined) return undefined;
    // An empty repository sends one line with no ref behind it.
    if (/^0+$/.test(id)) continue;
    found.ids.add(id);
    const name = nameOfLine(text);
    if (!name.endsWith("^{}")) found.refs.set(name, id);
  }
  return { type: "refs", ...found };
}

export function readLsRefs(body: Buffer): RemoteRefs | undefined {
  const pkts = pktsOf(body);
  if (pkts?.at(-1)?.type !== "flush") return undefined;
  const ids = new Set<Oid>();
  const refs = new Map<string, Oid>();
  for (const pkt of pkts) {
    if (pkt.type !== "data") continue;
    const line = lineOf(pkt.payload);
    if (line.startsWith("unborn ")) continue;
    const id = idOfLine(line);
    if (id === undefined) return undefined;
    ids.add(id);
    refs.set(nameOfLine(line), id);
    const peeled = / peeled:(\S+)/.exec(line)?.[1];
    if (isOid(peeled)) ids.add(peeled);
  }
  return { ids, refs };
}

/** Behind the id, up to the capabilities of version 0 or the attributes of version 2. */
const nameOfLine = (line: string): string => line.slice(line.indexOf(" ") + 1).split(/[\0 ]/, 1)[0] ?? "";

function idOfLine(line: string): Oid | undefined {
  const id = line.slice(0, line.indexOf(" "));
  // "shallow <id>" lines of version 0 name no ref.
  if (id === "shallow") return "0".repeat(40) as Oid;
  return isOid(id) ? id : undefined;
}

/** `# service=git-upload-pack` and its flush; some servers leave it out in protocol 2. */
function withoutServiceLine(pkts: readonly Pkt[]): readonly Pkt[] {
  const first = pkts[0];
  if (first?.type !== "data" || lineOf(first.payload) !== "# service=git-upload-pack") return pkts;
  return pkts[1]?.type === "flush" ? pkts.slice(2) : pkts.slice(1);
}

function pktsOf(body: Buffer): Pkt[] | undefined {
  try {
    const pkts = listPkts(body, maxLines);
    return pkts.length > maxLines ? undefined : pkts;
  } catch (error) {
    if (error instanceof PktError) return undefined;
    throw error;
  }
}
