// Objects by id for pages: a few long-lived `git cat-file --batch-command` processes, one for a repository that is being
// read. Each answers one question after the other; one that nobody has asked for a while is ended, and the one that was
// asked longest ago makes room. Only checked ids are written to them, never a name or a path.

import type { Clock } from "../../base/clock.js";
import { GatheredBytes } from "../../base/collections.js";
import { type Oid, oidDigits } from "../../nostr/nip34.js";
import type { Job } from "../launcher.js";
import type { ObjectType } from "../objects.js";
import type { GitRepository } from "../repository.js";
import { checkedOid, GitError } from "../run.js";

export interface ReadObject {
  readonly type: ObjectType;
  readonly bytes: number;
  /** Undefined: it is larger than was asked for. */
  readonly content: Buffer | undefined;
}

const maxProcesses = 6;
const idleMs = 30_000;
/** One that lives longer is started anew: it may hold packs open that were replaced long ago. */
const limits = { wallClockMs: 15 * 60_000, memoryBytes: 768 * 2 ** 20, niceness: 10 };
/** For one object: a disk that does not answer must not hold a reader for ever. */
const answerMs = 10_000;

export class ObjectReader {
  readonly #processes = new Map<string, BatchProcess>();

  constructor(readonly clock: Clock) {}

  /** Undefined: there is no such object. */
  async read(repository: GitRepository, oid: Oid, maxBytes: number): Promise<ReadObject | undefined> {
    const { format } = await repository.refs();
    // git would take a shorter id for the beginning of a longer one.
    if (oid.length !== oidDigits[format]) return undefined;
    const key = `${format} ${repository.directory}`;
    try {
      return await this.#processFor(key, repository).ask(checkedOid(oid), maxBytes);
    } catch (error) {
      // It may have been at the end of its time. A second failure is one of the repository.
      if (!(error instanceof GitError)) throw error;
      return await this.#processFor(key, repository).ask(checkedOid(oid), maxBytes);
    }
  }

  #processFor(key: string, repository: GitRepository): BatchProcess {
    const known = this.#processes.get(key);
    this.#processes.delete(key);
    const usable = known && !known.isOver ? known : new BatchProcess(repository, this.clock);
    this.#processes.set(key, usable);
    for (const [oldKey, old] of this.#processes) {
      if (this.#processes.size <= maxProcesses) break;
      this.#processes.delete(oldKey);
      old.endWhenIdle();
    }
    return usable;
  }

  async close(): Promise<void> {
    const all = [...this.#processes.values()];
    this.#processes.clear();
    await Promise.all(all.map((one) => one.close()));
  }
}

class BatchProcess {
  readonly #job: Promise<Job>;
  #turn: Promise<unknown> = Promise.resolve();
  #asked = 0;
  #isLeaving = false;
  #cancelIdle: () => void = () => undefined;
  #received = new GatheredBytes();
  #wake: () => void = () => undefined;
  #ended: GitError | undefined;

  constructor(
    repository: GitRepository,
    readonly clock: Clock,
  ) {
    const call = { directory: repository.directory, limits, stdin: true };
    this.#job = repository.context.git.start(["cat-file", "--batch-command"], call).then((job) => {
      job.stdout.on("data", (chunk: Buffer) => {
        this.#received.add(chunk);
        this.#wake();
      });
      job.stdout.on("error", () => undefined);
      void job.exit.then((exit) => {
        this.#ended = new GitError("cat-file", exit);
        this.#wake();
      });
      return job;
    });
    this.#job.catch(() => {
      this.#isLeaving = true;
    });
  }

  get isOver(): boolean {
    return this.#ended !== undefined || this.#isLeaving;
  }

  ask(oid: Oid, maxBytes: number): Promise<ReadObject | undefined> {
    this.#cancelIdle();
    this.#asked += 1;
    const answer = this.#turn.then(() => this.#answer(oid, maxBytes));
    this.#turn = answer
      .catch(() => undefined)
      .finally(() => {
        this.#asked -= 1;
        if (this.#asked > 0) return;
        if (this.#isLeaving) void this.close();
        else this.#cancelIdle = this.clock.after(idleMs, () => void this.close());
      });
    return answer;
  }

  async #answer(oid: Oid, maxBytes: number): Promise<ReadObject | undefined> {
    const job = await this.#job;
    const cancel = this.clock.after(answerMs, () => job.end());
    try {
      const [, type, size] = await this.#line(job, `info ${oid}\n`);
      if (size === undefined) return undefined;
      const bytes = Number(size);
      if (bytes > maxBytes) return { type: type as ObjectType, bytes, content: undefined };
      await this.#line(job, `contents ${oid}\n`);
      // The object and the line end after it.
      const content = (await this.#take(() => bytes + 1)).subarray(0, bytes);
      return { type: type as ObjectType, bytes, content };
    } finally {
      cancel();
    }
  }

  async #line(job: Job, question: string): Promise<string[]> {
    job.stdin?.write(question);
    const line = await this.#take(({ all }) => all.indexOf("\n") + 1 || undefined);
    return line.toString("latin1").trimEnd().split(" ");
  }

  /** The first so many bytes, when they are here; undefined: it cannot be said yet how many. */
  async #take(bytesOf: (received: GatheredBytes) => number | undefined): Promise<Buffer> {
    for (;;) {
      const bytes = bytesOf(this.#received);
      if (bytes !== undefined && this.#received.length >= bytes) {
        const { all } = this.#received;
        this.#received = new GatheredBytes();
        if (all.length > bytes) this.#received.add(Buffer.from(all.subarray(bytes)));
        return all.subarray(0, bytes);
      }
      if (this.#ended) throw this.#ended;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  endWhenIdle(): void {
    this.#isLeaving = true;
    if (this.#asked === 0) void this.close();
  }

  async close(): Promise<void> {
    this.#isLeaving = true;
    this.#cancelIdle();
    const job = await this.#job.catch(() => undefined);
    job?.end();
    await job?.exit;
  }
}
