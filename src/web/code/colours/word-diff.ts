// Which words of a changed line are new, and which are gone: pure. Both lines are cut into words and signs, what they begin
// and end with alike is left out, and the rest is compared as a whole within bounds.

/** Begin and end, one pair after the other. */
export type Ranges = readonly number[];

export interface ChangedWords {
  readonly old: Ranges;
  readonly new: Ranges;
}

const maxLineCharacters = 1_000;
/** Of each line, between what is alike at both ends. */
const maxWords = 200;
/** Lines that share less than this are two lines, not one that was changed. */
const leastShared = 0.3;

const wordPattern = /[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu;

const wordsOf = (line: string): string[] => line.match(wordPattern) ?? [];

/** Undefined: too long, or too different for single words to say anything. */
export function changedWords(oldLine: string, newLine: string): ChangedWords | undefined {
  if (oldLine.length > maxLineCharacters || newLine.length > maxLineCharacters) return undefined;
  const [before, after] = [wordsOf(oldLine), wordsOf(newLine)];
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  while (
    end < before.length - start &&
    end < after.length - start &&
    before[before.length - 1 - end] === after[after.length - 1 - end]
  )
    end += 1;
  const [oldPart, newPart] = [before.slice(start, before.length - end), after.slice(start, after.length - end)];
  if (oldPart.length > maxWords || newPart.length > maxWords) return undefined;
  const kept = commonWords(oldPart, newPart);
  const [oldKept, newKept] = [new Set(kept.map(([index]) => index)), new Set(kept.map(([, index]) => index))];
  const shared = (words: readonly string[], isKept: (index: number) => boolean): number =>
    words.reduce((sum, word, index) => sum + (isKept(index) && word.trim() !== "" ? word.length : 0), 0);
  const isSame = (index: number, length: number): boolean => index < start || index >= length - end;
  const same = shared(before, (index) => isSame(index, before.length) || oldKept.has(index - start));
  const longer = Math.max(
    shared(before, () => true),
    shared(after, () => true),
  );
  if (longer === 0 || same / longer < leastShared) return undefined;
  return {
    old: rangesOf(before, start, oldPart.length, oldKept),
    new: rangesOf(after, start, newPart.length, newKept),
  };
}

/** The longest row of words that both have in order: pairs of places. */
function commonWords(one: readonly string[], other: readonly string[]): [number, number][] {
  const width = other.length + 1;
  const lengths = new Uint16Array((one.length + 1) * width);
  const at = (row: number, column: number): number => lengths[row * width + column] ?? 0;
  for (let row = one.length - 1; row >= 0; row--) {
    for (let column = other.length - 1; column >= 0; column--) {
      lengths[row * width + column] =
        one[row] === other[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const pairs: [number, number][] = [];
  for (let row = 0, column = 0; row < one.length && column < other.length; ) {
    if (one[row] === other[column]) pairs.push([row++, column++]);
    else if (at(row + 1, column) >= at(row, column + 1)) row += 1;
    else column += 1;
  }
  return pairs;
}

/** Stretches of words that are not kept; a space between two of them belongs to both. */
function rangesOf(words: readonly string[], start: number, count: number, kept: ReadonlySet<number>): number[] {
  const ranges: number[] = [];
  let at = words.slice(0, start).reduce((sum, word) => sum + word.length, 0);
  for (let index = 0; index < count; index++) {
    const word = words[start + index] ?? "";
    const isSpaceBetween = word.trim() === "" && !kept.has(index - 1) && !kept.has(index + 1) && index + 1 < count;
    if (!kept.has(index) || (isSpaceBetween && ranges.at(-1) === at)) {
      if (ranges.at(-1) === at) ranges[ranges.length - 1] = at + word.length;
      else ranges.push(at, at + word.length);
    }
    at += word.length;
  }
  return ranges;
}
