// Served repositories in bulk: rows, events and directories as pushes would have left them, in seconds instead of hours. Files
// are made by the program's own functions; objects are links to one pack.

import { createHash } from "node:crypto";
import { link, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setScan, setSearched } from "../../src/catalogue/large-files.js";
import { changeRefs, type RefValue, recordAligned } from "../../src/catalogue/refs.js";
import { newRepositoryRow, setCatalogueRow } from "../../src/catalogue/repositories.js";
import { diskAddress } from "../../src/git/address.js";
import { createRepositoryFiles, packedRefs } from "../../src/git/repository-files.js";
import { type EventId, eventId, type Pubkey, type Tag, type VerifiedEvent } from "../../src/nostr/event.js";
import { SecretKey } from "../../src/nostr/keys.js";
import { npubOf } from "../../src/nostr/nip19.js";
import type { Oid, RefName } from "../../src/nostr/nip34.js";
import { openLmdbStore } from "../../src/store/lmdb/open.js";
import type { Transaction } from "../../src/store/port.js";
import type { HostedRepository } from "../traffic.js";
import { git } from "../traffic-git.js";

/** A repository whose objects the others have too. */
export interface Template {
  readonly work: string;
  readonly packFolder: string;
  readonly tip: Oid;
}

export interface Placing {
  readonly folder: string;
  readonly port: number;
  readonly count: number;
  readonly template: Template;
  /** Besides HEAD's branch `main`. */
  readonly branches?: number;
  /** Pull requests with their refs. */
  readonly pullRequests?: number;
  readonly issues?: number;
  /** Relays of the repository at this place, beside this server. */
  readonly relays?: (place: number) => readonly string[];
}

const stateSeconds = 1_600_000_000;
const atOnce = 200;
const eventsAtOnce = 5_000;

export async function mustGit(cwd: string, ...args: string[]): Promise<string> {
  const { ok, text } = await git(cwd, ...args);
  if (!ok) throw new Error(`git ${args[0]}: ${text}`);
  return text.trim();
}

/** `write` makes what its one commit holds. */
export async function templateIn(folder: string, write: (work: string) => Promise<void>): Promise<Template> {
  const [work, bare] = [join(folder, "work"), join(folder, "template.git")];
  await mustGit(folder, "init", "-q", "-b", "main", work);
  await write(work);
  // Large files are random bytes: nothing is gained by trying to make them smaller.
  await mustGit(work, "-c", "core.compression=0", "add", "-A");
  await mustGit(work, "commit", "-q", "-m", "first");
  await mustGit(folder, "clone", "-q", "--bare", work, bare);
  await mustGit(bare, "-c", "core.compression=0", "repack", "-adq");
  return { work, packFolder: join(bare, "objects/pack"), tip: (await mustGit(work, "rev-parse", "HEAD")) as Oid };
}

/** Signatures are not looked at by the store, and these come to it alone. */
export function eventBy(pubkey: Pubkey, kind: number, at: number, tags: readonly Tag[], content = ""): VerifiedEvent {
  const unsigned = { pubkey, created_at: at, kind, tags, content };
  const id = eventId(unsigned);
  const sig = "0".repeat(128);
  const raw = JSON.stringify({ id, ...unsigned, sig });
  return { id, ...unsigned, sig, raw } as unknown as VerifiedEvent;
}

const keyOf = (place: number): SecretKey =>
  SecretKey.generate((length) => createHash("sha256").update(`owner ${place}`).digest().subarray(0, length));

/** Each pull request is about another commit. Which one its ref really holds is git's business. */
const commitOf = (place: number): string => createHash("sha1").update(`commit ${place}`).digest("hex");

interface Placed extends HostedRepository {
  readonly events: readonly VerifiedEvent[];
  readonly state: VerifiedEvent;
  readonly refs: ReadonlyMap<RefName, RefValue>;
  readonly tip: Oid;
  readonly pullRequests: readonly EventId[];
}

export const branchNames = (count: number): RefName[] =>
  Array.from({ length: count }, (_, at) => `refs/heads/branch-${String(at).padStart(6, "0")}` as RefName);

