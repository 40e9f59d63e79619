// Ingest (goal P1): events over 50 WebSocket connections, verified, admitted, durable. The server is one process, the
// clients another; the limits beside it, one core's signatures and the disk's syncs, are measured in the same run.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { signedEvent } from "../src/nostr/testing/signed.js";
import type { SchnorrEngine } from "../src/nostr/verify/engines.js";
import { libraryNames, loadNative, packSignatures, verifyPacked, wasmEngine } from "../src/nostr/verify/engines.js";
import { hostedDomain, hostedRepository, hostRepository } from "./hosted.js";
import type { IngestLoad, IngestResult } from "./ingest-load.js";
import { inFolder, nextMessage, startBenchServer, startProgram, syncsPerSecond } from "./processes.js";
import { type Benchmark, type BenchRow, milliseconds, perSecond } from "./rows.js";
import { type SignedCorpus, signedIssues } from "./signed-corpus.js";

const warmUp = 5_000;
const measured = 25_000;
const oneByOne = 500;
const signaturesMs = 1_500;

/** Signatures one thread checks in a second, as the machine is now. */
export function signaturesPerSecond(engine: SchnorrEngine): number {
  const packed = packSignatures(Array.from({ length: 100 }, () => signedEvent()));
  let checked = 0;
  const began = performance.now();
  while (performance.now() - began < signaturesMs) {
    if (verifyPacked(engine, packed).includes(0)) throw new Error("a good signature was refused");
    checked += 100;
  }
  return (checked / (performance.now() - began)) * 1_000;
}

/** The limit is the library's own: each signature with its public key made ready anew. */
export async function bareEngine(): Promise<SchnorrEngine> {
  const native = await loadNative(libraryNames(), 0);
  return native.ok ? native.engine : wasmEngine;
}

/** From a process of its own. */
export async function send(load: IngestLoad): Promise<IngestResult> {
  const child = startProgram("ingest-load");
  const answer = nextMessage<IngestResult>(child);
  child.send(load);
  const result = await answer;
  if (result.refused > 0) throw new Error(`${result.refused} of ${load.count} events were refused`);
  return result;
}

async function ingest(corpus: SignedCorpus, policy: "all" | "grasp", engine: SchnorrEngine): Promise<BenchRow[]> {
  return inFolder(async (folder) => {
    mkdirSync(join(folder, "relay"));
    if (policy === "grasp") await hostRepository(folder);
    const before = { signatures: signaturesPerSecond(engine), syncs: syncsPerSecond(folder) };
    const server = await startBenchServer(folder, { BENCH_POLICY: policy, NGIT_DOMAIN: hostedDomain });
    const { file } = corpus;
    const crowd = { ports: [server.port], file, connections: 50, outstanding: 20 };
    await send({ ...crowd, skip: 0, count: warmUp });
    const used = await server.usage();
    const many = await send({ ...crowd, skip: warmUp, count: measured });
    const usedAfter = await server.usage();
    const micros = (ms: number) => Math.round((ms / measured) * 1_000);
    const cpu = `${micros(usedAfter.cpuMs - used.cpuMs)} µs CPU`;
    const main = `${micros((usedAfter.mainThreadMs ?? 0) - (used.mainThreadMs ?? 0))} on the main thread`;
    const clients = `${micros(many.cpuMs)} in the clients`;
    const single = { ...crowd, skip: warmUp + measured, count: oneByOne, connections: 1, outstanding: 1 };
    const one = await send(single);
    await server.close();
    // The machine may be shared: the limits are taken before and after, and both count.
    const signatures = (before.signatures + signaturesPerSecond(engine)) / 2;
    const syncs = (before.syncs + syncsPerSecond(folder)) / 2;
    const rate = (measured / many.ms) * 1_000;
    const rules = policy === "all" ? "every event taken" : "GRASP's rules and decision records";
    const work = `ingest, 50 sockets × 20, ${rules}`;
    return [
      {
        goal: "P1",
        work,
        measured: `${perSecond(measured, many.ms)} (${cpu}, ${main}; ${clients})`,
        limit: `${Math.round(signatures).toLocaleString("en")} signatures/s a core`,
        ratio: rate / signatures,
        target: "≥ 0.5",
        met: rate >= signatures / 2,
      },
      {
        goal: "P1",
        work: "  OK p50 / p99",
        measured: `${milliseconds(many.p50Ms)} / ${milliseconds(many.p99Ms)}`,
        target: "p99 < 150 ms",
        met: many.p99Ms < 150,
      },
      {
        goal: "P1",
        work: "  one socket, one outstanding",
        measured: perSecond(oneByOne, one.ms),
        limit: `${Math.round(syncs).toLocaleString("en")} syncs/s`,
        ratio: ((oneByOne / one.ms) * 1_000) / syncs,
      },
    ];
  });
}

export const ingestBenchmark: Benchmark = {
  name: "ingest",
  async run() {
    const corpus = signedIssues(warmUp + measured + oneByOne, hostedRepository);
    const engine = await bareEngine();
    process.stderr.write(`corpus ${corpus.fingerprint}, ${corpus.events} events; ${engine.name}\n`);
    return [...(await ingest(corpus, "all", engine)), ...(await ingest(corpus, "grasp", engine))];
  },
};
