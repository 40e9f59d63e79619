// Differential fuzz: random events, deletions, expirations and questions, answered by a store and by the oracle.

import assert from "node:assert/strict";
import type { ManualClock } from "../../base/testing/manual-clock.js";
import { addressOf, addressText, type EventId, expirationOf, type Tag, type VerifiedEvent } from "../../nostr/event.js";
import { type Filter, filterJson } from "../../nostr/filter.js";
import type { Store } from "../port.js";
import { eventOf, pubkeyOf } from "./events.js";
import { Oracle } from "./oracle.js";
import { Random } from "./random.js";

const authors = [1, 2, 3, 4, 5, 6];
const kinds = [0, 1, 3, 5, 62, 1617, 1618, 1621, 10_002, 30_617, 30_618, 30_023];
const values = ["", "a", "b", "alpha", "β", "30617:x"];
const words = ["hold", "holdfast", "fast", "relay", "Git", "naïve", "server", "re"];
const letters = ["t", "p", "d", "a", "e", "q", "E", "client", "ab"];
const startSeconds = 1_700_000_000;

export interface FuzzRun {
  readonly seed: number;
  readonly cases: number;
  readonly clock: ManualClock;
  open(): Promise<Store>;
  /** Closes the store and opens it again, where that means something. */
  reopen?(store: Store): Promise<Store>;
}

export async function fuzzStore(run: FuzzRun): Promise<void> {
  try {
    await fuzz(run);
  } catch (error) {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    throw new Error(`the fuzz run with seed ${run.seed} failed: ${message}`, { cause: error });
  }
}

class Drafter {
  readonly known: VerifiedEvent[] = [];

  constructor(readonly random: Random) {}

  time = (): number => startSeconds + this.random.below(40);

  event(): VerifiedEvent {
    const { random } = this;
    if (this.known.length > 0 && random.chance(0.1)) return random.pick(this.known);
    const kind = random.chance(0.05)
      ? 62
      : random.chance(0.1)
        ? 5
        : random.pick(kinds.filter((item) => item !== 62 && item !== 5));
    const tags: Tag[] = kind === 5 ? this.#targets() : random.some(letters, 4).map((name) => this.#tag(name));
    if (random.chance(0.08)) tags.push(["expiration", String(startSeconds + random.below(200))]);
    if (random.chance(0.3))
      tags.push([random.pick(["subject", "name", "description"]), random.some(words, 3).join(" ")]);
    // A small world of times for vanish requests, so that they do not empty it.
    const at = kind === 62 ? startSeconds + random.below(8) : this.time();
    const event = eventOf({ author: random.pick(authors), kind, at, tags, content: random.some(words, 3).join(" ") });
    this.known.push(event);
    return event;
  }

  #tag(name: string): Tag {
    const { random } = this;
    if (random.chance(0.03)) return [name];
    if (name === "e" || name === "q" || name === "E") return [name, this.#someId()];
    if (name === "a") return [name, this.#someAddress()];
    return [name, random.pick(values), "more"];
  }

  #someId = (): string => (this.known.length === 0 ? "" : this.random.pick(this.known).id);

  #someAddress(): string {
    const event = this.known.length === 0 ? undefined : this.random.pick(this.known);
    const address = event && addressOf(event);
    return address ? addressText(address) : "30617:nobody:";
  }

  #targets(): Tag[] {
    return Array.from({ length: 1 + this.random.below(4) }, () => {
      const target = this.known.length === 0 ? undefined : this.random.pick(this.known);
      const address = target && addressOf(target);
      if (address && this.random.chance(0.6)) return ["a", addressText(address)];
      return ["e", target?.id ?? "not an id"];
    });
  }

  filter(): Filter {
    const { random } = this;
    const filter: { -readonly [Key in keyof Filter]: Filter[Key] } = {};
    const few = random.chance(0.95) ? 3 : 40;
    const list = <T>(from: readonly T[]): T[] => {
      const some = random.some(from, few);
      return some.length > 0 || random.chance(0.1) ? some : [random.pick(from)];
    };
    if (random.chance(0.15) && this.known.length > 0) {
      filter.ids = list(this.known).map(({ id }) => id);
      if (random.chance(0.1)) filter.ids = [...filter.ids, ...manyIds];
    }
    if (random.chance(0.4)) filter.authors = list(authors).map(pubkeyOf);
    if (random.chance(0.4)) filter.kinds = list(kinds);
    if (random.chance(0.4)) {
      const tags = new Map<string, readonly string[]>();
      for (const name of list(letters)) {
        tags.set(
          name,
          name === "e" || name === "q" || name === "E"
            ? list(this.known).map((event) => event?.id ?? "")
            : name === "a"
              ? [this.#someAddress(), this.#someAddress()]
              : list(values),
        );
      }
      if (tags.size > 0) filter.tags = tags;
    }
    if (random.chance(0.2)) filter.since = this.time();
    if (random.chance(0.2)) filter.until = this.time();
    if (random.chance(0.2)) filter.limit = random.below(12);
    if (random.chance(0.12)) filter.search = [...random.some(words, 2), "sort:top"].join(" ").toLowerCase();
    return filter;
  }
}

const manyIds = Array.from({ length: 5_000 }, (_, index) => index.toString(16).padStart(64, "0") as EventId);

const casesAWorld = 500;

