// The stage of `cluster`: a server that is alone on LMDB, and three machines of a cluster on a PostgreSQL and a pack store of
// their own. Both host the same repository and are sent the same.

import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { SecretKey } from "../src/nostr/keys.js";
import { seededRandom } from "./corpus.js";
import type { PostgresFacts } from "./postgres-program.js";
import { treeMs } from "./process-costs.js";
import { type BenchServer, freePort, nextMessage, programPath, startBenchServer } from "./processes.js";
import { firstCommit, host, raisedSettings } from "./scene.js";
import { signedIssues } from "./signed-corpus.js";
import { addressOf, type HostedRepository } from "./traffic.js";
import { git } from "./traffic-git.js";

/** Milliseconds of the processors. */
export interface ProcessorUse {
  /** Of each machine, with the git processes it started. */
  readonly machines: readonly number[];
  readonly postgres: number;
}

/** One of the two that are compared. */
export interface Side {
  readonly ports: readonly number[];
  readonly repository: HostedRepository;
  /** When each owner last signed something: one for all who push here, so that every state is newer than the last. */
  readonly lastSeconds: Map<string, number>;
  used(): ProcessorUse;
}

export interface Sides<Each> {
  readonly alone: Each;
  readonly together: Each;
}

const begun = performance.now();
export function tell(sentence: string): void {
  process.stderr.write(`  ${Math.round((performance.now() - begun) / 1_000)} s: ${sentence}\n`);
}

export function usedSince(now: ProcessorUse, before: ProcessorUse): ProcessorUse {
  return {
    machines: now.machines.map((ms, index) => ms - (before.machines[index] ?? 0)),
    postgres: now.postgres - before.postgres,
  };
}

export const total = ({ machines, postgres }: ProcessorUse): number =>
  machines.reduce((sum, ms) => sum + ms, 0) + postgres;

/** Its events are signed once and kept: whose they are about must be the same in every run. */
const owner = (): SecretKey => {
  const key = SecretKey.fromHex("b5".repeat(32));
  if (!key) throw new Error("not a key");
  return key;
};
const serverKey = "11".repeat(32);
const machineNames = ["one", "two", "three"];

/** Signed events about the repository; both sides get the same ones. */
export class Issues {
  #next = 0;
  readonly #lines: readonly string[];

  constructor(
    readonly file: string,
    lines: readonly string[],
  ) {
    this.#lines = lines;
  }

