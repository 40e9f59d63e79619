// A server's own numbers while it is under load, read from /metrics every few seconds: memory, event loop, queues.

import { readFileSync } from "node:fs";
import type { BenchServer } from "./processes.js";
import { type BenchRow, mebibytes, milliseconds, percentile } from "./rows.js";

export interface Sample {
  readonly seconds: number;
  readonly rssBytes: number;
  /** RSS without mapped files: LMDB's file is one, and how much of it is in memory is the kernel's choice. */
  readonly ownBytes: number;
  /** Of the time since the sample before. */
  readonly loopP99Ms: number;
  readonly queues: Readonly<Record<string, number>>;
}

const everyMs = 2_000;
const queueMetrics = [
  "ngit_queue_length",
  "ngit_git_housekeeping_queue",
  "purgatory_sync_queue_size",
  "purgatory_domain_queued",
  "ngit_sync_pending_batches",
];

export class Sampling {
  readonly #samples: Sample[] = [];
  readonly #began = performance.now();
  #isOver = false;
  readonly #running: Promise<void>;

  constructor(readonly server: Pick<BenchServer, "port" | "pid">) {
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      await new Promise((resolve) => setTimeout(resolve, everyMs));
      const { port, pid } = this.server;
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      const sample = sampleOf(text, (performance.now() - this.#began) / 1_000);
      this.#samples.push({ ...sample, ownBytes: sample.rssBytes - mappedBytes(pid) });
    }
  }

  async stop(): Promise<readonly Sample[]> {
    this.#isOver = true;
    await this.#running;
    return this.#samples;
  }
}

function mappedBytes(pid: number): number {
  try {
    return Number(/^RssFile:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

function sampleOf(text: string, seconds: number): Omit<Sample, "ownBytes"> {
  const values = [...text.matchAll(/^([a-z]\w*)(\{.*\})? (\S+)$/gm)];
  const numberOf = (name: string): number => Number(values.find(([, metric]) => metric === name)?.[3] ?? 0);
  const queues: Record<string, number> = {};
  for (const [, metric = "", labels = "", value] of values) {
    if (queueMetrics.includes(metric)) {
      // Those with a label for each host or relay are summed.
      const name = metric === "ngit_queue_length" ? (/queue="(\w+)"/.exec(labels)?.[1] ?? "") : metric;
      queues[name] = (queues[name] ?? 0) + Number(value);
    }
  }
  return {
    seconds,
    rssBytes: numberOf("process_resident_memory_bytes"),
    loopP99Ms: numberOf("nodejs_eventloop_lag_p99_seconds") * 1_000,
    queues,
  };
}

/** Bytes a minute over the second half of the run, by least squares: the first half warms up. */
export function memorySlope(samples: readonly Sample[]): number {
  const half = samples.slice(Math.floor(samples.length / 2));
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [mean(half.map(({ seconds }) => seconds)), mean(half.map(({ ownBytes }) => ownBytes))];
  const over = half.reduce((sum, { seconds, ownBytes }) => sum + (seconds - x) * (ownBytes - y), 0);
  const under = half.reduce((sum, { seconds }) => sum + (seconds - x) ** 2, 0);
  return under > 0 ? (over / under) * 60 : 0;
}

export function memoryRow(goal: string, samples: readonly Sample[]): BenchRow {
  const own = samples.map(({ ownBytes }) => ownBytes);
  const slope = memorySlope(samples);
  const first = own[0] ?? 0;
  return {
    goal,
    work: "memory without mapped files at the beginning, middle, end; most; slope of the second half; RSS at the end",
    measured: `${[first, own[own.length >> 1] ?? 0, own.at(-1) ?? 0, Math.max(0, ...own)].map(mebibytes).join(", ")}; ${(slope / 2 ** 20).toFixed(1)} MiB/min; RSS ${mebibytes(samples.at(-1)?.rssBytes ?? 0)}`,
    target: "flat: < 2 % a minute",
    met: slope < first * 0.02,
  };
}

export function loopRow(goal: string, samples: readonly Sample[], wholeP99Ms: number): BenchRow {
  const windows = samples.map(({ loopP99Ms }) => loopP99Ms);
  const [middle, worst] = [percentile(windows, 0.5), Math.max(0, ...windows)];
  return {
    goal,
    work: "event loop's delay, p99 (looked at every 10 ms, which are in it)",
    measured: `${milliseconds(wholeP99Ms)} over the run; windows of 2 s: middle ${milliseconds(middle)}, worst ${milliseconds(worst)}`,
    target: "< 50 ms",
    met: wholeP99Ms < 50,
  };
}

export function queueRow(goal: string, samples: readonly Sample[]): BenchRow {
  const names = [...new Set(samples.flatMap(({ queues }) => Object.keys(queues)))];
  const lengths = (name: string): number[] => samples.map(({ queues }) => queues[name] ?? 0);
  const last = samples.slice(-Math.max(1, samples.length >> 2));
  const text = names.map((name) => `${name} ${Math.max(0, ...lengths(name))}`).join(", ");
  // One that grows for ever is longest at the end.
  const growing = names.filter((name) => {
    const most = Math.max(0, ...lengths(name));
    return most > 100 && Math.min(...last.map(({ queues }) => queues[name] ?? 0)) > most * 0.9;
  });
  return { goal, work: "longest queues", measured: text, target: "none grows on", met: growing.length === 0 };
}
