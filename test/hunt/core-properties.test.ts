// A random world around the hunt core: servers that answer, fail, drip and redirect, entries that come and go.
// The core is woken only when it asked to be. One seed is one run; the seed is in every failure's message.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type DomainLimits, domainLimits } from "../../src/hunt/core/domains.js";
import { DueTimes } from "../../src/hunt/core/job.js";
import { huntConfig } from "../../src/hunt/core/testing/config.js";
import { DrivenCore, type Fetch, oid } from "../../src/hunt/core/testing/driven-core.js";
import type { EventId } from "../../src/nostr/event.js";
import type { Oid } from "../../src/nostr/nip34.js";

const second = 1_000;
const minute = 60 * second;

/** mulberry32: small, fast, the same everywhere. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const domainOf = (url: string): string => new URL(url).hostname;

class World {
  readonly random: () => number;
  readonly driver: DrivenCore;
  readonly domains: readonly string[];
  readonly limits: ReadonlyMap<string, DomainLimits>;
  readonly #events = new DueTimes<() => void>();
  /** Every connection that was allowed, by domain, in order of time. */
  readonly #starts = new Map<string, number[]>();
  /** Where each running fetch holds its place. */
  readonly #holding = new Map<number, string>();
  readonly #connections = new Map<number, number>();
  /** Asked for and not answered yet, by fetch. */
  readonly #asking = new Map<number, { domain: string; then: (granted: boolean) => void }>();
  /** What waits where, as the world knows it: job → entry → missing ids. */
  readonly waiting = new Map<string, Map<string, Set<Oid>>>();
  calm = false;
  #answered = 0;

  constructor(readonly seed: number) {
    this.random = randomFrom(seed);
    this.domains = Array.from({ length: 1 + this.#int(6) }, (_, index) => `d${index}.test`);
    this.limits = new Map(
      this.domains.map((name) => [name, { concurrent: 1 + this.#int(5), rate: 1 + this.#int(30) }] as const),
    );
    const lane = { fresh: 1 + this.#int(8), total: 8 + this.#int(8) };
    const overrides = [...this.limits].map(([host, { concurrent, rate }]) => ({
      host,
      concurrent,
      startsPerMinute: rate,
    }));
    this.driver = new DrivenCore({ gitDomainOverrides: overrides, lanes: { repository: lane, "pull-request": lane } });
    this.driver.onFetch = (fetch) => this.#onFetch(fetch);
  }

  #int(below: number): number {
    return Math.floor(this.random() * below);
  }

  #pick<T>(values: readonly T[]): T {
    return values[this.#int(values.length)] as T;
  }

  later(ms: number, act: () => void): void {
    this.#events.add(this.driver.nowMs + ms, act);
  }

  /** Until the given time, or until nothing is left that could happen before it. */
  runTo(endMs: number): void {
    for (;;) {
      const nextMs = Math.min(this.#events.peek()?.atMs ?? Infinity, this.driver.wakeAtMs ?? Infinity);
      if (nextMs > endMs) break;
      this.driver.advanceTo(Math.max(nextMs, this.driver.nowMs));
      this.#readAnswers();
      while ((this.#events.peek()?.atMs ?? Infinity) <= this.driver.nowMs) {
        this.#events.pop()?.value();
        this.#readAnswers();
      }
    }
    this.driver.advanceTo(endMs);
  }

  /** Something a user, a peer or purgatory does. */
  disturb(): void {
    const repository = `r${this.#int(12)}`;
    const chance = this.random();
    if (chance < 0.1) this.#serve();
    else if (chance < 0.3) this.announce(repository, 1 + this.#int(8));
    else if (chance < 0.75) this.#addState(repository);
    else if (chance < 0.85) this.#addPullRequest();
    else if (chance < 0.95) {
      const id = [...(this.waiting.get(repository)?.keys() ?? [])][0];
      if (id === undefined) return;
      this.waiting.get(repository)?.delete(id);
      this.driver.send({ type: "removed", repository, id });
    } else this.#push(repository);
  }

  announce(repository: string, count: number): void {
    const urls = Array.from(
      { length: count },
      () => `https://${this.#pick(this.domains)}/${repository}/${this.#int(9)}`,
    );
    this.driver.announce(repository, ...urls);
  }

  #addState(repository: string): void {
    const id = `s${this.#int(4)}`;
    const ids = Array.from({ length: 1 + this.#int(4) }, () => oid(this.#int(50)));
    const entries = this.waiting.get(repository) ?? new Map<string, Set<Oid>>();
    this.waiting.set(repository, entries.set(id, new Set(ids)));
    const source = this.random() < 0.5 ? "client" : "sync";
    this.driver.waiting(repository, { id, ids, source, soft: this.random() < 0.1 });
  }

  #addPullRequest(): void {
    const event = this.#int(6).toString(16).padStart(64, "e") as EventId;
    const tip = oid(100 + this.#int(9));
    const clone = [0, 1].map((index) => `https://${this.#pick(this.domains)}/fork/${index}`);
    this.waiting.set(event, new Map([[event, new Set([tip])]]));
    this.driver.send({ type: "pull-request", event, tip, clone, source: "sync", soft: false });
  }

  /** A relay at one of the servers serves an event that waits, or will. */
  #serve(): void {
    const events = [...this.waiting.values()].flatMap((entries) => [...entries.keys()]);
    const event = (this.random() < 0.8 && events.length > 0 ? this.#pick(events) : `s${this.#int(4)}`) as EventId;
    this.driver.send({ type: "served", event, origin: this.#pick(this.domains) });
  }

  #push(repository: string): void {
    const ids = [...(this.waiting.get(repository)?.values() ?? [])].flatMap((missing) => [...missing]).slice(0, 2);
    this.#arrive(repository, ids);
    this.driver.send({ type: "arrived", repository, ids });
  }

  #arrive(job: string, ids: readonly Oid[]): void {
    for (const missing of this.waiting.get(job)?.values() ?? []) for (const id of ids) missing.delete(id);
  }

  #onFetch(fetch: Fetch): void {
    const domain = domainOf(fetch.url);
    const beside = [...this.driver.running.values()].filter((other) => other.job === fetch.job && other !== fetch);
    for (const other of beside) {
      this.check(this.driver.nowMs - other.atMs >= 30 * second, `${fetch.job} has two young fetches`);
      this.check(other.url !== fetch.url, `${fetch.url} is fetched twice at once`);
    }
    this.check(fetch.ids.length > 0, "a fetch of nothing");
    this.#holding.set(fetch.fetch, domain);
    this.#connections.set(fetch.fetch, 1);
    this.#connected(fetch.fetch, domain);
    this.#goOn(fetch);
  }

  #goOn(fetch: Fetch): void {
    const chance = this.random();
    const patience = this.calm ? second : this.random() < 0.1 ? 10 * minute : 40 * second;
    this.later(this.#int(patience), () => {
      if (!this.driver.running.has(fetch.fetch)) return;
      if (chance < 0.6) this.#end(fetch);
      else this.#wantConnection(fetch);
    });
  }

  #wantConnection(fetch: Fetch): void {
    const domain = this.random() < 0.8 ? domainOf(fetch.url) : this.#pick(this.domains);
    const then = (granted: boolean): void => (granted ? this.#goOn(fetch) : this.#end(fetch));
    this.#asking.set(fetch.fetch, { domain, then });
    if (this.#holding.get(fetch.fetch) !== domain) this.#holding.delete(fetch.fetch);
    this.driver.send({ type: "connection-wanted", fetch: fetch.fetch, host: domain });
  }

  #readAnswers(): void {
    while (this.#answered < this.driver.commands.length) {
      const command = this.driver.commands[this.#answered++];
      if (command?.type !== "connection-granted" && command?.type !== "connection-denied") continue;
      const asked = this.#asking.get(command.fetch);
      if (!asked) continue;
      this.#asking.delete(command.fetch);
      if (command.type === "connection-granted") {
        this.#holding.set(command.fetch, asked.domain);
        this.#connections.set(command.fetch, (this.#connections.get(command.fetch) ?? 0) + 1);
        this.#connected(command.fetch, asked.domain);
      }
      asked.then(command.type === "connection-granted");
    }
  }

  #end(fetch: Fetch): void {
    if (!this.driver.running.has(fetch.fetch)) return;
    this.#holding.delete(fetch.fetch);
    this.#asking.delete(fetch.fetch);
    const works = this.calm || this.random() < 0.2;
    const arrived = works ? fetch.ids.filter(() => this.calm || this.random() < 0.5) : [];
    this.#arrive(fetch.job, arrived);
    if (works) this.driver.finish(fetch.fetch, { arrived });
    else
      this.driver.finish(fetch.fetch, {
        failure: this.#pick(["timeout", "not-git", "refused", "http-status"] as const),
      });
  }

  #connected(fetch: number, domain: string): void {
    const { nowMs } = this.driver;
    const { concurrent, rate } = this.limits.get(domain) ?? domainLimits(huntConfig(), domain);
    const starts = this.#starts.get(domain) ?? [];
    starts.push(nowMs);
    this.#starts.set(domain, starts);
    const inWindow = starts.filter((start) => start > nowMs - minute).length;
    this.check(inWindow <= rate, `${inWindow} connections to ${domain} within a minute, ${rate} allowed`);
    const inFlight = [...this.#holding.values()].filter((held) => held === domain).length;
    this.check(inFlight <= concurrent, `${inFlight} fetches at ${domain}, ${concurrent} allowed`);
    this.check((this.#connections.get(fetch) ?? 0) <= 12, "more than 12 connections of one fetch");
  }

  missing(): string[] {
    return [...this.waiting].flatMap(([job, entries]) =>
      [...entries.values()].some((missing) => missing.size > 0) ? [job] : [],
    );
  }

  check(holds: boolean, what: string): void {
    assert.ok(holds, `seed ${this.seed}, at ${this.driver.nowMs} ms: ${what}`);
  }
}

test("limits hold at every moment, and once the servers are well everything is found: no wake-up is lost", () => {
  for (let seed = 1; seed <= 100; seed++) {
    const world = new World(seed);
    for (let index = 0; index < 12; index++) world.announce(`r${index}`, 3);
    for (let index = 0; index < 150; index++) {
      world.disturb();
      world.runTo(world.driver.nowMs + Math.floor(world.random() * 30 * second));
    }
    world.calm = true;
    // Slow fetches end within ten minutes; the slowest domain allows one connection a minute; soft entries wait an hour.
    world.runTo(world.driver.nowMs + 24 * 60 * minute);
    assert.deepEqual(world.missing(), [], `seed ${seed}`);
    assert.equal(world.driver.core.queueSize, 0, `seed ${seed}`);
    assert.equal(world.driver.running.size, 0, `seed ${seed}`);
  }
});

test("every due repository is attempted: with room at its domain never later than its back-off", () => {
  const driver = new DrivenCore();
  driver.onFetch = (fetch) => driver.finish(fetch.fetch, { failure: "not-git" });
  for (let index = 0; index < 200; index++) {
    driver.announce(`r${index}`, `https://h${index}.test/x`);
    driver.waiting(`r${index}`, { id: "s", ids: [oid(1)] });
  }
  driver.advance(30 * minute);
  for (let index = 0; index < 200; index++) {
    const starts = driver.fetches.filter((fetch) => fetch.job === `r${index}`).map((fetch) => fetch.atMs);
    // 0.5, 20.5, 60.5, 140.5 s, then every 120 s.
    assert.equal(starts.length, 17, `r${index}`);
  }
});

test("a repository with twenty dead URLs at a domain delays the others there by one round at most", () => {
  const driver = new DrivenCore({
    gitDomainConcurrent: 1,
    gitDomainRate: 1_000,
    gitHuntMaxUrlsPerHost: 20,
  });
  driver.announce("greedy", ...Array.from({ length: 20 }, (_, index) => `https://a.test/dead${index}`));
  driver.waiting("greedy", { id: "s", ids: [oid(1)] });
  driver.advance(500);
  const others = ["b", "c", "d", "e"];
  for (const name of others) {
    driver.announce(name, `https://a.test/${name}1`, `https://a.test/${name}2`);
    driver.waiting(name, { id: "s", ids: [oid(1)] });
  }
  driver.advance(500);
  // One dead URL after the other, each taking ten seconds.
  for (let index = 0; index < 60; index++) {
    driver.advance(10 * second);
    for (const fetch of driver.running.keys()) driver.finish(fetch, { failure: "timeout" });
  }
  const greedyTurns = turnsOf("greedy", driver);
  assert.ok(greedyTurns.length > 20, "greedy had its turns too");
  for (const name of others) {
    const ownTurns = turnsOf(name, driver);
    assert.ok(ownTurns.length > 8, `${name} had ${ownTurns.length} turns`);
    // From the moment an attempt is due, greedy gets one turn at most before it.
    for (const [index, command] of driver.commands.entries()) {
      if (command.type !== "log" || command.message !== "attempt started" || command.fields.job !== name) continue;
      const next = ownTurns.find((turn) => turn > index);
      if (next === undefined) continue;
      const between = greedyTurns.filter((turn) => turn > index && turn < next).length;
      assert.ok(between <= 1, `greedy had ${between} turns while ${name} waited`);
    }
  }
});

/** Positions of a job's fetches among all commands. */
function turnsOf(job: string, driver: DrivenCore): number[] {
  return driver.commands.flatMap((command, index) => (command.type === "fetch" && command.job === job ? [index] : []));
}

test("five thousand waiting repositories cost what they do, not what they are", () => {
  const driver = new DrivenCore();
  driver.onFetch = (fetch) => driver.finish(fetch.fetch, { failure: "not-git" });
  for (let index = 0; index < 5_000; index++) {
    driver.announce(`r${index}`, `https://h${index % 500}.test/${index}`, `https://k${index % 300}.test/${index}`);
    driver.waiting(`r${index}`, { id: "s", ids: [oid(index)] });
  }
  driver.advance(3 * minute);
  const attempted = new Set(driver.fetches.map((fetch) => fetch.job));
  assert.equal(attempted.size, 5_000);
});
