// Git on a cluster beside a server that is alone: pushes, what the other machines serve right after one, clones, and the
// advertisement under load.

import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Side, type Sides, type Stage, tell, total, usedSince } from "./cluster-ground.js";
import { commitText, goal, microseconds, ratioOf, scaled, timesRow, timesText } from "./cluster-rows.js";
import { load } from "./git.js";
import { type BenchRow, milliseconds, perSecond } from "./rows.js";
import { type HostedRepository, nameOf } from "./traffic.js";
import { git, Publisher, urlOf } from "./traffic-git.js";

const warmUps = 3;
const pushes = scaled(40);
const clonesEach = scaled(40);
/** Each machine packs once and has the answer from then on; and what runs often is compiled. */
const clonesBefore = scaled(10);
const advertisingMs = scaled(3_000);
const goalPush = 1.6;
const goalServing = 0.9;

const names = ["alone", "together"] as const;

async function mustGit(cwd: string, ...args: string[]): Promise<string> {
  const { ok, text } = await git(cwd, ...args);
  if (!ok) throw new Error(`git ${args.join(" ")}: ${text}`);
  return text.trim();
}

export interface PushTimes {
  readonly stateMs: number;
  readonly pushMs: number;
  readonly tip: string;
}

/** Somebody who pushes one commit after the other, from a working copy of their own. */
export class Author {
  #count = 0;

  private constructor(
    readonly folder: string,
    readonly repository: HostedRepository,
    readonly ports: readonly number[],
    readonly publishers: readonly Publisher[],
  ) {}

  static async clone({ ports, repository, lastSeconds }: Side, folder: string): Promise<Author> {
    await mustGit("/", "clone", "-q", urlOf(ports[0] ?? 0, repository), folder);
    const publishers = await Promise.all(ports.map((port) => Publisher.connect(port, undefined, lastSeconds)));
    return new Author(folder, repository, ports, publishers);
  }

  /** States the next commit to one machine and pushes it to another, counted from the first. */
  async push(stateTo: number, pushTo: number): Promise<PushTimes> {
    const { folder, repository, ports, publishers } = this;
    await mustGit(folder, "commit", "-q", "--allow-empty", "-m", `commit ${this.#count++}`);
    const tip = (await readFile(join(folder, ".git/refs/heads/main"), "utf8")).trim();
    const tags = [
      ["d", repository.identifier],
      ["refs/heads/main", tip],
      ["HEAD", "ref: refs/heads/main"],
    ];
    const began = performance.now();
    const [ok, text] = (await publishers[stateTo % ports.length]?.publish(repository.secretHex, 30618, tags)) ?? [];
    if (!ok) throw new Error(text ?? "nobody was asked");
    const stateMs = performance.now() - began;
    const pushBegan = performance.now();
    await mustGit(folder, "push", "-q", urlOf(ports[pushTo % ports.length] ?? 0, repository), "main");
    return { stateMs, pushMs: performance.now() - pushBegan, tip };
  }

  close(): void {
    for (const { client } of this.publishers) client.close();
  }
}

/** The advertisement of one machine; it must name that tip. */
async function advertised(port: number, repository: HostedRepository, tip: string): Promise<number> {
  const began = performance.now();
  const answer = await fetch(`${urlOf(port, repository)}/info/refs?service=git-upload-pack`);
  const text = await answer.text();
  const ms = performance.now() - began;
  if (!text.includes(tip)) throw new Error(`machine at ${port} answered ${answer.status} without ${tip}`);
  return ms;
}

export async function authorsOf(stage: Stage, kind: string): Promise<Sides<Author>> {
  const { sides, ground } = stage;
  return {
    alone: await Author.clone(sides.alone, join(ground.folder, `${kind}-alone`)),
    together: await Author.clone(sides.together, join(ground.folder, `${kind}-together`)),
  };
}

