// Protocol v2's `ls-refs`, answered from memory: which refs match the prefixes, with symref targets and peeled tags.

import { encodePkt, flushPkt, lineOf, type Pkt } from "./pkt-line.js";
import { TableAnswers } from "./table-answers.js";
import type { RefTable } from "./types.js";

export interface LsRefsRequest {
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

/** Undefined when it is not exactly one well-formed ls-refs request. */
export function parseLsRefs(pkts: readonly Pkt[]): LsRefsRequest | undefined {
  const lines = pkts.map((pkt) => (pkt.type === "data" ? lineOf(pkt.payload) : pkt.type));
  if (pkts.at(-1)?.type !== "flush" || pkts.slice(0, -1).some(({ type }) => type === "flush")) return undefined;
  const divider = pkts.findIndex(({ type }) => type === "delimiter");
  const args = divider < 0 ? [] : lines.slice(divider + 1, -1);
  const settings = lines.slice(1, divider < 0 ? -1 : divider);
  if (settings.some((line) => line.startsWith("object-format=") && line !== "object-format=sha1")) return undefined;
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

export function answerLsRefs({ refs, head }: RefTable, request: LsRefsRequest): Buffer {
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
  readonly #answers = new TableAnswers(8);

  /** Undefined when the request is not well formed. */
  answer(table: RefTable, body: Buffer, pkts: () => readonly Pkt[]): Buffer | undefined {
    const build = (): Buffer | undefined => {
      const request = parseLsRefs(pkts());
      return request && answerLsRefs(table, request);
    };
    if (body.length > maxKeptRequestBytes) return build();
    return this.#answers.get(table, body.toString("latin1"), build);
  }
}

export const isLsRefs = (body: Buffer): boolean => lsRefsStart.test(body.toString("latin1", 0, 32));
const lsRefsStart = /^00(?:13command=ls-refs|14command=ls-refs\n)/;