  /** The next ones; `skip` is where they begin in the file. */
  take(count: number): { readonly skip: number; readonly lines: readonly string[] } {
    const skip = this.#next;
    this.#next += count;
    if (this.#next > this.#lines.length) throw new Error("the corpus has no more events");
    return { skip, lines: this.#lines.slice(skip, this.#next) };
  }
}

export class ClusterGround {
  readonly machines = new Map<string, BenchServer>();

  private constructor(
    readonly folder: string,
    readonly postgres: PostgresFacts,
    /** A session of our own, to compare with and to look. */
    readonly database: pg.Client,
    readonly domain: string,
    readonly endPostgres: () => Promise<void>,
  ) {}

  static async start(folder: string): Promise<ClusterGround> {
    tell("starting PostgreSQL");
    // Not one that is killed: it has PostgreSQL to end, and does when it loses its parent.
    const keeper = fork(programPath("postgres-program"));
    const postgres = await nextMessage<PostgresFacts>(keeper);
    const database = new pg.Client({ connectionString: postgres.url });
    await database.connect();
    await database.query("CREATE TABLE bare (body bytea)");
    await mkdir(join(folder, "packs"));
    return new ClusterGround(folder, postgres, database, `127.0.0.1:${await freePort()}`, async () => {
      await database.end();
      const ended = once(keeper, "exit");
      keeper.disconnect();
      await ended;
    });
  }

  get packFolder(): string {
    return join(this.folder, "packs");
  }

  get serverKey(): string {
    const key = SecretKey.fromHex(serverKey);
    if (!key) throw new Error("not a key");
    return key.pubkey;
  }

  async startMachine(name: string): Promise<BenchServer> {
    const settings = {
      NGIT_RELAY_OWNER_NSEC: serverKey,
      NGIT_DATABASE_BACKEND: "postgres",
      NGIT_DATABASE_URL: this.postgres.url,
      NGIT_NODE_NAME: name,
      NGIT_PACK_STORE: `directory:${this.packFolder}`,
    };
    const machine = await startBenchServer(join(this.folder, name), { ...raisedSettings(this.domain), ...settings });
    this.machines.set(name, machine);
    return machine;
  }

  async closeMachine(name: string): Promise<void> {
    await this.machines.get(name)?.close();
    this.machines.delete(name);
  }

  /** PostgreSQL's own commit of one row as large as an event, in milliseconds. */
  async bareCommit(): Promise<number> {
    const began = performance.now();
    await this.database.query("INSERT INTO bare VALUES ($1)", [Buffer.alloc(1_200, 1)]);
    return performance.now() - began;
  }

  /** How many changes the shared log has. */
  async changes(): Promise<number> {
    const { rows } = await this.database.query<{ newest: string }>("SELECT max(n) AS newest FROM holdfast.change");
    return Number(rows[0]?.newest);
  }

  async end(): Promise<void> {
    for (const name of [...this.machines.keys()]) await this.closeMachine(name);
    await this.endPostgres();
  }
}

export interface Stage {
  readonly ground: ClusterGround;
  readonly sides: Sides<Side>;
  readonly issues: Issues;
  /** From starting the last machine's process to its listening, with nothing to follow yet. */
  readonly startMs: number;
  readonly closeAlone: () => Promise<void>;
}

/** Both sides, with one repository that has some files. */
export async function setStage(folder: string, events: number): Promise<Stage> {
  const ground = await ClusterGround.start(folder);
  tell("starting one server on LMDB and three machines of a cluster");
  const port = await freePort();
  const server = await startBenchServer(join(folder, "alone"), raisedSettings(`127.0.0.1:${port}`), port);
  const machines: BenchServer[] = [];
  for (const name of machineNames) machines.push(await ground.startMachine(name));
  const ports = machines.map((machine) => machine.port);
  const work = await someFiles(join(folder, "work"));
  const [alone] = await host(1, [port], work, owner);
  const [together] = await host(1, ports.slice(0, 1), work, owner, [ground.domain]);
  if (!alone || !together) throw new Error("no repository");
  tell(`signing ${events.toLocaleString("en")} events, unless that was done before`);
  const corpus = signedIssues(events, addressOf(alone));
  const issues = new Issues(corpus.file, readFileSync(corpus.file, "utf8").split("\n"));
  return {
    ...{ ground, issues },
    startMs: machines.at(-1)?.startMs ?? 0,
    sides: {
      alone: {
        ...{ ports: [port], repository: alone, lastSeconds: newerThanAnnounced(alone) },
        used: () => ({ machines: [treeMs(server.pid)], postgres: 0 }),
      },
      together: {
        ...{ ports, repository: together, lastSeconds: newerThanAnnounced(together) },
        used: () => ({ machines: machines.map(({ pid }) => treeMs(pid)), postgres: treeMs(ground.postgres.pid) }),
      },
    },
    closeAlone: () => server.close(),
  };
}

const newerThanAnnounced = ({ secretHex }: HostedRepository): Map<string, number> =>
  new Map([[secretHex, Math.floor(Date.now() / 1_000) - 80_000]]);

const files = 20;

/** A working copy whose objects take some room: 80 KiB that cannot be made smaller. */
async function someFiles(work: string): Promise<string> {
  await firstCommit(work);
  const random = seededRandom(5);
  for (let index = 0; index < files; index++) {
    const bytes = Buffer.from(Array.from({ length: 4_096 }, () => Math.floor(random() * 256)));
    await writeFile(join(work, `file-${index}`), bytes);
  }
  for (const args of [
    ["add", "-A"],
    ["commit", "-q", "-m", "some files"],
  ]) {
    const { ok, text } = await git(work, ...args);
    if (!ok) throw new Error(text);
  }
  return work;
}
