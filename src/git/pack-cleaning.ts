// What leaves the pack store: packs that no list names, of pushes that were refused or never ended, once they are a day old;
// packs that left their lists, a day after that and not while a backup holds them; large files that no row names. The
// machine that leads looks now and then. A file is marked in a transaction that finds it unnamed, then removed; whoever
// would name a marked one puts it again under a later look. Marks stay for longer than a put may wait for being named.

import type { Clock } from "../base/clock.js";
import { holdersOf, isLargeFileId, unclaimedFiles } from "../catalogue/large-files.js";
import {
  forgetGone,
  goneBefore,
  listedPacks,
  oldestHold,
  type PackList,
  packLists,
  retiredSince,
  setGoing,
  unclaimedPacks,
} from "../catalogue/packs.js";
import { isPubkey, type Pubkey } from "../nostr/event.js";
import type { PackStore, StoredName } from "../packs/port.js";
import type { Store, TableReader, Transaction } from "../store/port.js";
import { diskAddress } from "./address.js";
import { packParts } from "./repository-files.js";
import { largeFilesFolder } from "./shared-files.js";

export interface CleaningParts {
  readonly packs: PackStore;
  readonly store: Store;
  readonly clock: Clock;
}

export interface Cleaned {
  readonly files: number;
  readonly bytes: number;
}

const dayMs = 86_400_000;
/** Twice as long as a put may wait for being named. */
const markedMs = 2 * 3_600_000;
const atOnce = 100;

/** One file of the store, or all files of one pack. */
interface Candidate {
  /** Without a pack's suffix. */
  readonly stored: string;
  readonly files: Map<StoredName, number>;
}

export async function cleanPackStore({ packs, store, clock }: CleaningParts, signal: AbortSignal): Promise<Cleaned> {
  const nowMs = clock.nowMs();
  const found = new Map<string, Candidate>();
  const done = { files: 0, bytes: 0 };
  const named = new Named(store);
  const flush = async (): Promise<void> => {
    for (const { files } of await markUnnamed({ store, clock }, [...found.values()])) {
      for (const [name, bytes] of files) {
        await packs.remove(name);
        done.files += 1;
        done.bytes += bytes;
      }
    }
    found.clear();
  };
  for await (const { name, bytes, putMs } of packs.list(undefined, signal)) {
    signal.throwIfAborted();
    const stored = storedBase(name);
    if (stored === undefined || nowMs - putMs < dayMs || (await named.has(stored))) continue;
    const candidate = found.get(stored) ?? { stored, files: new Map() };
    found.set(stored, { ...candidate, files: candidate.files.set(name, bytes) });
    if (found.size >= atOnce) await flush();
  }
  await flush();
  await packs.removeUnfinished(nowMs - dayMs);
  const over = await goneBefore(store, nowMs - markedMs);
  if (over.length > 0) {
    await store.transact(async (tx) => {
      for (const stored of over) forgetGone(tx, stored);
    });
  }
  return done;
}

/** Undefined: it is neither a pack nor a large file. */
function storedBase(name: string): string | undefined {
  if (/^large\/[0-9a-f]{2}\/[0-9a-f]{64}$/.test(name)) return name;
  const suffix = /^(?:main|prs)\//.test(name) && packParts.find((one) => name.endsWith(one));
  return suffix ? name.slice(0, -suffix.length) : undefined;
}

/** Those that no row names in the very transaction that marks them. */
async function markUnnamed(
  { store, clock }: Pick<CleaningParts, "store" | "clock">,
  candidates: readonly Candidate[],
): Promise<Candidate[]> {
  if (candidates.length === 0) return [];
  return await store.transact(async (tx) => {
    const nowMs = clock.nowMs();
    const going: Candidate[] = [];
    const held = await oldestHold(tx, nowMs);
    const named = new Named(tx);
    for (const candidate of candidates) {
      const { stored } = candidate;
      if ((await named.has(stored)) || !(await isOver(tx, stored, nowMs, held))) continue;
      setGoing(tx, stored, nowMs);
      going.push(candidate);
    }
    return going;
  });
}

/** What was listed once stays for a day after it left its list, and while a backup that began before then reads. */
async function isOver(tx: Transaction, stored: string, nowMs: number, held: number | undefined): Promise<boolean> {
  const retired = await retiredSince(tx, stored);
  if (retired === undefined) return held === undefined;
  return nowMs - retired >= dayMs && (held === undefined || retired < held);
}

/** What rows name, as one reader sees it. Remembers the owner that was asked for last: names come in their order. */
class Named {
  #owner = "";
  #packs: ReadonlySet<string> = new Set();
  #unclaimedFiles: ReadonlySet<string> | undefined;

  constructor(private readonly reader: TableReader) {}

  async has(stored: string): Promise<boolean> {
    const [area = "", owner, last = ""] = stored.split("/");
    if (area === largeFilesFolder) return isLargeFileId(last) && (await this.#hasFile(last));
    // Somebody else's file: not ours to remove.
    if (!isPubkey(owner)) return true;
    if (this.#owner !== `${area}/${owner}`) {
      this.#packs = await this.#packsOf(area === "prs" ? "prs" : "main", owner);
      this.#owner = `${area}/${owner}`;
    }
    return this.#packs.has(stored);
  }

  async #packsOf(area: "main" | "prs", owner: Pubkey): Promise<Set<string>> {
    const lists: PackList[] = [];
    for await (const list of packLists(this.reader, { owner, area })) lists.push(list);
    const stored = new Set<string>();
    for (const list of lists) {
      const packs = await listedPacks(this.reader, diskAddress(list));
      for (const row of await unclaimedPacks(this.reader, diskAddress(list))) packs.push(...row.packs);
      for (const pack of packs) stored.add(pack.stored);
    }
    return stored;
  }

  async #hasFile(oid: Parameters<typeof holdersOf>[1]): Promise<boolean> {
    if ((await holdersOf(this.reader, oid, 1)).length > 0) return true;
    this.#unclaimedFiles ??= new Set((await unclaimedFiles(this.reader)).map((row) => row.oid));
    return this.#unclaimedFiles.has(oid);
  }
}
