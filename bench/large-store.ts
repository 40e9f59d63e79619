// A data directory with a million events, made once from a seed and kept in the temporary directory: filling it takes
// minutes, the benchmarks over it seconds. BENCH_EVENTS makes a smaller one.

import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openLmdbStore } from "../src/store/lmdb/open.js";
import { fingerprint } from "./corpus.js";
import { Corpus, fill } from "./store.js";

export interface LargeStore {
  readonly folder: string;
  readonly events: number;
  readonly corpus: Corpus;
  readonly fingerprint: string;
}

const version = 1;
const seed = 7;

export async function largeStore(): Promise<LargeStore> {
  const events = Number(process.env.BENCH_EVENTS ?? 1_000_000);
  const folder = join(tmpdir(), `holdfast-bench-store-${version}-${seed}-${events}`);
  const corpus = new Corpus(seed, "growing");
  if (existsSync(folder)) for (let made = 0; made < events; made++) corpus.event();
  else {
    process.stderr.write(`filling a store with ${events} events …\n`);
    const draft = `${folder}.new`;
    rmSync(draft, { recursive: true, force: true });
    mkdirSync(join(draft, "relay"), { recursive: true });
    const store = await openLmdbStore(join(draft, "relay"));
    const began = performance.now();
    await fill(store, corpus, events);
    await store.close();
    process.stderr.write(`filled in ${Math.round((performance.now() - began) / 1_000)} s\n`);
    renameSync(draft, folder);
  }
  return { folder, events, corpus, fingerprint: fingerprint(corpus.ids.map((id) => ({ id }))) };
}
