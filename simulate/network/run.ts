// The days of a modelled network: everybody starts at once, an ordinary day, the server that most repositories lie on
// restarts, a third of the servers is cut off for a night.

import { Network, type NetworkSize, type Spread } from "./network.js";
import type { Load } from "./wires.js";

interface Quantities {
  readonly median: number;
  readonly p99: number;
  readonly most: number;
}

export interface PhaseResult {
  readonly phase: string;
  readonly hours: number;
  readonly requestsSent: Quantities;
  readonly requestsServed: Quantities;
  readonly mebibytesReceived: Quantities;
  readonly mebibytesSent: Quantities;
  readonly dials: Quantities;
  /** Bytes moved between servers for each byte published, and for each that had to reach another server. */
  readonly movedForNew: number;
  readonly movedForNeeded: number;
  readonly events: Spread;
  readonly states: Spread;
  readonly note: string;
}

export interface NetworkResult extends NetworkSize {
  readonly copies: number;
  readonly pairs: number;
  readonly largest: number;
  readonly seconds: number;
  readonly steps: number;
  readonly rssMib: number;
  readonly phases: readonly PhaseResult[];
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** `onlyStart`: for networks too large for whole days. */
export async function runNetwork(
  size: NetworkSize,
  progress: (text: string) => void,
  onlyStart = false,
): Promise<NetworkResult> {
  const startMs = performance.now();
  const network = new Network(size);
  const { servers, placed } = network;
  const phases: PhaseResult[] = [];
  const end = (phase: string, hours: number, note: string): void => {
    const result = phaseOf(network, phase, hours, note);
    phases.push(result);
    progress(textOf(result));
    network.forgetLoads();
  };

  for (const server of servers) server.start();
  const inStepAfter = await untilInStep(network, 6 * hourMs);
  end("everybody starts at once", network.nowMs / hourMs, inStepAfter);
  if (!onlyStart) {
    network.write();
    await network.runFor(24 * hourMs);
    end("an ordinary day", 24, "");

    const popular = servers.reduce((a, b) => (b.carried.size > a.carried.size ? b : a));
    popular.stop();
    await network.runFor(minuteMs);
    popular.start();
    const backFromMs = network.nowMs;
    await network.runFor(10 * minuteMs);
    const load = network.wires.loadOf(popular);
    const note = `it carries ${popular.carried.size} repositories; in the ${((network.nowMs - backFromMs) / minuteMs).toFixed(0)} min after it is back it is asked ${load.requestsServed} times, asks ${load.requestsSent}, ${mib(load.bytesReceived + load.bytesSent)} MiB pass`;
    await network.runFor(49 * minuteMs);
    end("the largest server restarts (1 min)", 1, note);

    const third = new Set(servers.filter((_, at) => at % 3 === 0));
    network.wires.partition(third);
    await network.runFor(8 * hourMs);
    end("a third is cut off, the night", 8, "");
    network.rest();
    network.wires.partition(new Set());
    const healedMs = network.nowMs;
    await network.runFor(2 * hourMs);
    const { events, states } = network.spreads();
    end("the morning after", 2, lateness(events, states, network.nowMs - healedMs));
  }
  const sum = placed.reduce((total, repository) => total + repository.servers.length, 0);
  const pairs = servers.reduce((total, server) => total + server.snapshot().relays.length, 0);
  return {
    ...size,
    copies: sum / placed.length,
    pairs,
    largest: Math.max(...servers.map((server) => server.carried.size)),
    seconds: (performance.now() - startMs) / 1000,
    steps: servers.reduce((total, server) => total + server.steps, 0),
    rssMib: process.memoryUsage().rss / 2 ** 20,
    phases,
  };
}

async function untilInStep(network: Network, atMostMs: number): Promise<string> {
  const reached = new Map<number, number>();
  const wanted = [0.5, 0.9, 0.99, 1];
  while (network.nowMs < atMostMs) {
    await network.runFor(network.nowMs < 10 * minuteMs ? 10_000 : minuteMs);
    const part = network.inStep();
    for (const goal of wanted) if (part >= goal && !reached.has(goal)) reached.set(goal, network.nowMs);
    if (part >= 1) break;
  }
  return wanted
    .map((goal) => {
      const atMs = reached.get(goal);
      return `${goal * 100} % of links in step ${atMs === undefined ? "not within the phase" : `after ${(atMs / 1000).toFixed(0)} s`}`;
    })
    .join(", ");
}

const lateness = (events: Spread, states: Spread, ms: number): string =>
  `of what was published while it was cut, ${events.count + states.count} reached everybody in ${ms / hourMs} h; missing then: ${events.unfinished} events, ${states.unfinished} states`;

const mib = (bytes: number): string => (bytes / 2 ** 20).toFixed(1);

function quantities(loads: readonly Load[], of: (load: Load) => number): Quantities {
  const sorted = loads.map(of).sort((a, b) => a - b);
  const at = (part: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
  return { median: at(0.5), p99: at(0.99), most: sorted.at(-1) ?? 0 };
}

function phaseOf(network: Network, phase: string, hours: number, note: string): PhaseResult {
  const loads = network.loads();
  const moved = loads.reduce((sum, load) => sum + load.bytesReceived, 0);
  const per = (bytes: number): number => (bytes === 0 ? 0 : moved / bytes);
  const scaled = (of: (load: Load) => number): Quantities => quantities(loads, (load) => of(load) / 2 ** 20);
  return {
    phase,
    hours,
    requestsSent: quantities(loads, (load) => load.requestsSent),
    requestsServed: quantities(loads, (load) => load.requestsServed),
    mebibytesReceived: scaled((load) => load.bytesReceived),
    mebibytesSent: scaled((load) => load.bytesSent),
    dials: quantities(loads, (load) => load.dials),
    movedForNew: per(network.newBytes),
    movedForNeeded: per(network.neededBytes),
    ...network.spreads(),
    note,
  };
}

const shown = ({ median, p99, most }: Quantities): string =>
  [median, p99, most].map((value) => (value < 10 ? value.toFixed(2) : Math.round(value))).join(" / ");

const spread = ({ count, medianSeconds, p99Seconds, worstSeconds, unfinished }: Spread): string =>
  `${count}: ${medianSeconds.toFixed(2)} / ${p99Seconds.toFixed(2)} / ${worstSeconds.toFixed(1)} s, ${unfinished} not yet everywhere`;

/** Median, 99 of 100 and the most, of the servers. */
export function textOf(result: PhaseResult): string {
  const lines = [
    `${result.phase} (${result.hours.toFixed(2)} h)${result.note ? `: ${result.note}` : ""}`,
    `  requests sent ${shown(result.requestsSent)}   served ${shown(result.requestsServed)}   dials ${shown(result.dials)}`,
    `  MiB received ${shown(result.mebibytesReceived)}   sent ${shown(result.mebibytesSent)}`,
  ];
  if (result.movedForNew > 0)
    lines.push(
      `  bytes moved for each new byte ${result.movedForNew.toFixed(1)}, for each byte that had to move ${result.movedForNeeded.toFixed(2)}`,
    );
  if (result.events.count + result.events.unfinished > 0)
    lines.push(`  everywhere: events ${spread(result.events)}; states ${spread(result.states)}`);
  return lines.join("\n");
}
