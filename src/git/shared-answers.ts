// Equal fetch requests share one answer (git-http.md, Serving): the first runs git and writes what it says to a file as
// well, later ones read the growing file. Kept until the bound is reached, oldest use first. A key names the
// repository, its ref generation and the request, so an answer never outlives what it was made from.

import { randomBytes } from "node:crypto";
import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Job } from "./launcher-job.js";

/** Where an answer goes: false when the client is gone. */
export type Send = (chunk: Buffer) => Promise<boolean>;

export type ShareResult =
  | { readonly status: "sent"; readonly bytes: number; readonly shared: boolean }
  /** git failed before it said anything. */
  | { readonly status: "failed"; readonly stderr: string }
  | { readonly status: "busy" }
  /** The client went away, or git failed midway: the connection must be cut, the answer is not whole. */
  | { readonly status: "broken"; readonly bytes: number };

interface Answer {
  readonly path: string;
  file: FileHandle | undefined;
  bytes: number;
  state: "growing" | "whole" | "failed" | "cut" | "busy";
  /** Somebody else wants it too. */
  onJoin: () => void;
  stderr: string;
  /** Requests that still want it. Nobody left: git is ended. */
  clients: number;
  /** Not to be found any more; its file closes with its last client. */
  isForgotten: boolean;
  readonly wake: Set<() => void>;
  job: Job | undefined;
}

const readBytes = 256 * 1024;
/** Each keeps a descriptor. */
const maxAnswers = 256;

export class SharedAnswers {
  readonly #answers = new Map<string, Answer>();

  constructor(
    readonly directory: string,
    readonly maxBytes: () => number,
  ) {}

  get keptBytes(): number {
    return [...this.#answers.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** `start` runs git with the request already written; undefined when there is no room for more work. */
  async send(
    key: string,
    start: () => Promise<Job | undefined>,
    send: Send,
    signal: AbortSignal,
  ): Promise<ShareResult> {
    const present = this.#answers.get(key);
    if (present) {
      this.#answers.delete(key);
      this.#answers.set(key, present);
      return await this.#joined(present, signal, () => this.#follow(present, send, 0, signal, true));
    }
    const answer: Answer = {
      path: join(this.directory, randomBytes(8).toString("hex")),
      file: undefined,
      bytes: 0,
      state: "growing",
      onJoin: () => undefined,
      stderr: "",
      clients: 0,
      isForgotten: false,
      wake: new Set(),
      job: undefined,
    };
    this.#answers.set(key, answer);
    return await this.#joined(answer, signal, () => this.#lead(key, answer, start, send, signal));
  }

  async #joined(answer: Answer, signal: AbortSignal, work: () => Promise<ShareResult>): Promise<ShareResult> {
    answer.clients += 1;
    if (answer.clients > 1 && answer.file) answer.onJoin();
    let isHere = true;
    const leave = (): void => {
      if (!isHere) return;
      isHere = false;
      answer.clients -= 1;
      if (answer.clients > 0) return;
      if (answer.state === "growing") answer.job?.end();
      else if (answer.isForgotten) void this.#closeFile(answer);
    };
    signal.addEventListener("abort", leave, { once: true });
    try {
      return await work();
    } finally {
      signal.removeEventListener("abort", leave);
      leave();
    }
  }

  async #lead(
    key: string,
    answer: Answer,
    start: () => Promise<Job | undefined>,
    send: Send,
    signal: AbortSignal,
  ): Promise<ShareResult> {
    try {
      answer.job = await start();
      if (!answer.job) return this.#give(key, answer, "busy");
      if (answer.clients === 0) answer.job.end();
      await mkdir(this.directory, { recursive: true, mode: 0o700 });
      answer.file = await open(answer.path, "wx+", 0o600).catch(() => undefined);
    } catch (error) {
      answer.stderr = error instanceof Error ? error.message : "git could not be started";
      return this.#give(key, answer, "failed");
    }
    const followFrom = (at: number): Promise<ShareResult> => this.#follow(answer, send, at, signal, false);
    const leader = new Leader(send, () => answer.bytes, followFrom);
    answer.onJoin = () => leader.stepAside();
    try {
      for await (const chunk of answer.job.stdout as AsyncIterable<Buffer>) {
        if (answer.clients > 1 && answer.file) leader.stepAside();
        const [isKept] = await Promise.all([keep(answer.file, chunk), leader.take(chunk)]);
        answer.bytes += chunk.length;
        const isTooLarge = answer.bytes > this.maxBytes() / 2 && answer.clients <= 1 && leader.isDirect;
        if (answer.file && (!isKept || isTooLarge)) await this.#stopKeeping(key, answer);
        wakeAll(answer);
        leader.follow();
        if (leader.isGone && answer.clients <= 1) answer.job.end();
      }
    } catch {
      answer.job.end();
    }
    const exit = await answer.job.exit;
    answer.stderr = exit.stderr;
    // What git says before it dies (its own ERR line) is an answer; being killed is none.
    const state = exit.code === 0 ? "whole" : exit.signal ? "cut" : "failed";
    return await leader.result(this.#give(key, answer, state));
  }

  /** Too large to be worth its place, and nobody shares it. */
  async #stopKeeping(key: string, answer: Answer): Promise<void> {
    this.#answers.delete(key);
    const { file } = answer;
    answer.file = undefined;
    await file?.close();
    await rm(answer.path, { force: true });
  }

