// A plain relay and a server, both gone with the test, and a repository of the server's that lists the relay.

import type { TestContext } from "node:test";
import type { NostrEvent } from "../../src/nostr/event.js";
import { keyOf } from "./relay-events.js";
import { type PlainHabits, PlainRelay } from "./sync-plain-relay.js";
import {
  announce,
  type SyncServer,
  type SyncServerWish,
  serveRepository,
  startSyncServer,
  until,
} from "./sync-server.js";

export const owner = keyOf("owner");
export const visitor = keyOf("visitor");

export interface PairWish extends Omit<SyncServerWish, "bootstrap"> {
  readonly habits?: PlainHabits;
  /** The server follows the relay whatever its repositories list. */
  readonly asBootstrap?: boolean;
}

export interface Pair {
  readonly relay: PlainRelay;
  readonly server: SyncServer;
  /** Announced to nobody yet. */
  readonly repository: NostrEvent;
}

export async function startPair(t: TestContext, { habits, asBootstrap, ...wish }: PairWish = {}): Promise<Pair> {
  const relay = await PlainRelay.start(habits);
  t.after(() => relay.stop());
  const server = await startSyncServer({ ...wish, ...(asBootstrap && { bootstrap: [relay.url] }) });
  t.after(() => server.close());
  return { relay, server, repository: announce(owner, [server.domain], { relays: [relay.url] }) };
}

/** The repository is served, and the relay is in step. */
export async function startLivePair(t: TestContext, wish: PairWish = {}): Promise<Pair> {
  const pair = await startPair(t, wish);
  await serveRepository(pair.server.store, pair.repository);
  await untilLive(pair.server);
  return pair;
}

export const untilLive = (server: SyncServer): Promise<void> =>
  until("live", async () => (await server.status()).relays[0]?.state === "live");

export async function hasAll(server: SyncServer, ids: readonly string[]): Promise<boolean> {
  for (const id of ids) if (!(await server.store.has(id as never))) return false;
  return true;
}
