// Who belongs to a private service (GRASP-08): its own key, the admins, the keys of NGIT_PRIVATE_MEMBERS and those added at
// run time, and, where the operator wishes it, the keys that run the other relays of accepted announcements. A key that
// the operator has banned or blacklisted does not belong, whoever names it. On a public service everybody else belongs: a
// banned key's token or signature opens nothing there either.

import type { Config } from "../config/config.js";
import { memo } from "../config/load.js";
import type { Pubkey } from "../nostr/event.js";
import type { Store, TableReader, Transaction } from "../store/port.js";

interface MemberSources {
  /** The settings with what was added at run time. */
  readonly inForce: () => Config;
  readonly serverKey: Pubkey;
  readonly adminKeys: () => ReadonlySet<Pubkey>;
  readonly isBanned: (pubkey: Pubkey) => boolean;
}

/** A key that counts because it runs a relay. */
export interface PeerKey {
  readonly relay: string;
  readonly pubkey: Pubkey;
}

export class Members {
  readonly #sources: MemberSources;
  readonly #listed: () => ReadonlySet<Pubkey>;
  readonly #refused: () => ReadonlySet<Pubkey>;
  readonly #listeners = new Set<() => void>();
  #peers: readonly PeerKey[] = [];
  readonly isPrivate: boolean;

  constructor(sources: MemberSources) {
    this.#sources = sources;
    // Never both in one process: a change of the setting needs a restart.
    this.isPrivate = sources.inForce().privateMode;
    this.#listed = memo(sources.inForce, ({ privateMembers }) => new Set(privateMembers));
    this.#refused = memo(sources.inForce, ({ eventBlacklist }) => new Set(eventBlacklist));
  }

  has(pubkey: Pubkey): boolean {
    if (pubkey === this.#sources.serverKey) return true;
    if (this.isKeptOut(pubkey)) return false;
    return (
      !this.isPrivate ||
      this.#listed().has(pubkey) ||
      this.#sources.adminKeys().has(pubkey) ||
      this.#peers.some((peer) => peer.pubkey === pubkey)
    );
  }

  /** Banned or blacklisted by the operator. */
  isKeptOut(pubkey: Pubkey): boolean {
    return this.#refused().has(pubkey) || this.#sources.isBanned(pubkey);
  }

  get peers(): readonly PeerKey[] {
    return this.#peers;
  }

  /** Answers those that are new. */
  setPeers(peers: readonly PeerKey[]): PeerKey[] {
    const key = ({ relay, pubkey }: PeerKey): string => `${pubkey} ${relay}`;
    const before = new Set(this.#peers.map(key));
    const added = peers.filter((peer) => !before.has(key(peer)));
    const isSame = added.length === 0 && peers.length === before.size;
    this.#peers = peers;
    if (!isSame) this.changed();
    return added;
  }

  /** The settings or the rules are others than before: whoever lets members in looks again. */
  changed(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Somebody may have become a member, or be one no more. Answers how to stop. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

const peersKey = "members:peers";

/** Those that whoever leads a cluster has found: the other machines let them in too, and the next leader begins with them. */
export const keptPeers = async (reader: TableReader): Promise<readonly PeerKey[]> =>
  (await reader.row<readonly PeerKey[]>("meta", peersKey)) ?? [];

export const keepPeers = (tx: Transaction, peers: readonly PeerKey[]): void => tx.setRow("meta", peersKey, peers);

/** Answers how to stop. A server that is alone finds its peers by itself. */
export async function followPeers(store: Store, members: Members): Promise<() => void> {
  if (!store.isShared || !members.isPrivate) return () => undefined;
  const read = async (): Promise<void> => void members.setPeers(await keptPeers(store));
  await read();
  return store.onForeignCommit((commit) => ([...commit.changedKeys("meta")].includes(peersKey) ? read() : undefined));
}
