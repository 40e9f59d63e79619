// The model world around the real core: executes its commands on model relays over model links, and feeds back what
// a shell would. Our own process may stand still, the machine sleep, the server restart. Deterministic: the timeline
// and one source of chance decide everything.

import type { EventId, NostrEvent } from "../src/nostr/event.js";
import type { Matcher } from "../src/nostr/filter.js";
import type { SyncConfig } from "../src/sync/core/config.js";
import { SyncCore } from "../src/sync/core/core.js";
import type { Command, Input, Time } from "../src/sync/core/messages.js";
import { mostActive } from "../src/sync/core/participants.js";
import type { CoreSnapshot } from "../src/sync/core/standing.js";
import { syncConfig } from "../src/sync/core/testing/config.js";
import type { Break } from "./break.js";
import { ownHost, startWallMs } from "./events.js";
import { KeptRows } from "./kept-rows.js";
import { Links } from "./links.js";
import type { Answer, ModelRelay } from "./model-relay.js";
import { type Caps, type GitModel, ModelServer } from "./model-server.js";
import type { Chance } from "./random.js";
import { calmTrouble, type Trouble } from "./scenario.js";
import { Timeline } from "./timeline.js";
import { brief } from "./trace.js";
import { Watch } from "./watch.js";

const never = Number.POSITIVE_INFINITY;

type Reconcile = Extract<Command, { type: "reconcile" }>;

export interface WorldParts {
  readonly chance: Chance;
  readonly trouble: Trouble;
  readonly relays: readonly ModelRelay[];
  readonly bootstrap: readonly string[];
  readonly git: GitModel;
  readonly broken?: Break;
  readonly trace?: (line: string) => void;
  readonly config?: Partial<SyncConfig>;
  readonly caps?: Caps;
  /** How long our own store may take to list what it has for a filter. */
  readonly scanMs?: () => number;
}

export class World {
  readonly timeline = new Timeline();
  readonly server: ModelServer;
  readonly config: SyncConfig;
  readonly links: Links;
  readonly watch: Watch;
  readonly relays: ReadonlyMap<string, ModelRelay>;
  core: SyncCore;
  readonly #kept = new KeptRows();
  readonly #parts: WorldParts;
  readonly #chance: Chance;
  #trouble: Trouble;
  /** By the core's own clock. */
  #wakeMs = Number.POSITIVE_INFINITY;
  #wallOffsetMs = 0;
  /** A machine that sleeps does not count that time. */
  #sleptMs = 0;
  #state: "running" | "standing" | "down" = "running";
  #runsAgainMs = 0;
  /** Which process this is: what an older one began means nothing to it. */
  #process = 0;
  #inbox: Input[] = [];
  #backlog: Input[] = [];
  steps = 0;

  constructor(parts: WorldParts) {
    this.#parts = parts;
    this.#chance = parts.chance;
    this.#trouble = parts.trouble;
    this.relays = new Map(parts.relays.map((relay) => [relay.key, relay]));
    this.server = new ModelServer({
      tell: (input) => void this.#inbox.push(input),
      later: (delayMs, run) => this.timeline.after(delayMs, () => this.whenRunning(run)),
      nowSeconds: () => Math.floor(this.now().wallMs / 1000),
      git: parts.git,
      ...(parts.caps && { caps: parts.caps }),
    });
    this.config = syncConfig({
      ownServices: [ownHost],
      bootstrap: parts.bootstrap.map((key) => `wss://${key}` as SyncConfig["bootstrap"][number]),
      ...parts.config,
    });
    this.watch = new Watch(this.config);
    this.core = this.#newCore();
    this.links = new Links({
      timeline: this.timeline,
      chance: parts.chance,
      relays: this.relays,
      trouble: () => this.#trouble,
      tell: (input) => this.tell(input),
      tellSoon: (input) => void this.#inbox.push(input),
    });
  }

