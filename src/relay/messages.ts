// What a client may say and what the relay says (NIP-01, 42, 45, 67, 77): both unions, the strict parser, the encoder.
// A frame that is not understood becomes a `bad` message that knows where its refusal has to go; it never throws.
// Events are not looked into here: publishing does that after the rate limit.

import { isEventId } from "../nostr/event.js";
import { type Filter, parseFilter } from "../nostr/filter.js";
import { type Refusal, refusalText, refuse } from "../nostr/refusals.js";
import type { RelayLimits } from "./limits.js";

export type ClientMessage =
  | { readonly type: "EVENT"; readonly event: unknown }
  | { readonly type: "REQ"; readonly subscription: string; readonly filters: readonly Filter[] }
  | { readonly type: "COUNT"; readonly subscription: string; readonly filters: readonly Filter[] }
  | { readonly type: "CLOSE"; readonly subscription: string }
  | { readonly type: "AUTH"; readonly event: unknown }
  | { readonly type: "NEG-OPEN"; readonly subscription: string; readonly filter: Filter; readonly message: Uint8Array }
  | { readonly type: "NEG-MSG"; readonly subscription: string; readonly message: Uint8Array }
  | { readonly type: "NEG-CLOSE"; readonly subscription: string };

export type ClientVerb = ClientMessage["type"];

export interface BadMessage {
  readonly type: "bad";
  /** What it tried to be, if that could be seen. */
  readonly verb: ClientVerb | undefined;
  readonly answer: RelayMessage;
}

export type RelayMessage =
  | { readonly type: "OK"; readonly id: string; readonly accepted: boolean; readonly text: string }
  | { readonly type: "EOSE"; readonly subscription: string; readonly hint: "finish" | "more" | undefined }
  | { readonly type: "CLOSED"; readonly subscription: string; readonly text: string }
  | { readonly type: "NOTICE"; readonly text: string }
  | { readonly type: "AUTH"; readonly challenge: string }
  | { readonly type: "COUNT"; readonly subscription: string; readonly count: number }
  | { readonly type: "NEG-MSG"; readonly subscription: string; readonly message: Uint8Array }
  | { readonly type: "NEG-ERR"; readonly subscription: string; readonly text: string };

export type RelayVerb = RelayMessage["type"] | "EVENT";

const clientVerbs: ReadonlySet<unknown> = new Set<ClientVerb>([
  "EVENT",
  "REQ",
  "COUNT",
  "CLOSE",
  "AUTH",
  "NEG-OPEN",
  "NEG-MSG",
  "NEG-CLOSE",
]);
const isClientVerb = (value: unknown): value is ClientVerb => clientVerbs.has(value);

export const noticeOf = (refusal: Refusal): RelayMessage => ({ type: "NOTICE", text: refusalText(refusal) });

export const closedBy = (subscription: string, refusal: Refusal): RelayMessage => ({
  type: "CLOSED",
  subscription,
  text: refusalText(refusal),
});

export const negErrorBy = (subscription: string, refusal: Refusal): RelayMessage => ({
  type: "NEG-ERR",
  subscription,
  text: refusalText(refusal),
});

export function encodeRelayMessage(message: RelayMessage): string {
  switch (message.type) {
    case "OK":
      return JSON.stringify(["OK", message.id, message.accepted, message.text]);
    case "EOSE":
      // NIP-67: the third element is a list of hints.
      return JSON.stringify(["EOSE", message.subscription, ...(message.hint ? [[message.hint]] : [])]);
    case "CLOSED":
    case "NEG-ERR":
      return JSON.stringify([message.type, message.subscription, message.text]);
    case "NOTICE":
      return JSON.stringify(["NOTICE", message.text]);
    case "AUTH":
      return JSON.stringify(["AUTH", message.challenge]);
    case "COUNT":
      return JSON.stringify(["COUNT", message.subscription, { count: message.count }]);
    case "NEG-MSG":
      return JSON.stringify(["NEG-MSG", message.subscription, Buffer.from(message.message).toString("hex")]);
  }
}

/** What goes before an event's text in an EVENT frame; `]` goes after it. */
export const eventPrefix = (subscription: string): Buffer => Buffer.from(`["EVENT",${JSON.stringify(subscription)},`);

