// The least a REQ's answer can cost on this machine: the first entry of each of its tags looked up in the index, its rows
// read from the log by their sequence numbers, copied once and written to a socket, until the other side has them all.
// Nothing is parsed, merged, checked or framed, and nobody else has a turn.

import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { collectGarbage } from "../src/base/collect-garbage.js";
import type { Filter } from "../src/nostr/filter.js";
import { ofTag } from "../src/store/engine/row.js";
import { type Database, openDatabase } from "../src/store/lmdb/database.js";
import { openLmdbStore } from "../src/store/lmdb/open.js";
import { entryBytes, metaNumber, seqKey, termBytes, termKeyOf, writeTerm, writeTime } from "../src/store/lmdb/rows.js";
import { programPath } from "./processes.js";

const writtenAtOnce = 128 * 1024;

export interface BareTimes {
  /** Milliseconds for each filter: its tags alone, and its tags, rows and socket. */
  readonly tagsMs: readonly number[];
  readonly allMs: readonly number[];
}

/** The server must not be running. */
export async function bareAnswers(folder: string, filters: readonly Filter[]): Promise<BareTimes> {
  const relay = join(folder, "relay");
  const answers: number[][] = [];
  const store = await openLmdbStore(relay, { readOnly: true });
  for (const filter of filters) {
    const seqs: number[] = [];
    for await (const page of store.query([filter])) for (const { seq } of page) seqs.push(seq);
    answers.push(seqs);
  }
  await store.close();
  const database = openDatabase(join(relay, "events-1.mdb"), true);
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const sink = new Worker(programPath("socket-sink"), { workerData: (listener.address() as AddressInfo).port });
  const [socket] = (await once(listener, "connection")) as [Socket];
  const lookUp = tagLookUp(database);
  const tagsMs: number[] = [];
  const allMs: number[] = [];
  for (const [index, seqs] of answers.entries()) {
    const bytes = seqs.reduce((sum, seq) => sum + recordOf(database, seq).length, 0);
    collectGarbage();
    const began = performance.now();
    for (const [name, values] of filters[index]?.tags ?? []) for (const value of values) lookUp(name, value);
    tagsMs.push(performance.now() - began);
    await answer(database, seqs, bytes, socket);
    allMs.push(performance.now() - began);
  }
  socket.destroy();
  listener.close();
  await sink.terminate();
  await database.close();
  return { tagsMs, allMs };
}

/** Finds the newest entry of a tag. */
function tagLookUp(database: Database): (name: string, value: string) => void {
  const seed = metaNumber(database, "seed") ?? 0;
  const start = Buffer.alloc(entryBytes + 1);
  const end = Buffer.alloc(entryBytes + 1, 0xff);
  const between = database.entriesBetween(start, end);
  return (name, value) => {
    const key = termKeyOf(ofTag(name, value), seed);
    writeTerm(start, key);
    start.fill(0, termBytes);
    writeTime(start, Number.MAX_SAFE_INTEGER);
    writeTerm(end, key);
    writeTime(end, 0);
    between(1);
  };
}

const recordOf = (database: Database, seq: number): Uint8Array =>
  database.log.getBinaryFast(seqKey(seq)) ?? new Uint8Array();

async function answer(database: Database, seqs: readonly number[], bytes: number, socket: Socket): Promise<void> {
  const received = once(socket, "data");
  let slab = Buffer.allocUnsafe(writtenAtOnce);
  let used = slab.writeUInt32BE(bytes, 0);
  for (const seq of seqs) {
    const record = recordOf(database, seq);
    if (used + record.length > slab.length) {
      await written(socket, slab.subarray(0, used));
      slab = Buffer.allocUnsafe(Math.max(writtenAtOnce, record.length));
      used = 0;
    }
    slab.set(record.subarray(0, record.length), used);
    used += record.length;
  }
  await written(socket, slab.subarray(0, used));
  await received;
}

const written = (socket: Socket, bytes: Buffer): Promise<void> =>
  new Promise((resolve) => socket.write(bytes, () => resolve()));
