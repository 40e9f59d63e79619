// The last lines of the log, kept in memory for the operator's page. Bounded in lines and in their length; what looks
// like a secret is never shown, although nothing here logs one on purpose.

const maxLines = 500;
const maxLineChars = 2_000;
const maxRawChars = 20_000;

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
  readonly #textOf: (raw: string) => string;
  readonly #lines: { readonly number: number; readonly raw: string }[] = [];
  readonly #listeners = new Set<(line: RecentLine) => void>();
  #count = 0;

  /** `textOf` makes a line for people of one as it was logged; asked only when somebody looks. */
  constructor(textOf: (raw: string) => string) {
    this.#textOf = textOf;
  }

  add(raw: string): void {
    const line = { number: ++this.#count, raw: raw.length > maxRawChars ? "" : raw };
    this.#lines.push(line);
    if (this.#lines.length > maxLines) this.#lines.shift();
    for (const listener of this.#listeners) listener(this.#shown(line));
  }

  /** Oldest first; those after a number, if one is given. */
  after(number = 0): readonly RecentLine[] {
    return this.#lines.filter((line) => line.number > number).map((line) => this.#shown(line));
  }

  #shown({ number, raw }: { readonly number: number; readonly raw: string }): RecentLine {
    const text = withoutSecrets(raw === "" ? "(a line too long to be kept)" : this.#textOf(raw));
    return { number, text: text.length > maxLineChars ? `${text.slice(0, maxLineChars)}…` : text };
  }

  /** Answers how to stop. A listener must not log. */
  onLine(listener: (line: RecentLine) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
