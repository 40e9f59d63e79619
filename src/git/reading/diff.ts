// What changed between two commits or trees: one bounded run of git, its list of files and its patch taken apart. Never
// more than the bounds, however much was changed; `isCut` says that there is more.

import { othersFirst } from "../../base/others-first.js";
import { isOid, type ObjectFormat, type Oid } from "../../nostr/nip34.js";
import type { GitRepository } from "../repository.js";
import { checkedOid } from "../run.js";
import { runForTextWhile } from "./bounded-run.js";

export interface DiffLine {
  readonly type: "added" | "removed" | "same" | "note";
  /** Its number in the older file, in the newer file. */
  readonly old: number | undefined;
  readonly new: number | undefined;
  readonly text: string;
}

export interface Hunk {
  /** What git found above it: a function's head, mostly. */
  readonly heading: string;
  readonly oldStart: number;
  readonly newStart: number;
  readonly lines: readonly DiffLine[];
}

export interface FileChange {
  readonly status: "added" | "deleted" | "changed" | "renamed" | "copied";
  readonly from: Buffer;
  readonly to: Buffer;
  readonly modes: readonly [from: string, to: string];
  readonly isBinary: boolean;
  readonly hunks: readonly Hunk[];
  readonly added: number;
  readonly removed: number;
  /** Not all of its lines are here. */
  readonly isCut: boolean;
}

export interface Diff {
  readonly files: readonly FileChange[];
  /** There are more files, or more lines, than are here. */
  readonly isCut: boolean;
  /** git did not come to its end in time. */
  readonly isLate: boolean;
}

export const diffBounds = { files: 300, lines: 20_000 } as const;
const maxBytes = 8 * 2 ** 20;
/** A line that is longer is shown up to here. */
const maxLineCharacters = 2_000;
/** No character of it has more than four. */
const maxLineBytes = 4 * maxLineCharacters;
const linesATime = 200;

/** What a first commit is compared with. */
export const emptyTree: Readonly<Record<ObjectFormat, Oid>> = {
  sha1: "4b825dc642cb6eb9a060e54bf8d69288fbee4904" as Oid,
  sha256: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321" as Oid,
};

export async function readDiff(repository: GitRepository, from: Oid, to: Oid): Promise<Diff> {
  const ends = [checkedOid(from), checkedOid(to)];
  const args = [
    "diff-tree",
    ...["-r", "-z", "--raw", "-p", "-M", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv"],
    ...ends,
  ] as const;
  let lines = 0;
  const { bytes, end } = await runForTextWhile(repository, args, "", { maxBytes }, (piece) => {
    for (let at = piece.indexOf(0x0a); at >= 0; at = piece.indexOf(0x0a, at + 1)) lines += 1;
    // Heads of hunks and files are lines as well.
    return lines < diffBounds.lines + 10 * diffBounds.files;
  });
  const diff = await diffOf(bytes, end !== "complete");
  return { ...diff, isLate: end === "late" };
}

/** `isPartial`: the text ends somewhere in the middle. */
export async function diffOf(output: Buffer, isPartial: boolean): Promise<Omit<Diff, "isLate">> {
  const { records, patchAt } = await recordsOf(output);
  const sections = patchAt === undefined ? [] : sectionsOf(output, patchAt);
  let linesLeft: number = diffBounds.lines;
  let isCut = isPartial || records.length > diffBounds.files;
  const files: FileChange[] = [];
  let at = 0;
  for (const record of records.slice(0, diffBounds.files)) {
    const own = sections.slice(at, at + sectionCount(record));
    at += sectionCount(record);
    const isLast = isPartial && at >= sections.length;
    const patch = await patchOfSections(own, sectionCount(record), linesLeft);
    linesLeft -= patch.lines;
    isCut ||= patch.isCut;
    files.push({ ...record, ...patch, isCut: patch.isCut || isLast });
  }
  return { files, isCut };
}

/** The bits of a mode that say file, link or repository within; permissions are the rest. */
const typeOfMode = (mode: string): number => Number.parseInt(mode, 8) & 0o170000;

/** git writes a file that became a link (or the like) as one record, but as a deletion and a creation in the patch. */
function sectionCount({ modes: [from, to] }: FileRecord): number {
  const [before, after] = [typeOfMode(from), typeOfMode(to)];
  return before !== 0 && after !== 0 && before !== after ? 2 : 1;
}

async function patchOfSections(sections: readonly Buffer[], expected: number, most: number): Promise<Patch> {
  let whole = sections.length < expected ? noPatch : { ...noPatch, isCut: false };
  for (const section of sections) {
    const patch = await patchOf(section, most - whole.lines);
    whole = {
      isBinary: whole.isBinary || patch.isBinary,
      hunks: [...whole.hunks, ...patch.hunks],
      added: whole.added + patch.added,
      removed: whole.removed + patch.removed,
      isCut: whole.isCut || patch.isCut,
      lines: whole.lines + patch.lines,
    };
  }
  return whole;
}

type FileRecord = Pick<FileChange, "status" | "from" | "to" | "modes">;

const statuses: Readonly<Record<string, FileChange["status"]>> = {
  A: "added",
  D: "deleted",
  R: "renamed",
  C: "copied",
};

/** `:<mode> <mode> <id> <id> <status>NUL<path>NUL[<path>NUL]` each, an empty one at the end, then the patch. */
async function recordsOf(output: Buffer): Promise<{ records: FileRecord[]; patchAt: number | undefined }> {
  const records: FileRecord[] = [];
  let at = 0;
  const next = (): Buffer | undefined => {
    const end = output.indexOf(0, at);
    if (end < 0) return undefined;
    const token = output.subarray(at, end);
    at = end + 1;
    return token;
  };
  while (output[at] === 0x3a) {
    if (records.length % linesATime === 0) await othersFirst();
    const [from = "", to = "", oldOid, , status = ""] = (next()?.toString("latin1") ?? "").slice(1).split(" ");
    const first = next();
    const second = status.startsWith("R") || status.startsWith("C") ? next() : first;
    if (!first || !second || !isOid(oldOid)) return { records, patchAt: undefined };
    records.push({ status: statuses[status[0] ?? ""] ?? "changed", from: first, to: second, modes: [from, to] });
  }
  return { records, patchAt: output[at] === 0 ? at + 1 : undefined };
}

/** Each begins with `diff --git`, which no line of content can: those have a sign before them. */
function sectionsOf(output: Buffer, start: number): Buffer[] {
  const mark = Buffer.from("\ndiff --git ");
  const sections: Buffer[] = [];
  // Each file has at most two.
  for (let at = start; at < output.length && sections.length <= 2 * diffBounds.files; ) {
    const end = output.indexOf(mark, at);
    sections.push(output.subarray(at, end < 0 ? undefined : end));
    if (end < 0) break;
    at = end + 1;
  }
  return sections;
}

type Patch = Pick<FileChange, "isBinary" | "hunks" | "added" | "removed" | "isCut"> & { readonly lines: number };

const noPatch: Patch = { isBinary: false, hunks: [], added: 0, removed: 0, isCut: true, lines: 0 };

const hunkHead = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)$/s;

