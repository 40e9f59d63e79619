// Side by side: the same works against this server, other builds of it and any other servers named on the command line,
// all running at the same time on one machine, each work against one after the other. Processor time is that of the
// whole server with every process it starts. Nothing of other people's programs is here.

import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { atRest } from "./growth/settled.js";
import { bareEngine, signaturesPerSecond } from "./ingest.js";
import { advertisementWork, bring, cloneWork, largeCopy, pushWork, secondServerWork, talkedAbout } from "./peer-git.js";
import {
  besideBare,
  besideTaker,
  corpusEvents,
  deliverySockets,
  deliveryWork,
  type Figure,
  ingestWork,
  questions,
  questionWork,
  socketWork,
  type Target,
} from "./peer-relay.js";
import { type Peer, startPeer } from "./peer-servers.js";
import { treeMemory } from "./process-costs.js";
import { inFolder } from "./processes.js";
import { type BenchRow, mebibytes, milliseconds, percentile } from "./rows.js";
import { firstCommit } from "./scene.js";
import { signedIssues } from "./signed-corpus.js";
import { addressOf } from "./traffic.js";
import { git } from "./traffic-git.js";

interface Running extends Target {
  readonly peer: Peer;
  close(): Promise<void>;
}

/** What a figure of ours is held against; others' figures are not judged. */
interface Goal {
  readonly target: string;
  readonly limit?: string;
  readonly ratio?: number;
  readonly met: boolean;
}

type Cell = Figure | { readonly failure: string };
type Judge = (ours: Figure, others: readonly Figure[]) => Goal;

export async function runPeers(peers: readonly Peer[], works: readonly string[]): Promise<BenchRow[]> {
  return inFolder((folder) => new PeersRun(peers, works, folder).run());
}

const measuredStarts = 5;
const idleMs = 3_000;
const restWithinMs = 30_000;

class PeersRun {
  readonly #rows: BenchRow[] = [];
  readonly #running: Running[] = [];

  constructor(
    readonly peers: readonly Peer[],
    readonly works: readonly string[],
    readonly folder: string,
  ) {}

  async run(): Promise<BenchRow[]> {
    try {
      await this.#startAll();
      await this.#relayWorks();
      await this.#gitWorks();
    } finally {
      for (const server of this.#running) await server.close();
    }
    await this.#work(
      "60 repositories × 20 issues to a second server",
      this.peers.filter(({ hasGit }) => hasGit),
      (peer) =>
        peer.type === "command"
          ? inFolder((folder) => secondServerWork(peer, folder))
          : Promise.reject(new Error("a second one can be started with --command only")),
      "p50Ms",
    );
    return this.#rows;
  }

  /** Some starts of each on empty folders; the last stays. */
  async #startAll(): Promise<void> {
    const commands = this.peers.flatMap((peer) => (peer.type === "command" ? [peer] : []));
    const name = "start to open port, empty";
    const starts = this.#wants(name) ? measuredStarts : 0;
    const startMs = new Map<string, number[]>();
    const memory = new Map<string, Figure>();
    for (const peer of commands) {
      say(`starting ${peer.name}`);
      const took: number[] = [];
      // The first start compiles and fills the system's memory with its files.
      for (let index = 0; index <= starts; index++) {
        const server = await startPeer(peer, join(this.folder, `${peer.name}-${index}`));
        if (index > 0) took.push(server.startMs);
        if (index < starts) await server.close();
        else this.#running.push({ ...server, peer });
      }
      startMs.set(peer.name, took);
    }
    for (const peer of this.peers) if (peer.type === "running") this.#running.push({ ...peer, peer, close: nothing });
    await pause(idleMs);
    for (const { peer, pid } of this.#running) memory.set(peer.name, { bytes: treeMemory(pid).ownBytes });
    const known = (figures: ReadonlyMap<string, Figure>) => async (peer: Peer) => figures.get(peer.name) ?? {};
    const started = new Map([...startMs].map(([name, took]) => [name, { p50Ms: percentile(took, 0.5) }]));
    await this.#work(name, commands, known(started), "p50Ms", atMost("p50Ms", 400, milliseconds));
    const most = atMost("bytes", 90 * 2 ** 20, mebibytes);
    await this.#work("memory, idle, all processes, what they share once", this.peers, known(memory), "bytes", most);
  }

