// What `holdfast bench` measures, each figure beside what this machine could do at best in the same run. First the parts
// on their own: signatures, the disk, the store. Then a whole server, asked as clients ask it: events over WebSockets,
// pushes and clones over HTTP; beside them what git needs for the same work without a server. Everything lies in a folder
// that goes afterwards.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { WebSocket } from "ws";
import { createLiveConfig, type LiveConfig, loadConfig } from "../config/load.js";
import { createLog, type Logger } from "../config/logging.js";
import { createRepositoryFiles } from "../git/repository-files.js";
import type { Git } from "../git/run.js";
import { kinds, type NostrEvent, type VerifiedEvent } from "../nostr/event.js";
import { SecretKey, signEvent } from "../nostr/keys.js";
import { npubOf } from "../nostr/nip19.js";
import { chooseEngine, packSignatures, verifyPacked } from "../nostr/verify/engines.js";
import { createVerifierPool } from "../nostr/verify/pool.js";
import { openLmdbStore } from "../store/lmdb/open.js";

export interface Measured {
  readonly what: string;
  readonly value: number;
  readonly unit: "per second" | "ms";
  /** What bounds it, and how much that is here; undefined where nothing simple does. */
  readonly limit?: { readonly what: string; readonly value: number };
}

/** 1 is as good as it gets. */
export function shareOfLimit({ value, unit, limit }: Measured): number | undefined {
  if (!limit || limit.value === 0 || value === 0) return undefined;
  return unit === "ms" ? limit.value / value : value / limit.value;
}

