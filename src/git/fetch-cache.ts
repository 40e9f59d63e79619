// Equal fetch requests share one answer (git-http.md, Serving). git writes it straight into a file and everybody,
// whoever asked first included, reads the growing file: nobody's line holds up git or anybody else, and git's many small
// writes cost the server nothing. Kept until the bound is reached, oldest use first. A key names the repository, its ref
// generation and the request, so an answer never outlives what it was made from. An answer for which there is no room on
// the disk is handed on from git's stdout and not shared.

import { randomBytes } from "node:crypto";
import { fstatSync } from "node:fs";
import { mkdir, open, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.js";
import {
  blockBytes,
  type CacheEntry,
  closeFile,
  dropBlocks,
  follow,
  type Send,
  type SendResult,
  wakeAll,
} from "./cache-entry.js";
import type { Job } from "./launcher.js";
import type { JobExit } from "./launcher-helper.js";

export interface AnswerOrigin {
  /** The answer will hardly be larger. */
  expectedBytes(): Promise<number>;
  /**
   * Runs git with the request already written, until the signal aborts. Its answer goes into the file, or without one
   * comes from the job's stdout. Undefined when there is no room for more work.
   */
  start(signal: AbortSignal, file?: string): Promise<Job | undefined>;
}

/** How often a growing file is looked at; its end is known at once. */
const lookMs = 5;
/** Each keeps a descriptor. */
const maxAnswers = 256;
const spareDiskBytes = 64 * 2 ** 20;

export class FetchCache {
  readonly #answers = new Map<string, CacheEntry>();
  /** Grew beyond what was expected and beyond the bound: not tried again. */
  readonly #tooLarge = new Set<string>();

  constructor(
    readonly directory: string,
    readonly maxBytes: () => number,
    readonly clock: Clock,
  ) {}

  /** Of the disk, what growing answers are expected to need included. */
  get keptBytes(): number {
    let sum = 0;
    for (const { state, bytes, expectedBytes } of this.#answers.values())
      sum += state === "growing" ? Math.max(bytes, expectedBytes) : bytes;
    return sum;
  }

  async send(key: string, source: AnswerOrigin, send: Send, signal: AbortSignal): Promise<SendResult> {
    const answer = this.#answers.get(key) ?? this.#begin(key, source);
    this.#answers.delete(key);
    this.#answers.set(key, answer);
    answer.clients += 1;
    let isHere = true;
    const leave = (): void => {
      if (isHere) this.#leave(answer);
      isHere = false;
    };
    signal.addEventListener("abort", leave, { once: true });
    try {
      const result = await follow(answer, send, signal);
      return result ?? (await passOn(source, send, signal));
    } finally {
      signal.removeEventListener("abort", leave);
      leave();
    }
  }

  #leave(answer: CacheEntry): void {
    answer.clients -= 1;
    wakeAll(answer);
    if (answer.clients > 0) return;
    dropBlocks(answer);
    if (answer.state === "growing") {
      answer.nobodyLeft.abort();
      this.#forget(answer);
    } else this.#closeIfDone(answer);
  }

  #begin(key: string, source: AnswerOrigin): CacheEntry {
    const answer: CacheEntry = {
      key,
      path: join(this.directory, randomBytes(8).toString("hex")),
      file: undefined,
      expectedBytes: 0,
      bytes: 0,
      state: "growing",
      stderr: "",
      clients: 0,
      nobodyLeft: new AbortController(),
      wake: new Set(),
      blocks: new Map(),
    };
    void this.#make(answer, source)
      .catch((error: unknown): CacheEntry["state"] => {
        answer.stderr = error instanceof Error ? error.message : "git could not be started";
        return "failed";
      })
      .then((state) => {
        answer.state = state;
        if (state === "whole") this.#dropUnused();
        else this.#forget(answer);
        wakeAll(answer);
      });
    return answer;
  }

  async #make(answer: CacheEntry, source: AnswerOrigin): Promise<CacheEntry["state"]> {
    if (!(await this.#findRoom(answer, source))) return "unshared";
    const job = await source.start(answer.nobodyLeft.signal, answer.path);
    if (!job) return "busy";
    const { code, signal, stderr } = await this.#watch(answer, job);
    answer.stderr = stderr;
    if (code === 0) return "whole";
    const isDiskFull = /No space left on device/.test(stderr);
    if (isDiskFull) this.#passOnNextTime(answer.key);
    // What git says before it dies (its own ERR line) is an answer; being killed is none.
    return signal || isDiskFull ? "cut" : "failed";
  }

  async #findRoom(answer: CacheEntry, source: AnswerOrigin): Promise<boolean> {
    if (this.#tooLarge.has(answer.key)) return false;
    answer.expectedBytes = await source.expectedBytes();
    // One answer is not worth all the others.
    if (answer.expectedBytes >= this.maxBytes() / 2 || !this.#dropUnused()) return false;
    try {
      await mkdir(this.directory, { recursive: true, mode: 0o700 });
      const { bavail, bsize } = await statfs(this.directory);
      if (bavail * bsize < answer.expectedBytes + spareDiskBytes) return false;
      answer.file = await open(answer.path, "wx+", 0o600);
    } catch {
      return false;
    }
    return true;
  }

  /** Oldest use first, until the rest is within the bounds; false when what is in use is beyond them. */
  #dropUnused(): boolean {
    const isWithin = (): boolean => this.keptBytes <= this.maxBytes() && this.#answers.size <= maxAnswers;
    for (const old of this.#answers.values()) {
      if (isWithin()) return true;
      if (old.state === "whole" && old.clients === 0) this.#forget(old);
    }
    return isWithin();
  }

  /** Tells the readers of what git has written, until it ends. */
  async #watch(answer: CacheEntry, job: Job): Promise<JobExit> {
    let exit: JobExit | undefined;
    let goOn: () => void = () => undefined;
    void job.exit.then((ended) => {
      exit = ended;
      goOn();
    });
    for (let before = 0; ; ) {
      const ended = exit;
      // Without a thread's help: the file is open and the look costs microseconds.
      const size = answer.file ? fstatSync(answer.file.fd).size : 0;
      // Whole blocks while it grows; what is behind them when git pauses.
      const readable = ended || size === before ? size : size - (size % blockBytes);
      before = size;
      if (readable > answer.bytes) {
        answer.bytes = readable;
        wakeAll(answer);
        if (size > answer.expectedBytes && !this.#dropUnused()) {
          this.#passOnNextTime(answer.key);
          answer.nobodyLeft.abort();
        }
      }
      if (ended) return ended;
      await new Promise<void>((resolve) => {
        const cancel = this.clock.after(lookMs, resolve);
        goOn = () => {
          cancel();
          resolve();
        };
        if (exit) goOn();
      });
    }
  }

  #passOnNextTime(key: string): void {
    if (this.#tooLarge.size >= maxAnswers) this.#tooLarge.clear();
    this.#tooLarge.add(key);
  }

  /** Its file goes at once; whoever reads it has it open. */
  #forget(answer: CacheEntry): void {
    if (this.#answers.get(answer.key) === answer) this.#answers.delete(answer.key);
    if (answer.file) void rm(answer.path, { force: true });
    this.#closeIfDone(answer);
  }

  #closeIfDone(answer: CacheEntry): void {
    const isKept = this.#answers.get(answer.key) === answer;
    if (!isKept && answer.clients === 0) void closeFile(answer);
  }

  async close(): Promise<void> {
    for (const answer of this.#answers.values()) {
      answer.nobodyLeft.abort();
      await closeFile(answer);
    }
    this.#answers.clear();
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** Straight from git, at the client's pace. */
async function passOn(source: AnswerOrigin, send: Send, signal: AbortSignal): Promise<SendResult> {
  const job = await source.start(signal);
  if (!job) return { status: "busy" };
  let bytes = 0;
  let sending = Promise.resolve(true);
  try {
    for await (const chunk of job.stdout as AsyncIterable<Buffer>) {
      if (!(await sending)) break;
      sending = send(chunk, true);
      bytes += chunk.length;
    }
  } catch {
    // Its exit tells.
  }
  if (!(await sending) || signal.aborted) {
    job.end();
    return { status: "broken", bytes };
  }
  const exit = await job.exit;
  if (exit.signal) return { status: "broken", bytes };
  return exit.code !== 0 && bytes === 0 ? { status: "failed", stderr: exit.stderr } : { status: "sent", bytes };
}
