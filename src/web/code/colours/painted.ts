// Sources and changed lines as markup: text by `html`, looks as classes. What the thread had no time for is plain text.

import { KeptValues } from "../../../base/kept-values.js";
import type { Diff, DiffLine } from "../../../git/reading/diff.js";
import { type Html, html } from "../../html.js";
import { lookNames, looks } from "./grammar.js";
import { languageOf } from "./languages.js";
import type { TextThread } from "./text-thread.js";
import type { Ranges } from "./word-diff.js";

const keptBytes = 16 * 2 ** 20;

/** Looks of a file's content, kept by its id. */
export class Painter {
  readonly #kept = new KeptValues<Uint32Array>(keptBytes);
  readonly #words = new WeakMap<Diff, WordMarks>();

  constructor(readonly thread: TextThread) {}

  /** Undefined: shown plain. */
  async looksOf(key: string, fileName: string, text: string): Promise<Uint32Array | undefined> {
    const language = languageOf(fileName, text.slice(0, 200));
    if (language === undefined) return undefined;
    const id = `${language} ${key}`;
    const kept = this.#kept.get(id);
    if (kept) return kept;
    const found = await this.thread.scan(text, language);
    if (found) this.#kept.set(id, found, found.byteLength + 200);
    return found;
  }

  /** The words that were changed within lines; empty when there was no time to look. */
  async wordsOf(diff: Diff): Promise<WordMarks> {
    const kept = this.#words.get(diff);
    if (kept) return kept;
    const pairs = diff.files
      .flatMap(({ hunks }) => hunks.flatMap(({ lines }) => changedPairs(lines)))
      .slice(0, maxPairs);
    const figures = await this.thread.words(pairs.map(([old, fresh]) => [old.text, fresh.text]));
    const marks = figures ? marksOf(pairs, figures) : new Map<DiffLine, Ranges>();
    if (figures || pairs.length === 0) this.#words.set(diff, marks);
    return marks;
  }
}

export type WordMarks = ReadonlyMap<DiffLine, Ranges>;

/** Of one diff: a longer one says its words plain from there on. */
const maxPairs = 5_000;

/** Lines that were taken away and those that stand in their place, one by one. */
export function changedPairs(lines: readonly DiffLine[]): [old: DiffLine, fresh: DiffLine][] {
  const pairs: [DiffLine, DiffLine][] = [];
  let [removed, added]: [DiffLine[], DiffLine[]] = [[], []];
  const flush = (): void => {
    removed.forEach((old, index) => {
      const fresh = added[index];
      if (fresh) pairs.push([old, fresh]);
    });
    [removed, added] = [[], []];
  };
  for (const line of lines) {
    if (line.type === "note") continue;
    if (line.type === "same" || (line.type === "removed" && added.length > 0)) flush();
    if (line.type === "removed") removed.push(line);
    else if (line.type === "added") added.push(line);
  }
  flush();
  return pairs;
}

function marksOf(pairs: readonly (readonly [DiffLine, DiffLine])[], figures: Int32Array): Map<DiffLine, Ranges> {
  const marks = new Map<DiffLine, Ranges>();
  let at = 0;
  const take = (): Ranges | undefined => {
    const count = figures[at++] ?? -1;
    if (count < 0) return undefined;
    at += count;
    return [...figures.subarray(at - count, at)];
  };
  for (const [old, fresh] of pairs) {
    const gone = take();
    const come = gone && take();
    if (!gone || !come) continue;
    marks.set(old, gone);
    marks.set(fresh, come);
  }
  return marks;
}

/** A line with its changed words marked. */
export function markedLine(text: string, ranges: Ranges | undefined): Html | string {
  if (!ranges || ranges.length === 0) return text;
  const parts: (Html | string)[] = [];
  let end = 0;
  for (let index = 0; index + 1 < ranges.length; index += 2) {
    const [from = 0, to = 0] = [ranges[index], ranges[index + 1]];
    parts.push(text.slice(end, from), html`<b>${text.slice(from, to)}</b>`);
    end = to;
  }
  return html`${parts}${text.slice(end)}`;
}

/** The text line by line, without line ends. A stretch over several lines is one in each of them. */
export function paintedLines(text: string, stretches: Uint32Array | undefined): (Html | string)[] {
  const lines = text.replace(/\r?\n$/, "").split("\n");
  const plain = (line: string): string => (line.endsWith("\r") ? line.slice(0, -1) : line);
  if (!stretches) return lines.map(plain);
  let at = 0;
  let next = 0;
  return lines.map((line) => {
    const [begin, end] = [at, at + line.length];
    at = end + 1;
    const parts: (Html | string)[] = [];
    let done = begin;
    while (next < stretches.length) {
      const [from = 0, to = 0, look = 0] = [stretches[next], stretches[next + 1], stretches[next + 2]];
      if (from >= end) break;
      const [first, last] = [Math.max(from, begin), Math.min(to, end)];
      if (last > first) {
        const name = looks[lookNames[look] ?? "comment"];
        parts.push(text.slice(done, first), html`<span class="${name}">${plain(text.slice(first, last))}</span>`);
        done = last;
      }
      if (to > end) break;
      next += 3;
    }
    return parts.length === 0 ? plain(line) : html`${parts}${plain(text.slice(done, end))}`;
  });
}
