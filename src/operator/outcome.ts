// What an operator's request ends in: a result, or a refusal that says what to do. Exceptions are bugs.

export interface AdminRefusal {
  readonly ok: false;
  /** bad-request: asked wrongly. unknown: there is no such thing here. not-possible: not in its present condition. */
  readonly code: "bad-request" | "unknown" | "not-possible";
  readonly message: string;
}

export type Outcome<T> = { readonly ok: true; readonly result: T } | AdminRefusal;

export const done = <T>(result: T): Outcome<T> => ({ ok: true, result });

export const refusal = (code: AdminRefusal["code"], message: string): AdminRefusal => ({ ok: false, code, message });
