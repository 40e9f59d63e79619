// A hunt core with a hand on its clock: keeps time, sends the ticks it asks for and only those, and notes every command.

import type { Oid } from "../../../nostr/nip34.js";
import { HuntCore } from "../core.js";
import type { FetchId, FetchResult, HuntCommand, HuntConfig, HuntInput, WaitingItem } from "../messages.js";
import { huntConfig } from "./config.js";

export type Fetch = Extract<HuntCommand, { type: "fetch" }> & { readonly atMs: number };

export const oid = (number: number): Oid => number.toString(16).padStart(40, "0") as Oid;

export class DrivenCore {
  nowMs = 0;
  readonly core: HuntCore;
  readonly fetches: Fetch[] = [];
  readonly running = new Map<FetchId, Fetch>();
  readonly commands: (HuntCommand & { readonly atMs: number })[] = [];
  /** Called for every fetch as it starts. */
  onFetch: (fetch: Fetch) => void = () => undefined;
  #wakeAtMs: number | undefined;
  readonly #untold: Fetch[] = [];
  #isTelling = false;

  constructor(config: Partial<HuntConfig> = {}) {
    this.core = new HuntCore(huntConfig(config));
  }

  get wakeAtMs(): number | undefined {
    return this.#wakeAtMs;
  }

  send(input: HuntInput): readonly HuntCommand[] {
    const commands = this.core.step(input, this.nowMs);
    for (const command of commands) {
      this.commands.push({ ...command, atMs: this.nowMs });
      if (command.type === "wake-at") this.#wakeAtMs = command.atMs;
      if (command.type === "fetch") {
        const fetch = { ...command, atMs: this.nowMs };
        this.fetches.push(fetch);
        this.running.set(command.fetch, fetch);
        this.#untold.push(fetch);
      }
    }
    this.#tellOfFetches();
    return commands;
  }

  /** One after the other, also when being told starts more: thousands of dead servers must not fill the stack. */
  #tellOfFetches(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    for (let fetch = this.#untold.shift(); fetch; fetch = this.#untold.shift()) this.onFetch(fetch);
    this.#isTelling = false;
  }

  waiting(repository: string, item: Partial<WaitingItem> & Pick<WaitingItem, "id" | "ids">): readonly HuntCommand[] {
    return this.send({
      type: "waiting",
      repository,
      item: { kind: "state", source: "sync", soft: false, ...item },
    });
  }

  announce(repository: string, ...clone: string[]): readonly HuntCommand[] {
    // One announcement a URL, so that only the limits under test matter.
    const announcements = clone.map((url) => ({ isOwners: true, clone: [url] }));
    return this.send({ type: "announcements", repository, announcements });
  }

  finish(fetch: FetchId, { arrived = [], refused = [], ...rest }: Partial<FetchResult> = {}): readonly HuntCommand[] {
    this.running.delete(fetch);
    return this.send({ type: "fetch-finished", fetch, result: { arrived, refused, ...rest } });
  }

  /** Moves on, with a tick at every moment the core asked to be woken at. */
  advanceTo(atMs: number): void {
    while (this.#wakeAtMs !== undefined && this.#wakeAtMs <= atMs) {
      this.nowMs = Math.max(this.nowMs, this.#wakeAtMs);
      this.#wakeAtMs = undefined;
      this.send({ type: "tick" });
    }
    this.nowMs = atMs;
  }

  advance(ms: number): void {
    this.advanceTo(this.nowMs + ms);
  }

  /** URLs fetched since the last call, shortened to host and path. */
  taken(): string[] {
    return this.fetches.splice(0).map((fetch) => fetch.url.replace(/^https?:\/\//, ""));
  }

  of<T extends HuntCommand["type"]>(type: T): (Extract<HuntCommand, { type: T }> & { readonly atMs: number })[] {
    return this.commands.filter((command): command is Extract<HuntCommand, { type: T }> & { readonly atMs: number } => {
      return command.type === type;
    });
  }
}
