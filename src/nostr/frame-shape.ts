// What a frame may be made of, found out before it is parsed (threats.md row 37): five million brackets, or hundreds of
// thousands of keys, keep the parser busy for a second. One walk over the text, ended at the first bound that is passed.

export interface FrameBounds {
  readonly maxDepth: number;
  /** Of all objects of a frame together. */
  readonly maxKeys: number;
  /** Values of all lists and objects together. */
  readonly maxItems: number;
}

/** Enough for every event and every question that is taken. */
export const usualFrameBounds: FrameBounds = { maxDepth: 20, maxKeys: 4_000, maxItems: 120_000 };

/** So little is parsed in a moment, whatever it is. */
const smallChars = 8 * 1024;

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;
const isOpening = (unit: number): boolean => unit === 0x5b || unit === 0x7b;
const isClosing = (unit: number): boolean => unit === 0x5d || unit === 0x7d;

/** Why the frame is not parsed, if it is not. What is no JSON may pass: the parser says so. */
export function frameFault(text: string, bounds: FrameBounds): string | undefined {
  if (text.length <= smallChars) return undefined;
  let depth = 0;
  let keys = 0;
  let items = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === quote) {
      at = endOfString(text, at);
    } else if (unit === comma) {
      if (++items > bounds.maxItems) return `a message may have at most ${bounds.maxItems} values`;
    } else if (unit === colon) {
      if (++keys > bounds.maxKeys) return `a message may have at most ${bounds.maxKeys} keys`;
    } else if (isOpening(unit)) {
      if (++depth > bounds.maxDepth) return `a message may be nested at most ${bounds.maxDepth} deep`;
      if (++items > bounds.maxItems) return `a message may have at most ${bounds.maxItems} values`;
    } else if (isClosing(unit)) depth--;
  }
  return undefined;
}

/** Where the string that begins here ends; the text's end if it does not. */
function endOfString(text: string, from: number): number {
  // Most strings have no quotes of their own: the next one is their end.
  const next = text.indexOf('"', from + 1);
  if (next === -1) return text.length;
  if (text.charCodeAt(next - 1) !== backslash) return next;
  let at = from + 1;
  for (; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === quote) break;
    if (unit === backslash) at++;
  }
  return at;
}
