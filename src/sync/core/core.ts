// The sync core: one input and the time in, commands out (spec "The core is a state machine without I/O"). Dispatches
// to the files of each idea and keeps one promise of its own: after every input, each relay it touched is brought
// forward as far as it goes (`pump`) and knows when it wants to be looked at again. A wake-up that gets lost costs
// nothing but time, because every input looks at what is due first.

import { drop, forgiveLateness, holdReading, isAskedFor, listen, onArrival } from "./arrivals.js";
import { meaningOf, meaningOfNegErr } from "./closed-reasons.js";
import { type SyncConfig, secondMs } from "./config.js";
import {
  disconnect,
  dueMsOf,
  earlier,
  noteProgress,
  noticeGap,
  onConnected,
  onConnectFailed,
  onLost,
  syncAgain,
  tryDial,
} from "./connection.js";
import { hasTargets, log, type Relay, SyncState } from "./core-state.js";
import { expireQueries, reviveRetries, settle, startWork } from "./history.js";
import { makeFresh } from "./items.js";
import { type Item, outboxItem, repositoryItem, rootItem, stateItem } from "./job.js";
import { liveIsOpen, onLiveAuth, onLiveClosed, onLiveEose, pumpLive, rebuildLive, reopenUnanswered } from "./live.js";
import type { Account, Command, Input, Random, Time } from "./messages.js";
import { arrangeOutboxes, onParticipants, onWindow, tidyOutboxes } from "./outbox.js";
import { type OutboxStanding, outboxStanding } from "./outbox-standing.js";
import { compareAfterLists, ignore, onOwnServer, onVerdict, reconnect } from "./own-server.js";
import { onQueryEose, onQueryEvent } from "./query.js";
import {
  excuseSilence,
  onQueryClosed,
  onReconciled,
  onReconcileFailed,
  onReconcileProgress,
  resendUnanswered,
} from "./query-answers.js";
import { forgetRelay } from "./relay-table.js";
import { noteDownload, onRelated, passTurnsOn, rotate } from "./rounds.js";
import { addSides, adopt, type Copy, type CoreSnapshot, copiesOf, keep, resume, snapshotOf } from "./standing.js";
import { applyWindow, followBootstrap, giveBackPlaces, makeRoom, placeTheRefused } from "./targets.js";
import type { Repo } from "./wanted.js";

type Loaded = Extract<Input, { type: "rememberedLoaded" | "naughtyLoaded" | "relaysLoaded" }>;
type LinkInput = Extract<Input, { link: number }>;

export class SyncCore {
  readonly #state: SyncState;
  #toldWakeMs = Number.POSITIVE_INFINITY;

  constructor(config: SyncConfig) {
    this.#state = new SyncState(config);
  }

