// Property 9: layer 4 ran, in every 26 h, for every relay that was live for 2 h. Seen by its questions: what refers to
// an event of a repository that is no root.

import { type EventId, rootKinds } from "../src/nostr/event.js";
import type { Filter } from "../src/nostr/filter.js";
import { lists } from "./events.js";
import type { World } from "./world.js";

const hour = 60 * 60 * 1000;
const lookEveryMs = hour / 2;

export class LayerFourWatch {
  readonly #askedMs = new Map<string, number>();
  /** Since when there is something to ask for. */
  readonly #dueSinceMs = new Map<string, number>();
  readonly #related = new Map<string, { version: number; any: boolean }>();
  #ranSinceMs = 0;

  constructor(readonly world: World) {}

  begin(): void {
    const { timeline, watch } = this.world;
    watch.onAsked = (relay, filters) => this.#asked(relay, filters);
    const look = (): void => {
      if (this.world.isRunning) this.#look();
      else this.#ranSinceMs = timeline.nowMs + lookEveryMs;
      timeline.after(lookEveryMs, look);
    };
    timeline.after(lookEveryMs, look);
  }

  #asked(relay: string, filters: readonly Filter[]): void {
    const { server } = this.world;
    for (const filter of filters) {
      for (const id of [...(filter.tags?.get("e") ?? []), ...(filter.tags?.get("E") ?? [])]) {
        const kind = server.stored.get(id as EventId)?.kind;
        if (kind === undefined || rootKinds.includes(kind)) continue;
        this.#askedMs.set(relay, this.world.now().monotonicMs);
        return;
      }
    }
  }

  #look(): void {
    const { world } = this;
    const nowMs = world.timeline.nowMs;
    // A machine that sleeps does not count those hours.
    const { monotonicMs: awakeMs } = world.now();
    for (const relay of world.relays.values()) {
      if (!this.#hasRelated(relay.key)) {
        this.#dueSinceMs.delete(relay.key);
        continue;
      }
      const dueSinceMs = this.#dueSinceMs.get(relay.key) ?? awakeMs;
      this.#dueSinceMs.set(relay.key, dueSinceMs);
      const link = world.links.of(relay.key);
      if (!link || !relay.honest) continue;
      const liveMs = nowMs - Math.max(link.openedMs, relay.refusedMs, this.#ranSinceMs);
      const sinceMs = awakeMs - Math.max(dueSinceMs, this.#askedMs.get(relay.key) ?? 0);
      if (liveMs < 2 * hour || sinceMs < 26 * hour) continue;
      world.watch.broken(9, `layer 4 did not run for ${relay.key} in ${(sinceMs / hour).toFixed(0)} h`, nowMs);
      this.#askedMs.set(relay.key, awakeMs);
    }
  }

  #hasRelated(key: string): boolean {
    const { server } = this.world;
    const known = this.#related.get(key);
    if (known?.version === server.version) return known.any;
    const listed = [...server.hosted].filter((coordinate) => lists(server.latest.get(coordinate)!, key));
    const any = server.relatedTo(listed).ids.length > 0;
    this.#related.set(key, { version: server.version, any });
    return any;
  }
}