function placedAt(place: number, placing: Placing): Placed {
  const { port, template, branches = 0, pullRequests = 0, issues = 0, relays } = placing;
  const key = keyOf(place);
  const { pubkey } = key;
  const [npub, identifier] = [npubOf(pubkey), `repository-${place}`];
  const coordinate = `30617:${pubkey}:${identifier}`;
  const clone = `http://127.0.0.1:${port}/${npub}/${identifier}.git`;
  const announcement = eventBy(pubkey, 30_617, stateSeconds, [
    ["d", identifier],
    ["name", identifier],
    ["description", "A repository that exists for a benchmark"],
    ["clone", clone],
    ["relays", `ws://127.0.0.1:${port}`, ...(relays?.(place) ?? [])],
  ]);
  const names = [...branchNames(branches), "refs/heads/main" as RefName];
  const stated = names.map((name): Tag => [name, template.tip]);
  const state = eventBy(pubkey, 30_618, stateSeconds, [["d", identifier], ...stated, ["HEAD", "ref: refs/heads/main"]]);
  const talk = Array.from({ length: issues }, (_, at) =>
    eventBy(pubkey, 1_621, stateSeconds + at, [["a", coordinate]], `issue ${at}`),
  );
  const asked = Array.from({ length: pullRequests }, (_, at) =>
    eventBy(pubkey, 1_618, stateSeconds + at, [
      ["a", coordinate],
      ["c", commitOf(at)],
      ["clone", clone],
      ["subject", `pull request ${at}`],
    ]),
  );
  const contributed = asked.map(({ id }) => `refs/nostr/${id}` as RefName).sort();
  const value: RefValue = { oid: template.tip, peeled: undefined };
  return {
    ...{ npub, identifier, ownerHex: pubkey, secretHex: Buffer.from(key.exportBytes()).toString("hex") },
    events: [announcement, state, ...talk, ...asked],
    state,
    refs: new Map([...names, ...contributed].map((name) => [name, value])),
    tip: template.tip,
    pullRequests: asked.map(({ id }) => id),
  };
}

async function writeRows(
  tx: Transaction,
  { state, refs, tip, pullRequests, ownerHex, identifier }: Placed,
): Promise<void> {
  const name = { owner: ownerHex as Pubkey, identifier };
  const changes = [...refs].map(([ref, value]) => ({ ref, value }));
  const version = await changeRefs(tx, name, changes, "refs/heads/main" as RefName);
  await recordAligned(tx, name, version);
  // Its history was searched for large files, as that of every repository that was here for a while.
  const fullAt = Math.floor(Date.now() / 1_000);
  setScan(tx, { ...name, area: "main", version, tips: [tip], fullAt });
  for (const id of pullRequests) setSearched(tx, name, id);
  const { id, created_at } = state;
  setCatalogueRow(tx, {
    ...newRepositoryRow(name, stateSeconds),
    status: "served",
    governing: id,
    mark: { id, created_at },
    counters: { pushes: 1, bytes: 1_000, pullRequestBytes: 0 },
  });
}

async function writeFiles(gitFolder: string, placed: Placed, { packFolder }: Template): Promise<void> {
  const { ownerHex, identifier, refs } = placed;
  const directory = diskAddress({ owner: ownerHex as Pubkey, identifier }).directoryUnder(gitFolder);
  await createRepositoryFiles(directory, identifier);
  for (const name of await readdir(packFolder))
    await link(join(packFolder, name), join(directory, "objects/pack", name));
  await writeFile(join(directory, "packed-refs"), packedRefs(refs));
  await writeFile(join(directory, "HEAD"), "ref: refs/heads/main\n");
}

/** Only while no server runs there. */
export async function placeRepositories(
  placing: Placing,
  progress: (text: string) => void,
): Promise<HostedRepository[]> {
  const { folder, count, template } = placing;
  const store = await openLmdbStore(join(folder, "relay"));
  const hosted: HostedRepository[] = [];
  for (let done = 0; done < count; done += atOnce) {
    const some = Array.from({ length: Math.min(atOnce, count - done) }, (_, at) => placedAt(done + at, placing));
    const events = some.flatMap((placed) => placed.events);
    for (let put = 0; put < events.length; put += eventsAtOnce) {
      await store.transact(async (tx) => {
        for (const event of events.slice(put, put + eventsAtOnce)) await tx.put(event);
      });
    }
    await store.transact(async (tx) => {
      for (const placed of some) await writeRows(tx, placed);
    });
    await Promise.all(some.map((placed) => writeFiles(join(folder, "git"), placed, template)));
    hosted.push(
      ...some.map(({ npub, identifier, ownerHex, secretHex }) => ({ npub, identifier, ownerHex, secretHex })),
    );
    if (done % 2_000 === 0)
      progress(`${hosted.length.toLocaleString("en")} of ${count.toLocaleString("en")} repositories`);
  }
  await store.close();
  return hosted;
}

/** The settings of a server over what was placed. */
export const placedSettings = (port: number): Record<string, string> => ({
  BENCH_POLICY: "grasp",
  NGIT_DOMAIN: `127.0.0.1:${port}`,
  NGIT_ALLOW_PRIVATE_ADDRESSES: "true",
  NGIT_SYNC_STARTUP_JITTER_MS: "0",
});
