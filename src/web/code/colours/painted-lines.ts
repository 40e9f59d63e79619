// Sources and changed lines as markup: text by `html`, looks as classes.

import { type Html, html } from "../../html.js";
import { lookNames, looks } from "./grammar.js";
import type { Ranges } from "./word-diff.js";

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

/**
 * The text line by line, without line ends. A stretch over several lines is one in each of them. Now and then within a line that
 * is very long, undefined: whoever has others to think of lets them go first.
 */
export function* paintingLines(text: string, stretches: Uint32Array | undefined): Generator<Html | undefined, void> {
  const whole = text.length - (text.endsWith("\r\n") ? 2 : text.endsWith("\n") ? 1 : 0);
  let next = 0;
  for (let begin = 0, end = 0; begin <= whole; begin = end + 1) {
    const lineEnd = text.indexOf("\n", begin);
    end = lineEnd < 0 || lineEnd > whole ? whole : lineEnd;
    // What ends a line on Windows is no part of it.
    const shownEnd = end > begin && text[end - 1] === "\r" ? end - 1 : end;
    const done: Html[] = [];
    let at = begin;
    let parts: (Html | string)[] = [];
    const upTo = function* (to: number): Generator<undefined, void> {
      for (; at < to; at = Math.min(to, at + charactersATime)) {
        parts.push(text.slice(at, Math.min(to, at + charactersATime)));
        if (parts.length < partsATime && to - at <= charactersATime) continue;
        done.push(html`${parts}`);
        parts = [];
        yield undefined;
      }
    };
    for (; stretches && next < stretches.length; next += 3) {
      const [from = 0, to = 0, look = 0] = [stretches[next], stretches[next + 1], stretches[next + 2]];
      if (from >= end) break;
      const [first, last] = [Math.max(from, begin), Math.min(to, shownEnd)];
      if (last > first) {
        yield* upTo(first);
        const name = looks[lookNames[look] ?? "comment"];
        parts.push(html`<span class="${name}">`);
        yield* upTo(last);
        parts.push(html`</span>`);
      }
      if (to > end) break;
    }
    yield* upTo(shownEnd);
    yield html`${done}${parts}`;
  }
}

const charactersATime = 8 * 1024;
const partsATime = 200;
