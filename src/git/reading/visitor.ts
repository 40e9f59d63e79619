// Who asks a repository something for a page, and what is answered: a value, or why there is none.

/** Somebody who reads a page. */
export interface Visitor {
  readonly ip: string;
  readonly signal: AbortSignal;
  /** Asked before git is run; false: this visitor has asked for too much lately. */
  readonly mayStartGit: () => boolean;
}

/** `busy`: more people ask than the queue holds. `too-many`: this visitor asks too often. `late`: git had no time for it. */
export type Refused = "busy" | "too-many" | "late";
export type Looked<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly code: Refused };
