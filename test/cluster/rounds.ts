// Rounds of faults on a cluster under load: machines are killed and paused, PostgreSQL and the pack store go away. After each
// round every machine must have everything that was acknowledged, all of them the same, and each must serve what its states
// name. All the time what a machine shows of a ref, in its state and in its refs, must only go forward.

import { setTimeout as last } from "node:timers/promises";
import { Random } from "../../src/store/testing/random.js";
import type { RoundResult } from "../faults/rounds.js";
import { until } from "../harness/server.js";
import { newPackPlace, outagesOf, type PackKind, type PackPlace } from "./pack-place.js";
import { type Place, Pusher } from "./people.js";
import { TestPostgres } from "./postgres.js";
import { ClusterOfProcesses } from "./whole-cluster.js";

interface ClusterFault {
  readonly family: string;
  /** Does it and ends it; answers what was done. */
  strike(scene: Scene): Promise<string>;
}

interface Scene {
  readonly cluster: ClusterOfProcesses;
  readonly postgres: TestPostgres;
  readonly packs: PackPlace;
  readonly random: Random;
}

const machineNames = ["one", "two", "three"] as const;
const chosen = (random: Random): string => machineNames[random.below(machineNames.length)] as string;

/** The load goes on meanwhile: these are times that a fault lasts. */
const faultsOfAll: readonly ClusterFault[] = [
  {
    family: "kill -9 of a machine",
    async strike({ cluster, random }) {
      const name = chosen(random);
      await last(random.below(2_000));
      cluster.machine(name).child.kill("SIGKILL");
      await cluster.machine(name).ended;
      await last(random.below(3_000));
      await cluster.run(name);
      return name;
    },
  },
  {
    family: "a machine stands still for twelve seconds",
    async strike({ cluster, random }) {
      const name = chosen(random);
      await last(random.below(2_000));
      cluster.machine(name).child.kill("SIGSTOP");
      await last(12_000);
      cluster.machine(name).child.kill("SIGCONT");
      return name;
    },
  },
  {
    family: "the leader stands still for twelve seconds",
    async strike({ cluster, random }) {
      const name = (await cluster.leader()) ?? chosen(random);
      cluster.machine(name).child.kill("SIGSTOP");
      await last(12_000);
      cluster.machine(name).child.kill("SIGCONT");
      return name;
    },
  },
  {
    family: "PostgreSQL is started again",
    async strike({ postgres, random }) {
      await last(random.below(1_500));
      await postgres.stop(random.chance(0.5) ? "SIGQUIT" : "SIGINT");
      const ms = random.below(5_000);
      await last(ms);
      await postgres.run();
      return `gone for ${ms} ms`;
    },
  },
  {
    family: "kill -9 of a machine while PostgreSQL is away",
    async strike({ cluster, postgres, random }) {
      const name = chosen(random);
      await postgres.stop();
      cluster.machine(name).child.kill("SIGKILL");
      await cluster.machine(name).ended;
      await last(random.below(2_000));
      await postgres.run();
      await cluster.run(name);
      return name;
    },
  },
];

/** Longer than a request waits for a store that is silent, now and then. */
const longestOutageMs = 30_000;

const outageOf = (family: string, index: number): ClusterFault => ({
  family,
  async strike({ packs, random }) {
    const outage = packs.outages[index] as PackPlace["outages"][number];
    await last(random.below(1_500));
    await outage.begin();
    const ms = random.chance(0.2) ? longestOutageMs : 1_000 + random.below(4_000);
    try {
      await last(ms);
    } finally {
      await outage.end();
    }
    return `for ${ms} ms`;
  },
});

export const clusterFaults = (kind: PackKind): readonly ClusterFault[] => [
  ...faultsOfAll,
  ...outagesOf[kind].map(outageOf),
];

const pushers = 3;
const betweenLooksMs = 100;
const betweenTriesMs = 100;

export class ClusterRounds {
  private constructor(
    readonly postgres: TestPostgres,
    readonly packs: PackPlace,
    readonly cluster: ClusterOfProcesses,
    readonly people: readonly Pusher[],
    private readonly random: Random,
  ) {}

