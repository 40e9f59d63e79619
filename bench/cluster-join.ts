// A machine joins a cluster that has many events and repositories: from starting its process until it listens and has every
// event, and until it has served every repository. Once from the log alone, once from a snapshot of another machine's view.

import { join } from "node:path";
import { systemClock } from "../src/base/clock.js";
import { openPackStore } from "../src/packs/open-pack-store.js";
import { type ClusterStore, openClusterStore } from "../src/store/postgres/open.js";
import { Asker } from "./asker.js";
import type { ClusterGround, Stage } from "./cluster-ground.js";
import { tell } from "./cluster-ground.js";
import { goal } from "./cluster-rows.js";
import { treeMs } from "./process-costs.js";
import type { BenchRow } from "./rows.js";
import { host } from "./scene.js";
import { Corpus } from "./store.js";
import type { HostedRepository } from "./traffic.js";
import { urlOf } from "./traffic-git.js";

export interface JoinSizes {
  readonly events: number;
  readonly repositories: number;
}

const wanted: JoinSizes = { events: 1_000_000, repositories: 1_000 };
const goalMs = 120_000;
const hostedAtOnce = 4;
const askedAtOnce = 8;
const eventsAChange = 1_500;
const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

/** Some owners at once push theirs to one machine. */
async function hostMany({ ground, sides }: Stage, count: number): Promise<HostedRepository[]> {
  const [port = 0] = sides.together.ports;
  const work = join(ground.folder, "work");
  const share = (index: number): number => Math.floor((count + index) / hostedAtOnce);
  let done = 0;
  const some = async (index: number): Promise<HostedRepository[]> => {
    const hosted: HostedRepository[] = [];
    while (hosted.length < share(index)) {
      hosted.push(...(await host(1, [port], work, undefined, [ground.domain])));
      if (++done % 100 === 0) tell(`${done} repositories hosted`);
    }
    return hosted;
  };
  const all = await Promise.all(Array.from({ length: hostedAtOnce }, (_, index) => some(index)));
  return all.flat();
}

/** A machine that serves nobody. */
async function openFiller(ground: ClusterGround): Promise<ClusterStore> {
  return await openClusterStore({
    url: ground.postgres.url,
    folder: join(ground.folder, "filler"),
    clock: systemClock,
    serverKey: ground.serverKey,
    name: "filler",
    version: "bench",
    mayLead: false,
    packs: await openPackStore({ type: "directory", path: ground.packFolder }),
    fault: (error) => {
      throw error;
    },
  });
}

/** Answers the id of the last of them. */
async function fill({ store }: ClusterStore, events: number): Promise<string> {
  const corpus = new Corpus(7, "growing");
  let last = "";
  for (let done = 0; done < events; ) {
    const batch = Array.from({ length: Math.min(eventsAChange, events - done) }, () => corpus.event());
    await store.transact(async (tx) => {
      for (const event of batch) await tx.put(event);
    });
    done += batch.length;
    last = batch.at(-1)?.id ?? last;
    if (done % 30_000 < eventsAChange) tell(`${done.toLocaleString("en")} events in the log`);
  }
  return last;
}

interface Joined {
  /** Of the machine, with git, and of PostgreSQL. */
  readonly processorMs: number;
  /** From starting the process until it listened; it has every event by then. */
  readonly listensMs: number;
  /** From then until it had served every repository. */
  readonly servesMs: number;
}

