// The model world around the real core: executes its commands on model relays over model links, and feeds back what
// a shell would. Deterministic: the timeline and one source of chance decide everything.

import type { NostrEvent } from "../src/nostr/event.js";
import type { Matcher } from "../src/nostr/filter.js";
import type { EventId } from "../src/nostr/ids.js";
import { type SyncConfig, syncConfig } from "../src/sync/core/config.js";
import { SyncCore } from "../src/sync/core/core.js";
import type { Command, Input, Time } from "../src/sync/core/messages.js";
import type { Break } from "./break.js";
import { ownHost, startWallMs } from "./events.js";
import type { Answer, ModelRelay } from "./model-relay.js";
import { type GitModel, ModelServer } from "./model-server.js";
import type { Chance } from "./random.js";
import { calmTrouble, type Trouble } from "./scenario.js";
import { Timeline } from "./timeline.js";
import { brief } from "./trace.js";
import { Watch } from "./watch.js";

interface Link {
  readonly number: number;
  readonly relay: ModelRelay;
  readonly key: string;
  open: boolean;
  /** Messages keep their order: none arrives before this. */
  notBeforeMs: number;
  stalled: boolean;
  reading: boolean;
  held: Input[];
}

export interface WorldParts {
  readonly chance: Chance;
  readonly trouble: Trouble;
  readonly relays: readonly ModelRelay[];
  readonly bootstrap: readonly string[];
  readonly git: GitModel;
  readonly broken?: Break;
  readonly trace?: (line: string) => void;
  readonly config?: Partial<SyncConfig>;
}

export class World {
  readonly timeline = new Timeline();
  readonly server: ModelServer;
  readonly core: SyncCore;
  readonly watch = new Watch();
  readonly relays: ReadonlyMap<string, ModelRelay>;
  readonly #links = new Map<string, Link>();
  readonly #down = new Map<string, boolean>();
  readonly #parts: WorldParts;
  readonly #chance: Chance;
  #trouble: Trouble;
  #wakeMs = Number.POSITIVE_INFINITY;
  #wallOffsetMs = 0;
  #inbox: Input[] = [];
  steps = 0;

  constructor(parts: WorldParts) {
    this.#parts = parts;
    this.#chance = parts.chance;
    this.#trouble = parts.trouble;
    this.relays = new Map(parts.relays.map((relay) => [relay.key, relay]));
    this.server = new ModelServer({
      tell: (input) => this.#inbox.push(input),
      later: (delayMs, run) => this.timeline.after(delayMs, run),
      nowSeconds: () => Math.floor(this.now().wallMs / 1000),
      git: parts.git,
    });
    this.core = new SyncCore(
      syncConfig({
        ownServices: [ownHost],
        bootstrap: parts.bootstrap.map((key) => `wss://${key}` as SyncConfig["bootstrap"][number]),
        ...parts.config,
        ...parts.broken?.config,
      }),
    );
  }

