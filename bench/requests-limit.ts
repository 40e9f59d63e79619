// The least a REQ's answer can cost on this machine: its rows read from the log by their sequence numbers, copied once
// and written to a socket, until the other side has them all. No index, no frames, no turns for others.

import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import type { Filter } from "../src/nostr/filter.js";
import { type Database, openDatabase } from "../src/store/lmdb/database.js";
import { openLmdbStore } from "../src/store/lmdb/open.js";
import { seqKey } from "../src/store/lmdb/rows.js";
import { programPath } from "./processes.js";

const writtenAtOnce = 128 * 1024;

/** Milliseconds for each filter's answer. The server must not be running. */
export async function bareAnswers(folder: string, filters: readonly Filter[]): Promise<number[]> {
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
  const times: number[] = [];
  for (const seqs of answers) {
    const bytes = seqs.reduce((sum, seq) => sum + recordOf(database, seq).length, 0);
    const began = performance.now();
    await answer(database, seqs, bytes, socket);
    times.push(performance.now() - began);
  }
  socket.destroy();
  listener.close();
  await sink.terminate();
  await database.close();
  return times;
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
