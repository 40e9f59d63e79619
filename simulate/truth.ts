// Property 8, looked at every minute: what the core says of its relays against what the world knows of them.

import type { EventId } from "../src/nostr/event.js";
import type { RelaySnapshot } from "../src/sync/core/standing.js";
import type { ModelRelay } from "./model-relay.js";
import { missingAt } from "./properties.js";
import type { World } from "./world.js";

const minute = 60 * 1000;
/** What is on its way: a window, a stalled link that is not yet given up, a retry. */
const graceMs = 4 * minute;
/** Items without a live filter are asked for in turn. */
const rotationGraceMs = 8 * 60 * minute;
/** A failed catch-up is made good by a full sync after 15 min. */
const steadyMs = 20 * minute;

interface Missing {
  versions: string;
  readonly sinceMs: Map<EventId, number>;
}

export class Truth {
  readonly #missing = new Map<string, Missing>();
  #ranSinceMs = 0;

  constructor(
    readonly world: World,
    readonly bootstrap: ReadonlySet<string>,
  ) {}

  begin(): void {
    const { timeline } = this.world;
    const look = (): void => {
      // In the moment in which it runs again, nobody has told it anything yet.
      if (!this.world.isRunning) this.#ranSinceMs = timeline.nowMs + minute;
      else if (timeline.nowMs > this.#ranSinceMs) this.#look();
      timeline.after(minute, look);
    };
    timeline.after(minute, look);
  }

  #broken(text: string): void {
    this.world.watch.broken(8, text, this.world.timeline.nowMs);
  }

  #look(): void {
    const { world } = this;
    const snapshot = world.snapshot();
    for (const shown of snapshot.relays) {
      const relay = world.relays.get(shown.relay);
      if (!relay) continue;
      this.#lookAtLink(shown, relay);
      this.#lookAtStep(shown, relay);
    }
  }

  #lookAtLink(shown: RelaySnapshot, relay: ModelRelay): void {
    const { world } = this;
    const nowMs = world.timeline.nowMs;
    const link = world.links.of(relay.key);
    if (shown.connected !== (link !== undefined)) {
      this.#broken(`${relay.key} is shown as ${shown.state}, its link is ${link ? "open" : "closed"}`);
      return;
    }
    if (!link) return;
    const isHealthy = shown.status === 1 && shown.failures === 0;
    if (shown.inStep && shown.status !== 4 && !isHealthy)
      this.#broken(`${relay.key} is in step, with status ${shown.status} and ${shown.failures} failures`);
    const heardMs = Math.max(link.openedMs, this.#ranSinceMs);
    if (shown.status === 4 && nowMs - Math.max(relay.slowedMs, this.#ranSinceMs) > 70_000)
      this.#broken(`${relay.key} is shown as rate-limited and asked for no patience`);
    const answersAll = nowMs - Math.max(heardMs, relay.refusedMs) > steadyMs && !link.stalled && shown.state === "live";
    if (relay.honest && answersAll && !isHealthy)
      this.#broken(
        `${relay.key} answers everything and is shown with status ${shown.status}, ${shown.failures} failures`,
      );
  }

  #missingNow(relay: ModelRelay): Set<EventId> {
    return missingAt(this.world.server, relay, this.bootstrap.has(relay.key));
  }

  #lookAtStep(shown: RelaySnapshot, relay: ModelRelay): void {
    const { world } = this;
    const isKnown = relay.honest || relay.manners.refusesHistory === true;
    if (!shown.inStep || !isKnown) {
      this.#missing.delete(relay.key);
      return;
    }
    const nowMs = world.timeline.nowMs;
    const missing = this.#missing.get(relay.key) ?? { versions: "", sinceMs: new Map<EventId, number>() };
    this.#missing.set(relay.key, missing);
    const versions = `${world.server.version} ${relay.version}`;
    if (missing.versions !== versions) {
      missing.versions = versions;
      const now = this.#missingNow(relay);
      for (const id of missing.sinceMs.keys()) if (!now.has(id)) missing.sinceMs.delete(id);
      for (const id of now) if (!missing.sinceMs.has(id)) missing.sinceMs.set(id, nowMs);
    }
    const rotates = shown.rotatingRepos + shown.rotatingRoots > 0;
    for (const [id, sinceMs] of missing.sinceMs) {
      if (nowMs - sinceMs <= (rotates ? rotationGraceMs : graceMs)) continue;
      if (!this.#missingNow(relay).has(id)) {
        // Nothing changed but our clock: what comes from the future by now is not admitted.
        missing.sinceMs.delete(id);
        continue;
      }
      const kind = relay.events.get(id)?.kind;
      this.#broken(`${relay.key} is shown in step, and kind ${kind} ${id.slice(0, 8)} is missing`);
      this.#missing.delete(relay.key);
      return;
    }
  }
}