  #give(key: string, answer: Answer, state: Exclude<Answer["state"], "growing">): ShareResult {
    answer.state = state;
    wakeAll(answer);
    if (state !== "whole") this.#forget(key, answer);
    for (const [oldKey, old] of this.#answers) {
      if (this.keptBytes <= this.maxBytes() && this.#answers.size <= maxAnswers) break;
      if (old !== answer && old.state !== "growing") this.#forget(oldKey, old);
    }
    return outcomeOf(answer, answer.bytes, false);
  }

  /** Its file goes at once; whoever reads it has it open. */
  #forget(key: string, answer: Answer): void {
    if (this.#answers.get(key) === answer) this.#answers.delete(key);
    void rm(answer.path, { force: true });
    answer.isForgotten = true;
    if (answer.clients === 0) void this.#closeFile(answer);
  }

  async #closeFile(answer: Answer): Promise<void> {
    const { file } = answer;
    answer.file = undefined;
    await file?.close();
  }

  async #follow(answer: Answer, send: Send, from: number, signal: AbortSignal, shared: boolean): Promise<ShareResult> {
    let at = from;
    for (;;) {
      while (at < answer.bytes) {
        const { file } = answer;
        if (!file) return { status: "broken", bytes: at };
        const buffer = Buffer.allocUnsafe(Math.min(readBytes, answer.bytes - at));
        const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
        if (bytesRead === 0 || !(await send(buffer.subarray(0, bytesRead)))) return { status: "broken", bytes: at };
        at += bytesRead;
      }
      if (answer.state !== "growing") return outcomeOf(answer, at, shared);
      if (signal.aborted) return { status: "broken", bytes: at };
      await new Promise<void>((resolve) => {
        const woken = (): void => {
          answer.wake.delete(woken);
          signal.removeEventListener("abort", woken);
          resolve();
        };
        answer.wake.add(woken);
        signal.addEventListener("abort", woken, { once: true });
      });
    }
  }

  async close(): Promise<void> {
    for (const answer of this.#answers.values()) {
      answer.job?.end();
      await this.#closeFile(answer);
    }
    this.#answers.clear();
    await rm(this.directory, { recursive: true, force: true });
  }
}

/**
 * The first client. While alone it gets git's bytes directly; once others follow it reads the file as they do, so that
 * one slow client does not hold up the rest.
 */
class Leader {
  #mode: "direct" | "leaving" | "following" = "direct";
  #letGo: () => void = () => undefined;
  #following: Promise<ShareResult> | undefined;
  /** A write that was still waiting for its client when the leader stepped aside. */
  #unfinished: Promise<boolean> = Promise.resolve(true);
  isGone = false;

  constructor(
    readonly send: Send,
    readonly position: () => number,
    readonly followFrom: (at: number) => Promise<ShareResult>,
  ) {}

  get isDirect(): boolean {
    return this.#mode === "direct";
  }

  stepAside(): void {
    if (this.#mode !== "direct" || this.isGone) return;
    this.#mode = "leaving";
    this.#letGo();
  }

  async take(chunk: Buffer): Promise<void> {
    if (this.#mode === "leaving") this.follow();
    if (this.#mode !== "direct" || this.isGone) return;
    const sent = this.send(chunk);
    this.#unfinished = sent;
    const aside = new Promise<"aside">((resolve) => {
      this.#letGo = () => resolve("aside");
    });
    if ((await Promise.race([sent, aside])) === false) this.isGone = true;
  }

  /** Between two chunks: from here on this client reads the file from where it is. */
  follow(): void {
    if (this.#mode !== "leaving") return;
    this.#mode = "following";
    const at = this.position();
    this.#following = this.#unfinished.then((ok) => (ok ? this.followFrom(at) : { status: "broken", bytes: at }));
  }

  async result(outcome: ShareResult): Promise<ShareResult> {
    if (this.#following) return await this.#following;
    return this.isGone ? { status: "broken", bytes: 0 } : outcome;
  }
}

async function keep(file: FileHandle | undefined, chunk: Buffer): Promise<boolean> {
  if (!file) return true;
  try {
    // A short write means the disk is full.
    return (await file.write(chunk)).bytesWritten === chunk.length;
  } catch {
    return false;
  }
}

function wakeAll(answer: Answer): void {
  for (const woken of [...answer.wake]) woken();
}

function outcomeOf(answer: Answer, bytes: number, shared: boolean): ShareResult {
  if (answer.state === "busy") return { status: "busy" };
  if (answer.state === "cut") return { status: "broken", bytes };
  if (answer.state === "failed" && answer.bytes === 0) return { status: "failed", stderr: answer.stderr };
  return { status: "sent", bytes, shared };
}