  step(input: Input, now: Time, random: Random): Command[] {
    const state = this.#state;
    Object.assign(state, { now, random, out: [] });
    if (state.tidyMs === Number.POSITIVE_INFINITY) {
      state.tidyMs = now.monotonicMs + state.config.syncDisconnectCheckIntervalSecs * secondMs;
      followBootstrap(state);
    }
    if (input.type === "rememberedLoaded" || input.type === "naughtyLoaded" || input.type === "relaysLoaded") {
      this.#load(input);
      return state.out;
    }
    forgiveLateness(state, this.#toldWakeMs, now.monotonicMs);
    noticeGap(state);
    this.#handle(input);
    this.#runDue();
    this.#pumpTouched();
    const wakeMs = Math.min(state.windowEndMs, state.outbox.dueMs, state.tidyMs, state.nextDueMs);
    // A timer that fired a little early must be set again.
    if (wakeMs !== this.#toldWakeMs || input.type === "tick") {
      this.#toldWakeMs = wakeMs;
      state.out.push({ type: "wakeAt", monotonicMs: wakeMs });
    }
    return state.out;
  }

  /** Gauges, the status page and the simulator's checks. */
  snapshot(now: Time): CoreSnapshot {
    return snapshotOf(this.#state, now);
  }

  /** Where a repository is followed, and when each copy was last compared clean. */
  copiesOf(coordinate: string, now: Time): Copy[] {
    return copiesOf(this.#state, coordinate, now.monotonicMs);
  }

  /** What is gathered for a repository at its participants' own relays; undefined where nothing is. */
  outboxOf(coordinate: string): OutboxStanding | undefined {
    const repo = this.#state.wanted.repos.get(coordinate);
    return repo && outboxStanding(this.#state, repo);
  }

  /** Comes before everything: nobody is dialled because of it. */
  #load(input: Loaded): void {
    const { remembered, relays, health, out, now } = this.#state;
    if (input.type === "rememberedLoaded") {
      remembered.load(input.entries, out);
      return;
    }
    if (input.type === "relaysLoaded") {
      for (const { relay, entry } of input.entries) this.#state.keptRelays.set(relay, entry);
      for (const relay of relays.values()) adopt(this.#state, relay);
      return;
    }
    const { wallMs, monotonicMs } = now;
    for (const { relay: place, kind, untilWallMs } of input.entries) {
      if (relays.get(place)?.bootstrap) continue;
      health.restoreNaughty({ place, kind, untilMs: monotonicMs + untilWallMs - wallMs }, monotonicMs);
    }
  }

  #handle(input: Exclude<Input, Loaded>): void {
    const state = this.#state;
    switch (input.type) {
      case "accepted":
      case "waiting":
      case "unwaiting":
      case "removed":
      case "replayEnded":
      case "listsChanged":
      case "wantIds":
        onOwnServer(state, input);
        this.#openWindow(input.type);
        break;
      case "stopping":
        for (const relay of state.relays.values()) keep(state, relay);
        break;
      case "ignoredRelays":
        ignore(state, input.relays);
        break;
      case "reconnect":
        reconnect(state, input.relay);
        break;
      case "readingHeld":
        holdReading(state, input.held, state.now.monotonicMs);
        break;
      case "verdict":
        onVerdict(state, input);
        break;
      case "related": {
        const relay = state.relays.get(input.relay);
        if (!relay) break;
        onRelated(state, relay, input);
        state.touched.add(relay);
        break;
      }
      case "participants":
        onParticipants(state, input);
        break;
      case "tick":
        break;
      default: {
        const relay = state.relays.get(input.relay);
        // What an older socket, or one of a forgotten relay, still has to say.
        if (relay?.link === input.link) this.#handleLink(relay, input);
      }
    }
  }

  #handleLink(relay: Relay, input: LinkInput): void {
    const state = this.#state;
    if (input.type === "connected" || input.type === "connectFailed") {
      if (relay.status !== "connecting") return;
      if (input.type === "connected") {
        relay.limits = input.limits ?? {};
        onConnected(state, relay);
      } else onConnectFailed(state, relay, input.kind);
      state.touched.add(relay);
      return;
    }
    if (relay.status !== "connected") return;
    if (input.type === "event") {
      relay.lastEventWallMs = state.now.wallMs;
      this.#onEvent(relay, input);
      return;
    }
    state.touched.add(relay);
    switch (input.type) {
      case "closed":
        onLost(state, relay, "lost", earlier(state.now, input.silentMs ?? 0));
        break;
      case "nip11":
        relay.limits = input.limits;
        rebuildLive(state, relay);
        break;
      case "eose": {
        const found = relay.bySub.get(input.subscription);
        if (found) settle(state, relay, found, onQueryEose(state, relay, found));
        else onLiveEose(state, relay, input.subscription);
        break;
      }
      case "subscriptionClosed": {
        const meaning = meaningOf(input.message);
        const found = relay.bySub.get(input.subscription);
        if (found) settle(state, relay, found, onQueryClosed(state, relay, found, meaning));
        else onLiveClosed(state, relay, input.subscription, meaning);
        if (meaning === "rate-limited") this.#slowDown(relay);
        break;
      }
      case "notice":
        this.#onNotice(relay, input.message);
        break;
      case "authChallenge":
        relay.authPending = true;
        state.out.push({ type: "authenticate", relay: relay.key, link: relay.link });
        break;
      case "authenticated":
        relay.authPending = false;
        onLiveAuth(relay);
        for (const job of relay.jobs) {
          for (const query of job.queries) if (query.state === "auth") query.state = "queued";
        }
        break;
      case "reconcileProgress": {
        const found = relay.bySub.get(input.session);
        if (found) onReconcileProgress(state, found.query, input.ours ?? false);
        break;
      }
      case "reconciled": {
        const found = relay.bySub.get(input.session);
        if (!found) break;
        relay.peerMissing += input.peerMissing;
        found.job.sides = addSides(found.job.sides, input.sides);
        for (const id of input.waiting ?? []) state.out.push({ type: "servedThere", relay: relay.key, id });
        settle(state, relay, found, onReconciled(state, relay, found, input.missing));
        break;
      }
      case "reconcileFailed": {
        const found = relay.bySub.get(input.session);
        if (found) settle(state, relay, found, onReconcileFailed(state, relay, found, input.kind, false));
        if (input.kind === "rate-limited") this.#slowDown(relay);
        break;
      }
    }
  }

  #onEvent(relay: Relay, input: Extract<Input, { type: "event" }>): void {
    const state = this.#state;
    const found = relay.bySub.get(input.subscription);
    const asked = isAskedFor(state, relay, input.event, found?.job);
    if (!found) {
      if (asked) onArrival(state, relay, input.subscription, undefined, input.event);
      else drop(state, relay, "not-asked");
      return;
    }
    noteDownload(state, input.event.raw.length, state.now.monotonicMs);
    const meaning = onQueryEvent(state, found.query, input.event, asked);
    if (meaning === "inside") onArrival(state, relay, input.subscription, found.job, input.event);
    else drop(state, relay, "not-asked");
    if (typeof meaning === "string") return;
    settle(state, relay, found, meaning);
    state.touched.add(relay);
  }

  #slowDown(relay: Relay): void {
    const { health, config, now } = this.#state;
    health.of(relay.key).askAgainMs = now.monotonicMs + config.syncRateLimitPauseSecs * secondMs;
    excuseSilence(relay);
  }

