// Rounds of faults. Each life of the server is one round: start on what the fault before left, check the contract, work
// under load, strike. A fault the server survives is checked at once as well.

import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Random } from "../../src/store/testing/random.js";
import { until } from "../harness/server.js";
import { check } from "./checker.js";
import { Load } from "./load.js";
import type { Fault, Struck } from "./scene.js";
import { orphansOf, Victim } from "./victim.js";
import { usualSettings, World } from "./world.js";

export interface RoundResult {
  readonly round: number;
  readonly family: string;
  readonly what: string;
  /** False: it could not be brought about. */
  readonly isDone: boolean;
  readonly violations: readonly string[];
  /** Where the log of a life that broke a promise is. */
  readonly logFile: string | undefined;
  readonly ms: number;
}

export interface RoundsWish {
  readonly seed: number;
  readonly rounds: number;
  readonly plan: Iterable<Fault>;
  readonly onRound?: (result: RoundResult) => void;
}

const roundsAWorld = 20;
const loadWithinMs = 30_000;

export async function runRounds(wish: RoundsWish): Promise<RoundResult[]> {
  const results: RoundResult[] = [];
  const random = new Random(wish.seed);
  const plan = wish.plan[Symbol.iterator]();
  while (results.length < wish.rounds) {
    const world = await World.make(random);
    const house = new Rounds(world);
    try {
      await house.settle();
      const end = Math.min(wish.rounds, results.length + roundsAWorld);
      while (results.length < end) {
        const fault = plan.next();
        if (fault.done) return results;
        const result = await house.round(fault.value, results.length + 1);
        results.push(result);
        wish.onRound?.(result);
      }
    } finally {
      await house.end();
      await world.end();
    }
  }
  return results;
}

export class Rounds {
  /** The server that was looked at last, an ordinary one: the next round goes on with it if it can. */
  #standing: Victim | undefined;
  /** The one that the newest fault was done to. */
  #lived: Victim | undefined;

  constructor(readonly world: World) {}

  /** People and repositories that are there from the beginning. */
  async settle(): Promise<void> {
    const { world } = this;
    const victim = await this.#start(false, {});
    const pair = await world.found([world.newPerson(), world.newPerson()]);
    const shared = await world.found([world.newPerson()], true);
    const [relay, peerRelay] = [await victim.connect(), await world.peer.connect()];
    for (const set of [pair, shared]) {
      const isShared = set === shared;
      for (const owner of set.owners) {
        const announcement = world.announcement(owner, set);
        world.ledger.sending(announcement);
        const [, , ok, message] = await relay.publish(announcement);
        world.ledger.answered(announcement, { ok: ok === true, message: String(message) });
        if (isShared) await peerRelay.publish(announcement);
      }
      const [owner] = set.owners;
      const refs = { "refs/heads/main": await set.source.next() };
      const state = set.newState(owner, refs);
      await (isShared ? peerRelay : relay).publish(state);
      const url = world.url(owner, set, isShared ? world.peer.origin : world.origin);
      const report = await set.source.push(url, refs);
      if (!report.refs.some(({ ok }) => ok)) throw new Error(`the first push failed: ${report.stderr}`);
      if (!isShared) set.released(0);
    }
    const problems = await check(world, victim);
    if (problems.length > 0) throw new Error(`unsound before any fault: ${problems.join("\n")}`);
    shared.released(0);
    relay.socket.terminate();
    peerRelay.socket.terminate();
    this.#standing = victim;
  }

  async end(): Promise<void> {
    await this.#standing?.end("SIGTERM");
  }

  async #start(isFaulty: boolean, settings: Readonly<Record<string, string>>): Promise<Victim> {
    const standing = this.#standing;
    this.#standing = undefined;
    if (standing?.isAlive && !isFaulty && Object.keys(settings).length === 0) return standing;
    await standing?.end("SIGTERM");
    return await Victim.start(this.world.place, { isFaulty, settings: { ...usualSettings, ...settings } });
  }

  async round(fault: Fault, round: number): Promise<RoundResult> {
    const begunMs = performance.now();
    const violations: string[] = [];
    let struck: Struck = { what: "nothing", isDone: false };
    if (fault.needsVolumes && !this.world.hasVolumes)
      struck = { what: "skipped: no small disk can be mounted here", isDone: false };
    else {
      try {
        struck = await this.#live(fault, violations);
        violations.push(...(struck.violations ?? []));
        // What it left is looked at by an ordinary server, started in the ordinary way.
        this.world.ledger.expiryIs(false);
        this.#standing = await this.#start(false, {});
        violations.push(...(await check(this.world, this.#standing)));
      } catch (error) {
        violations.push(`the round broke off: ${error instanceof Error ? error.stack : String(error)}`);
      }
    }
    const ms = Math.round(performance.now() - begunMs);
    const logFile = violations.length > 0 ? this.#keepLogs(round) : undefined;
    return { round, family: fault.family, what: struck.what, isDone: struck.isDone, violations, logFile, ms };
  }

  #keepLogs(round: number): string {
    const path = join(tmpdir(), `holdfast-faults-${process.pid}-${round}.log`);
    writeFileSync(path, `${this.#lived?.log}\n--- then started in the ordinary way ---\n${this.#standing?.log}`);
    return path;
  }

  async #live(fault: Fault, violations: string[]): Promise<Struck> {
    const { world } = this;
    const victim = await this.#start(fault.isFaulty, fault.settings ?? {});
    this.#lived = victim;
    world.ledger.expiryIs(fault.isExpiring ?? false);
    const load = new Load(world, victim, fault.isExpiring ?? false);
    try {
      await until(() => load.answers > 5 && load.reads > 0, loadWithinMs);
      const struck = await fault.strike({ world, victim, load, random: world.random });
      await load.stop();
      violations.push(...load.violations, ...(await this.#judgeLife(fault, victim)));
      return struck;
    } finally {
      await load.stop();
      if (victim.isAlive) await victim.end(world.random.chance(0.5) ? "SIGKILL" : "SIGTERM");
      violations.push(...(await this.#orphans()));
    }
  }

  /** Whether it ended as it may, and, if it goes on, whether all is well. */
  async #judgeLife(fault: Fault, victim: Victim): Promise<string[]> {
    const fatal = /.*"level":"fatal".*/.exec(victim.log)?.[0];
    if (victim.isAlive) return fault.ends === "yes" ? ["the server survived"] : await check(this.world, victim);
    if (fault.ends === "no") return [`the server ended: ${fatal ?? victim.log.slice(-500)}`];
    const { code, signal } = await victim.ended;
    const isSilent = fault.ends === "perhaps" && (signal !== null || code !== 1 || fatal === undefined);
    return isSilent ? [`the server ended with ${signal ?? code} and no reason in its log`] : [];
  }

  async #orphans(): Promise<string[]> {
    const { folder } = this.world.place;
    await until(() => orphansOf(folder).length === 0, 15_000);
    return orphansOf(folder).map((text) => `a process was left behind: ${text}`);
  }
}
