// Where a repository can be found: here, by git, by ngit, and in clients for git over Nostr.

import type { RepositoryName } from "../catalogue/repositories.js";
import type { EventId, Pubkey } from "../nostr/ids.js";
import { kinds } from "../nostr/kinds.js";
import { naddrOf, neventOf, npubOf } from "../nostr/nip19.js";
import type { Site } from "./layout.js";

const pathOf = ({ owner, identifier }: RepositoryName): string =>
  `/${npubOf(owner)}/${encodeURIComponent(identifier)}.git`;

/** For links on this server's pages. */
export const repositoryPath = (site: Site, name: RepositoryName): string => site.basePath + pathOf(name);

export const cloneUrl = (site: Site, name: RepositoryName): string => site.httpUrl + pathOf(name);

/** No repository's path begins with `badge`: that is not an npub. */
export const badgePath = (name: RepositoryName): string => `/badge${pathOf(name).replace(/\.git$/, ".svg")}`;

/** What ngit's remote helper reads: `nostr://<npub>/<relay>/<identifier>`; the relay is wss unless it says otherwise. */
export function nostrUrl(site: Site, { owner, identifier }: RepositoryName): string {
  const relay = /^wss:\/\/[^/]+$/.test(site.relayUrl)
    ? site.relayUrl.slice("wss://".length)
    : encodeURIComponent(site.relayUrl);
  return `nostr://${npubOf(owner)}/${relay}/${encodeURIComponent(identifier)}`;
}

export function naddr(site: Site, { owner, identifier }: RepositoryName): string | undefined {
  const address = { kind: kinds.announcement, pubkey: owner, identifier };
  return naddrOf({ address, relays: [site.relayUrl] });
}

const client = "https://gitworkshop.dev";

/** Undefined for names too long for NIP-19. */
export function clientUrl(site: Site, name: RepositoryName): string | undefined {
  const address = naddr(site, name);
  return address === undefined ? undefined : `${client}/${address}`;
}

export function threadUrl(site: Site, thread: { id: EventId; author: Pubkey; kind: number }): string | undefined {
  const pointer = neventOf({ ...thread, relays: [site.relayUrl] });
  return pointer === undefined ? undefined : `${client}/${pointer}`;
}