  /** A NOTICE does not say what it is about: at most a session that waits for its first answer. */
  #onNotice(relay: Relay, message: string): void {
    const state = this.#state;
    const meaning = meaningOf(message);
    if (meaning === "rate-limited") {
      this.#slowDown(relay);
      reopenUnanswered(state, relay);
      resendUnanswered(state, relay);
      return;
    }
    if (meaning === "other") return;
    const kind = meaningOfNegErr(message);
    for (const asked of [...relay.bySub.values()]) {
      const { query } = asked;
      if (query.state !== "reconciling" || query.readsOwn) continue;
      if (query.answered && meaning !== "no-negentropy") continue;
      settle(state, relay, asked, onReconcileFailed(state, relay, asked, kind, false));
    }
  }

  /** The first input opens the window; later ones join and do not move its end, except for one that is in a hurry. */
  #openWindow(input: Input["type"]): void {
    const state = this.#state;
    const { syncBatchWindowMs: windowMs, waitingWindowMs } = state.config;
    const isOpen = state.windowEndMs !== Number.POSITIVE_INFINITY;
    const isUrgent = input === "waiting" && state.wanted.replayEnded;
    if (!state.wanted.changed || (isOpen && !isUrgent)) return;
    const endMs = state.now.monotonicMs + (isUrgent ? Math.min(windowMs, waitingWindowMs) : windowMs);
    state.windowEndMs = Math.min(state.windowEndMs, endMs);
  }

  #runDue(): void {
    const state = this.#state;
    const nowMs = state.now.monotonicMs;
    if (state.windowEndMs <= nowMs) {
      state.windowEndMs = Number.POSITIVE_INFINITY;
      onWindow(state, applyWindow(state));
      state.started = true;
    }
    if (state.outbox.dueMs <= nowMs) arrangeOutboxes(state);
    const isTold = state.wanted.replayEnded && !state.wanted.changed;
    if (isTold && !state.resumed && state.windowEndMs === Number.POSITIVE_INFINITY) {
      giveBackPlaces(state);
      resume(state);
    }
    if (state.tidyMs <= nowMs) {
      state.tidyMs = nowMs + state.config.syncDisconnectCheckIntervalSecs * secondMs;
      everyMinute(state);
    }
    if (state.nextDueMs > nowMs) return;
    state.nextDueMs = Number.POSITIVE_INFINITY;
    for (const relay of state.relays.values()) {
      if (relay.dueMs <= nowMs) state.touched.add(relay);
      else state.nextDueMs = Math.min(state.nextDueMs, relay.dueMs);
    }
  }

  #pumpTouched(): void {
    const { touched } = this.#state;
    // A pump may touch others (a dial that ended makes room for the next).
    for (const relay of touched) {
      touched.delete(relay);
      if (!relay.forgotten) this.#pump(relay);
    }
  }

  /** Brings one relay forward as far as it goes, and notes when to look again. */
  #pump(relay: Relay): void {
    const state = this.#state;
    const nowMs = state.now.monotonicMs;
    if (relay.status === "connecting" && nowMs >= relay.dialedMs + state.config.syncDialTimeoutSecs * secondMs * 1.5) {
      // The shell should have said so itself.
      state.out.push({ type: "disconnect", relay: relay.key, link: relay.link });
      onConnectFailed(state, relay, "timeout");
    }
    tryDial(state, relay);
    listen(state, relay, nowMs);
    if (relay.status === "connected") {
      expireQueries(state, relay);
      reviveRetries(state, relay, nowMs);
      syncAgain(state, relay);
      rotate(state, relay);
      if (state.health.of(relay.key).askAgainMs <= nowMs) {
        pumpLive(state, relay);
        if (liveIsOpen(relay, nowMs)) startWork(state, relay);
      }
      noteProgress(state, relay);
    }
    relay.dueMs = dueMsOf(state, relay, state.now);
    state.nextDueMs = Math.min(state.nextDueMs, relay.dueMs);
  }
}

