// What a relay says about its limits (NIP-11), as far as sync obeys it. A relay that says nothing, or nonsense, has
// told us nothing: the usual limits stand.

import { guardUrl } from "../net/guard.js";
import { httpRequest } from "../net/http.js";
import type { RelayUrl } from "../net/url.js";
import type { RelayLimits } from "./core/messages.js";
import type { DialParts } from "./dial.js";

const maxBodyBytes = 256 * 1024;
const idleMs = 5_000;

export async function lookUpLimits(url: RelayUrl, parts: DialParts, signal: AbortSignal): Promise<RelayLimits> {
  const checked = await guardUrl(url.replace(/^ws/, "http"), { resolve: parts.resolve, reach: parts.reach() });
  if (!checked.ok) return {};
  const answer = await httpRequest(checked.url, {
    clock: parts.clock,
    totalMs: parts.dialTimeoutMs(),
    idleMs,
    maxBodyBytes,
    headers: { accept: "application/nostr+json", "user-agent": parts.userAgent },
    signal,
  });
  if (!answer.ok || answer.status !== 200) return {};
  try {
    return limitsOf(JSON.parse(answer.body.toString("utf8")));
  } catch {
    return {};
  }
}

/** A limit of zero or below would stop all work: whoever writes that does not mean it. */
function limit(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : undefined;
}

export function limitsOf(information: unknown): RelayLimits {
  const stated = (information as { limitation?: unknown } | null)?.limitation;
  if (typeof stated !== "object" || stated === null) return {};
  const given = stated as Record<string, unknown>;
  const named: Record<keyof RelayLimits, number | undefined> = {
    maxMessageBytes: limit(given.max_message_length),
    maxSubscriptions: limit(given.max_subscriptions),
    maxFilters: limit(given.max_filters),
    maxLimit: limit(given.max_limit),
    maxFilterValues: limit(given.max_filter_values),
  };
  return Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined));
}
