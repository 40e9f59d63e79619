// What befalls our own server during a run: standstills, a full disk, restarts, breaks of every link, bans; and what
// others throw at it: dead names, a flood. Drawn from a source of its own.

import type { NostrEvent } from "../src/nostr/event.js";
import { announcement, makeEvent, newPubkey, startWallMs } from "./events.js";
import type { Chance } from "./random.js";
import type { Scenario } from "./scenario.js";
import type { World } from "./world.js";

const minute = 60 * 1000;
const hour = 60 * minute;
const breakEveryMs = 20 * hour;

export class Misfortune {
  constructor(
    readonly chance: Chance,
    readonly world: World,
    readonly scenario: Scenario,
    readonly calmHours: number,
  ) {}

  get #troubledMs(): number {
    return this.scenario.size.hours * hour;
  }

  /** Before the core starts. */
  prepare(): void {
    const { chance, world, scenario } = this;
    const names = Array.from({ length: scenario.hardships.deadNames }, (_, at) => `wss://gone${at}.example`);
    for (let from = 0; from < names.length; from += 10) {
      const createdAt = Math.floor(startWallMs / 1000) - 50_000_000;
      const owner = newPubkey(chance);
      // Whatever its id: git data is here, and with it the announcement.
      const made = (): NostrEvent => announcement(chance, owner, "dead", createdAt, names.slice(from, from + 10), true);
      let event = made();
      while (world.server.hooks.git.arrivesAfterMs(event) !== 0) event = made();
      world.server.submit(event);
    }
  }

  plan(people: readonly string[]): void {
    const { chance, world } = this;
    const { hardships } = this.scenario;
    const { timeline } = world;
    const sometime = (): number => chance.next() * this.#troubledMs;
    for (let n = 0; n < hardships.standstills; n++) {
      const forMs = chance.of([5000, 40_000, 100_000, 10 * minute, 20 * minute, hour, 5 * hour]);
      const asleep = hardships.sleeps && chance.once(0.5);
      timeline.at(sometime(), () => world.standStill(forMs, asleep));
    }
    if (hardships.diskFullMs > 0) {
      const fromMs = sometime();
      timeline.at(fromMs, () => {
        world.server.troubled = true;
      });
      timeline.at(Math.min(this.#troubledMs, fromMs + hardships.diskFullMs), () => {
        world.server.troubled = false;
      });
    }
    if (hardships.bans) {
      const author = chance.of(people);
      const fromMs = sometime() / 2;
      timeline.at(fromMs, () => world.server.ban(author));
      timeline.at(fromMs + chance.between(1, 60) * minute, () => world.whenRunning(() => world.server.unban(author)));
    }
    if (hardships.flood > 0) timeline.at(sometime() / 2, () => this.#flood());
    this.#planRoutine();
  }

  /** Nights and breaks come in calm times as well; the last hours are without, so that the end can be looked at. */
  #planRoutine(): void {
    const { chance, world } = this;
    const { hardships } = this.scenario;
    const endMs = this.#troubledMs + (this.calmHours - 4) * hour;
    if (hardships.nightlyRestarts) {
      for (let atMs = chance.between(3, 24) * hour; atMs < endMs; atMs += 24 * hour) {
        const downMs = chance.of([5000, 5000, 2 * minute, 30 * minute]);
        world.timeline.at(atMs, () => world.restart(downMs));
      }
    }
    if (!hardships.breaks) return;
    for (const key of world.relays.keys()) {
      for (let atMs = chance.between(1, 20) * hour; atMs < endMs; atMs += breakEveryMs) {
        world.timeline.at(atMs, () => world.links.setDown(key, true));
        world.timeline.at(atMs + 17 * minute, () => world.links.setDown(key, false));
      }
    }
  }

  /** Strangers write far more about a repository than a day's budget; then its owner moves a branch. */
  #flood(): void {
    const { chance, world } = this;
    const coordinate = chance.of([...world.server.hosted]);
    const found = coordinate === undefined ? undefined : world.server.latest.get(coordinate);
    if (!found || coordinate === undefined) return;
    const relays = [...world.relays.values()].filter(({ events }) => events.has(found.id));
    if (relays.length === 0) return;
    const stranger = newPubkey(chance);
    const nowSeconds = Math.floor(world.now().wallMs / 1000);
    for (let n = 0; n < this.scenario.hardships.flood; n++) {
      const draft = { pubkey: stranger, kind: 1, created_at: nowSeconds - n, tags: [["a", coordinate]] };
      const event = makeEvent(chance, draft);
      for (const { key } of relays) world.links.publishAt(key, event);
    }
    const identifier = found.tags.find((tag) => tag[0] === "d")?.[1] ?? "";
    for (const afterMs of [10 * minute, 3 * hour]) {
      world.timeline.after(afterMs, () => {
        const createdAt = Math.floor(world.now().wallMs / 1000);
        const draft = { pubkey: found.pubkey, kind: 30618, created_at: createdAt, tags: [["d", identifier]] };
        const state = makeEvent(chance, draft);
        for (const { key } of relays) world.links.publishAt(key, state);
      });
    }
  }
}
