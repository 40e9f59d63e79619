// A number of bytes as people read it: the same words in refusals, in a pusher's terminal and on pages.

const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];

/** `1.5 MiB`; one digit after the point below a hundred. */
export function sizeText(bytes: number): string {
  const step = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** step;
  return `${step === 0 || value >= 100 ? Math.round(value) : value.toFixed(1).replace(/\.0$/, "")} ${units[step]}`;
}
