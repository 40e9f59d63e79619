// The faults: what is done to a server under load, and what it must survive. Each is one round (rounds.ts).

import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import type { Random } from "../../src/store/testing/random.js";
import { until } from "../harness/server.js";
import { flipByte } from "./flipping.js";
import { gitVerbs, methodPoints, type Order, renamePoints, type Target, verbPoint } from "./orders.js";
import type { Fault, Scene, Struck } from "./scene.js";
import type { Victim } from "./victim.js";
import type { Volume } from "./world.js";

/** Of util-linux. */
const limitProgram = "prlimit";
const reachWithinMs = 20_000;
const goOnMs = 700;

/** The load goes on meanwhile: this is the time a fault lasts, not a wait for something. */
const last = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

export const killServer: Fault = {
  family: "kill -9 of the server at a random moment",
  isFaulty: false,
  ends: "yes",
  async strike({ victim, random }) {
    await last(50 + random.below(1_000));
    await victim.end("SIGKILL");
    return { what: "killed", isDone: true };
  },
};

export const killLauncher: Fault = {
  family: "kill -9 of the launcher at a random moment",
  isFaulty: false,
  ends: "no",
  async strike({ victim, random }) {
    await last(50 + random.below(500));
    const killed = victim.launchers().map((pid) => signal(pid, "SIGKILL"));
    await last(goOnMs);
    return { what: "killed", isDone: killed.includes(true) };
  },
};

export const killGit: Fault = {
  family: "kill -9 of git processes at random moments",
  isFaulty: false,
  ends: "no",
  async strike({ victim, random }) {
    let killed = 0;
    for (let turn = 0; turn < 5; turn++) {
      await last(random.below(150));
      await until(() => victim.gitProcesses().length > 0 || !victim.isAlive, reachWithinMs);
      const found = victim.gitProcesses();
      if (found.length > 0 && signal(-random.pick(found), "SIGKILL")) killed++;
    }
    return { what: `${killed} killed`, isDone: killed > 0 };
  },
};

async function strikeAt(
  { victim, random }: Scene,
  point: string,
  target: Target,
  how: "SIGKILL" | "SIGSTOP" = "SIGKILL",
): Promise<Struck> {
  const order: Order = { type: "strike", point, pass: 1 + random.below(3), target, signal: how };
  await victim.order(order);
  await until(() => victim.hasStruck || !victim.isAlive, reachWithinMs);
  if (!victim.hasStruck && victim.isAlive) await victim.order({ type: "disarm" });
  return { what: point, isDone: target === "server" ? !victim.isAlive : victim.hasStruck };
}

const expiringSettings = { NGIT_PURGATORY_EXPIRY_SECS: "1", NGIT_PLACEHOLDER_EXPIRY_SECS: "1" };
const expiryPoint = "a repository's row is gone, its directory is not";

export const killAt = (point: string, target: Target): Fault => ({
  family: `kill -9 of ${target === "git" ? "git processes" : `the ${target}`} at a named point`,
  isFaulty: true,
  ends: target === "server" ? "yes" : "no",
  ...(point === expiryPoint ? { isExpiring: true, settings: expiringSettings } : {}),
  async strike(scene) {
    const struck = await strikeAt(scene, point, target);
    if (target !== "server") await last(goOnMs);
    else if (scene.victim.isAlive) await scene.victim.end("SIGKILL");
    return struck;
  },
});

export const killWhileExpiring: Fault = {
  family: "kill -9 of the server while waiting events expire",
  isFaulty: false,
  isExpiring: true,
  settings: expiringSettings,
  ends: "yes",
  async strike({ victim, random }) {
    await last(900 + random.below(1_200));
    await victim.end("SIGKILL");
    return { what: "killed", isDone: true };
  },
};

const stoppedProcesses = (victim: Victim): number[] =>
  victim.gitProcesses().filter((pid) => {
    try {
      return /^State:\tT/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
    } catch {
      return false;
    }
  });

/** What must work for everybody else while a fault lasts. */
async function canRead({ world, victim }: Scene): Promise<string[]> {
  const [set] = world.sets;
  if (!set) return [];
  const relay = await victim.connect();
  const { end } = await relay.ask("reading", { kinds: [30617], limit: 1 });
  relay.socket.terminate();
  const refs = await fetch(`${world.url(set.owners[0], set)}/info/refs?service=git-upload-pack`);
  await refs.arrayBuffer();
  // Whoever watches over the server asks this; it must not be what ends it.
  await (await fetch(`${world.origin}/readyz`)).arrayBuffer();
  return end[0] === "EOSE" && refs.status === 200 ? [] : [`nobody could read while it lasted (${refs.status})`];
}

export const stopGit = (verb: (typeof gitVerbs)[number]): Fault => ({
  family: "SIGSTOP of git processes",
  isFaulty: true,
  ends: "no",
  async strike(scene) {
    const { victim } = scene;
    await victim.order({ type: "hurry", wallClockMs: 1_500 });
    const struck = await strikeAt(scene, verbPoint(verb), "git", "SIGSTOP");
    const violations = await canRead(scene);
    const areOver = await until(() => stoppedProcesses(victim).length === 0, 30_000);
    if (!areOver) violations.push("a stopped git process was never ended");
    await last(goOnMs);
    await victim.order({ type: "hurry", wallClockMs: 3_600_000 });
    return { ...struck, violations };
  },
});

export const stallStore: Fault = {
  family: "a store that stalls 200 ms at each commit",
  isFaulty: true,
  ends: "no",
  async strike(scene) {
    const { victim, load } = scene;
    const before = load.answers;
    await victim.order({ type: "store", stallMs: 200, failing: 0 });
    const violations = await canRead(scene);
    const isAnswered = await until(() => load.answers > before + 3, 30_000);
    if (!isAnswered) violations.push("nothing was answered while the store was slow");
    await victim.order({ type: "store", stallMs: 0, failing: 0 });
    return { what: "stalled", isDone: true, violations };
  },
};