  async #relayWorks(): Promise<void> {
    const work = await firstCommit(join(this.folder, "small"));
    let bareSocket: Figure = {};
    const sockets = async (server: Running): Promise<Figure> => {
      const figure = await socketWork(server);
      if (this.#isFirst(server)) bareSocket = await besideBare(0, socketWork);
      return figure;
    };
    await this.#serverWork("memory of an idle socket", sockets, "bytes", (ours) => ({
      ...atMost("bytes", 10 * 1_024, kibibytes)(ours, []),
      limit: `ws alone: ${textOf(bareSocket, "bytes")}`,
      ratio: (ours.bytes ?? Number.NaN) / (bareSocket.bytes ?? Number.NaN),
    }));
    for (const server of [...this.#running]) {
      try {
        await bring(server, talkedAbout, work, server.peer.hasGit);
      } catch (error) {
        say(`${server.peer.name} does not take the repository: ${(error as Error).message}`);
      }
    }
    const repository = addressOf(talkedAbout);
    const corpus = signedIssues(corpusEvents, repository);
    say(`corpus ${corpus.fingerprint}, ${corpus.events} events`);
    const signatures = signaturesPerSecond(await bareEngine());
    const ingest = "ingest, 50 connections × 20, with rules";
    // What follows asks for these events.
    if (!this.#wants(ingest)) for (const server of this.#running) await ingestWork(server, corpus);
    let bareIngest: Figure = {};
    const take = async (server: Running): Promise<Figure> => {
      const figure = await ingestWork(server, corpus);
      if (this.#isFirst(server)) bareIngest = await besideTaker((target) => ingestWork(target, corpus));
      return figure;
    };
    await this.#serverWork(ingest, take, "cpu", (ours) => ({
      target: "≥ 0.5 of one core's signatures",
      limit: `${Math.round(signatures)} signatures/s; parsed, checked and answered, nothing else: ${textOf(bareIngest, "cpu")}`,
      ratio: (ours.perSecond ?? 0) / signatures,
      met: (ours.perSecond ?? 0) >= signatures / 2,
    }));
    for (const question of questions(repository)) {
      const most = questionGoals.get(question.name);
      let bare: Figure = {};
      const ask = async (server: Running): Promise<Figure> => {
        const figure = await questionWork(server, question, corpus);
        if (most !== undefined && this.#isFirst(server)) {
          bare = await besideBare(question.rows * 1_000, (target) => questionWork(target, question, corpus));
        }
        return figure;
      };
      const judge: Judge = (ours) => ({
        ...atMost("cpuMicros", most as number, microseconds)(ours, []),
        limit: `ws alone, nothing decided: ${textOf(bare, "cpu")}`,
        ratio: (ours.cpuMicros ?? Number.NaN) / (bare.cpuMicros ?? Number.NaN),
      });
      await this.#serverWork(question.name, ask, "cpu", most === undefined ? undefined : judge);
    }
    let bareDelivery: Figure = {};
    const deliver = async (server: Running): Promise<Figure> => {
      const figure = await deliveryWork(server, corpus);
      // Beside ours, in the same minute.
      if (this.#isFirst(server)) bareDelivery = await besideBare(0, (target) => deliveryWork(target, corpus));
      return figure;
    };
    await this.#serverWork(`one event to ${deliverySockets} sockets, each delivery`, deliver, "cpu", (ours) => {
      const ratio = (ours.cpuMicros ?? Number.NaN) / (bareDelivery.cpuMicros ?? Number.NaN);
      const limit = `a bare write to each, nothing decided: ${textOf(bareDelivery, "cpu")}`;
      return { target: "≤ 1.2 × Node's bare write", limit, ratio, met: ratio <= 1.2 };
    });
  }

  async #gitWorks(): Promise<void> {
    const hosts = this.#running.filter(({ peer }) => peer.hasGit);
    const pushes = new Map<string, Cell>();
    const small = join(this.folder, "small");
    const state = async (server: Running): Promise<Figure> => {
      const copy = join(this.folder, `work-${server.peer.name}`);
      await git(this.folder, "clone", "-q", small, copy);
      const figures = await pushWork(server, copy);
      pushes.set(server.peer.name, figures.push);
      return figures.state;
    };
    await this.#onServers(
      "state event, its data missing, to its OK",
      hosts,
      state,
      "p50Ms",
      atMost("p50Ms", 5, milliseconds),
    );
    const pushed = (server: Running) => later(pushes.get(server.peer.name));
    await this.#onServers("small push", hosts, pushed, "p50Ms", noSlowerThanOthers);
    await this.#onServers("info/refs", hosts, advertisementWork, "cpu");
    const many = new Map<string, Cell>();
    const needsLarge = this.#wants("clone of 80 MB");
    const large = needsLarge ? await largeCopy(this.folder) : "";
    const clone = async (server: Running): Promise<Figure> => {
      const figures = await cloneWork(server, large);
      many.set(server.peer.name, figures.many);
      return figures.one;
    };
    await this.#onServers("clone of 80 MB", hosts, clone, "cpu");
    const together = (server: Running) => later(many.get(server.peer.name));
    await this.#onServers("clone of 80 MB, six at once, all of them", hosts, together, "cpu");
  }

  #serverWork(name: string, work: (server: Running) => Promise<Figure>, told: Told, judge?: Judge): Promise<void> {
    return this.#onServers(name, this.#running, work, told, judge);
  }

  #onServers(
    name: string,
    servers: readonly Running[],
    work: (server: Running) => Promise<Figure>,
    told: Told,
    judge?: Judge,
  ): Promise<void> {
    const byName = new Map(servers.map((server) => [server.peer.name, server]));
    const peers = servers.map(({ peer }) => peer);
    const rested = async (peer: Peer): Promise<Figure> => {
      const server = byName.get(peer.name) as Running;
      // What follows from the work before is not this work's. A server that never rests is measured as it is.
      await atRest(server, restWithinMs).catch(() => undefined);
      return await work(server);
    };
    return this.#work(name, peers, rested, told, judge);
  }

  #isFirst({ peer }: Running): boolean {
    return peer.name === this.peers[0]?.name;
  }

  #wants(name: string): boolean {
    return this.works.length === 0 || this.works.some((word) => name.includes(word));
  }

  async #work(
    name: string,
    peers: readonly Peer[],
    work: (peer: Peer) => Promise<Figure>,
    told: Told,
    judge?: Judge,
  ): Promise<void> {
    if (!this.#wants(name)) return;
    const cells = new Map<string, Cell>();
    for (const peer of peers) {
      say(`${name}: ${peer.name}`);
      cells.set(peer.name, await work(peer).catch((error: Error) => ({ failure: error.message })));
    }
    const figures = [...cells].flatMap(([of, cell]) => ("failure" in cell ? [] : [{ of, figure: cell }]));
    const first = this.peers[0]?.name;
    const ours = figures.find(({ of }) => of === first)?.figure;
    const others = figures.filter(({ of }) => of !== first).map(({ figure }) => figure);
    const text = (of: string): string => {
      const cell = cells.get(of);
      return cell === undefined ? "–" : "failure" in cell ? `failed: ${cell.failure}` : textOf(cell, told);
    };
    this.#rows.push({
      goal: "-",
      work: name,
      measured: text(first ?? ""),
      beside: Object.fromEntries(this.peers.slice(1).map((peer) => [peer.name, text(peer.name)])),
      figures: Object.fromEntries(cells),
      ...(ours && judge?.(ours, others)),
    });
  }
}

