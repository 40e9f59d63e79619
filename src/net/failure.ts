// Why a connection did not come to be, in the few words that health rules act on. Judges error codes; dials nothing.

import type { GuardRefusalCode } from "./guard.js";

export type DialFailureCode =
  | GuardRefusalCode
  /** The host answered that nobody listens, or no route leads there. */
  | "refused"
  | "timeout"
  | "certificate"
  /** TLS broke for another reason than the certificate, e.g. the port does not speak it. */
  | "tls"
  | "not-a-websocket"
  /** An HTTP answer that says nothing about what the server is: 401, 403, 408, 429, 5xx. `status` has it. */
  | "http-status"
  | "bad-response"
  | "too-large"
  | "bad-redirect"
  | "reset"
  | "aborted";

export interface DialFailure {
  readonly ok: false;
  readonly code: DialFailureCode;
  readonly message: string;
  readonly status?: number;
}

export const failure = (code: DialFailureCode, message: string, status?: number): DialFailure =>
  status === undefined ? { ok: false, code, message } : { ok: false, code, message, status };

const certificateCode =
  /^(?!ERR_SSL_).*(?:CERT|CRL|SELF_SIGNED|LEAF_SIGNATURE|HOSTNAME_MISMATCH|INVALID_PURPOSE|INVALID_CA)/;

const codes: Readonly<Record<string, DialFailureCode>> = {
  ECONNREFUSED: "refused",
  EHOSTUNREACH: "refused",
  ENETUNREACH: "refused",
  EADDRNOTAVAIL: "refused",
  EACCES: "refused",
  ETIMEDOUT: "timeout",
  ECONNRESET: "reset",
  EPIPE: "reset",
  EPROTO: "tls",
};

/** A socket's or parser's error in our words. Texts written by the remote side are not repeated. */
export function failureOf(error: unknown): DialFailure {
  const code = errorCode(error);
  if (code === undefined) return failure("reset", "the connection broke");
  const known = codes[code];
  if (known) return failure(known, code);
  if (certificateCode.test(code)) return failure("certificate", code);
  if (code.startsWith("ERR_SSL_") || code.startsWith("ERR_TLS_")) return failure("tls", code);
  if (code.startsWith("HPE_")) return failure("bad-response", code);
  return failure("reset", code);
}

function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  // Several addresses tried in turn: the last one's reason stands for all.
  if (error instanceof AggregateError && error.errors.length > 0) return errorCode(error.errors.at(-1));
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === "string" ? code : undefined;
}
