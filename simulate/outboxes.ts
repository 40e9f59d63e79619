// Participants who write only to relays of their own (GRASP-03), and lists that lie: forged ones that name an attacker's
// relay, ones that name ten thousand relays, our own service, or names that do not exist; and lists that loop, because they
// name the relays where lists are looked for, or are found only at the relays of others' lists. Property 11, watched as relays
// see it and checked at the end: what participants wrote to their own honest relays is here; nobody is asked for more
// than participants' words; no cap is exceeded; no forged or surplus entry is ever dialled.

import type { EventId, NostrEvent, Pubkey } from "../src/nostr/event.js";
import type { SyncConfig } from "../src/sync/core/config.js";
import { type Draft, makeEvent, ownHost, startWallMs } from "./events.js";
import { type Manners, ModelRelay } from "./model-relay.js";
import { Chance } from "./random.js";
import { drawHabits, drawManners, type Scenario } from "./scenario.js";
import type { Story } from "./story.js";
import type { World } from "./world.js";

const minute = 60 * 1000;
const hour = 60 * minute;
const namesInLongList = 10_000;

export interface OutboxWorld {
  readonly relays: readonly ModelRelay[];
  readonly config: Partial<SyncConfig>;
  /** So few places that not everything can be gathered: only the caps are looked at. */
  readonly isCapped: boolean;
}

const honest: Partial<Manners> = { lies: [], refusesHistory: false };

/** `o…` are participants' own relays, `i0` knows the lists, `f0` those of who is not there. */
export function drawOutboxes(seed: number): OutboxWorld {
  const chance = new Chance(seed + 6);
  if (chance.once(0.3)) return { relays: [], config: {}, isCapped: false };
  const isCapped = chance.once(0.25);
  const own = Array.from({ length: chance.between(1, 5) }, (_, at) => {
    const manners = {
      ...drawManners(new Chance(seed * 1000 + at + 700)),
      ...drawHabits(new Chance(seed * 1000 + at + 800)),
    };
    return new ModelRelay(`o${at}.example`, manners, new Chance(seed * 7 + at + 70));
  });
  const index = ["i0.example", "f0.example"].map((key, at) => {
    const { never: _never, ...manners } = { ...drawManners(new Chance(seed * 1000 + at + 900)), ...honest };
    return new ModelRelay(key, manners as Manners, new Chance(seed * 7 + at + 90));
  });
  return {
    relays: [...own, ...index],
    config: {
      indexRelays: ["wss://i0.example" as SyncConfig["indexRelays"][number]],
      fallbackRelays: ["wss://f0.example" as SyncConfig["fallbackRelays"][number]],
      ...(isCapped && {
        maxOutboxRelays: 2,
        maxLiveOutboxRelays: 1,
        maxParticipants: 4,
        maxOutboxRelaysPerRepository: 2,
      }),
    },
    isCapped,
  };
}

const isOwn = (key: string): boolean => /^o\d+\./.test(key);
const isAskedForPeopleOnly = (key: string): boolean => /^[oif]\d+\./.test(key);

export class Outboxes {
  readonly #chance: Chance;
  /** Draws of its own: the other outcomes of a seed stay what they are. */
  readonly #loops: Chance;
  readonly #lists = new Map<Pubkey, NostrEvent>();
  /** Whose list is at no relay where lists are looked for: nobody is held to find it. */
  readonly #unlisted = new Set<Pubkey>();
  #peopleBefore: number | undefined;

  constructor(
    seed: number,
    readonly drawn: OutboxWorld,
    readonly world: World,
    readonly story: Story,
    readonly scenario: Scenario,
  ) {
    this.#chance = new Chance(seed + 7);
    this.#loops = new Chance(seed + 8);
  }

