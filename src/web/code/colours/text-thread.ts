// The thread in which texts of strangers are taken apart for pages: sources by the scanner, changed lines into words, Markdown
// into markup. One question at a time, each with a time limit; one that takes longer ends the thread, and its page is shown
// plain. The thread is started when it is first needed and ended when nobody has asked for a while.
// Started as a thread, this file is the thread.

import { setPriority } from "node:os";
import { parentPort, Worker, workerData } from "node:worker_threads";
import type { Clock } from "../../../base/clock.js";
import { Html } from "../../html.js";
import { grammarOf } from "./languages.js";
import { type Answer, answerTo, type MarkdownQuestion, type Question } from "./text-work.js";

/** Without colours a source can be read as well; Markdown without its markup not, and it takes half a second at the worst. */
const limitsMs: Readonly<Record<Question["type"], number>> = { scan: 500, words: 500, markdown: 15_000 };
const idleMs = 60_000;
/** Beginning takes a moment of its own. */
const startMs = 20_000;
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

  /** Undefined as well: its text is shown plain. */
  async markdown(question: MarkdownQuestion): Promise<Html | undefined> {
    const markup = (await this.#ask({ type: "markdown", ...question })) as string | undefined;
    return markup === undefined ? undefined : Html.madeInThread(markup);
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
    else if (this.#isOnline) this.#limit(limitsMs[this.#asked.question.type]);
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
        if (this.#asked) this.#limit(limitsMs[this.#asked.question.type]);
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

if (parentPort && workerData === threadName) {
  const port = parentPort;
  // Where a priority is a thread's own: pages wait for events and pushes.
  if (process.platform === "linux") setPriority(10);
  port.postMessage("online");
  port.on("message", (question: Question) => {
    const answer = answerTo(question);
    port.postMessage(answer, typeof answer === "string" ? [] : [answer.buffer as ArrayBuffer]);
  });
}
