// What relays say to a client, as values. Text of strangers goes in; what has not the shape of a message comes out as
// nothing. Events are parsed later, when somebody wants them.

import { frameFault, usualFrameBounds } from "../nostr/frame-shape.js";

export type RelayMessage =
  | { readonly type: "EVENT"; readonly subscription: string; readonly event: unknown }
  | { readonly type: "EOSE"; readonly subscription: string }
  | { readonly type: "CLOSED"; readonly subscription: string; readonly text: string }
  | { readonly type: "NOTICE"; readonly text: string }
  | { readonly type: "AUTH"; readonly challenge: string }
  | { readonly type: "OK"; readonly id: string; readonly ok: boolean; readonly text: string }
  | { readonly type: "NEG-MSG"; readonly subscription: string; readonly message: Uint8Array }
  | { readonly type: "NEG-ERR"; readonly subscription: string; readonly text: string };

const maxChallengeChars = 1_000;
const evenHex = /^(?:[0-9a-f]{2})+$/i;

/** A relay we follow is a stranger too: what would keep the parser busy is not parsed (threats.md row 37). */
export function parseRelayFrame(frame: Buffer): RelayMessage | undefined {
  if (frameFault(frame, usualFrameBounds) !== undefined) return undefined;
  return parseRelayMessage(frame.toString("utf8"));
}

export function parseRelayMessage(data: string): RelayMessage | undefined {
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    return undefined;
  }
  if (!Array.isArray(value)) return undefined;
  const [verb, first, second, third] = value as unknown[];
  const text = (item: unknown): string => (typeof item === "string" ? item : "");
  if (typeof first !== "string") return undefined;
  switch (verb) {
    case "EVENT":
      return { type: "EVENT", subscription: first, event: second };
    case "EOSE":
      return { type: "EOSE", subscription: first };
    case "CLOSED":
      return { type: "CLOSED", subscription: first, text: text(second) };
    case "NOTICE":
      return { type: "NOTICE", text: first };
    case "AUTH":
      return first.length <= maxChallengeChars ? { type: "AUTH", challenge: first } : undefined;
    case "OK":
      return { type: "OK", id: first, ok: second === true, text: text(third) };
    case "NEG-MSG":
      if (!evenHex.test(text(second))) return { type: "NEG-ERR", subscription: first, text: "invalid: not hex" };
      return { type: "NEG-MSG", subscription: first, message: Buffer.from(text(second), "hex") };
    case "NEG-ERR":
      return { type: "NEG-ERR", subscription: first, text: text(second) };
    default:
      return undefined;
  }
}