  static async begin(seed: number, kind: PackKind): Promise<ClusterRounds> {
    const postgres = await TestPostgres.start();
    const packs = await newPackPlace(kind);
    const cluster = await ClusterOfProcesses.start({ postgres, packSettings: packs.settings });
    const people: Pusher[] = [];
    for (let index = 0; index < pushers; index++) {
      const pusher = await Pusher.make(cluster.folder, cluster.domain, `r${index}`, seed + index);
      await pusher.announce(cluster);
      const { isDone, said } = await pusher.push(cluster, cluster);
      if (!isDone) throw new Error(`the first push failed: ${said}`);
      people.push(pusher);
    }
    return new ClusterRounds(postgres, packs, cluster, people, new Random(seed));
  }

  async round(fault: ClusterFault, round: number): Promise<RoundResult> {
    const begunMs = performance.now();
    const { cluster, postgres, packs, people, random } = this;
    let isOver = false;
    let pushes = 0;
    const place = (): Place => cluster.machine(chosen(random));
    const work = async (pusher: Pusher): Promise<void> => {
      while (!isOver) {
        const { isDone } = await pusher.push(place(), place());
        if (isDone) pushes += 1;
        // Whoever is refused tries again, not as fast as can be.
        else await last(betweenTriesMs);
        await pusher.say(place(), `${pusher.tips.length}`);
      }
    };
    const watch = async (pusher: Pusher): Promise<void> => {
      while (!isOver) {
        for (const machine of cluster.machines.values()) await pusher.observe(machine);
        await last(betweenLooksMs);
      }
    };
    const working = Promise.all([...people.map(work), ...people.map(watch)]);
    let what = "nothing";
    const violations: string[] = [];
    try {
      what = await fault.strike({ cluster, postgres, packs, random });
      await last(1_000);
    } catch (error) {
      violations.push(`the round broke off: ${String(error)}`);
    }
    isOver = true;
    await working;
    violations.push(...(await this.#look()));
    const ms = Math.round(performance.now() - begunMs);
    const told = `${what}; ${pushes} pushes acknowledged meanwhile`;
    return { round, family: fault.family, what: told, isDone: true, violations, logFile: undefined, ms };
  }

  async #look(): Promise<string[]> {
    const { cluster, people } = this;
    const names = [...cluster.machines.keys()];
    const isReady = async (): Promise<boolean> =>
      (await Promise.all(names.map((name) => cluster.isReady(name)))).every(Boolean);
    const problems: string[] = [];
    if (!(await until(isReady, 60_000))) problems.push("not every machine is ready a minute after the fault");
    for (const name of names) {
      if (cluster.machine(name).child.exitCode !== null)
        problems.push(`${name} has ended: ${cluster.machine(name).log().slice(-2_000)}`);
    }
    const machines = [...cluster.machines.values()];
    for (const pusher of people) {
      // Otherwise the next rounds would be without a load, and find nothing.
      let said = "";
      const isTaken = async (): Promise<boolean> => {
        const push = await pusher.push(cluster, cluster);
        said = push.said;
        return push.isDone;
      };
      if (!(await until(isTaken, 60_000)))
        problems.push(`${pusher.identifier}: no push is taken a minute after the fault: ${said}`);
      problems.push(...(await pusher.problems(machines, cluster.folder)));
      for (const machine of machines) await pusher.observe(machine);
      problems.push(...pusher.ledger.takeViolations());
    }
    return problems;
  }

  async end(): Promise<void> {
    await this.cluster.end();
    await this.packs.dispose();
    await this.postgres.dispose();
  }
}

export async function runClusterRounds(wish: {
  readonly seed: number;
  readonly rounds: number;
  readonly only: string;
  readonly packs: PackKind;
  readonly onRound?: (result: RoundResult) => void;
}): Promise<RoundResult[]> {
  const faults = clusterFaults(wish.packs).filter(({ family }) => family.includes(wish.only));
  const house = await ClusterRounds.begin(wish.seed, wish.packs);
  const results: RoundResult[] = [];
  try {
    for (let round = 1; round <= wish.rounds; round++) {
      const result = await house.round(faults[(round - 1) % faults.length] as ClusterFault, round);
      results.push(result);
      wish.onRound?.(result);
    }
  } finally {
    await house.end();
  }
  return results;
}