/** The hunks of one file's part of a patch; no more than so many lines. */
export async function patchOf(section: Buffer, most: number): Promise<Patch> {
  const hunks: (Omit<Hunk, "lines"> & { readonly lines: DiffLine[] })[] = [];
  let [isBinary, isCut, lines, added, removed, old, fresh] = [false, false, 0, 0, 0, 0, 0];
  let seen = 0;
  for (let at = 0, end = 0; at <= section.length; at = end + 1) {
    if (++seen % linesATime === 0) await othersFirst();
    end = section.indexOf(0x0a, at);
    if (end < 0) end = section.length;
    const line = section.toString("utf8", at, Math.min(end, at + maxLineBytes));
    const head = line.startsWith("@@") ? hunkHead.exec(line) : null;
    if (head) {
      [old, fresh] = [Number(head[1]), Number(head[2])];
      hunks.push({ heading: (head[3] ?? "").slice(0, 200), oldStart: old, newStart: fresh, lines: [] });
      continue;
    }
    const hunk = hunks.at(-1);
    if (!hunk) {
      isBinary ||= line.startsWith("Binary files ") || line === "GIT binary patch";
      continue;
    }
    if (line === "") continue;
    if (++lines > most) {
      isCut = true;
      break;
    }
    const text = line.slice(1, maxLineCharacters);
    if (line.startsWith("+")) {
      added += 1;
      hunk.lines.push({ type: "added", old: undefined, new: fresh++, text });
    } else if (line.startsWith("-")) {
      removed += 1;
      hunk.lines.push({ type: "removed", old: old++, new: undefined, text });
    } else if (line.startsWith("\\")) {
      hunk.lines.push({ type: "note", old: undefined, new: undefined, text: "No newline at the end of the file" });
    } else hunk.lines.push({ type: "same", old: old++, new: fresh++, text });
  }
  return { isBinary, hunks, added, removed, isCut, lines };
}

/** What was taken away stands beside what came in its place. */
export function splitRows(
  lines: readonly DiffLine[],
): (readonly [old: DiffLine | undefined, fresh: DiffLine | undefined])[] {
  const rows: [DiffLine | undefined, DiffLine | undefined][] = [];
  let [removed, added]: [DiffLine[], DiffLine[]] = [[], []];
  const flush = (): void => {
    for (let index = 0; index < Math.max(removed.length, added.length); index++)
      rows.push([removed[index], added[index]]);
    [removed, added] = [[], []];
  };
  for (const line of lines) {
    if (line.type === "note") continue;
    if (line.type === "same" || (line.type === "removed" && added.length > 0)) flush();
    if (line.type === "removed") removed.push(line);
    else if (line.type === "added") added.push(line);
    else rows.push([line, line]);
  }
  flush();
  return rows;
}
