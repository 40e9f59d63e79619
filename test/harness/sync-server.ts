// Whole servers in this process that sync at once, with a store a test can look into and put served repositories into.

import { type Clock, systemClock } from "../../src/base/clock.js";
import { refreshListings } from "../../src/catalogue/maintainers.js";
import { newRepositoryRow, setCatalogueRow } from "../../src/catalogue/repositories.js";
import type { WaitingEntry } from "../../src/catalogue/waiting.js";
import { type NostrEvent, tagValue, type VerifiedEvent } from "../../src/nostr/event.js";
import type { Filter } from "../../src/nostr/filter.js";
import { npubOf } from "../../src/nostr/nip19.js";
import { createMemoryStore } from "../../src/store/memory/memory-store.js";
import type { Store } from "../../src/store/port.js";
import type { SyncStatus } from "../../src/sync/status.js";
import { sign, type TestKey } from "./relay-events.js";
import { type LogLine, startInProcess } from "./server.js";

export { untilSo as until } from "./server.js";

export interface SyncServer {
  readonly port: number;
  readonly domain: string;
  readonly url: string;
  readonly store: Store;
  readonly log: readonly LogLine[];
  readonly faults: readonly unknown[];
  metric(name: string, labels?: Readonly<Record<string, string>>): Promise<number | undefined>;
  status(): Promise<SyncStatus>;
  close(): Promise<void>;
}

export interface SyncServerWish {
  readonly port?: number;
  readonly store?: Store;
  readonly clock?: Clock;
  readonly bootstrap?: readonly string[];
  readonly settings?: Readonly<Record<string, string>>;
}

export async function startSyncServer(wish: SyncServerWish = {}): Promise<SyncServer> {
  const { bootstrap = [], clock = systemClock, port } = wish;
  const store = wish.store ?? createMemoryStore({ clock });
  const log: LogLine[] = [];
  const server = await startInProcess({
    hasDefaultLimits: true,
    settings: {
      NGIT_SYNC_BOOTSTRAP_RELAY_URL: bootstrap.join(","),
      NGIT_SYNC_BATCH_WINDOW_MS: "50",
      NGIT_SYNC_STARTUP_JITTER_MS: "0",
      NGIT_SYNC_BASE_BACKOFF_SECS: "1",
      NGIT_SYNC_DISCONNECT_CHECK_INTERVAL_SECS: "1",
      ...wish.settings,
    },
    clock,
    store,
    onLog: (line) => void log.push(line),
    ...(port !== undefined && { port }),
  });
  const { domain, url, faults } = server;
  let closed: Promise<void> | undefined;
  return {
    port: server.port,
    domain,
    url,
    store,
    log,
    faults,
    async metric(name, labels = {}) {
      const text = await (await fetch(`http://${domain}/metrics`)).text();
      return metricIn(text, name, labels);
    },
    status: async () => (await (await fetch(`http://${domain}/api/sync`)).json()) as SyncStatus,
    close() {
      closed ??= server.end();
      return closed;
    },
  };
}

/** The sum of all samples of that name that have these labels. */
export function metricIn(text: string, name: string, labels: Readonly<Record<string, string>>): number | undefined {
  let sum: number | undefined;
  for (const line of text.split("\n")) {
    const match = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (match?.[1] !== name) continue;
    const found = new Map([...(match[2] ?? "").matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key, value]));
    if (Object.entries(labels).every(([key, value]) => found.get(key) === value)) sum = (sum ?? 0) + Number(match[3]);
  }
  return sum;
}

export const nowSeconds = (): number => Math.floor(Date.now() / 1000);

export interface AnnouncementWish {
  readonly identifier?: string;
  readonly relays?: readonly string[];
  readonly created_at?: number;
  readonly tags?: readonly (readonly string[])[];
}

/** An announcement that lists these GRASP services (`host:port`), and other relays. */
export function announce(key: TestKey, services: readonly string[], wish: AnnouncementWish = {}): NostrEvent {
  const identifier = wish.identifier ?? "repo";
  const clone = services.map((service) => `http://${service}/${npubOf(key.pubkey)}/${identifier}.git`);
  const relays = [...services.map((service) => `ws://${service}`), ...(wish.relays ?? [])];
  return sign(key, {
    kind: 30617,
    created_at: wish.created_at ?? nowSeconds() - 1_000,
    tags: [["d", identifier], ["clone", ...clone], ["relays", ...relays], ...(wish.tags ?? [])],
  });
}

export const coordinateOf = (event: NostrEvent): string => `30617:${event.pubkey}:${tagValue(event, "d") ?? ""}`;

/** Puts an announcement into a store as if its git data had arrived: served, with a repository. */
export async function serveRepository(store: Store, event: NostrEvent): Promise<void> {
  const name = { owner: event.pubkey, identifier: tagValue(event, "d") ?? "" };
  await store.transact(async (tx) => {
    await tx.put(event as VerifiedEvent);
    setCatalogueRow(tx, { ...newRepositoryRow(name, nowSeconds()), status: "served" });
    await refreshListings(tx, name, nowSeconds());
  });
}

export async function put(store: Store, ...events: readonly NostrEvent[]): Promise<void> {
  for (let from = 0; from < events.length; from += 500) {
    await store.transact(async (tx) => {
      for (const event of events.slice(from, from + 500)) await tx.put(event as VerifiedEvent);
    });
  }
}

export const issueFor = (
  key: TestKey,
  repository: NostrEvent,
  content: string,
  wish: { created_at?: number; tag?: string } = {},
): NostrEvent =>
  sign(key, {
    kind: 1621,
    created_at: wish.created_at ?? nowSeconds() - 500,
    tags: [[wish.tag ?? "a", coordinateOf(repository)]],
    content,
  });

export async function idsIn(store: Store, filter: Filter = {}): Promise<string[]> {
  const ids: string[] = [];
  for await (const page of store.query([filter])) for (const row of page) ids.push(row.id);
  return ids.sort();
}

export async function isWaiting(store: Store, id: string): Promise<boolean> {
  return (await store.row<WaitingEntry>("purgatory", `e:${id}`)) !== undefined;
}
