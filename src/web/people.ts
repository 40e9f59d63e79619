// Who somebody is, as far as this server has their profile. A name is what its owner claims: the key stands beside it.

import { kinds, type Pubkey } from "../nostr/event.js";
import { npubOf } from "../nostr/nip19.js";
import type { Reader } from "../store/port.js";
import { foreign, type Html, html, shortNpub, webUrl } from "./html.js";
import { ownerPath, type Site } from "./layout.js";
import { ownText, readWithin } from "./read-within.js";

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
    if (person) people.set(pubkey, { ...person, name: profileIn(content).name });
  });
  return people;
}

/** What a profile says, as far as a page shows it. */
export interface Profile {
  readonly name: string | undefined;
  readonly about: string | undefined;
  readonly website: string | undefined;
  /** An address of a picture elsewhere: linked, never loaded. */
  readonly picture: string | undefined;
  /** As claimed; nobody checks it here. */
  readonly nip05: string | undefined;
}

const nothingSaid: Profile = {
  name: undefined,
  about: undefined,
  website: undefined,
  picture: undefined,
  nip05: undefined,
};

export function profileIn(content: string): Profile {
  let profile: unknown;
  try {
    profile = JSON.parse(content);
  } catch {
    return nothingSaid; // A profile may hold anything; one that is not JSON says nothing.
  }
  const said = (profile ?? {}) as Record<string, unknown>;
  const text = (name: string, most: number): string | undefined => {
    const value = said[name];
    return typeof value === "string" && value.trim() !== "" ? ownText(value.trim().slice(0, most)) : undefined;
  };
  const address = (name: string): string | undefined => webUrl(text(name, 2_000) ?? "");
  return {
    name: text("display_name", maxNameCharacters) ?? text("name", maxNameCharacters),
    about: text("about", 2_000),
    website: address("website"),
    picture: address("picture"),
    nip05: text("nip05", 200),
  };
}

export async function profileOf(reader: Reader, pubkey: Pubkey): Promise<Profile> {
  const stored = await reader.latest({ kind: kinds.profile, pubkey, identifier: "" });
  return stored && stored.event.raw.length <= longestProfile ? profileIn(stored.event.content) : nothingSaid;
}

/** Leads to that person's page here. */
export const personLink = (site: Site, { pubkey, npub, name }: Person): Html =>
  html`<a href="${ownerPath(site, pubkey)}" title="${npub}">${name !== undefined && html`${foreign(name, 40)} `}<span class="mono">${shortNpub(npub)}</span></a>`;

/** In a line where every letter counts: the name, or the key. */
export const shortPersonLink = (site: Site, { pubkey, npub, name }: Person): Html =>
  html`<a href="${ownerPath(site, pubkey)}" title="${npub}">${name !== undefined ? foreign(name, 40) : html`<span class="mono">${shortNpub(npub)}</span>`}</a>`;
