// Small things about texts that every room needs.

const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];

/**
 * A number of bytes as people read it: `1.5 MiB`; one digit after the point below a hundred. The same words in refusals, in
 * a pusher's terminal and on pages.
 */
export function sizeText(bytes: number): string {
  const step = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** step;
  return `${step === 0 || value >= 100 ? Math.round(value) : value.toFixed(1).replace(/\.0$/, "")} ${units[step]}`;
}

/** `1 event`, `2 events`: what follows a number agrees with it everywhere. `shown` is the number as pages write it. */
export const counted = (value: number, one: string, many: string, shown = String(value)): string =>
  `${shown} ${value === 1 ? one : many}`;

/** Unix seconds as `2026-03-01 12:00:00`, in UTC. */
export const timeText = (seconds: number): string =>
  new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ");

// Control characters, C1 included, line separators and those that reorder text: remote text must not be able to
// forge log lines, move a terminal's cursor or hide what it says. JSON has escaped the first 32 already.
const dangerous = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** The line with every dangerous character written as \uXXXX; the newline at its end stays. */
export const escapeControls = (line: string): string =>
  line.replace(dangerous, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** A part of a URL, percent-decoded once; undefined where an escape is wrong, as in `100%`. */
export function percentDecoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}
