// Who last changed each line of a file: one bounded run of git that tells its findings as it makes them. When its time is
// over, what was found until then is shown.

import { othersFirst } from "../../base/others-first.js";
import { isOid, type Oid } from "../../nostr/nip34.js";
import type { GitRepository } from "../repository.js";
import { checkedOid } from "../run.js";
import { runForText } from "./bounded-run.js";
import { personOf } from "./objects.js";

/** Lines beside each other that one commit brought. */
export interface BlamedLines {
  /** Of its first line, from 1. */
  readonly from: number;
  readonly count: number;
  readonly commit: BlamedCommit;
}

export interface BlamedCommit {
  readonly oid: Oid;
  readonly author: string;
  /** Seconds, as claimed. */
  readonly time: number;
  readonly subject: string;
}

export interface Blame {
  /** In the order of lines; lines that no one stands for were not reached in time. */
  readonly parts: readonly BlamedLines[];
  readonly isLate: boolean;
}

/** `git blame` takes a name as an argument only, and those are text. */
export const canBeBlamed = (path: Buffer): boolean =>
  Buffer.from(path.toString("utf8")).equals(path) && !path.includes(0);

const maxBytes = 16 * 2 ** 20;
/** Of a longer one, a message that is one endless line, the beginning is enough. */
const maxLineBytes = 4_096;
const linesATime = 500;

export async function readBlame(repository: GitRepository, commit: Oid, path: Buffer): Promise<Blame> {
  const args = ["blame", "--incremental", checkedOid(commit), "--", path.toString("utf8")] as const;
  const { bytes, end } = await runForText(repository, args, "", { maxBytes });
  return { parts: await blamedLines(bytes), isLate: end === "late" || end === "cut" };
}

/** `<id> <line there> <line here> <count>`, then facts of the commit when it is told for the first time, then `filename`. */
export async function blamedLines(text: Buffer): Promise<BlamedLines[]> {
  const commits = new Map<string, BlamedCommit>();
  const parts: BlamedLines[] = [];
  let head: { readonly oid: Oid; readonly from: number; readonly count: number } | undefined;
  let facts = new Map<string, string>();
  let seen = 0;
  for (let at = 0, end = 0; at < text.length; at = end + 1) {
    if (++seen % linesATime === 0) await othersFirst();
    end = text.indexOf(0x0a, at);
    if (end < 0) end = text.length;
    const line = text.toString("utf8", at, Math.min(end, at + maxLineBytes));
    const space = line.indexOf(" ");
    const [name, value] = space < 0 ? [line, ""] : [line.slice(0, space), line.slice(space + 1)];
    if (!head) {
      const [, from = "", count = ""] = value.split(" ");
      if (!isOid(name) || !/^\d+$/.test(from) || !/^\d+$/.test(count)) continue;
      head = { oid: name, from: Number(from), count: Number(count) };
      facts = new Map();
    } else if (name !== "filename") facts.set(name, value);
    else {
      const { oid, from, count } = head;
      const known = commits.get(oid);
      const commit = known ?? {
        oid,
        author: personOf(facts.get("author") ?? "").name.slice(0, 200),
        time: Number(facts.get("author-time") ?? Number.NaN),
        subject: (facts.get("summary") ?? "").slice(0, 200),
      };
      if (!known) commits.set(oid, commit);
      parts.push({ from, count, commit });
      head = undefined;
    }
  }
  return parts.sort((a, b) => a.from - b.from);
}