  begin(): void {
    if (this.drawn.relays.length === 0) return;
    const chance = this.#chance;
    for (const author of this.story.people) if (chance.once(0.8)) this.#publishList(author);
    const { timeline } = this.world;
    const troubledMs = this.scenario.size.hours * hour;
    const writes = chance.between(5, 60);
    for (let n = 0; n < writes / 2; n++) this.#write(Math.floor(startWallMs / 1000) - chance.between(100, 30_000_000));
    for (let n = 0; n < writes; n++) {
      timeline.at(chance.next() * troubledMs, () =>
        this.#write(Math.floor(this.world.now().wallMs / 1000) - chance.between(0, 1500)),
      );
    }
    // A list that changes is found with the next look, a day later at most.
    for (let n = chance.between(0, 2); n > 0; n--) {
      timeline.at(chance.next() * troubledMs, () => this.#publishList(chance.of(this.story.people)));
    }
    this.#watch();
  }

  #event(author: Pubkey, kind: number, createdAt: number, tags: string[][], sig?: string): NostrEvent {
    const draft: Draft = { pubkey: author, kind, created_at: createdAt, tags };
    return makeEvent(this.#chance, draft, sig);
  }

  #publishList(author: Pubkey): void {
    const chance = this.#chance;
    const own = this.drawn.relays.filter(({ key }) => isOwn(key)).map(({ key }) => key);
    const seconds = Math.floor(this.world.now().wallMs / 1000);
    const r = (key: string, ...marker: string[]): string[] => ["r", `wss://${key}/`, ...marker];
    const writes = chance.some(own, chance.between(1, 3)).map((key) => r(key, ...(chance.once(0.5) ? ["write"] : [])));
    const tags = [
      r("only-read.example", "read"),
      ...(chance.once(0.2) ? [r(ownHost)] : []),
      ...(chance.once(0.2) ? [["r", "no url at all"]] : []),
      ...(chance.once(0.15) ? [r("nowhere.example")] : []),
      ...writes,
      ...this.#loopingNames().map((key) => r(key)),
    ];
    // Those beyond the fourth are never to be dialled.
    if (chance.once(0.15)) {
      while (writeKeys({ tags }).length < 4) tags.push(r(`nowhere${tags.length}.example`));
      for (let n = 0; n < namesInLongList; n++) tags.push(r(`surplus${n}.example`));
    }
    const list = this.#event(author, 10002, seconds - chance.between(0, 100_000), tags);
    const known = this.#lists.get(author);
    const newest = known && known.created_at >= list.created_at ? { ...list, created_at: known.created_at + 1 } : list;
    this.#lists.set(author, newest);
    const place = chance.once(0.8) ? "i0.example" : "f0.example";
    if (!known && this.#loops.once(0.1)) {
      // It stands only where others say that they write, who may be found in the same way alone.
      this.#unlisted.add(author);
      this.world.links.publishAt(this.#loops.of(own), newest);
      return;
    }
    this.#unlisted.delete(author);
    // What was found at the index relay once is looked for there: a later list is sent there too.
    this.world.links.publishAt(known ? "i0.example" : place, newest);
    if (known) this.world.links.publishAt("f0.example", newest);
    if (!chance.once(0.4)) return;
    const forged = this.#event(author, 10002, seconds + 500, [r("forged.example")], "bad");
    for (const relay of this.world.relays.values()) relay.publish(forged);
  }

  /** Relays where lists are looked for: each leads back to where we came from. */
  #loopingNames(): string[] {
    const loops = this.#loops;
    if (!loops.once(0.3)) return [];
    return loops.some(["i0.example", "f0.example"], loops.between(1, 2));
  }