export function parseClientMessage(text: string, limits: RelayLimits): ClientMessage | BadMessage {
  let frame: unknown;
  try {
    frame = JSON.parse(text);
  } catch {
    return badNotice(undefined, "a message is a JSON array; this one could not be parsed");
  }
  if (!Array.isArray(frame)) return badNotice(undefined, "a message is a JSON array that begins with its type");
  const verb: unknown = frame[0];
  if (!isClientVerb(verb)) return badNotice(undefined, "this type of message is not known here");
  if (verb === "EVENT" || verb === "AUTH") {
    if (frame.length !== 2) return badEvent(verb, frame[1]);
    return { type: verb, event: frame[1] };
  }
  const subscription: unknown = frame[1];
  if (typeof subscription !== "string" || subscription.length > limits.maxSubscriptionIdChars) {
    return badNotice(verb, `a subscription id is a string of at most ${limits.maxSubscriptionIdChars} characters`);
  }
  if (verb === "CLOSE" || verb === "NEG-CLOSE") return { type: verb, subscription };
  if (subscription === "" || !subscription.isWellFormed()) {
    return bad(verb, subscription, refuse("bad-subscription", "a subscription id is valid text and not empty"));
  }
  return verb === "REQ" || verb === "COUNT"
    ? parseQuestion(verb, subscription, frame.slice(2), limits)
    : parseReconciliation(verb, subscription, frame.slice(2), limits);
}

function parseQuestion(verb: "REQ" | "COUNT", subscription: string, rest: unknown[], limits: RelayLimits) {
  if (rest.length === 0) return bad(verb, subscription, refuse("bad-filter", "at least one filter is needed"));
  if (rest.length > limits.maxFiltersPerReq) {
    return bad(verb, subscription, refuse("bad-filter", `at most ${limits.maxFiltersPerReq} filters are allowed`));
  }
  const filters: Filter[] = [];
  for (const value of rest) {
    const parsed = boundedFilter(value, limits);
    if (!parsed.ok) return bad(verb, subscription, parsed);
    filters.push(parsed.filter);
  }
  return { type: verb, subscription, filters } as const;
}

function parseReconciliation(
  verb: "NEG-OPEN" | "NEG-MSG",
  subscription: string,
  rest: unknown[],
  limits: RelayLimits,
): ClientMessage | BadMessage {
  const message = bytesOfHex(rest.at(verb === "NEG-OPEN" ? 1 : 0), limits.maxMessageBytes);
  if (!message) return bad(verb, subscription, refuse("bad-message", "a negentropy message is hexadecimal text"));
  if (verb === "NEG-MSG") return { type: verb, subscription, message };
  const parsed = boundedFilter(rest[0], limits);
  return parsed.ok ? { type: verb, subscription, filter: parsed.filter, message } : bad(verb, subscription, parsed);
}

export const valuesOf = (filter: Filter): number => {
  let values = (filter.ids?.length ?? 0) + (filter.authors?.length ?? 0) + (filter.kinds?.length ?? 0);
  for (const list of filter.tags?.values() ?? []) values += list.length;
  return values;
};

function boundedFilter(value: unknown, limits: RelayLimits) {
  const parsed = parseFilter(value);
  if (!parsed.ok) return parsed;
  if (valuesOf(parsed.filter) > limits.maxFilterValues) {
    return refuse("bad-filter", `a filter may have at most ${limits.maxFilterValues} values`);
  }
  if ((parsed.filter.tags?.size ?? 0) > limits.maxFilterTags) {
    return refuse("bad-filter", `a filter may name at most ${limits.maxFilterTags} tags`);
  }
  return parsed;
}

function bytesOfHex(value: unknown, maxBytes: number): Uint8Array | undefined {
  if (typeof value !== "string" || value.length % 2 !== 0 || value.length > maxBytes * 2) return undefined;
  return /^[0-9a-fA-F]*$/.test(value) ? Buffer.from(value, "hex") : undefined;
}

const badNotice = (verb: ClientVerb | undefined, message: string): BadMessage => ({
  type: "bad",
  verb,
  answer: noticeOf(refuse("bad-message", message)),
});

/** Whoever sends an event waits for an OK with its id, whatever else is in the frame. */
function badEvent(verb: "EVENT" | "AUTH", event: unknown): BadMessage {
  const sentence = `${verb} is followed by one event`;
  const id = (event as { id?: unknown } | null | undefined)?.id;
  if (!isEventId(id)) return badNotice(verb, sentence);
  return {
    type: "bad",
    verb,
    answer: { type: "OK", id, accepted: false, text: refusalText(refuse("bad-message", sentence)) },
  };
}

/** A refusal goes where its sender waits for it: NEG-ERR for reconciliations, CLOSED for questions. */
const bad = (verb: ClientVerb, subscription: string, refusal: Refusal): BadMessage => ({
  type: "bad",
  verb,
  answer: verb.startsWith("NEG-") ? negErrorBy(subscription, refusal) : closedBy(subscription, refusal),
});
