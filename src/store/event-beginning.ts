// The beginning of a stored event: who, when, its tags and the first words of its text. Lists show titles, and strangers
// decide how long an event is: of a long one only its first bytes are looked at (threats row 33).

import { type EventId, isPubkey, type NostrEvent, type Pubkey, type Tag } from "../nostr/event.js";
import type { StoredRow } from "./port.js";

export interface EventBeginning {
  readonly id: EventId;
  readonly pubkey: Pubkey;
  readonly kind: number;
  readonly created_at: number;
  readonly tags: readonly Tag[];
  /** Its first characters. */
  readonly content: string;
  /** Bytes of all of it. */
  readonly size: number;
}

/** Shorter events are read whole. */
const wholeBytes = 64 * 1024;
const lookedAtBytes = 32 * 1024;

export function beginningOf(row: StoredRow): EventBeginning | undefined {
  if (row.size > wholeBytes) {
    return beginningOfText(row.json.toString("utf8", 0, lookedAtBytes), row.id, row.size);
  }
  return beginningOfEvent(row.event, row.size);
}

export const beginningOfEvent = (event: NostrEvent, size = event.raw.length): EventBeginning => ({
  id: event.id,
  pubkey: event.pubkey,
  kind: event.kind,
  created_at: event.created_at,
  tags: event.tags,
  content: event.content.slice(0, lookedAtBytes),
  size,
});

const head = /^\{"id":"[0-9a-f]{64}","pubkey":"([0-9a-f]{64})","created_at":(\d+),"kind":(\d+),"tags":\[/;

/** Of the text as this server writes it: fields in the order of their hash, no white space. Tags that are cut are left out. */
export function beginningOfText(text: string, id: EventId, size: number): EventBeginning | undefined {
  const found = head.exec(text);
  const [whole = "", pubkey, created_at, kind] = found ?? [];
  if (!isPubkey(pubkey)) return undefined;
  const tags: Tag[] = [];
  let at = whole.length;
  while (text[at] === "[") {
    const end = endOfTag(text, at);
    if (end === undefined) break;
    tags.push(JSON.parse(text.slice(at, end)) as string[]);
    at = text[end] === "," ? end + 1 : end;
  }
  const opening = '],"content":"';
  const content = text.startsWith(opening, at) ? cutString(text.slice(at + opening.length)) : "";
  return { id, pubkey, kind: Number(kind), created_at: Number(created_at), tags, content, size };
}

/** Behind the bracket that ends the array of strings that begins at `start`. */
function endOfTag(text: string, start: number): number | undefined {
  let isInString = false;
  for (let at = start; at < text.length; at++) {
    const sign = text[at];
    if (isInString && sign === "\\") at++;
    else if (sign === '"') isInString = !isInString;
    else if (!isInString && sign === "]") return at + 1;
  }
  return undefined;
}

/** The text of a JSON string whose end may be missing. */
function cutString(text: string): string {
  let end = 0;
  while (end < text.length && text[end] !== '"') {
    const length = text[end] !== "\\" ? 1 : text[end + 1] === "u" ? 6 : 2;
    if (end + length > text.length) break;
    end += length;
  }
  return JSON.parse(`"${text.slice(0, end)}"`) as string;
}
