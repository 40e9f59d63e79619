// Signature verification: each engine on one core, then the pool with 1 and 2 threads and messages of 1 and 100
// signatures, all in one run.

import { createHash } from "node:crypto";
import type { NostrEvent } from "../src/nostr/event.js";
import { SecretKey, signEvent } from "../src/nostr/keys.js";
import type { SchnorrEngine } from "../src/nostr/verify/engines.js";
import { loadNative, packSignatures, verifyPacked, wasmEngine } from "../src/nostr/verify/engines.js";
import { createVerifierPool } from "../src/nostr/verify/pool.js";
import type { Benchmark } from "./rows.js";

interface VerifyRow {
  readonly what: string;
  readonly perSecond: number;
  /** Against one core of the same engine in the same run. */
  readonly ratio: number;
}

const inFlight = 1000;

function corpus(count: number): NostrEvent[] {
  const random = (seed: string) => (length: number) => createHash("sha256").update(seed).digest().subarray(0, length);
  const keys = Array.from({ length: 20 }, (_, index) => SecretKey.generate(random(`key ${index}`)));
  return Array.from({ length: count }, (_, index) =>
    signEvent(
      keys[index % keys.length]!,
      { kind: 1, created_at: 1_700_000_000 + index, tags: [], content: `event ${index}` },
      random(`nonce ${index}`),
    ),
  );
}

function engineRate(engine: SchnorrEngine, events: readonly NostrEvent[], seconds: number): number {
  const packed = packSignatures(events.slice(0, 100));
  verifyPacked(engine, packed);
  let verified = 0;
  const began = performance.now();
  while (performance.now() - began < seconds * 1000) {
    if (verifyPacked(engine, packed).includes(0)) throw new Error("a good signature was refused");
    verified += 100;
  }
  return (verified / (performance.now() - began)) * 1000;
}

/** `inFlight` callers, each sending its next event when its last was answered. */
async function poolRate(
  events: readonly NostrEvent[],
  workers: number,
  maxBatchEvents: number,
  seconds: number,
): Promise<number> {
  const pool = await createVerifierPool({ workers, maxBatchEvents });
  try {
    await Promise.all(events.slice(0, 200).map((event) => pool.verify(event)));
    let verified = 0;
    const began = performance.now();
    const caller = async (first: number): Promise<void> => {
      for (let index = first; performance.now() - began < seconds * 1000; index += 7) {
        if (!(await pool.verify(events[index % events.length]!))) throw new Error("a good signature was refused");
        verified++;
      }
    };
    await Promise.all(Array.from({ length: inFlight }, (_, index) => caller(index)));
    return (verified / (performance.now() - began)) * 1000;
  } finally {
    await pool.close();
  }
}

async function measure(seconds = 2): Promise<VerifyRow[]> {
  const events = corpus(2000);
  const rows: VerifyRow[] = [];
  const add = (what: string, rate: number, base: number) =>
    rows.push({ what, perSecond: Math.round(rate), ratio: Math.round((rate / base) * 100) / 100 });
  const wasmRate = engineRate(wasmEngine, events, seconds);
  add(`${wasmEngine.name}, one core`, wasmRate, wasmRate);
  const native = await loadNative();
  let best = wasmRate;
  if (native.ok) {
    best = engineRate(native.engine, events, seconds);
    add(`${native.engine.name}, one core`, best, best);
  }
  for (const workers of [0, 1, 2]) {
    for (const batch of workers === 0 ? [1] : [1, 100]) {
      const rate = await poolRate(events, workers, batch, seconds);
      add(workers === 0 ? "pool, on the calling thread" : `pool, ${workers} threads, messages of ${batch}`, rate, best);
    }
  }
  return rows;
}

export const verifyBenchmark: Benchmark = {
  name: "verify",
  async run() {
    const rows = await measure();
    return rows.map(({ what, perSecond, ratio }) => ({
      goal: "-",
      work: `verify, ${what}`,
      measured: `${perSecond.toLocaleString("en")}/s`,
      limit: "the same engine on one core",
      ratio,
    }));
  },
};
