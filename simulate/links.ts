// The wires between our server and the model relays: dials, questions and answers on their way, and whatever a link
// does to them. One link a relay.

import type { NostrEvent } from "../src/nostr/event.js";
import type { Input } from "../src/sync/core/messages.js";
import type { Answer, ModelRelay } from "./model-relay.js";
import type { Chance } from "./random.js";
import type { Trouble } from "./scenario.js";
import type { Timeline } from "./timeline.js";

export interface Link {
  readonly number: number;
  readonly relay: ModelRelay;
  readonly key: string;
  readonly openedMs: number;
  open: boolean;
  /** Messages keep their order: none arrives before this. */
  notBeforeMs: number;
  stalled: boolean;
  reading: boolean;
  held: Input[];
}

export interface LinksParts {
  readonly timeline: Timeline;
  readonly chance: Chance;
  readonly relays: ReadonlyMap<string, ModelRelay>;
  readonly trouble: () => Trouble;
  readonly tell: (input: Input) => void;
  /** The link has ended by itself: told when what happens now is over. */
  readonly tellSoon: (input: Input) => void;
}

interface OfLink {
  readonly relay: string;
  readonly link: number;
}

export class Links {
  readonly #open = new Map<string, Link>();
  readonly #down = new Map<string, boolean>();

  constructor(readonly parts: LinksParts) {}

  of(key: string): Link | undefined {
    return this.#open.get(key);
  }

  get all(): readonly Link[] {
    return [...this.#open.values()];
  }

  isDown(key: string): boolean {
    return this.#down.get(key) ?? false;
  }

  setDown(key: string, down: boolean): void {
    this.#down.set(key, down);
    if (down) this.cut(key);
  }

  /** `isCurrent`: our process is still the one that dialled. */
  dial({ relay: key, link: number }: OfLink, isCurrent: () => boolean): void {
    const { timeline, chance, relays, tell } = this.parts;
    const relay = relays.get(key);
    const kind = relay ? relay.manners.never : "dns-not-found";
    const unreachable = !relay || kind !== undefined || this.isDown(key);
    timeline.after(chance.between(20, 400), () => {
      if (!isCurrent()) return;
      const of = { relay: key, link: number };
      if (!relay || unreachable) {
        tell({ type: "connectFailed", kind: kind ?? "refused", ...of });
        return;
      }
      this.#open.set(key, {
        number,
        relay,
        key,
        openedMs: timeline.nowMs,
        open: true,
        notBeforeMs: 0,
        stalled: false,
        reading: true,
        held: [],
      });
      relay.reset();
      tell({ type: "connected", ...of });
      if (relay.manners.limits) tell({ type: "nip11", limits: relay.manners.limits, ...of });
      if (relay.manners.needsAuth) tell({ type: "authChallenge", ...of });
    });
  }

  authenticate({ relay: key, link: number }: OfLink): void {
    const { timeline, chance, tell } = this.parts;
    timeline.after(chance.between(10, 200), () => {
      const link = this.#open.get(key);
      if (link?.number !== number || !link.open) return;
      link.relay.authenticated = true;
      tell({ type: "authenticated", relay: key, link: number });
    });
  }

  /** A request travels to the relay; its answers travel back. */
  ask(of: OfLink, answer: (relay: ModelRelay) => Answer[]): void {
    const link = this.#open.get(of.relay);
    if (link?.number !== of.link || !link.open) return;
    const { timeline, chance } = this.parts;
    link.notBeforeMs = Math.max(link.notBeforeMs, timeline.nowMs + chance.between(5, 60));
    timeline.at(link.notBeforeMs, () => {
      if (!link.open || link.stalled) return;
      this.deliver(link.key, answer(link.relay));
    });
  }

  isOpen({ relay, link: number }: OfLink): boolean {
    const link = this.#open.get(relay);
    return link?.number === number && link.open;
  }

  /** Messages from a relay over its link, with whatever the link does to them. */
  deliver(key: string, answers: readonly Answer[]): void {
    const link = this.#open.get(key);
    if (!link?.open || link.stalled || answers.length === 0) return;
    const { timeline, chance } = this.parts;
    const trouble = this.parts.trouble();
    if (chance.once(trouble.stall)) {
      link.stalled = true;
      timeline.after(chance.between(60_000, 90_000), () => this.#cut(link));
      return;
    }
    const cut = chance.once(trouble.drop) || chance.once(trouble.truncate);
    const list = [...answers];
    if (cut) list.length = chance.between(0, list.length);
    if (list.length > 1 && chance.once(trouble.reorder)) {
      const at = chance.between(0, list.length - 2);
      if (list[at]!.type === "event" && list[at + 1]!.type === "event")
        [list[at], list[at + 1]] = [list[at + 1]!, list[at]!];
    }
    if (list.length > 0 && chance.once(trouble.repeat)) {
      const at = chance.between(0, list.length - 1);
      if (list[at]!.type === "event") list.splice(at, 0, list[at]!);
    }
    link.notBeforeMs = Math.max(link.notBeforeMs, timeline.nowMs + chance.between(5, 60));
    timeline.at(link.notBeforeMs, () => {
      for (const answer of list) {
        if (!link.open) return;
        if (answer.type === "giant") this.#cut(link);
        else this.#hear(link, { ...answer, relay: key, link: link.number });
      }
      if (cut) this.#cut(link);
    });
  }

  #hear(link: Link, input: Input): void {
    if (link.reading) this.parts.tell(input);
    else link.held.push(input);
  }

  setReading({ relay, link: number }: OfLink, reading: boolean): void {
    const link = this.#open.get(relay);
    if (link?.number !== number) return;
    link.reading = reading;
    if (!reading) return;
    this.parts.timeline.after(0, () => {
      const held = link.held;
      link.held = [];
      for (const input of held) if (link.open) this.#hear(link, input);
    });
  }

  /** The link ends by itself: the shell reports it. */
  cut(key: string): void {
    const link = this.#open.get(key);
    if (link) this.#cut(link);
  }

  #cut(link: Link): void {
    if (!link.open) return;
    this.#forget(link);
    this.parts.tellSoon({ type: "closed", relay: link.key, link: link.number });
  }

  /** We ended it ourselves, and know that. */
  drop({ relay, link: number }: OfLink): void {
    const link = this.#open.get(relay);
    if (link?.number === number) this.#forget(link);
  }

  #forget(link: Link): void {
    link.open = false;
    link.relay.reset();
    if (this.#open.get(link.key) === link) this.#open.delete(link.key);
  }

  /** Somebody publishes an event at a relay. */
  publishAt(key: string, event: NostrEvent): void {
    const relay = this.parts.relays.get(key);
    if (!relay || this.isDown(key)) return;
    this.deliver(
      key,
      relay.publish(event).map((subscription) => ({ type: "event", subscription, event })),
    );
  }
}