async function fuzz(run: FuzzRun): Promise<void> {
  const random = new Random(run.seed);
  // Worlds stay small: the oracle walks all of it for every question.
  for (let left = run.cases; left > 0; left -= casesAWorld) await fuzzWorld(run, random, Math.min(left, casesAWorld));
}

async function fuzzWorld({ clock, open, reopen }: FuzzRun, random: Random, cases: number): Promise<void> {
  clock.jumpWall(1_000 * startSeconds - clock.nowMs());
  const drafter = new Drafter(random);
  let store = await open();
  let oracle = new Oracle(Math.floor(clock.nowMs() / 1000));
  for (let step = 0; step < cases; step++) {
    const roll = random.next();
    if (roll < 0.35) oracle = await writeSome(store, oracle, drafter);
    else if (roll < 0.36) {
      clock.advance(1_000 * random.below(8));
      oracle.nowSeconds = Math.floor(clock.nowMs() / 1000);
    } else if (roll < 0.365) {
      assert.equal(await store.sweepExpired(oracle.nowSeconds), oracle.sweep(oracle.nowSeconds));
    } else if (roll < 0.37 && reopen) store = await reopen(store);
    else await askOne(store, oracle, drafter);
    assert.equal(store.position, oracle.position);
    assert.equal(store.stats.events, oracle.kept.length);
  }
  await store.close();
}

/** Several works at the same time, some of which fail and must leave nothing. */
async function writeSome(store: Store, oracle: Oracle, drafter: Drafter): Promise<Oracle> {
  const { random } = drafter;
  let after = oracle;
  const expected: string[][] = [];
  const works: Promise<string[]>[] = [];
  for (let count = 1 + random.below(4); count > 0; count--) {
    const events = Array.from({ length: 1 + random.below(3) }, () => drafter.event());
    const removes = random.chance(0.1) ? random.pick(drafter.known).id : undefined;
    const fails = random.chance(0.1);
    const next = after.copy();
    const outcomes = events.map((event) => next.put(event));
    if (removes) outcomes.push(String(next.remove(removes)));
    if (!fails) after = next;
    expected.push(fails ? ["failed"] : outcomes);
    works.push(
      store
        .transact(async (tx) => {
          const results: string[] = [];
          for (const event of events) {
            const result = await tx.put(event);
            results.push(result.stored ? "stored" : result.reason);
          }
          if (removes) results.push(String(await tx.remove(removes, "operator")));
          if (fails) throw new Error("on purpose");
          return results;
        })
        .catch((error: Error) => (error.message === "on purpose" ? ["failed"] : Promise.reject(error))),
    );
  }
  assert.deepEqual(await Promise.all(works), expected);
  return after;
}

async function askOne(store: Store, oracle: Oracle, drafter: Drafter): Promise<void> {
  const { random } = drafter;
  const filters = Array.from({ length: random.chance(0.7) ? 1 : 1 + random.below(4) }, () => drafter.filter());
  const upTo = random.chance(0.2) ? random.below(oracle.position + 1) : undefined;
  const limit = random.chance(0.2) ? random.below(20) : undefined;
  const expected = oracle.query(filters, upTo, limit);
  const told = JSON.stringify({ filters: filters.map(filterJson), upTo, limit }).slice(0, 2_000);
  const answered: string[] = [];
  const options = { ...(upTo === undefined ? {} : { upTo }), ...(limit === undefined ? {} : { limit }) };
  for await (const page of store.query(filters, {
    ...options,
    pageRows: 1 + random.below(8),
    passingRows: random.chance(0.5),
  })) {
    for (const row of page) answered.push(row.json.toString());
  }
  assert.deepEqual(
    answered,
    expected.map(({ raw }) => raw),
    told,
  );
  const roll = random.next();
  if (roll < 0.2) assert.equal(await store.count(filters), oracle.query(filters).length, told);
  else if (roll < 0.4) await askForTimedIds(store, oracle, filters[0] as Filter, told);
  else if (roll < 0.5 && drafter.known.length > 0) {
    const event = random.pick(drafter.known);
    const isKept = oracle.kept.some((other) => other.event.id === event.id);
    const isSeen = isKept && (expirationOf(event) ?? Number.POSITIVE_INFINITY) > oracle.nowSeconds;
    assert.equal(await store.has(event.id), isSeen);
    assert.equal((await store.event(event.id))?.event.raw, isSeen ? event.raw : undefined);
    assert.equal((await store.deletionOf(event)) !== undefined, oracle.isDeleted(event));
  }
}

async function askForTimedIds(store: Store, oracle: Oracle, filter: Filter, told: string): Promise<void> {
  const { limit: _ignored, ...whole } = filter;
  const expected = oracle.query([whole]).sort((a, b) => a.created_at - b.created_at || (a.id < b.id ? -1 : 1));
  const found = await store.timedIds(filter, expected.length);
  assert.ok(found, told);
  const pairs = Array.from(found.times, (time, index) => [
    time,
    Buffer.from(found.ids.subarray(index * 32, index * 32 + 32)).toString("hex"),
  ]);
  assert.deepEqual(
    pairs,
    expected.map((event) => [event.created_at, event.id]),
    told,
  );
  if (expected.length > 0) assert.equal(await store.timedIds(filter, expected.length - 1), undefined, told);
}