  /** Something about a repository, sent only to where its author writes. */
  #write(seconds: number): void {
    const chance = this.#chance;
    if (this.story.repos.length === 0) return;
    const repo = chance.of(this.story.repos);
    const author = chance.of(this.story.people);
    const places = writeKeys(this.#lists.get(author)).filter(isOwn);
    if (places.length === 0) return;
    const root = repo.roots.length > 0 ? chance.of(repo.roots) : undefined;
    const what = chance.next();
    const event =
      what < 0.15
        ? this.#event(author, 1621, seconds, [
            ["a", repo.coordinate],
            ["p", chance.of(this.story.people)],
          ])
        : what < 0.35 || !root
          ? this.#event(author, 1, seconds, [[chance.of(["a", "A", "q"]), repo.coordinate]])
          : this.#event(author, 1111, seconds, [[chance.of(["e", "E", "q"]), root.id]]);
    for (const key of places) this.world.links.publishAt(key, event);
  }

  #broken(text: string): void {
    this.world.watch.broken(11, text, this.world.timeline.nowMs);
  }

  #watch(): void {
    const { world } = this;
    const { watch, timeline } = world;
    watch.onDialled = (key) => {
      if (key === ownHost) this.#broken("our own service is dialled");
      if (/^(?:forged|surplus|only-read)/.test(key)) this.#broken(`${key.replace(/\d+/, "")} is dialled`);
    };
    watch.onAskedFor = (key, filters) => {
      if (isAskedForPeopleOnly(key) && filters.some(({ authors, ids }) => !authors && !ids))
        this.#broken(`${key} is asked for more than what participants say`);
    };
    const look = (): void => {
      if (world.isRunning) this.#look();
      timeline.after(minute, look);
    };
    timeline.after(minute, look);
  }

  #look(): void {
    const { outbox, relays } = this.world.snapshot();
    const { config } = this.world;
    if (outbox.relays > config.maxOutboxRelays) this.#broken(`${outbox.relays} outbox relays are asked`);
    if (outbox.live > config.maxLiveOutboxRelays) this.#broken(`${outbox.live} outbox relays are live`);
    const most = config.maxParticipants * outbox.repositories;
    if (outbox.participants > most) this.#broken(`${outbox.participants} participants are followed`);
    const { found, none, asked } = outbox.lists;
    // Those of people who left are forgotten a minute later; how many there were in the first minute is not known.
    const people = outbox.participants + (this.#peopleBefore ?? Number.POSITIVE_INFINITY);
    this.#peopleBefore = outbox.participants;
    if (found + none + asked > 2 * people) this.#broken(`${found + none + asked} lists are remembered`);
    for (const { relay, liveFilters, isOutboxLive, waitingOnly } of relays) {
      if (isOwn(relay) && waitingOnly && liveFilters > 0 && !isOutboxLive)
        this.#broken(`${relay} is listened to and none of the live ones`);
    }
  }

  /** What participants wrote to their own relays and is not here. */
  missing(): string[] {
    const { world, drawn } = this;
    const { server } = world;
    const found: string[] = [];
    if (drawn.isCapped) return found;
    for (const coordinate of server.hosted) {
      if (server.participantsOf(coordinate).length > world.config.maxParticipants) continue;
      const roots = new Set<string>(server.rootsOf(coordinate).map(({ id }) => id));
      for (const { pubkey } of server.participantsOf(coordinate)) {
        if (this.#unlisted.has(pubkey)) continue;
        for (const key of writeKeys(this.#lists.get(pubkey)).filter(isOwn)) {
          const relay = world.relays.get(key)!;
          if (!relay.honest || (relay.manners.refusesLongValues && coordinate.length > 255)) continue;
          for (const event of relay.events.values()) {
            if (event.pubkey !== pubkey || server.isTurnedAway(event.id)) continue;
            const isAbout = event.tags.some(([, text = ""]) => text === coordinate || roots.has(text));
            const outcome = isAbout ? server.judge(event).type : "refused";
            if (outcome !== "stored" && outcome !== "held") continue;
            found.push(`property 11: kind ${event.kind} ${shortOf(event.id)} of ${key} is not here`);
          }
        }
      }
    }
    return found;
  }
}

const shortOf = (id: EventId): string => id.slice(0, 8);

/** The first four relays that a list says its author writes to, without ourselves. */
function writeKeys(list: Pick<NostrEvent, "tags"> | undefined): string[] {
  const keys = (list?.tags ?? []).flatMap(([, url = "", marker = "write"]) =>
    marker === "write" && url.startsWith("wss://") ? [url.slice("wss://".length).replace(/\/$/, "")] : [],
  );
  return [...new Set(keys)].filter((key) => key !== ownHost).slice(0, 4);
}