async function joins(
  ground: ClusterGround,
  name: string,
  repositories: readonly HostedRepository[],
  lastEvent: string,
): Promise<Joined> {
  const before = treeMs(ground.postgres.pid);
  const machine = await ground.startMachine(name);
  const began = performance.now();
  const asker = await Asker.connect(machine.port);
  const { rows } = await asker.ask(JSON.stringify({ ids: [lastEvent] }));
  asker.close();
  if (rows !== 1) throw new Error("the machine that joined lacks the newest event");
  const waiting = [...repositories];
  const ask = async (): Promise<void> => {
    for (let one = waiting.shift(); one; one = waiting.shift()) {
      const answer = await fetch(`${urlOf(machine.port, one)}/info/refs?service=git-upload-pack`);
      const text = await answer.text();
      if (!text.includes("refs/heads/main")) throw new Error(`${one.npub}: ${answer.status} ${text.slice(0, 200)}`);
    }
  };
  await Promise.all(Array.from({ length: askedAtOnce }, ask));
  const servesMs = performance.now() - began;
  const processorMs = treeMs(machine.pid) + treeMs(ground.postgres.pid) - before;
  await ground.closeMachine(name);
  return { listensMs: machine.startMs, servesMs, processorMs };
}

/** What the sizes of the goal would take, if each event and each repository takes as long as here. Pure. */
export function extrapolated({ listensMs, servesMs }: Joined, emptyMs: number, sizes: JoinSizes): number {
  const events = Math.max(0, listensMs - emptyMs) * (wanted.events / sizes.events);
  return emptyMs + events + servesMs * (wanted.repositories / sizes.repositories);
}

function joinRow(how: string, result: Joined, emptyMs: number, sizes: JoinSizes): BenchRow {
  const wholeMs = extrapolated(result, emptyMs, sizes);
  const isWhole = sizes.events >= wanted.events && sizes.repositories >= wanted.repositories;
  const measuredMs = result.listensMs + result.servesMs;
  const goalText = `${wanted.events.toLocaleString("en")} and ${wanted.repositories.toLocaleString("en")}`;
  return {
    goal,
    work: `a machine joins ${sizes.events.toLocaleString("en")} events and ${sizes.repositories.toLocaleString("en")} repositories, ${how}`,
    measured: `listens after ${seconds(result.listensMs)}, has served all after ${seconds(measuredMs)}, ${seconds(result.processorMs)} of processor${isWhole ? "" : `; ${goalText} would take ${seconds(wholeMs)}`}`,
    limit: `${seconds(emptyMs)} with none`,
    target: `${goalText} in ${goalMs / 1_000} s`,
    met: (isWhole ? measuredMs : wholeMs) <= goalMs,
  };
}

/** Ends the machines of the stage: they are in the way of nothing that is measured here. */
export async function joinRows(stage: Stage, sizes: JoinSizes): Promise<BenchRow[]> {
  const { ground, startMs } = stage;
  for (const name of ["two", "three"]) await ground.closeMachine(name);
  tell(`hosting ${sizes.repositories.toLocaleString("en")} repositories`);
  const repositories = await hostMany(stage, sizes.repositories);
  await ground.closeMachine("one");
  const filler = await openFiller(ground);
  try {
    tell(`filling the log with ${sizes.events.toLocaleString("en")} events`);
    const lastEvent = await fill(filler, sizes.events);
    tell("a machine that was away comes back");
    const away = await ground.startMachine("one");
    tell("a machine joins from the log");
    const fromLog = await joins(ground, "four", repositories, lastEvent);
    tell("making a snapshot");
    const began = performance.now();
    await filler.trim({ snapshotEveryMs: 0 });
    const snapshotMs = performance.now() - began;
    tell("a machine joins from the snapshot");
    const fromSnapshot = await joins(ground, "five", repositories, lastEvent);
    return [
      {
        goal,
        work: `a machine that missed ${sizes.events.toLocaleString("en")} events starts again`,
        measured: `listens after ${seconds(away.startMs)}`,
        limit: `${seconds(startMs)} with none`,
      },
      joinRow("from the log", fromLog, startMs, sizes),
      { goal, work: "  making a snapshot and trimming the log", measured: seconds(snapshotMs) },
      joinRow("from a snapshot", fromSnapshot, startMs, sizes),
    ];
  } finally {
    await filler.close();
  }
}
