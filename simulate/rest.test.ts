// Coming to rest: three servers that sync each other, each also listed under a second name of its own.

import assert from "node:assert/strict";
import { it } from "node:test";
import type { EventId } from "../src/nostr/event.js";
import { announcement, makeEvent, newPubkey } from "./events.js";
import { type Manners, ModelRelay } from "./model-relay.js";
import { Chance } from "./random.js";
import { calmTrouble } from "./scenario.js";
import { World } from "./world.js";

const polite: Manners = {
  negentropy: "yes",
  limits: undefined,
  pageCap: 500,
  refusesLimitZero: false,
  refusesLongValues: false,
  needsAuth: false,
  requestsPerMinute: 100_000,
  rateLimitBy: "closed",
  randomClosed: 0,
  lies: [],
};

/** Each world is one server; the relays it sees are the servers, itself among them. */
class Ring {
  readonly keys = ["n0.example", "n1.example", "n2.example"];
  readonly worlds: World[];
  readonly #seen: Set<EventId>[] = [];
  #deletions = 0;

  constructor() {
    this.worlds = this.keys.map((_, at) => {
      const relays = this.keys.map((key, n) => new ModelRelay(key, polite, new Chance(n)));
      this.#seen.push(new Set());
      return new World({
        chance: new Chance(at + 1),
        trouble: calmTrouble,
        relays,
        bootstrap: [],
        git: { arrivesAfterMs: () => 0 },
      });
    });
    for (const { watch } of this.worlds) {
      watch.onAsked = (_, filters) => {
        if (filters.every(({ kinds, since }) => kinds?.includes(5) && since !== undefined)) this.#deletions += 1;
      };
    }
  }

  /** What a server has stored is what its peers see of it. */
  #show(): void {
    this.worlds.forEach((world, at) => {
      for (const event of world.server.stored.values()) {
        if (this.#seen[at]!.has(event.id)) continue;
        this.#seen[at]!.add(event.id);
        for (const other of this.worlds) other.links.publishAt(this.keys[at]!, event);
      }
    });
  }

  runFor(seconds: number): void {
    for (let second = 0; second < seconds; second++) {
      this.#show();
      for (const world of this.worlds) world.runUntil(world.timeline.nowMs + 1000);
    }
  }

  /** The hourly look for deletions is no unrest. */
  requests(): number {
    return this.worlds.reduce(
      (sum, world) => sum + world.watch.requests + world.watch.dials + world.watch.offers,
      -this.#deletions,
    );
  }
}

it("three servers in a ring store each event once and then fall silent", () => {
  const ring = new Ring();
  const chance = new Chance(5);
  const owner = newPubkey(chance);
  const urls = ring.keys.map((key) => `wss://${key}`);
  ring.worlds[0]!.server.submit(announcement(chance, owner, "tool", 1_600_000_000, urls, true));
  for (const world of ring.worlds) world.server.submit(announcement(chance, owner, "seed", 1_600_000_000, urls, true));
  for (const world of ring.worlds) world.server.replay();
  ring.runFor(30);
  const issues = Array.from({ length: 20 }, (_, n) =>
    makeEvent(chance, {
      pubkey: owner,
      kind: 1621,
      created_at: 1_700_000_000 + n,
      tags: [["a", `30617:${owner}:tool`]],
    }),
  );
  issues.forEach((event, n) => void ring.worlds[n % 3]!.server.submit(event));
  ring.runFor(60);
  for (const world of ring.worlds) {
    for (const event of issues) assert.equal(world.server.timesStored.get(event.id), 1);
    assert.deepEqual(world.watch.problems, []);
  }
  const quiet = ring.requests();
  ring.runFor(3600);
  assert.equal(ring.requests(), quiet, "no request, dial or offer in an hour");
});
