// What an S3 server, or nobody, answers, as the faults of the pack store and in words that say what to do.

import type { PackStoreFault } from "./port.js";

export const errorName = (error: unknown): string => {
  const { name, code } = (error ?? {}) as { name?: unknown; code?: unknown };
  // The network's errors are called Error and have a code; the store's have a name.
  return typeof code === "string" && (name === "Error" || name === undefined) ? code : String(name);
};

export const statusOf = (error: unknown): number | undefined =>
  (error as { $metadata?: { httpStatusCode?: number } } | null)?.$metadata?.httpStatusCode;

const full = /QuotaExceeded|StorageFull|InsufficientCapacity|InsufficientStorage|EntityTooLarge|NoSpace/i;

/** Pure. What an S3 server says with a name and a status; without a status nobody answered. */
export function faultOfAnswer({
  name,
  status,
}: {
  readonly name: string;
  readonly status: number | undefined;
}): PackStoreFault {
  if (status === 507 || full.test(name)) return "full";
  if (name === "NoSuchBucket" || status === undefined || status >= 500 || status === 429 || status === 408) {
    // The machine has no key at all: no request was sent.
    return name === "CredentialsProviderError" ? "refused" : "unreachable";
  }
  // Other things may be missing too: some servers say 404 of a key they do not know.
  if (name === "NoSuchKey" || name === "NotFound") return "absent";
  return "refused";
}

export function wordsFor(fault: PackStoreFault, name: string): string {
  if (name === "NoSuchBucket") return "is not there: make it, or set NGIT_PACK_STORE to the right one";
  if (name === "RequestTimeTooSkewed") return "refuses requests because this machine's clock is wrong: set it";
  if (name === "CredentialsProviderError")
    return "needs a key: set NGIT_S3_ACCESS_KEY_ID and NGIT_S3_SECRET_ACCESS_KEY";
  if (fault === "unreachable") return "does not answer: look at the service and at NGIT_S3_ENDPOINT";
  if (fault === "full") return "is full: make room in it";
  if (fault === "absent") return "has no such file";
  return "does not let this server in: look at the key, its rights, the region and NGIT_S3_ENDPOINT";
}
