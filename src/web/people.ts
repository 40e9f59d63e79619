// Who somebody is, as far as this server has their profile. A name is what its owner claims: the key stands beside it.

import type { Pubkey } from "../nostr/ids.js";
import { kinds } from "../nostr/kinds.js";
import { npubOf } from "../nostr/nip19.js";
import type { Reader } from "../store/port.js";
import { ownText, readWithin } from "./bounded-reading.js";
import { foreign, type Html, html } from "./html.js";
import { personUrl, shortNpub } from "./words.js";

export interface Person {
  readonly pubkey: Pubkey;
  readonly npub: string;
  /** From the profile (kind 0), if one is stored here. */
  readonly name: string | undefined;
}

const maxProfileBytes = 2 * 2 ** 20;
/** Longer profiles are not looked into for a name. */
const longestProfile = 64 * 1024;
const maxNameCharacters = 100;

/** Each key once, in order. */
export async function peopleOf(reader: Reader, pubkeys: Iterable<Pubkey>): Promise<Map<Pubkey, Person>> {
  const people = new Map<Pubkey, Person>();
  for (const pubkey of pubkeys) people.set(pubkey, { pubkey, npub: npubOf(pubkey), name: undefined });
  const profiles = { kinds: [kinds.profile], authors: [...people.keys()] };
  await readWithin(reader, [profiles], maxProfileBytes, (row) => {
    if (row.size > longestProfile) return;
    const { pubkey, content } = row.event;
    const person = people.get(pubkey);
    if (person) people.set(pubkey, { ...person, name: nameIn(content) });
  });
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
    if (typeof text === "string" && text.trim() !== "") return ownText(text.trim().slice(0, maxNameCharacters));
  }
  return undefined;
}

export const personLink = ({ pubkey, npub, name }: Person): Html =>
  html`<a href="${personUrl(pubkey)}" title="${npub}">${name !== undefined && html`${foreign(name, 40)} `}<span class="mono">${shortNpub(npub)}</span></a>`;
