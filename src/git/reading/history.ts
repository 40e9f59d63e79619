// Questions about history, each one bounded run of git: a page of the log, the last commit that touched each entry of a
// folder, how many commits there are, whether something is reached from given tips. Paths go in by standard input, as
// bytes, and are taken literally.

import { isOid, type Oid, type RefName } from "../../nostr/nip34.js";
import type { GitRepository } from "../repository.js";
import { checkedOid } from "../run.js";
import { runBounded, runForText } from "./bounded-run.js";

/** An answer, or that git had no time for it: half an answer would be taken for the truth. */
export type InTime<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly code: "late" };

const late = { ok: false, code: "late" } as const;

export interface LogLine {
  readonly oid: Oid;
  readonly parents: readonly Oid[];
  readonly author: string;
  /** Seconds, as claimed. */
  readonly time: number;
  readonly subject: string;
}

export interface LogPage {
  readonly lines: readonly LogLine[];
  readonly hasMore: boolean;
  /** Its time was over before it was whole. */
  readonly isLate: boolean;
}

// Cut by git: one commit's subject may be as long as an object may be. NUL is the one sign no field can hold.
const lineFormat = "%H%x00%P%x00%at%x00%<(80,trunc)%aN%x00%<(200,trunc)%s%x00";
const lineFields = 5;
const maxLogBytes = 2 ** 20;

/** A path that standard input can carry: git reads one a line. */
export const canBeAsked = (path: Buffer): boolean => !path.includes(0x0a) && !path.includes(0);

function revisions(include: readonly Oid[], exclude: readonly Oid[], path?: Buffer): Buffer {
  const lines = [...include.map((oid) => `${checkedOid(oid)}\n`), ...exclude.map((oid) => `^${checkedOid(oid)}\n`)];
  const limited = path && path.length > 0 ? [Buffer.from("--\n"), path, Buffer.from("\n")] : [];
  return Buffer.concat([Buffer.from(lines.join("")), ...limited]);
}

export interface LogQuestion {
  readonly from: Oid;
  /** Commits this one reaches are left out. */
  readonly without?: Oid | undefined;
  /** Empty: everything. */
  readonly path: Buffer;
  readonly skip: number;
  readonly count: number;
}

export async function readLog(repository: GitRepository, question: LogQuestion): Promise<LogPage> {
  const { from, without, path, skip, count } = question;
  const { bytes, end } = await runForText(
    repository,
    [
      ...literal("rev-list"),
      `--max-count=${count + 1}`,
      `--skip=${skip}`,
      "--no-commit-header",
      `--format=${lineFormat}`,
      "--stdin",
    ],
    revisions([from], without ? [without] : [], path),
    { maxBytes: maxLogBytes },
  );
  const lines = logLines(bytes.toString("utf8"));
  return { lines: lines.slice(0, count), hasMore: lines.length > count, isLate: end === "late" };
}

/** Before the command: no path is a pattern. */
const literal = (command: string): [string, string] => ["--literal-pathspecs", command];

function logLines(text: string): LogLine[] {
  const values = text.split("\0");
  const lines: LogLine[] = [];
  for (let at = 0; at + lineFields <= values.length; at += lineFields) {
    const [oid = "", parents = "", time = "", author = "", subject = ""] = values
      .slice(at, at + lineFields)
      .map((value) => value.trim());
    if (!isOid(oid)) break;
    lines.push({ oid, parents: parents.split(" ").filter(isOid), time: Number(time), author, subject });
  }
  return lines;
}

export interface LastChange {
  readonly oid: Oid;
  readonly time: number;
  readonly subject: string;
}

export interface ChangesQuestion {
  readonly commit: Oid;
  /** The branch or tag that is looked at: what was found at its last commit is gone on from. */
  readonly ref: RefName | undefined;
  readonly folder: Buffer;
  /** Of its entries, as latin1. */
  readonly names: ReadonlySet<string>;
}

/** Of each entry of the folder the newest commit that touched it, as far as was looked; `without`: and no further than there. */
export async function lastChanges(
  repository: GitRepository,
  { commit, folder, names }: ChangesQuestion,
  without?: Oid,
): Promise<ReadonlyMap<string, LastChange>> {
  const found = new Map<string, LastChange>();
  const prefix = folder.length === 0 ? "" : `${folder.toString("latin1")}/`;
  let current: LastChange | undefined;
  let expected: "header" | "time" | "subject" | "path" = "header";
  let rest = "";
  // Records begin with a colon and are followed by their path; anything else where one may begin is the next commit.
  const takeToken = (token: string): void => {
    if (expected === "path") {
      expected = "header";
      if (!current || !token.startsWith(prefix)) return;
      const end = token.indexOf("/", prefix.length);
      const name = token.slice(prefix.length, end < 0 ? undefined : end);
      if (names.has(name) && !found.has(name)) found.set(name, current);
    } else if (expected === "time") {
      if (current) current = { ...current, time: Number(token) };
      expected = "subject";
    } else if (expected === "subject") {
      if (current) current = { ...current, subject: Buffer.from(token, "latin1").toString("utf8").trim() };
      expected = "header";
    } else {
      const mark = token.trimStart();
      if (mark.startsWith(":")) expected = "path";
      else if (isOid(mark)) {
        current = { oid: mark, time: Number.NaN, subject: "" };
        expected = "time";
      }
    }
  };
  await runBounded(
    repository,
    [
      ...literal("log"),
      "-z",
      "--raw",
      "--no-renames",
      "--no-color",
      "--format=format:%H%x00%at%x00%<(200,trunc)%s%x00",
      "--stdin",
    ],
    revisions([commit], without ? [without] : [], folder),
    { maxBytes: maxChangesBytes },
    (piece) => {
      const tokens = (rest + piece.toString("latin1")).split("\0");
      rest = tokens.pop() ?? "";
      for (const token of tokens) takeToken(token);
      return found.size < names.size;
    },
  );
  return found;
}

