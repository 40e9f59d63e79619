// How pages write numbers, times, keys and ids: the same everywhere, and the same for every reader, so that a page
// has one ETag. The script rewrites times as "3 hours ago" where it runs.

import { sizeText } from "../base/text.js";
import type { Pubkey } from "../nostr/ids.js";
import { npubOf } from "../nostr/nip19.js";
import { type Html, html } from "./html.js";

export const count = (value: number): string => value.toLocaleString("en");

export const counted = (value: number, one: string, many: string): string =>
  `${count(value)} ${value === 1 ? one : many}`;

export { sizeText as bytes };

/** Beyond these a Date has no ISO text; commits may claim any time. */
const maxSeconds = 253_402_300_799;

export function time(seconds: number): Html {
  if (!Number.isFinite(seconds) || seconds < 0 || seconds > maxSeconds) return html`<span>some time</span>`;
  const iso = new Date(seconds * 1000).toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC</time>`;
}

export const shortNpub = (npub: string): string => `${npub.slice(0, 12)}…${npub.slice(-6)}`;

export const shortOid = (oid: string): string => oid.slice(0, 8);

/** Where a person's page is, in a client for git over Nostr. */
export const personUrl = (pubkey: Pubkey): string => `https://gitworkshop.dev/${npubOf(pubkey)}`;
