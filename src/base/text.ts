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

/**
 * A text without the signs it ends with. A pattern like `/\/+$/` looks at every run of signs in the text from each of its
 * places, which takes the square of its length; this looks once, from the end.
 */
export function withoutTrailing(text: string, signs: string): string {
  let end = text.length;
  while (end > 0 && signs.includes(text.charAt(end - 1))) end--;
  return end === text.length ? text : text.slice(0, end);
}
