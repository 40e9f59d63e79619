// Which servers were asked for a repository's objects, and what they answered last: for the operator only. Bounded by
// the URLs a repository may have; texts of remote servers are not kept, only our words for them.

import type { FetchResult } from "./core/messages.js";

export interface AskedServer {
  readonly url: string;
  /** Unix seconds. */
  readonly askedAt: number;
  /** `ok`, or why it did not work. */
  readonly answer: string;
  readonly arrived: number;
  readonly refused: number;
}

const maxServers = 32;

export class AskedServers {
  readonly #answers = new Map<string, AskedServer>();

  note(url: string, result: FetchResult, askedAt: number): void {
    const { arrived, refused, failure } = result;
    this.#answers.delete(url);
    const counts = { arrived: arrived.length, refused: refused.length };
    this.#answers.set(url, { url, askedAt, answer: failure ?? "ok", ...counts });
    const [oldest] = this.#answers.keys();
    if (this.#answers.size > maxServers && oldest !== undefined) this.#answers.delete(oldest);
  }

  list(): AskedServer[] {
    return [...this.#answers.values()];
  }
}