  now(): Time {
    return { wallMs: startWallMs + this.timeline.nowMs + this.#wallOffsetMs, monotonicMs: this.timeline.nowMs };
  }

  jumpWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  calmDown(): void {
    this.#trouble = calmTrouble;
    this.server.troubled = false;
    for (const relay of this.relays.values()) {
      relay.calm = true;
      this.setDown(relay.key, false);
    }
  }

  setDown(key: string, down: boolean): void {
    this.#down.set(key, down);
    const link = this.#links.get(key);
    if (down && link) this.#cut(link);
  }

  runUntil(endMs: number): void {
    for (;;) {
      this.#drainInbox();
      const nextMs = Math.min(this.timeline.nextMs, this.#wakeMs);
      if (nextMs > endMs) break;
      if (this.#wakeMs < this.timeline.nextMs) {
        this.timeline.nowMs = Math.max(this.timeline.nowMs, this.#wakeMs);
        this.#wakeMs = Number.POSITIVE_INFINITY;
        this.tell({ type: "tick" });
      } else this.timeline.runNext();
    }
    this.timeline.nowMs = endMs;
  }

  #drainInbox(): void {
    while (this.#inbox.length > 0) {
      const inbox = this.#inbox;
      this.#inbox = [];
      for (const input of inbox) this.tell(input);
    }
  }

  /** One input into the core, and its commands into the world. */
  tell(input: Input): void {
    const nowMs = this.timeline.nowMs;
    this.watch.heard(input, nowMs);
    const { broken, trace } = this.#parts;
    const given = broken?.input ? broken.input(input) : input;
    if (!given) return;
    this.steps += 1;
    if (trace && given.type !== "tick") trace(`${(nowMs / 1000).toFixed(2)} → ${brief(given)}`);
    for (const command of this.core.step(given, this.now(), this.#chance.next)) {
      const done = broken?.command ? broken.command(command) : command;
      if (!done) continue;
      if (trace && done.type !== "wakeAt") trace(`${(nowMs / 1000).toFixed(2)} ←   ${brief(done)}`);
      this.watch.said(done, nowMs);
      this.#execute(done);
    }
  }

  #execute(command: Command): void {
    switch (command.type) {
      case "wakeAt":
        this.#wakeMs = command.monotonicMs;
        break;
      case "connect":
        this.#dial(command.relay, command.link);
        break;
      case "disconnect": {
        const link = this.#links.get(command.relay);
        if (link?.number === command.link) this.#forget(link);
        break;
      }
      case "subscribe":
        this.#ask(command, (relay) => relay.request(command.subscription, command.filters, this.timeline.nowMs));
        break;
      case "reconcile":
        this.#inbox.push({
          type: "reconcileProgress",
          relay: command.relay,
          link: command.link,
          session: command.session,
        });
        this.#ask(command, (relay) => this.#reconcile(relay, command));
        break;
      case "unsubscribe":
        this.#ask(command, (relay) => {
          relay.subscriptions.delete(command.subscription);
          return [];
        });
        break;
      case "authenticate":
        this.#authenticate(command.relay, command.link);
        break;
      case "pauseReading":
      case "resumeReading":
        this.#setReading(command.relay, command.link, command.type === "resumeReading");
        break;
      case "offerToIntake":
        this.timeline.after(this.#chance.between(1, 40), () => {
          const { broken } = this.#parts;
          const outcome = this.server.submit(command.event);
          const judged = broken?.judge ? broken.judge(outcome, command.event) : outcome;
          this.#inbox.push({ ...command, type: "verdict", outcome: judged });
        });
        break;
      case "lookUpRoots":
        for (const event of this.server.rootsOf(command.coordinate)) this.#inbox.push({ type: "accepted", event });
        break;
      case "lookUpRelated":
        this.#inbox.push({
          type: "related",
          relay: command.relay,
          request: command.request,
          ...this.server.relatedTo(command.coordinates),
        });
        break;
    }
  }

  #dial(key: string, number: number): void {
    const relay = this.relays.get(key);
    const kind = relay ? relay.manners.never : "dns-not-found";
    const unreachable = !relay || kind !== undefined || this.#down.get(key);
    this.timeline.after(this.#chance.between(20, 400), () => {
      const of = { relay: key, link: number };
      if (!relay || unreachable) {
        this.tell({ type: "connectFailed", kind: kind ?? "refused", ...of });
        return;
      }
      this.#links.set(key, {
        number,
        relay,
        key,
        open: true,
        notBeforeMs: 0,
        stalled: false,
        reading: true,
        held: [],
      });
      relay.reset();
      this.tell({ type: "connected", ...of });
      if (relay.manners.limits) this.tell({ type: "nip11", limits: relay.manners.limits, ...of });
      if (relay.manners.needsAuth) this.tell({ type: "authChallenge", ...of });
    });
  }

  #authenticate(key: string, number: number): void {
    this.timeline.after(this.#chance.between(10, 200), () => {
      const link = this.#links.get(key);
      if (link?.number !== number || !link.open) return;
      link.relay.authenticated = true;
      this.tell({ type: "authenticated", relay: key, link: number });
    });
  }

  /** A request travels to the relay; its answers travel back. */
  #ask(command: { readonly relay: string; readonly link: number }, answer: (relay: ModelRelay) => Answer[]): void {
    const link = this.#links.get(command.relay);
    if (link?.number !== command.link || !link.open) return;
    link.notBeforeMs = Math.max(link.notBeforeMs, this.timeline.nowMs + this.#chance.between(5, 60));
    this.timeline.at(link.notBeforeMs, () => {
      if (!link.open || link.stalled) return;
      this.deliver(link.key, answer(link.relay));
    });
  }

  #reconcile(relay: ModelRelay, command: Extract<Command, { type: "reconcile" }>): Answer[] {
    const ours = (matches: Matcher): ReadonlySet<EventId> => {
      const ids = new Set<EventId>();
      for (const event of this.server.stored.values()) if (matches(event)) ids.add(event.id);
      return ids;
    };
    const waiting = new Set<EventId>();
    for (const entry of this.server.waiting.values()) {
      waiting.add(entry.event.id);
      for (const event of entry.held) waiting.add(event.id);
    }
    const held = (id: EventId): boolean => waiting.has(id) || this.server.deleted.has(id);
    const answers = relay.reconcile(
      command.session,
      command.filter,
      ours,
      held,
      command.maxMissing,
      this.timeline.nowMs,
    );
    if (answers.length === 1 && answers[0]!.type === "reconcileProgress") this.#progressForEver(command, 200);
    return answers;
  }

  #progressForEver(command: Extract<Command, { type: "reconcile" }>, left: number): void {
    const { relay, link, session } = command;
    if (left === 0) return;
    this.timeline.after(5000, () => {
      const open = this.#links.get(relay);
      if (open?.number !== link || !open.open) return;
      this.tell({ type: "reconcileProgress", relay, link, session });
      this.#progressForEver(command, left - 1);
    });
  }

  /** Messages from a relay over its link, with whatever the link does to them. */
  deliver(key: string, answers: readonly Answer[]): void {
    const link = this.#links.get(key);
    if (!link?.open || link.stalled || answers.length === 0) return;
    const chance = this.#chance;
    const trouble = this.#trouble;
    if (chance.once(trouble.stall)) {
      link.stalled = true;
      this.timeline.after(chance.between(60_000, 90_000), () => this.#cut(link));
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
    link.notBeforeMs = Math.max(link.notBeforeMs, this.timeline.nowMs + chance.between(5, 60));
    this.timeline.at(link.notBeforeMs, () => {
      for (const answer of list) {
        if (!link.open) return;
        if (answer.type === "giant") this.#cut(link);
        else this.#hear(link, { ...answer, relay: key, link: link.number });
      }
      if (cut) this.#cut(link);
    });
  }

  #hear(link: Link, input: Input): void {
    if (link.reading) this.tell(input);
    else link.held.push(input);
  }

  #setReading(key: string, number: number, reading: boolean): void {
    const link = this.#links.get(key);
    if (link?.number !== number) return;
    link.reading = reading;
    if (!reading) return;
    this.timeline.after(0, () => {
      const held = link.held;
      link.held = [];
      for (const input of held) if (link.open) this.#hear(link, input);
    });
  }

  /** The link ends by itself: the shell reports it. */
  #cut(link: Link): void {
    if (!link.open) return;
    this.#forget(link);
    this.#inbox.push({ type: "closed", relay: link.key, link: link.number });
  }

  cutLink(key: string): void {
    const link = this.#links.get(key);
    if (link) this.#cut(link);
  }

  #forget(link: Link): void {
    link.open = false;
    link.relay.reset();
    if (this.#links.get(link.key) === link) this.#links.delete(link.key);
  }

  /** Somebody publishes an event at a relay. */
  publishAt(key: string, event: NostrEvent): void {
    const relay = this.relays.get(key);
    if (!relay || this.#down.get(key)) return;
    this.deliver(
      key,
      relay.publish(event).map((subscription) => ({ type: "event", subscription, event })),
    );
  }

  isDown(key: string): boolean {
    return this.#down.get(key) ?? false;
  }
}