/** Relays without targets go, memory that is over goes, a new day gives new budgets. */
function everyMinute(state: SyncState): void {
  tidyOutboxes(state);
  let forgot = false;
  for (const relay of [...state.relays.values()]) {
    if (hasTargets(relay)) continue;
    disconnect(state, relay);
    state.out.push({ type: "dropKept", relay: relay.key });
    log(state, "info", "relay-dropped", relay);
    forgetRelay(state, relay);
    forgot = true;
  }
  if (forgot) placeTheRefused(state);
  makeRoom(state);
  passTurnsOn(state, state.now.monotonicMs);
  state.tidies += 1;
  const { keepEveryTidies } = state.config;
  for (const relay of state.relays.values()) {
    if ((relay.ix + state.tidies) % keepEveryTidies === 0) keep(state, relay);
  }
  state.remembered.tidy(state.now, state.out);
  compareAfterLists(state);
  state.health.tidy((key) => state.relays.has(key), state.now.monotonicMs);
  for (const account of state.budgets.turnDay(state.now.monotonicMs)) fetchAgain(state, account);
}

/** The day's budget cut its history short. */
function fetchAgain(state: SyncState, account: Account): void {
  const items = ({ ix, roots }: Repo): Item[] =>
    "identifier" in account ? [stateItem(ix)] : [repositoryItem(ix), outboxItem(ix), ...[...roots].map(rootItem)];
  for (const repo of state.wanted.reposOf(account)) askAgain(state, repo, items(repo));
}

function askAgain(state: SyncState, repo: Repo, items: readonly Item[]): void {
  for (const ix of [...repo.placed, ...repo.outbox]) {
    const relay = state.byIx[ix];
    if (!relay) continue;
    for (const item of items) makeFresh(state, relay, item);
    state.touched.add(relay);
  }
}
