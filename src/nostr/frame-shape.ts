// What a frame may be made of, found out before it is parsed (threats.md row 37): five million brackets, or hundreds of
// thousands of keys, keep the parser busy for a second. One walk over the bytes, ended at the first bound that is passed.

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
const smallBytes = 8 * 1024;

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;
const isOpening = (byte: number): boolean => byte === 0x5b || byte === 0x7b;
const isClosing = (byte: number): boolean => byte === 0x5d || byte === 0x7d;

/** Why the frame is not parsed, if it is not. What is no JSON may pass: the parser says so. */
export function frameFault(frame: Buffer, bounds: FrameBounds): string | undefined {
  if (frame.length <= smallBytes) return undefined;
  let depth = 0;
  let keys = 0;
  let items = 0;
  for (let at = 0; at < frame.length; at++) {
    const byte = frame[at] as number;
    if (byte === quote) {
      at = endOfString(frame, at);
    } else if (byte === comma) {
      if (++items > bounds.maxItems) return `a message may have at most ${bounds.maxItems} values`;
    } else if (byte === colon) {
      if (++keys > bounds.maxKeys) return `a message may have at most ${bounds.maxKeys} keys`;
    } else if (isOpening(byte)) {
      if (++depth > bounds.maxDepth) return `a message may be nested at most ${bounds.maxDepth} deep`;
      if (++items > bounds.maxItems) return `a message may have at most ${bounds.maxItems} values`;
    } else if (isClosing(byte)) depth--;
  }
  return undefined;
}

/** Where the string that begins here ends; the frame's end if it does not. */
function endOfString(frame: Buffer, from: number): number {
  let at = from + 1;
  for (; at < frame.length; at++) {
    const byte = frame[at];
    if (byte === quote) break;
    if (byte === backslash) at++;
  }
  return at;
}