async function pushRows(stage: Stage): Promise<BenchRow[]> {
  tell("pushes");
  const { ground, sides } = stage;
  const authors = await authorsOf(stage, "pushes");
  const times = { alone: [] as number[], together: [] as number[] };
  const states = { alone: [] as number[], together: [] as number[] };
  const apart = { alone: times.alone, together: [] as number[] };
  const served: number[] = [];
  const bare: number[] = [];
  const used = { alone: 0, pushedTo: 0, together: 0 };
  let changes = 0;
  for (let round = -warmUps; round < pushes; round++) {
    const beforeOne = sides.alone.used();
    const one = await authors.alone.push(0, 0);
    const usedByOne = usedSince(sides.alone.used(), beforeOne);
    const [changesBefore, usedBefore] = [await ground.changes(), sides.together.used()];
    const same = await authors.together.push(round + warmUps, round + warmUps);
    const { ports, repository } = sides.together;
    const machine = ports[(round + warmUps + 1) % ports.length] ?? 0;
    const servedMs = await advertised(machine, repository, same.tip);
    const usedByAll = usedSince(sides.together.used(), usedBefore);
    const changesAfter = await ground.changes();
    const other = await authors.together.push(round + warmUps, round + warmUps + 1);
    const bareMs = await ground.bareCommit();
    if (round < 0) continue;
    changes += changesAfter - changesBefore;
    used.alone += total(usedByOne);
    used.pushedTo += usedByAll.machines[(round + warmUps) % ports.length] ?? 0;
    used.together += total(usedByAll);
    served.push(servedMs);
    bare.push(bareMs);
    times.alone.push(one.pushMs);
    times.together.push(same.pushMs);
    apart.together.push(other.pushMs);
    states.alone.push(one.stateMs);
    states.together.push(same.stateMs);
  }
  for (const name of names) authors[name].close();
  const goalOf = (both: Sides<readonly number[]>): { readonly target: string; readonly met: boolean } => ({
    target: `p50 ≤ ${goalPush} × one alone`,
    met: ratioOf(both) <= goalPush,
  });
  return [
    timesRow("git push of one commit, state and push to one machine", times, {
      note: `${(changes / pushes).toFixed(1)} changes of the log with its state; ${milliseconds(used.pushedTo / pushes)} of the machine's processor, ${milliseconds(used.together / pushes)} of all`,
      limit: `${milliseconds(used.alone / pushes)} of processor; ${commitText(bare, times.together)}`,
      ...goalOf(times),
    }),
    timesRow("  state to one machine, push to another", apart, goalOf(apart)),
    timesRow("  its state, to its OK", states, { limit: commitText(bare, states.together) }),
    { goal, work: "  right after it another machine advertises it", measured: timesText(served) },
  ];
}

async function cloneRow({ sides, ground }: Stage): Promise<BenchRow> {
  tell("clones");
  const times = { alone: [] as number[], together: [] as number[] };
  const used = { alone: 0, together: 0 };
  let postgresMs = 0;
  const target = join(ground.folder, "clone");
  const { ports } = sides.together;
  const clone = async ({ ports: from, repository }: Side, round: number): Promise<number> => {
    const began = performance.now();
    await mustGit("/", "clone", "-q", "--bare", urlOf(from[round % from.length] ?? 0, repository), target);
    const ms = performance.now() - began;
    await rm(target, { recursive: true, force: true });
    return ms;
  };
  for (let round = 0; round < clonesBefore * ports.length; round++) {
    for (const side of [sides.alone, sides.together]) await clone(side, round);
  }
  for (let round = 0; round < clonesEach * ports.length; round++) {
    for (const name of names) {
      const side = sides[name];
      const before = side.used();
      times[name].push(await clone(side, round));
      const since = usedSince(side.used(), before);
      // Of the one that was asked: the others do what they do while nobody asks.
      used[name] += since.machines[round % side.ports.length] ?? 0;
      postgresMs += since.postgres;
    }
  }
  const count = times.together.length;
  const ratio = used.alone / used.together;
  return {
    ...timesRow("git clone, each from the next machine", times, {
      note: `${milliseconds(used.together / count)} of the machine's processor each, PostgreSQL ${milliseconds(postgresMs / count)}`,
      limit: `${milliseconds(used.alone / count)} of processor`,
      target: `≥ ${goalServing} of one alone, by a machine's processor time`,
      met: ratio >= goalServing,
    }),
    ratio,
  };
}

/** As many as come in a while over 32 connections to each machine. */
async function advertisementRow({ sides }: Stage): Promise<BenchRow> {
  tell("advertisements");
  const run = async (side: Side): Promise<{ answered: number; ms: number; postgresMs: number }> => {
    const request = `GET /${nameOf(side.repository)}.git/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: x\r\n\r\n`;
    const before = side.used();
    const answers = await Promise.all(
      side.ports.map((port) => load(`http://127.0.0.1:${port}`, request, advertisingMs)),
    );
    const since = usedSince(side.used(), before);
    const ms = since.machines.reduce((sum, one) => sum + one, 0);
    return { answered: answers.reduce((sum, one) => sum + one, 0), ms, postgresMs: since.postgres };
  };
  await run(sides.alone);
  await run(sides.together);
  const alone = await run(sides.alone);
  const together = await run(sides.together);
  const ratio = alone.ms / alone.answered / (together.ms / together.answered);
  return {
    goal,
    work: "info/refs, 32 connections to each machine",
    measured: `${perSecond(together.answered, advertisingMs)}, ${microseconds(together.ms, together.answered)} of the machines' processor each, PostgreSQL ${microseconds(together.postgresMs, together.answered)}`,
    limit: `alone ${perSecond(alone.answered, advertisingMs)}, ${microseconds(alone.ms, alone.answered)}`,
    ratio,
    target: `≥ ${goalServing} of one alone, by a machine's processor time`,
    met: ratio >= goalServing,
  };
}

export async function gitRows(stage: Stage): Promise<BenchRow[]> {
  return [...(await pushRows(stage)), await cloneRow(stage), await advertisementRow(stage)];
}