const maxChangesBytes = 256 * 2 ** 20;

export async function countCommits(repository: GitRepository, commit: Oid, most: number): Promise<InTime<number>> {
  const { bytes, end } = await runForText(
    repository,
    ["rev-list", "--count", `--max-count=${most}`, "--stdin"],
    revisions([commit], []),
    { maxBytes: 100 },
  );
  return end === "late" ? late : { ok: true, value: Number(bytes.toString("latin1")) || 0 };
}

/** Of one commit without those before it. */
export async function storedBytes(repository: GitRepository, commit: Oid): Promise<InTime<number>> {
  const { bytes, end } = await runForText(
    repository,
    ["rev-list", "--disk-usage", "--objects", "--no-walk", "--stdin"],
    revisions([commit], []),
    { maxBytes: 100 },
  );
  return end === "late" ? late : { ok: true, value: Number(bytes.toString("latin1")) || 0 };
}

/** Commits that only the other reaches, and that only the base reaches. */
export interface Apart {
  readonly ahead: number;
  readonly behind: number;
}

/** Undefined: not counted in time. */
export async function countApart(repository: GitRepository, base: Oid, other: Oid): Promise<Apart | undefined> {
  const { bytes, end } = await runForText(
    repository,
    ["rev-list", "--count", "--left-right", "--stdin"],
    `${checkedOid(base)}...${checkedOid(other)}\n`,
    { maxBytes: 100, wallClockMs: 2_000 },
  );
  const [behind, ahead] = bytes.toString("latin1").trim().split(/\s+/).map(Number);
  return end === "complete" && behind !== undefined && ahead !== undefined ? { ahead, behind } : undefined;
}

/** Whether one of the tips reaches the commit. */
export async function isReachedFrom(
  repository: GitRepository,
  commit: Oid,
  tips: readonly Oid[],
): Promise<InTime<boolean>> {
  const { bytes, end } = await runForText(
    repository,
    ["rev-list", "--max-count=1", "--ignore-missing", "--stdin"],
    revisions([commit], tips),
    { maxBytes: 200 },
  );
  return end === "late" ? late : { ok: true, value: end === "complete" && bytes.length === 0 };
}

/** The best common ancestor; undefined: there is none. */
export async function mergeBase(repository: GitRepository, one: Oid, other: Oid): Promise<InTime<Oid | undefined>> {
  const args = ["merge-base", checkedOid(one), checkedOid(other)] as const;
  const { bytes, end } = await runForText(repository, args, "", { maxBytes: 200 });
  if (end === "late") return late;
  const oid = bytes.toString("latin1").trim();
  return { ok: true, value: isOid(oid) ? oid : undefined };
}

const reachedTries = 2;
const reachedTryMs = 4_000;

/**
 * Which of the tips the head reaches. All must be here: one that is not would not be named, as if it were reached. One tip may
 * have any number of commits of its own, so what git lists is looked through and not gathered; and when that takes too long,
 * the tips that were met are left out of a second try.
 */
export async function reachedOf(
  repository: GitRepository,
  head: Oid,
  tips: readonly Oid[],
): Promise<InTime<ReadonlySet<Oid>>> {
  const unseen = new Set(tips);
  for (let tried = 0; tried < reachedTries; tried++) {
    let rest = "";
    const end = await runBounded(
      repository,
      ["rev-list", "--ignore-missing", "--stdin"],
      revisions([...unseen], [head]),
      { maxBytes: Number.POSITIVE_INFINITY, wallClockMs: reachedTryMs },
      (piece) => {
        const lines = (rest + piece.toString("latin1")).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) unseen.delete(line as Oid);
        return unseen.size > 0;
      },
    );
    // Every tip was met outside: nothing is left to ask.
    if (unseen.size === 0) break;
    if (end === "failed") return { ok: true, value: new Set() };
    if (end === "complete") break;
    if (tried + 1 === reachedTries) return late;
  }
  return { ok: true, value: unseen };
}

const maxPathBytes = 2 ** 20;

/**
 * What a head's line of history had before it merged that commit: the first parent of the merge. Undefined: the commit was not
 * brought by a merge of its own.
 */
export async function beforeMerge(repository: GitRepository, head: Oid, commit: Oid): Promise<InTime<Oid | undefined>> {
  const { bytes, end } = await runForText(
    repository,
    ["rev-list", "--ancestry-path", "--reverse", "--parents", "--stdin"],
    revisions([head], [commit]),
    { maxBytes: maxPathBytes },
  );
  if (end === "late") return late;
  for (const line of end === "failed" ? [] : bytes.toString("latin1").split("\n")) {
    const [, first, ...others] = line.split(" ");
    if (others.includes(commit) && isOid(first)) return { ok: true, value: first };
  }
  return { ok: true, value: undefined };
}
