// The thread in which texts of strangers are taken apart for pages: sources by the scanner, changed lines into words. One
// question at a time, each with a time limit; one that takes longer ends the thread, and its page is shown plain. The
// thread is started when it is first needed and ended when nobody has asked for a while.
// Started as a thread, this file is the thread. Only texts go in and only numbers come out: markup is made by the pages.

import { setPriority } from "node:os";
import { parentPort, Worker, workerData } from "node:worker_threads";
import type { Clock } from "../../../base/clock.js";
import { grammarOf } from "./languages.js";
import { scan } from "./scanner.js";
import { changedWords } from "./word-diff.js";

type Question =
  | { readonly type: "scan"; readonly text: string; readonly language: string }
  | { readonly type: "words"; readonly pairs: readonly (readonly [old: string, fresh: string])[] };

/** Of `words`: for each pair the number of figures for the old line, these, the same for the new one; -1: nothing to say. */
type Answer = Uint32Array | Int32Array;

const limitMs = 500;
const idleMs = 60_000;
/** Beginning takes a moment of its own. */
const startMs = 5_000;
const maxWaiting = 32;
const resourceLimits = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8, stackSizeMb: 2 };
const threadName = "holdfast-text";

interface Waiting {
  readonly question: Question;
  readonly settle: (answer: Answer | undefined) => void;
}

export class TextThread {
  #worker: Worker | undefined;
  #isOnline = false;
  #asked: Waiting | undefined;
  readonly #waiting: Waiting[] = [];
  #cancelLimit: () => void = () => undefined;
  #cancelIdle: () => void = () => undefined;
  #isClosed = false;

  constructor(readonly clock: Clock) {}

  get isRunning(): boolean {
    return this.#worker !== undefined;
  }

  /** Undefined: it took too long, too many wait, or the language is not known. */
  async scan(text: string, language: string): Promise<Uint32Array | undefined> {
    return grammarOf(language) && ((await this.#ask({ type: "scan", text, language })) as Uint32Array | undefined);
  }

  async words(pairs: readonly (readonly [string, string])[]): Promise<Int32Array | undefined> {
    if (pairs.length === 0) return undefined;
    return (await this.#ask({ type: "words", pairs })) as Int32Array | undefined;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { settle } of this.#waiting.splice(0)) settle(undefined);
    await this.#end();
  }

  #ask(question: Question): Promise<Answer | undefined> {
    if (this.#isClosed || this.#waiting.length >= maxWaiting) return Promise.resolve(undefined);
    return new Promise((settle) => {
      this.#waiting.push({ question, settle });
      this.#next();
    });
  }

  #next(): void {
    if (this.#asked || this.#isClosed) return;
    this.#asked = this.#waiting.shift();
    this.#cancelIdle();
    if (!this.#asked) {
      this.#cancelIdle = this.clock.after(idleMs, () => void this.#end());
      return;
    }
    if (!this.#worker) this.#start();
    else if (this.#isOnline) this.#limit(limitMs);
    this.#worker?.postMessage(this.#asked.question);
  }

  #limit(milliseconds: number): void {
    this.#cancelLimit();
    this.#cancelLimit = this.clock.after(milliseconds, () => void this.#end().then(() => this.#next()));
  }

  #start(): void {
    const worker = new Worker(new URL(import.meta.url), { workerData: threadName, resourceLimits });
    this.#worker = worker;
    this.#isOnline = false;
    this.#limit(startMs);
    worker.unref();
    worker.on("message", (answer: Answer | "online") => {
      if (this.#worker !== worker) return;
      if (answer === "online") {
        this.#isOnline = true;
        if (this.#asked) this.#limit(limitMs);
        return;
      }
      this.#settle(answer);
      this.#next();
    });
    // Too little memory for a text is no fault of ours: its page is plain.
    worker.on("error", () => undefined);
    worker.on("exit", () => {
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      this.#settle(undefined);
      this.#next();
    });
  }

  #settle(answer: Answer | undefined): void {
    this.#cancelLimit();
    const asked = this.#asked;
    this.#asked = undefined;
    asked?.settle(answer);
  }

  async #end(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    this.#cancelIdle();
    this.#settle(undefined);
    await worker?.terminate();
  }
}

/** Of each pair, as `words` answers them. */
export function wordFigures(pairs: readonly (readonly [string, string])[]): number[] {
  return pairs.flatMap(([old, fresh]) => {
    const changed = changedWords(old, fresh);
    return changed ? [changed.old.length, ...changed.old, changed.new.length, ...changed.new] : [-1];
  });
}

if (parentPort && workerData === threadName) {
  const port = parentPort;
  // Where a priority is a thread's own: pages wait for events and pushes.
  if (process.platform === "linux") setPriority(10);
  port.postMessage("online");
  port.on("message", (question: Question) => {
    const answer =
      question.type === "scan"
        ? Uint32Array.from(scan(question.text, grammarOf(question.language) ?? {}))
        : Int32Array.from(wordFigures(question.pairs));
    port.postMessage(answer, [answer.buffer as ArrayBuffer]);
  });
}