  #newCore(): SyncCore {
    return new SyncCore({ ...this.config, ...this.#parts.broken?.config });
  }

  now(): Time {
    const worldMs = this.timeline.nowMs;
    return { wallMs: startWallMs + worldMs + this.#wallOffsetMs, monotonicMs: worldMs - this.#sleptMs };
  }

  get isRunning(): boolean {
    return this.#state === "running";
  }

  snapshot(): CoreSnapshot {
    const { broken } = this.#parts;
    const snapshot = this.core.snapshot(this.now());
    return broken?.snapshot ? broken.snapshot(snapshot) : snapshot;
  }

  jumpWall(ms: number): void {
    this.#wallOffsetMs += ms;
    this.watch.jumped();
  }

  calmDown(): void {
    this.#trouble = calmTrouble;
    this.server.troubled = false;
    for (const relay of this.relays.values()) {
      relay.calm = true;
      this.links.setDown(relay.key, false);
    }
  }

  /** What our own process would do now it does when it runs again. */
  whenRunning(run: () => void): void {
    if (this.isRunning) run();
    else this.timeline.at(this.#runsAgainMs, () => this.whenRunning(run));
  }

  /** A client of ours sends an event; nobody takes it while we stand still. */
  submitHere(event: NostrEvent): void {
    if (this.isRunning) this.server.submit(event);
  }

  /** Our process stands still; `asleep`: the machine does, and its clock with it. */
  standStill(forMs: number, asleep: boolean): void {
    if (!this.isRunning) return;
    this.#state = "standing";
    this.#runsAgainMs = this.timeline.nowMs + forMs;
    const givenUp = forMs < 60_000 ? [] : this.links.all.filter(() => this.#chance.once(0.4));
    for (const { key, number } of forMs < 60_000 ? [] : this.links.all) {
      if (givenUp.some((link) => link.number === number) || this.#chance.once(0.5)) continue;
      // The relay hears nothing from us and hangs up.
      this.timeline.after(this.#chance.between(30_000, 60_000), () => {
        if (this.links.of(key)?.number === number) this.links.cut(key);
      });
    }
    this.timeline.at(this.#runsAgainMs, () => {
      this.#drainInbox();
      this.#state = "running";
      if (asleep) this.#sleptMs += forMs;
      this.watch.stoodStill(this.timeline.nowMs, forMs);
      const backlog = this.#backlog;
      this.#backlog = [];
      // Timers come first, and with them the end of links that were silent for too long.
      if (this.#wakeMs <= this.now().monotonicMs) this.#wake();
      for (const link of givenUp) this.links.cut(link.key);
      this.#drainInbox();
      const lost = new Set(givenUp.map(({ number }) => number));
      for (const input of backlog) if (!("link" in input && lost.has(input.link))) this.tell(input);
    });
  }

  /** The server stops in order and starts again: a new core, with what is kept and the store as it is. */
  restart(downMs: number): void {
    if (!this.isRunning) return;
    this.#state = "down";
    this.#runsAgainMs = this.timeline.nowMs + downMs;
    this.#process += 1;
    for (const { key, number } of this.links.all) this.links.drop({ relay: key, link: number });
    this.#inbox = [];
    this.#wakeMs = Number.POSITIVE_INFINITY;
    const inStep = this.core.snapshot(this.now()).relays.filter((shown) => shown.inStep);
    this.watch.restarting(this.timeline.nowMs, new Set(inStep.map(({ relay }) => relay)));
    this.timeline.at(this.#runsAgainMs, () => {
      this.#state = "running";
      this.#inbox = [];
      this.core = this.#newCore();
      this.watch.restarted(downMs);
      for (const input of this.#kept.loaded(this.now())) this.tell(input);
      this.tell({ type: "tick" });
      this.server.replay();
    });
  }

  runUntil(endMs: number): void {
    for (;;) {
      if (this.isRunning) this.#drainInbox();
      // Once it has slept, its clock is a difference: a timer must not fire a moment early by rounding.
      const wakeMs = this.isRunning ? this.#wakeMs + this.#sleptMs + (this.#sleptMs > 0 ? 1 : 0) : never;
      const nextMs = Math.min(this.timeline.nextMs, wakeMs);
      if (nextMs > endMs || this.watch.isStorm) break;
      if (wakeMs < this.timeline.nextMs) {
        this.timeline.nowMs = Math.max(this.timeline.nowMs, wakeMs);
        this.#wake();
      } else this.timeline.runNext();
    }
    this.timeline.nowMs = endMs;
  }

  #wake(): void {
    this.#wakeMs = Number.POSITIVE_INFINITY;
    this.watch.woken(this.timeline.nowMs);
    this.tell({ type: "tick" });
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
    if (this.#state === "standing") this.#backlog.push(input);
    if (!this.isRunning) return;
    const nowMs = this.timeline.nowMs;
    this.watch.heard(input, nowMs);
    const { broken, trace } = this.#parts;
    const given = broken?.input ? broken.input(input) : input;
    if (!given) return;
    this.steps += 1;
    if (trace && given.type !== "tick") trace(`${(nowMs / 1000).toFixed(2)} → ${brief(given)}`);
    const now = this.now();
    for (const command of this.core.step(given, now, this.#chance.next)) {
      const done = broken?.command ? broken.command(command, now) : command;
      if (!done) continue;
      if (trace && done.type !== "wakeAt") trace(`${(nowMs / 1000).toFixed(2)} ←   ${brief(done)}`);
      this.watch.said(done, nowMs);
      this.#execute(done);
    }
    this.watch.stepEnded(nowMs);
  }

  #execute(command: Command): void {
    const { links, server } = this;
    switch (command.type) {
      case "wakeAt":
        this.#wakeMs = command.monotonicMs;
        break;
      case "connect": {
        const process = this.#process;
        links.dial(command, () => process === this.#process);
        break;
      }
      case "disconnect":
        links.drop(command);
        break;
      case "subscribe":
        links.ask(command, (relay) => relay.request(command.subscription, command.filters, this.timeline.nowMs));
        break;
      case "reconcile":
        this.#reconcile(command);
        break;
      case "unsubscribe":
        links.ask(command, (relay) => {
          relay.subscriptions.delete(command.subscription);
          return [];
        });
        break;
      case "authenticate":
        links.authenticate(command);
        break;
      case "pauseReading":
      case "resumeReading":
        links.setReading(command, command.type === "resumeReading");
        break;
      case "offerToIntake":
        this.#offer(command);
        break;
      case "lookUpRoots":
        for (const event of server.rootsOf(command.coordinate)) this.#inbox.push({ type: "accepted", event });
        break;
      case "lookUpParticipants": {
        const { coordinate } = command;
        const participants = mostActive(server.participantsOf(coordinate), this.config.maxParticipants);
        const lists = participants.flatMap(({ pubkey }) => server.latest.get(`10002:${pubkey}:`) ?? []);
        this.#inbox.push({ type: "participants", coordinate, participants, lists });
        break;
      }
      case "lookUpRelated":
        this.#inbox.push({
          type: "related",
          relay: command.relay,
          request: command.request,
          ...server.relatedTo(command.coordinates),
        });
        break;
      default:
        this.#kept.execute(command);
    }
  }

  #offer(command: Extract<Command, { type: "offerToIntake" }>): void {
    const process = this.#process;
    const judge = (): void => {
      if (process !== this.#process) return;
      const { broken } = this.#parts;
      const outcome = this.server.submit(command.event);
      this.watch.judged(command.relay, outcome, this.timeline.nowMs);
      const judged = broken?.judge ? broken.judge(outcome, command.event) : outcome;
      this.#inbox.push({ ...command, type: "verdict", outcome: judged });
    };
    this.timeline.after(this.#chance.between(1, 40), () => this.whenRunning(judge));
  }

  /** First our own store is read, then the relay is asked. */
  #reconcile(command: Reconcile): void {
    const process = this.#process;
    const { relay, link, session } = command;
    const open = (): void => {
      if (process !== this.#process || !this.links.isOpen(command) || !this.watch.isUnderWay(relay, session)) return;
      this.#inbox.push({ type: "reconcileProgress", relay, link, session });
      this.watch.opened(relay, session, this.timeline.nowMs);
      this.links.ask(command, (model) => this.#answerReconcile(model, command));
    };
    const scanMs = this.#parts.scanMs?.() ?? 0;
    if (scanMs === 0) open();
    else this.timeline.after(scanMs, () => this.whenRunning(open));
  }

  #answerReconcile(relay: ModelRelay, command: Reconcile): Answer[] {
    const { server } = this;
    const ours = (matches: Matcher): ReadonlySet<EventId> => {
      const ids = new Set<EventId>();
      for (const event of server.stored.values()) if (matches(event)) ids.add(event.id);
      return ids;
    };
    const { session, filter, maxMissing } = command;
    const held = (id: EventId): boolean => server.isWaiting(id) || server.deleted.has(id);
    const answers = relay.reconcile(session, filter, ours, held, maxMissing, this.timeline.nowMs);
    if (answers.length === 1 && answers[0]!.type === "reconcileProgress") this.#progressForEver(command, 200);
    return answers;
  }

  #progressForEver(command: Reconcile, left: number): void {
    if (left === 0) return;
    this.timeline.after(5000, () => {
      if (!this.links.isOpen(command)) return;
      const { relay, link, session } = command;
      this.tell({ type: "reconcileProgress", relay, link, session });
      this.#progressForEver(command, left - 1);
    });
  }
}
