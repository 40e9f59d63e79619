// Who somebody is, as far as this server has their profile. A name is what its owner claims: the key stands beside it.

import type { Pubkey } from "../nostr/ids.js";
import { kinds } from "../nostr/kinds.js";
import { npubOf } from "../nostr/nip19.js";
import type { Reader } from "../store/port.js";
import { foreign, type Html, html } from "./html.js";
import { personUrl, shortNpub } from "./words.js";

export interface Person {
  readonly pubkey: Pubkey;
  readonly npub: string;
  /** From the profile (kind 0), if one is stored here. */
  readonly name: string | undefined;
}

export async function personOf(reader: Reader, pubkey: Pubkey): Promise<Person> {
  const profile = await reader.latest({ kind: kinds.profile, pubkey, identifier: "" });
  return { pubkey, npub: npubOf(pubkey), name: profile && nameIn(profile.event.content) };
}

/** Each key looked up once, in order. */
export async function peopleOf(reader: Reader, pubkeys: Iterable<Pubkey>): Promise<Map<Pubkey, Person>> {
  const people = new Map<Pubkey, Person>();
  for (const pubkey of pubkeys) if (!people.has(pubkey)) people.set(pubkey, await personOf(reader, pubkey));
  return people;
}

function nameIn(content: string): string | undefined {
  let profile: unknown;
  try {
    profile = JSON.parse(content);
  } catch {
    return undefined; // A profile may hold anything; one that is not JSON has no name.
  }
  const { name, display_name: displayName } = (profile ?? {}) as Record<string, unknown>;
  for (const text of [displayName, name]) {
    if (typeof text === "string" && text.trim() !== "") return text.trim();
  }
  return undefined;
}

export const personLink = ({ pubkey, npub, name }: Person): Html =>
  html`<a href="${personUrl(pubkey)}" title="${npub}">${name !== undefined && html`${foreign(name, 40)} `}<span class="mono">${shortNpub(npub)}</span></a>`;