export const failStore: Fault = {
  family: "a store that fails in the middle of a batch",
  isFaulty: true,
  ends: "perhaps",
  async strike({ victim, random }) {
    await victim.order({ type: "store", stallMs: 0, failing: 1 + random.below(3) });
    await until(() => victim.hasStruck || !victim.isAlive, reachWithinMs);
    await last(goOnMs);
    return { what: "failed", isDone: victim.hasStruck };
  },
};

export const fillDisk = (volume: Volume): Fault => ({
  family: `disk full (${volume === "git" ? "repositories" : "events"})`,
  isFaulty: false,
  ends: "no",
  needsVolumes: true,
  async strike(scene) {
    const { world, victim, load, random } = scene;
    const [set] = world.sets;
    await last(random.below(400));
    world.fill(volume, random.below(200_000));
    const { failedReads } = load;
    const violations = await canRead(scene);
    await last(2 * goOnMs);
    if (load.failedReads > failedReads) violations.push("a read failed while the disk was full");
    world.giveRoom(volume);
    const floor = set?.floor ?? -1;
    const recovers = await until(() => (set?.floor ?? 0) > floor || !victim.isAlive, 30_000);
    if (!recovers) violations.push("no push was accepted after there was room again");
    return { what: "filled", isDone: true, violations };
  },
});

export const jumpClock = (hours: 1 | -1): Fault => ({
  family: "the clock jumps by an hour",
  isFaulty: true,
  ends: "no",
  async strike({ victim }) {
    await victim.order({ type: "clock", jumpMs: hours * 3_600_000 });
    await last(goOnMs);
    await victim.order({ type: "clock", jumpMs: 0 });
    await last(goOnMs);
    return { what: `${hours} h and back`, isDone: true };
  },
});

export const exhaustDescriptors: Fault = {
  family: "no file descriptors left (EMFILE)",
  isFaulty: false,
  ends: "no",
  async strike({ victim, random }) {
    await last(random.below(400));
    const open = readdirSync(`/proc/${victim.pid}/fd`).length;
    const limit = (value: string): boolean =>
      spawnSync(limitProgram, ["--pid", String(victim.pid), `--nofile=${value}:`]).status === 0;
    const isLimited = limit(String(open + random.below(4)));
    await last(goOnMs);
    const isLifted = limit("4096");
    return { what: "limited", isDone: isLimited && isLifted };
  },
};

export const crashWorker: Fault = {
  family: "a crash of the threads that check signatures",
  isFaulty: true,
  ends: "no",
  async strike({ victim, load }) {
    for (let count = 0; count < 3; count++) {
      const before = load.answers;
      await victim.order({ type: "crash worker" });
      if (!(await until(() => load.answers > before + 1, 30_000))) {
        return { what: "crashed", isDone: true, violations: ["nothing was answered after the threads crashed"] };
      }
    }
    return { what: "crashed", isDone: true };
  },
};

export const flipBytes: Fault = { family: "flipped bytes in a pack", isFaulty: false, ends: "no", strike: flipByte };

export const rejectPromise: Fault = {
  family: "a rejected promise nobody awaited",
  isFaulty: true,
  ends: "yes",
  async strike({ victim, random }) {
    await last(50 + random.below(500));
    await victim.order({ type: "reject" });
    const { code } = await victim.ended;
    const violations = code === 1 ? [] : [`it ended with ${code}`];
    if (!/"level":"fatal".*planted fault/.test(victim.log)) violations.push("the reason is not in the log");
    return { what: "rejected", isDone: true, violations };
  },
};

const atPoints: readonly string[] = [
  ...Object.keys(methodPoints),
  ...Object.keys(renamePoints),
  ...gitVerbs.map(verbPoint),
];

/** Points at which a git process is at work. */
const gitPoints: readonly string[] = gitVerbs.map(verbPoint);

function shuffled<T>(list: readonly T[], random: Random): T[] {
  const cards = [...list];
  for (let at = cards.length - 1; at > 0; at--) {
    const other = random.below(at + 1);
    [cards[at], cards[other]] = [cards[other] as T, cards[at] as T];
  }
  return cards;
}

/** Turns through a list in random order, again and again. */
function* dealt<T>(list: readonly T[], random: Random): Generator<T, never> {
  for (;;) yield* shuffled(list, random);
}

/** Endless: every family in each hand, every point in turn. */
export function* faultPlan(random: Random): Generator<Fault, never> {
  const serverPoints = dealt(atPoints, random);
  const launcherPoints = dealt(gitPoints, random);
  const childPoints = dealt(gitPoints, random);
  const stopped = dealt(gitVerbs, random);
  const take = <T>(from: Generator<T, never>, count: number): T[] =>
    Array.from({ length: count }, () => from.next().value);
  for (;;) {
    yield* shuffled(
      [
        ...[killServer, killServer, killLauncher, killGit, killGit, killWhileExpiring],
        ...take(serverPoints, 8).map((point) => killAt(point, "server")),
        ...take(launcherPoints, 2).map((point) => killAt(point, "launcher")),
        ...take(childPoints, 3).map((point) => killAt(point, "git")),
        stopGit(stopped.next().value),
        ...[stallStore, failStore, fillDisk("git"), fillDisk("relay")],
        jumpClock(random.chance(0.5) ? 1 : -1),
        ...[exhaustDescriptors, crashWorker, flipBytes, rejectPromise],
      ],
      random,
    );
  }
}
