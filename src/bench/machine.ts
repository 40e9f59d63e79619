// The parts on their own: signatures, the disk, the store. Everything in a folder that goes afterwards.

import { randomBytes } from "node:crypto";
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { NostrEvent, VerifiedEvent } from "../nostr/event.js";
import { SecretKey, signEvent } from "../nostr/keys.js";
import { chooseEngine, packSignatures, verifyPacked } from "../nostr/verify/engines.js";
import { createVerifierPool } from "../nostr/verify/pool.js";
import { openLmdbStore } from "../store/lmdb/open.js";
import { type Measured, ratePerSecond } from "./rows.js";

const atOnce = 200;

export function signedEvents(key: SecretKey, count: number, draft: Pick<NostrEvent, "kind" | "tags">): NostrEvent[] {
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
