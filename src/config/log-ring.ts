// The last lines of the log, kept in memory for the operator's page. Bounded in lines and in their length; what looks
// like a secret is taken out before it is kept, although nothing here logs one on purpose.

const maxLines = 500;
const maxLineChars = 2_000;

export interface RecentLine {
  /** Counts from 1 since the start. */
  readonly number: number;
  readonly text: string;
}

// Nostr secret keys, one-time links, credentials in headers and in URLs.
const secrets: readonly (readonly [RegExp, string])[] = [
  [/\b(nsec1|ncryptsec1)[02-9ac-hj-np-z]+/gi, "$1…"],
  [/\b(token|secret|password|passwd|cookie)(["']?\s*[=:]\s*["']?)[^\s"'&,;]+/gi, "$1$2…"],
  [/\b(authorization["']?\s*[=:]\s*["']?)[^"',;]+/gi, "$1…"],
  [/\b(Bearer|Nostr|Basic) [A-Za-z0-9+/_=-]{16,}/g, "$1 …"],
  [/:\/\/[^\s/@:]*:[^\s/@]+@/g, "://…@"],
];

export const withoutSecrets = (text: string): string =>
  secrets.reduce((left, [pattern, instead]) => left.replace(pattern, instead), text);

export class LogRing {
  readonly #lines: RecentLine[] = [];
  readonly #listeners = new Set<(line: RecentLine) => void>();
  #count = 0;

  add(text: string): void {
    const cut = text.length > maxLineChars ? `${text.slice(0, maxLineChars)}…` : text;
    const line = { number: ++this.#count, text: withoutSecrets(cut) };
    this.#lines.push(line);
    if (this.#lines.length > maxLines) this.#lines.shift();
    for (const listener of this.#listeners) listener(line);
  }

  /** Oldest first; those after a number, if one is given. */
  after(number = 0): readonly RecentLine[] {
    return this.#lines.filter((line) => line.number > number);
  }

  /** Answers how to stop. A listener must not log. */
  onLine(listener: (line: RecentLine) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
