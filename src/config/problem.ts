// A fault in the configuration: which key, where it was written, what is wrong and what to write instead.

export type Origin = "flag" | "environment" | "file" | "default";

export interface Problem {
  /** The key as the reader wrote it: `NGIT_…`, `--flag`, or a line of the file. */
  readonly key: string;
  readonly origin: Origin;
  /** What is wrong. Never contains the value of a secret. */
  readonly message: string;
  /** What to do about it. */
  readonly fix: string;
}

export const problemText = (problem: Problem): string => `${problem.key}: ${problem.message}. ${problem.fix}`;

/** The known name nearest to a mistyped one, if one is near. */
export function nearest(written: string, known: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.min(4, Math.floor(written.length / 3)) + 1;
  for (const name of known) {
    const distance = editDistance(written, name, bestDistance);
    if (distance < bestDistance) {
      best = name;
      bestDistance = distance;
    }
  }
  return best;
}

function editDistance(a: string, b: string, enough: number): number {
  if (Math.abs(a.length - b.length) >= enough) return enough;
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? enough;
}