/** What a row is about; the rest of a figure is said with it. */
type Told = "p50Ms" | "cpu" | "bytes";

function textOf({ p50Ms, cpuMicros, perSecond, bytes }: Figure, told: Told): string {
  if (told === "bytes") return bytes === undefined ? "–" : bytes < 2 ** 20 ? kibibytes(bytes) : mebibytes(bytes);
  const parts = [
    ...(perSecond === undefined ? [] : [`${Math.round(perSecond)}/s`]),
    ...(p50Ms === undefined ? [] : [`p50 ${milliseconds(p50Ms)}`]),
    ...(cpuMicros === undefined ? [] : [`CPU ${microseconds(cpuMicros)}`]),
  ];
  return parts.join(", ") || "–";
}

const questionGoals = new Map([
  ["REQ by id", 100],
  ["REQ #e × 1,000, nothing found", 1_000],
]);

const atMost =
  (of: "p50Ms" | "cpuMicros" | "bytes", most: number, text: (value: number) => string): Judge =>
  (ours) => ({ target: `≤ ${text(most)}`, met: (ours[of] ?? Number.NaN) <= most });

const noSlowerThanOthers: Judge = (ours, others) => {
  const best = Math.min(...others.map(({ p50Ms }) => p50Ms ?? Number.POSITIVE_INFINITY));
  return { target: "no slower than the others", met: (ours.p50Ms ?? Number.NaN) <= best };
};

const kibibytes = (bytes: number): string => `${(bytes / 1_024).toFixed(1)} KiB`;
const microseconds = (micros: number): string =>
  micros < 10_000 ? `${micros < 100 ? micros.toFixed(1) : Math.round(micros)} µs` : milliseconds(micros / 1_000);

async function later(cell: Cell | undefined): Promise<Figure> {
  if (!cell) throw new Error("the work before it failed");
  if ("failure" in cell) throw new Error(cell.failure);
  return cell;
}

const nothing = async (): Promise<void> => undefined;
const say = (text: string): boolean => process.stderr.write(`  ${text}\n`);
