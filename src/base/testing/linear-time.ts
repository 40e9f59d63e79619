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
  /** Microseconds that a run takes: its processor time, unless a test says otherwise. */
  readonly microsOf?: (run: () => unknown) => number;
}

function processorMicrosOf(run: () => unknown): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return user + system;
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
/** Before it is called linear; where there is a suspicion all attempts are made. */
const leastAttempts = 2;

/** An input with the least processor time that reading it took so far. */
class Timed<Input> {
  leastMicros = Number.POSITIVE_INFINITY;

  constructor(
    readonly input: Input,
    private readonly micros: (input: Input) => number,
  ) {}

  look(): number {
    this.leastMicros = Math.min(this.leastMicros, Math.max(1, this.micros(this.input)));
    return this.leastMicros;
  }

  /** Looked at twice: something else may have made one run slower, and a text too short proves nothing. */
  isShort(): boolean {
    return [1, 2].some(() => this.look() < leastMicros);
  }
}

export function assertLinear<Input>(
  name: string,
  make: (n: number) => Input,
  parse: (input: Input) => unknown,
  { maxChars = defaultMaxChars, microsOf = processorMicrosOf }: LinearOptions = {},
): void {
  const micros = (input: Input): number => microsOf(() => parse(input));
  const known = new Map<number, Timed<Input>>();
  const timed = (n: number): Timed<Input> => {
    const one = known.get(n) ?? new Timed(make(n), micros);
    known.set(n, one);
    return one;
  };
  let most = Math.min(firstChars, maxChars);
  let once: Timed<Input> | undefined;
  let twice = timed(most);
  let fault: string | undefined;
  do {
    while (twice.isShort()) {
      if (most === maxChars) return;
      const longer = Math.min((twice.leastMicros < leastMicros / 8 ? 4 : 2) * most, maxChars);
      once = longer === 2 * most ? twice : undefined;
      most = longer;
      twice = timed(most);
    }
    once ??= timed(most / 2);
    fault = ratioFault(once, twice, leastMicros, leastAttempts);
    // Something else had made it slow: it was too short after all.
  } while (twice.leastMicros < leastMicros);
  // Once a table outgrows a cache, twice as many cost four times as much, there and nowhere else; a pattern that tries
  // again from each place costs as much at every length.
  if (fault === undefined || ratioFault(timed(most / 4), once, 0, attempts) === undefined) return;
  assert.fail(`${name}: of ${most / 2} and ${most}, ${fault}`);
}

/** Undefined: twice as much takes about twice the time, or so little that it says nothing. */
function ratioFault<Input>(
  once: Timed<Input>,
  twice: Timed<Input>,
  saysNothingMicros: number,
  enoughAttempts: number,
): string | undefined {
  for (let attempt = 1; attempt <= attempts; attempt++) {
    // Both anew, in turn: code gets faster after its first runs, and what was looked at earlier would seem too slow.
    once.look();
    twice.look();
    const isLinear = attempt >= enoughAttempts && twice.leastMicros / once.leastMicros < mostRatio;
    if (twice.leastMicros < saysNothingMicros || isLinear) return undefined;
  }
  return `these take ${once.leastMicros} µs of processor time, those ${twice.leastMicros}`;
}
