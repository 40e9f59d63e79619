// Sources and changed lines with their looks, asked of the thread and kept. What it had no time for is plain text.

import { KeptValues } from "../../../base/kept-values.js";
import { othersFirst } from "../../../base/others-first.js";
import { type Diff, type DiffLine, splitRows } from "../../../git/reading/diff.js";
import type { Html } from "../../html.js";
import { languageOf } from "./languages.js";
import { paintingLines } from "./painted-lines.js";
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
    const pairs: [DiffLine, DiffLine][] = [];
    let characters = 0;
    for (const { lines } of diff.files.flatMap(({ hunks }) => hunks)) {
      await othersFirst();
      if (pairs.length >= maxPairs || characters > maxPairedCharacters) break;
      for (const pair of changedPairs(lines.slice(0, 2 * maxPairs))) {
        pairs.push(pair);
        characters += pair[0].text.length + pair[1].text.length;
        if (pairs.length >= maxPairs || characters > maxPairedCharacters) break;
      }
    }
    const figures = await this.thread.words(pairs.map(([old, fresh]) => [old.text, fresh.text]));
    const marks = figures ? marksOf(pairs, figures) : new Map<DiffLine, Ranges>();
    if (figures || pairs.length === 0) this.#words.set(diff, marks);
    return marks;
  }
}

export type WordMarks = ReadonlyMap<DiffLine, Ranges>;

/** Of one diff: a longer one says its words plain from there on. */
const maxPairs = 5_000;
const maxPairedCharacters = 1_000_000;

/** Lines that were taken away and those that stand in their place, one by one. */
export const changedPairs = (lines: readonly DiffLine[]): [old: DiffLine, fresh: DiffLine][] =>
  splitRows(lines).flatMap(([old, fresh]) => (old && fresh && old !== fresh ? [[old, fresh]] : []));

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

export interface PaintedText {
  /** Of the first ones. */
  readonly lines: readonly Html[];
  readonly total: number;
}

export async function paintedText(
  text: string,
  stretches: Uint32Array | undefined,
  most: number,
): Promise<PaintedText> {
  const lines: Html[] = [];
  let steps = 0;
  for (const made of paintingLines(text, stretches)) {
    if (++steps % linesATime === 0 || !made) await othersFirst();
    if (made && lines.push(made) === most) break;
  }
  if (lines.length < most) return { lines, total: lines.length };
  // The others are only counted.
  let total = 0;
  let end = 0;
  const last = text.endsWith("\n") ? text.length - 1 : text.length;
  for (; end >= 0 && end <= last; total++) {
    if (total % (linesATime * 100) === 0) await othersFirst();
    end = text.indexOf("\n", end) + 1 || last + 1;
  }
  return { lines, total };
}

const linesATime = 50;