/** Calls again and again for so long; how often a second. */
async function ratePerSecond(forMs: number, once: () => Promise<number> | number): Promise<number> {
  const began = performance.now();
  let done = 0;
  while (performance.now() - began < forMs) done += await once();
  return (done * 1000) / (performance.now() - began);
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;

async function timeMs(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

const atOnce = 200;

function signedEvents(key: SecretKey, count: number, draft: Pick<NostrEvent, "kind" | "tags">): NostrEvent[] {
  const created_at = Math.floor(Date.now() / 1000);
  return Array.from({ length: count }, (_, index) =>
    signEvent(key, { ...draft, created_at, content: `${index} ${"lorem ipsum ".repeat(20)}` }, randomBytes),
  );
}

/** Also tells how many signatures a second the server could check: what bounds ingest. */
export async function measureSignatures(forMs: number, workers: number): Promise<Measured> {
  const events = signedEvents(SecretKey.generate(randomBytes), atOnce, { kind: 1, tags: [] });
  const engine = await chooseEngine();
  const packed = packSignatures(events);
  const oneCore = await ratePerSecond(forMs, () => verifyPacked(engine, packed).length);
  const pool = await createVerifierPool({ workers });
  try {
    await Promise.all(events.map((event) => pool.verify(event)));
    const value = await ratePerSecond(forMs, async () => {
      await Promise.all(events.map((event) => pool.verify(event)));
      return events.length;
    });
    const limit = { what: `${engine.name} on ${workers} core${workers > 1 ? "s" : ""}`, value: oneCore * workers };
    return { what: "signatures checked", value, unit: "per second", limit };
  } finally {
    await pool.close();
  }
}

async function syncsPerSecond(folder: string, forMs: number): Promise<number> {
  const file = await open(join(folder, "sync"), "w");
  const page = randomBytes(4096);
  try {
    return await ratePerSecond(forMs, async () => {
      await file.write(page);
      await file.datasync();
      return 1;
    });
  } finally {
    await file.close();
  }
}

export async function measureStore(folder: string, forMs: number): Promise<Measured[]> {
  const syncs = await syncsPerSecond(folder, forMs);
  const store = await openLmdbStore(join(folder, "store"));
  try {
    let row = 0;
    const commits = await ratePerSecond(forMs, async () => {
      await store.transact(async (tx) => tx.setRow("meta", `bench-${row++ % 100}`, row));
      return 1;
    });
    const key = SecretKey.generate(randomBytes);
    const events = signedEvents(key, atOnce * 10, { kind: 1, tags: [] }) as unknown as VerifiedEvent[];
    let next = 0;
    const began = performance.now();
    let lastedMs = 0;
    while (next < events.length && lastedMs < forMs) {
      const batch = events.slice(next, next + atOnce);
      await Promise.all(batch.map((event) => store.transact((tx) => tx.put(event))));
      next += batch.length;
      lastedMs = performance.now() - began;
    }
    const stored = (next * 1000) / lastedMs;
    const limit = { what: "fdatasync of 4 KiB", value: syncs };
    return [
      { what: "commits one after the other", value: commits, unit: "per second", limit },
      { what: `events stored, ${atOnce} at once`, value: stored, unit: "per second" },
    ];
  } finally {
    await store.close();
  }
}

/** On a free port of this machine, with its data in a given folder. */
export interface TemporaryServer {
  /** `127.0.0.1:port` */
  readonly address: string;
  readonly domain: string;
  close(): Promise<void>;
}

const benchDomain = "bench.example";

/** The settings of an operator's server, except for limits that one client alone would run into. */
export async function startTemporary(
  folder: string,
  cores: number,
  start: (parts: {
    readonly live: LiveConfig;
    readonly logger: Logger;
    readonly build: { readonly version: string; readonly commit: string };
    readonly onFault: (error: unknown) => void;
  }) => Promise<Pick<TemporaryServer, "address" | "close">>,
): Promise<TemporaryServer> {
  const environment = {
    NGIT_BIND_ADDRESS: "127.0.0.1:0",
    NGIT_DOMAIN: benchDomain,
    NGIT_DATA_PATH: join(folder, "data"),
    NGIT_EVENTS_PER_MINUTE_PER_CONNECTION: "1000000",
    NGIT_EVENTS_PER_MINUTE_PER_IP: "1000000",
    NGIT_RECEIVE_PER_SECOND_PER_IP_BYTES: "1GiB",
    NGIT_EVENTS_PER_DAY_PER_AUTHOR_BYTES: "1TiB",
    NGIT_EVENTS_PER_DAY_PER_REPOSITORY_BYTES: "1TiB",
    NGIT_EVENTS_PER_DAY_PER_IP_BYTES: "1TiB",
  };
  const surroundings = { logIsTerminal: false, cores };
  const load = () => loadConfig({ flags: {}, environment, configPath: undefined, readFile: () => "", surroundings });
  const loaded = load();
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const server = await start({
    live: createLiveConfig(loaded, load),
    logger: createLog({ level: "fatal", format: "text" }).logger,
    build: { version: "bench", commit: "bench" },
    onFault(error) {
      throw error;
    },
  });
  return { address: server.address, domain: benchDomain, close: () => server.close() };
}

const connections = 4;
const identifier = "bench";

export async function measureServer(
  server: TemporaryServer,
  git: Git,
  folder: string,
  rounds: number,
  signaturesPerSecond: number,
): Promise<Measured[]> {
  const key = SecretKey.generate(randomBytes);
  const npub = npubOf(key.pubkey);
  const url = `http://${server.address}/${npub}/${identifier}.git`;
  const sockets = await Promise.all(Array.from({ length: connections }, () => connected(server.address)));
  try {
    const [first] = sockets as [WebSocket];
    await publish(first, [
      sign(key, kinds.announcement, [
        ["d", identifier],
        ["clone", `https://${server.domain}/${npub}/${identifier}.git`],
        ["relays", `wss://${server.domain}`],
      ]),
    ]);
    const pushes = await measurePushes(git, folder, url, rounds, (tip, at) =>
      publish(first, [
        sign(
          key,
          kinds.state,
          [
            ["d", identifier],
            ["refs/heads/main", tip],
            ["HEAD", "ref: refs/heads/main"],
          ],
          at,
        ),
      ]),
    );
    const clones = await measureClones(git, folder, url, rounds);
    const ingest = await measureIngest(sockets, key, rounds * 200, signaturesPerSecond);
    return [ingest, pushes, clones];
  } finally {
    for (const socket of sockets) socket.close();
  }
}

const sign = (key: SecretKey, kind: number, tags: string[][], at = Math.floor(Date.now() / 1000)): NostrEvent =>
  signEvent(key, { kind, created_at: at, tags, content: "" }, randomBytes);

async function connected(address: string): Promise<WebSocket> {
  const socket = new WebSocket(`ws://${address}`);
  await once(socket, "open");
  return socket;
}

/** Resolves when all are answered; a refusal is a fault of the benchmark. */
function publish(socket: WebSocket, events: readonly NostrEvent[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const open = new Set<string>(events.map(({ id }) => id));
    const ended = (): void => reject(new Error("the server closed the connection"));
    const listener = (data: unknown): void => {
      const [verb, id, ok, text] = JSON.parse(String(data)) as [string, string, boolean, string];
      if (verb !== "OK" || !open.delete(id)) return;
      if (!ok) reject(new Error(`the server refused an event of the benchmark: ${text}`));
      if (open.size > 0) return;
      socket.off("message", listener);
      socket.off("close", ended);
      resolve();
    };
    socket.on("message", listener);
    socket.once("close", ended);
    for (const { raw } of events) socket.send(`["EVENT",${raw}]`);
  });
}

async function measureIngest(
  sockets: readonly WebSocket[],
  key: SecretKey,
  count: number,
  signaturesPerSecond: number,
): Promise<Measured> {
  const tags = [["a", `${kinds.announcement}:${key.pubkey}:${identifier}`]];
  const events = signedEvents(key, count, { kind: 1621, tags });
  const share = Math.ceil(count / sockets.length);
  const ms = await timeMs(() =>
    Promise.all(sockets.map((socket, index) => publish(socket, events.slice(index * share, (index + 1) * share)))),
  );
  const limit = { what: "signatures checked", value: signaturesPerSecond };
  return { what: "events taken over WebSockets", value: (count * 1000) / ms, unit: "per second", limit };
}

/** The base setting forbids every protocol: here git is the client. */
const asClient = { settings: { "protocol.allow": "always" } };

async function bare(folder: string, name: string): Promise<string> {
  const directory = join(folder, `${name}.git`);
  await createRepositoryFiles(directory, name);
  return directory;
}

async function commit(git: Git, directory: string, parent: string | undefined): Promise<string> {
  const text = async (args: readonly [string, ...string[]], input: string): Promise<string> =>
    (await git.mustRun(args, { directory, input })).toString("utf8").trim();
  const blob = await text(["hash-object", "-w", "--stdin"], randomBytes(2_000).toString("hex"));
  const tree = await text(["mktree"], `100644 blob ${blob}\tfile\n`);
  return text(["commit-tree", tree, ...(parent === undefined ? [] : ["-p", parent])], "a commit\n");
}

async function measurePushes(
  git: Git,
  folder: string,
  url: string,
  rounds: number,
  announce: (tip: string, at: number) => Promise<void>,
): Promise<Measured> {
  const directory = await bare(folder, "client");
  const beside = await bare(folder, "beside");
  const here: number[] = [];
  const plain: number[] = [];
  let tip: string | undefined;
  const from = Math.floor(Date.now() / 1000) - rounds;
  for (let round = 0; round < rounds; round++) {
    tip = await commit(git, directory, tip);
    await announce(tip, from + round);
    const refspec = `${tip}:refs/heads/main`;
    const push = (target: string) => git.mustRun(["push", "--quiet", target, refspec], { directory, ...asClient });
    here.push(await timeMs(() => push(url)));
    plain.push(await timeMs(() => push(`file://${beside}`)));
  }
  const limit = { what: "the same push to a folder", value: median(plain) };
  return { what: "a push of one commit", value: median(here), unit: "ms", limit };
}

async function measureClones(git: Git, folder: string, url: string, rounds: number): Promise<Measured> {
  const here: number[] = [];
  const plain: number[] = [];
  const clone = (source: string, name: string) =>
    git.mustRun(["clone", "--quiet", "--bare", source, join(folder, name)], asClient);
  for (let round = 0; round < rounds; round++) {
    here.push(await timeMs(() => clone(url, `clone-${round}`)));
    plain.push(await timeMs(() => clone(`file://${join(folder, "beside.git")}`, `plain-${round}`)));
  }
  const limit = { what: "the same clone from a folder", value: median(plain) };
  return { what: "a small clone", value: median(here), unit: "ms", limit };
}
