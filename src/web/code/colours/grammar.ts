// What the scanner knows of a language: how its comments and strings begin and end, and which words have a meaning. No
// patterns, so that nothing has to be tried again from another place.

/** Classes of text; the letter is the class on pages. */
export const looks = {
  comment: "c",
  string: "s",
  number: "n",
  keyword: "k",
  type: "t",
  call: "f",
  name: "p",
  tag: "g",
  meta: "m",
  added: "add",
  removed: "del",
} as const;
export type Look = keyof typeof looks;
export const lookNames = Object.keys(looks) as readonly Look[];

export interface StringRule {
  readonly open: string;
  readonly close: string;
  /** `backslash` if not said; `doubled`: the end twice is a sign of the text. */
  readonly escape?: "backslash" | "doubled" | "none";
  readonly isLong?: boolean;
  /** `${…}` within it is code. */
  readonly hasCode?: boolean;
  /** One sign only, or it is no string: `'a` is a lifetime. */
  readonly isOneSign?: boolean;
}

export interface Grammar {
  /** How the text is read; `code` if not said. */
  readonly kind?: "code" | "markup" | "markdown" | "diff";
  readonly lineComments?: readonly string[];
  readonly blockComments?: readonly (readonly [open: string, close: string])[];
  /** A comment's sign within a word is none: `a#b`. */
  readonly isCommentApart?: boolean;
  readonly strings?: readonly StringRule[];
  readonly keywords?: ReadonlySet<string>;
  readonly constants?: ReadonlySet<string>;
  readonly types?: ReadonlySet<string>;
  /** Signs of words beside letters, digits and `_`. */
  readonly wordSigns?: string;
  readonly isCaseless?: boolean;
  /** Words that begin with a capital letter are types. */
  readonly hasCapitalTypes?: boolean;
  /** A sign that makes the word after it a variable. */
  readonly variableSign?: string;
  /** A sign that makes the word after it a decorator or directive. */
  readonly metaSign?: string;
  /** The sign after a key: `a: 1`, `a = 1`; only at the beginning of a line if `keysBeginLines`. */
  readonly keySign?: string;
  readonly keysBeginLines?: boolean;
  /** `[section]` at the beginning of a line. */
  readonly hasSections?: boolean;
  /** Between slashes, where a value may stand. */
  readonly hasPatterns?: boolean;
  /** The first word in brackets is what is called. */
  readonly isLisp?: boolean;
  /** What stands between `<script>` and its end, between `<?` and `?>`. */
  readonly script?: () => Grammar;
  readonly style?: () => Grammar;
  readonly processing?: () => Grammar;
}

export const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));
