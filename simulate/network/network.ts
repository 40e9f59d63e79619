// A network of servers that share repositories, each with the real sync core: what keeping in step costs a server, and
// how long it takes until everybody has what is new. Deterministic for its seed.

import { setImmediate as nextTurn } from "node:timers/promises";
import type { SyncConfig } from "../../src/sync/core/config.js";
import { syncConfig } from "../../src/sync/core/testing/config.js";
import { startWallMs } from "../events.js";
import { Chance } from "../random.js";
import { Timeline } from "../timeline.js";
import { Library, type Shelved } from "./library.js";
import { history, placements, type Repository, Talk } from "./repositories.js";
import { coordinateOf, NetworkServer } from "./server.js";
import { type Load, Wires } from "./wires.js";

export interface NetworkSize {
  readonly seed: number;
  readonly servers: number;
  readonly repositories: number;
  /** Issues and comments, and states, published in the whole network in a day. */
  readonly eventsADay: number;
  readonly statesADay: number;
}

export interface Spread {
  readonly count: number;
  readonly medianSeconds: number;
  readonly p99Seconds: number;
  readonly worstSeconds: number;
  /** Published, and not everywhere when the phase ended. */
  readonly unfinished: number;
}

interface Wave {
  readonly shelved: Shelved;
  readonly fromMs: number;
  readonly lacking: Set<number>;
}

const hourMs = 3_600_000;
const stepsBetweenTurns = 20_000;

export class Network {
  readonly timeline = new Timeline();
  readonly chance: Chance;
  readonly servers: NetworkServer[] = [];
  readonly wires: Wires;
  readonly placed: readonly Repository[];
  readonly #talk: Talk;
  readonly #waves = new Map<string, Wave[]>();
  #done: { events: number[]; states: number[] } = { events: [], states: [] };
  /** Bytes published since the loads were forgotten, and how many had to be moved to other servers. */
  newBytes = 0;
  neededBytes = 0;
  #publishing = false;

  constructor(readonly size: NetworkSize) {
    this.chance = new Chance(size.seed);
    const library = new Library(size.servers);
    this.#talk = new Talk(this.chance, library);
    this.wires = new Wires(this.timeline, this.chance);
    const carried = Array.from({ length: size.servers }, () => new Set<string>());
    this.placed = placements(this.chance, size.repositories, size.servers).map((servers, at) => {
      const repository = this.#talk.announce(at, servers);
      history(this.#talk, repository, this.chance.zipf(8), 2);
      for (const server of servers) carried[server]!.add(repository.coordinate);
      return repository;
    });
    const repositories = new Map(this.placed.map((repository) => [repository.coordinate, repository]));
    const config = (host: string): SyncConfig => syncConfig({ ownServices: [host], syncPlusEnabled: false });
    for (let number = 0; number < size.servers; number++) {
      const { timeline, chance, wires } = this;
      const served = (server: NetworkServer, shelved: Shelved): void => this.#arrived(server, shelved);
      this.servers.push(
        new NetworkServer(number, carried[number]!, { timeline, chance, library, wires, repositories, config, served }),
      );
    }
    this.wires.connectAll(this.servers);
  }

  get nowMs(): number {
    return this.timeline.nowMs;
  }

  async runFor(ms: number): Promise<void> {
    const endMs = this.timeline.nowMs + ms;
    for (let steps = 1; this.timeline.nextMs <= endMs; steps++) {
      this.timeline.runNext();
      // What left an index is cleared between turns.
      if (steps % stepsBetweenTurns === 0) await nextTurn();
    }
    this.timeline.nowMs = endMs;
  }

  /** People write, at one server of a repository each; it begins now and goes on until `rest`. */
  write(): void {
    this.#publishing = true;
    const { eventsADay, statesADay } = this.size;
    this.#writeNext((24 * hourMs) / eventsADay, (repository) =>
      this.chance.once(0.2)
        ? this.#talk.root(repository, this.#nowSeconds())
        : this.#talk.reply(repository, this.#nowSeconds()),
    );
    this.#writeNext((24 * hourMs) / statesADay, (repository) => this.#talk.state(repository, this.#nowSeconds()));
  }

  rest(): void {
    this.#publishing = false;
  }

  #nowSeconds(): number {
    return Math.floor((startWallMs + this.timeline.nowMs) / 1000);
  }

  #writeNext(meanMs: number, make: (repository: Repository) => Shelved): void {
    this.timeline.after(-Math.log(1 - this.chance.next()) * meanMs, () => {
      if (!this.#publishing) return;
      // Few repositories have most of the talk.
      const repository = this.placed[this.chance.zipf(this.placed.length)]!;
      const up = repository.servers.filter((server) => this.servers[server]!.isUp);
      if (up.length > 0) this.#publish(repository, make(repository), this.servers[this.chance.of(up)]!);
      this.#writeNext(meanMs, make);
    });
  }

  #publish(repository: Repository, shelved: Shelved, server: NetworkServer): void {
    const { coordinate, servers } = repository;
    this.newBytes += shelved.bytes;
    this.neededBytes += shelved.bytes * (servers.length - 1);
    const waves = this.#waves.get(coordinate) ?? [];
    this.#waves.set(coordinate, waves);
    waves.push({ shelved, fromMs: this.nowMs, lacking: new Set(servers) });
    server.publish(shelved);
  }

  #arrived(server: NetworkServer, { event }: Shelved): void {
    const coordinate = coordinateOf(event);
    const waves = this.#waves.get(coordinate);
    if (!waves) return;
    const isState = event.kind === 30_618;
    for (const wave of waves) {
      const { event: awaited } = wave.shelved;
      // Whoever has a newer state needs the older one no more.
      const isIt =
        awaited.id === event.id || (isState && awaited.kind === 30_618 && awaited.created_at <= event.created_at);
      if (!isIt || !wave.lacking.delete(server.number) || wave.lacking.size > 0) continue;
      (isState ? this.#done.states : this.#done.events).push(this.nowMs - wave.fromMs);
    }
    const left = waves.filter(({ lacking }) => lacking.size > 0);
    if (left.length > 0) this.#waves.set(coordinate, left);
    else this.#waves.delete(coordinate);
  }

  /** How long it took until everybody had what was published, since this was last asked. */
  spreads(): { readonly events: Spread; readonly states: Spread } {
    const waves = [...this.#waves.values()].flat();
    const unfinished = (isState: boolean): number =>
      waves.filter(({ shelved }) => (shelved.event.kind === 30_618) === isState).length;
    const { events, states } = this.#done;
    this.#done = { events: [], states: [] };
    return { events: spreadOf(events, unfinished(false)), states: spreadOf(states, unfinished(true)) };
  }

  /** Parts of all (server, relay) that are in step, of 1. */
  inStep(): number {
    let all = 0;
    let inStep = 0;
    for (const server of this.servers) {
      for (const relay of server.snapshot().relays) {
        all += 1;
        if (relay.inStep) inStep += 1;
      }
    }
    return all === 0 ? 0 : inStep / all;
  }

  loads(): Load[] {
    return this.servers.map((server) => ({ ...this.wires.loadOf(server) }));
  }

  forgetLoads(): void {
    this.wires.forgetLoads();
    this.newBytes = 0;
    this.neededBytes = 0;
  }
}

function spreadOf(ms: number[], unfinished: number): Spread {
  ms.sort((a, b) => a - b);
  const at = (part: number): number => (ms[Math.min(ms.length - 1, Math.floor(ms.length * part))] ?? 0) / 1000;
  return { count: ms.length, medianSeconds: at(0.5), p99Seconds: at(0.99), worstSeconds: at(1), unfinished };
}
