// Whether a parser of strangers' text takes time in proportion to its length (threats.md row 32). Feeds it n and 2n of
// every ugly shape and compares processor time: twice the text may cost twice as much, not four times.
//
//   for (const [name, shape] of uglyShapes) assertLinear(`Markdown of ${name}`, shape, (text) => renderMarkdown(text));
//
// Least of several runs of each, because other programs on the machine only ever make a run slower.

import assert from "node:assert/strict";

export interface LinearOptions {
  /** What the parser is given at most, in characters: beyond that its caller refuses. */
  readonly maxChars?: number;
}

const pieces = [
  ..." \t/[]()<>{}*_`~|#&;:=+-.,%@!?'\"\\0aA",
  "\n",
  "\r\n",
  "\0",
  "é",
  "😀",
  "//",
  "/.",
  "../",
  "%2f",
  "%",
  "[]",
  "[](",
  "[a](b",
  "![",
  "<a ",
  "<!--",
  "</",
  "&#",
  "**",
  "*a ",
  "_a*",
  "``",
  "` ",
  "- ",
  "> ",
  "1. ",
  "| ",
  "a,",
  "a:",
  "a=b;",
  "a=b&",
  "::",
  "0x",
  "http://",
  "a@",
  "nostr:",
  "0001",
  "{}",
  '"",',
  '{"a":',
  "[1,",
  '["a",',
  "\\u0000",
];

const named = (piece: string): string => JSON.stringify(piece);

/** Name and maker: `maker(n)` is a text of about n characters. */
export const uglyShapes: readonly (readonly [name: string, make: (chars: number) => string])[] = pieces.flatMap(
  (piece) => {
    const repeated = (chars: number): string => piece.repeat(Math.ceil(chars / piece.length));
    return [
      [`${named(piece)} repeated`, repeated],
      // What makes a pattern that looks for the end try again from each place.
      [`x, ${named(piece)} repeated, x`, (chars: number) => `x${repeated(chars)}x`],
    ] as const;
  },
);

/** Below this a measurement says nothing, and nobody is hurt. */
const leastMicros = 4_000;
const firstChars = 1024;
const defaultMaxChars = 2 ** 20;
const attempts = 8;
/** Linear is 2, quadratic 4. */
const mostRatio = 3;

function microsOf(run: () => unknown): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

export function assertLinear<Input>(
  name: string,
  make: (n: number) => Input,
  parse: (input: Input) => unknown,
  { maxChars = defaultMaxChars }: LinearOptions = {},
): void {
  // Looked at twice: something else on the machine may have made one run slower, and a text too short proves nothing.
  const isShort = (text: Input): boolean => [1, 2].some(() => microsOf(() => parse(text)) < leastMicros);
  let most = Math.min(firstChars, maxChars);
  let twice = make(most);
  while (isShort(twice)) {
    if (most === maxChars) return;
    most = Math.min(4 * most, maxChars);
    twice = make(most);
  }
  // Once a table outgrows a cache, twice as many cost four times as much, there and nowhere else; a pattern that tries
  // again from each place costs as much at every length.
  const fault = ratioFault(make(most / 2), twice, parse, leastMicros);
  if (fault === undefined || ratioFault(make(most / 4), make(most / 2), parse, 0) === undefined) return;
  assert.fail(`${name}: of ${most / 2} and ${most}, ${fault}`);
}

/** Undefined: twice as much takes about twice the time, or so little that it says nothing. */
function ratioFault<Input>(
  once: Input,
  twice: Input,
  parse: (input: Input) => unknown,
  saysNothingMicros: number,
): string | undefined {
  let onceMicros = Number.POSITIVE_INFINITY;
  let twiceMicros = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < attempts; attempt++) {
    const spent = microsOf(() => parse(once));
    onceMicros = Math.min(onceMicros, Math.max(1, spent));
    twiceMicros = Math.min(
      twiceMicros,
      microsOf(() => parse(twice)),
    );
    if (twiceMicros < saysNothingMicros || (attempt > 0 && twiceMicros / onceMicros < mostRatio)) return undefined;
  }
  return `these take ${onceMicros} µs of processor time, those ${twiceMicros}`;
}
