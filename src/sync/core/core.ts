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
import { hasTargets, log, type Relay, type Step, SyncState } from "./core-state.js";
import { expireQueries, reviveRetries, settle, startWork } from "./history.js";
import { makeFresh } from "./items.js";
import { type Item, repositoryItem, rootItem, stateItem } from "./job.js";
import { liveIsOpen, onLiveAuth, onLiveClosed, onLiveEose, pumpLive, rebuildLive, reopenUnanswered } from "./live.js";
import type { Account, Command, Input, Random, Time } from "./messages.js";
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
import { noteDownload, onRelated, passTurnsOn, rotate } from "./rounds.js";
import { addSides, adopt, type Copy, type CoreSnapshot, copiesOf, keep, resume, snapshotOf } from "./standing.js";
import { applyWindow, followBootstrap, forgetRelay, giveBackPlaces, makeRoom, placeTheRefused } from "./targets.js";
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
    const step: Step = { now, random, out: [] };
    if (state.tidyMs === Number.POSITIVE_INFINITY) {
      state.tidyMs = now.monotonicMs + state.config.syncDisconnectCheckIntervalSecs * secondMs;
      followBootstrap(state, step);
    }
    if (input.type === "rememberedLoaded" || input.type === "naughtyLoaded" || input.type === "relaysLoaded") {
      this.#load(input, step);
      return step.out;
    }
    forgiveLateness(state, this.#toldWakeMs, now.monotonicMs);
    noticeGap(state, step);
    this.#handle(input, step);
    this.#runDue(step);
    this.#pumpTouched(step);
    const wakeMs = Math.min(state.windowEndMs, state.tidyMs, state.nextDueMs);
    // A timer that fired a little early must be set again.
    if (wakeMs !== this.#toldWakeMs || input.type === "tick") {
      this.#toldWakeMs = wakeMs;
      step.out.push({ type: "wakeAt", monotonicMs: wakeMs });
    }
    return step.out;
  }

  /** Gauges, the status page and the simulator's checks. */
  snapshot(now: Time): CoreSnapshot {
    return snapshotOf(this.#state, now);
  }

  /** Where a repository is followed, and when each copy was last compared clean. */
  copiesOf(coordinate: string, now: Time): Copy[] {
    return copiesOf(this.#state, coordinate, now.monotonicMs);
  }

  /** Comes before everything: nobody is dialled because of it. */
  #load(input: Loaded, step: Step): void {
    const { remembered, relays, health } = this.#state;
    if (input.type === "rememberedLoaded") {
      remembered.load(input.entries, step.out);
      return;
    }
    if (input.type === "relaysLoaded") {
      for (const { relay, entry } of input.entries) this.#state.keptRelays.set(relay, entry);
      for (const relay of relays.values()) adopt(this.#state, relay, step);
      return;
    }
    const { wallMs, monotonicMs } = step.now;
    for (const { relay: place, kind, untilWallMs } of input.entries) {
      if (relays.get(place)?.bootstrap) continue;
      health.restoreNaughty({ place, kind, untilMs: monotonicMs + untilWallMs - wallMs }, monotonicMs);
    }
  }

  #handle(input: Exclude<Input, Loaded>, step: Step): void {
    const state = this.#state;
    switch (input.type) {
      case "accepted":
      case "waiting":
      case "unwaiting":
      case "removed":
      case "replayEnded":
      case "listsChanged":
      case "wantIds":
        onOwnServer(state, input, step);
        this.#openWindow(input.type, step);
        break;
      case "stopping":
        for (const relay of state.relays.values()) keep(state, relay, step);
        break;
      case "ignoredRelays":
        ignore(state, input.relays, step);
        break;
      case "reconnect":
        reconnect(state, input.relay, step);
        break;
      case "readingHeld":
        holdReading(state, input.held, step.now.monotonicMs);
        break;
      case "verdict":
        onVerdict(state, input, step);
        break;
      case "related": {
        const relay = state.relays.get(input.relay);
        if (!relay) break;
        onRelated(state, relay, input);
        state.touched.add(relay);
        break;
      }
      case "tick":
        break;
      default: {
        const relay = state.relays.get(input.relay);
        // What an older socket, or one of a forgotten relay, still has to say.
        if (relay?.link === input.link) this.#handleLink(relay, input, step);
      }
    }
  }

  #handleLink(relay: Relay, input: LinkInput, step: Step): void {
    const state = this.#state;
    if (input.type === "connected" || input.type === "connectFailed") {
      if (relay.status !== "connecting") return;
      if (input.type === "connected") {
        relay.limits = input.limits ?? {};
        onConnected(state, relay, step);
      } else onConnectFailed(state, relay, input.kind, step);
      state.touched.add(relay);
      return;
    }
    if (relay.status !== "connected") return;
    if (input.type === "event") {
      relay.lastEventWallMs = step.now.wallMs;
      this.#onEvent(relay, input, step);
      return;
    }
    state.touched.add(relay);
    switch (input.type) {
      case "closed":
        onLost(state, relay, "lost", earlier(step.now, input.silentMs ?? 0), step);
        break;
      case "nip11":
        relay.limits = input.limits;
        rebuildLive(state, relay, step);
        break;
      case "eose": {
        const found = relay.bySub.get(input.subscription);
        if (found) settle(state, relay, found, onQueryEose(state, relay, found, step), step);
        else onLiveEose(relay, input.subscription, step);
        break;
      }
      case "subscriptionClosed": {
        const meaning = meaningOf(input.message);
        const found = relay.bySub.get(input.subscription);
        if (found) settle(state, relay, found, onQueryClosed(state, relay, found, meaning, step), step);
        else onLiveClosed(state, relay, input.subscription, meaning, step);
        if (meaning === "rate-limited") this.#slowDown(relay, step);
        break;
      }
      case "notice":
        this.#onNotice(relay, input.message, step);
        break;
      case "authChallenge":
        relay.authPending = true;
        step.out.push({ type: "authenticate", relay: relay.key, link: relay.link });
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
        if (found) onReconcileProgress(found.query, input.ours ?? false, step);
        break;
      }
      case "reconciled": {
        const found = relay.bySub.get(input.session);
        if (!found) break;
        relay.peerMissing += input.peerMissing;
        found.job.sides = addSides(found.job.sides, input.sides);
        for (const id of input.waiting ?? []) step.out.push({ type: "servedThere", relay: relay.key, id });
        settle(state, relay, found, onReconciled(state, relay, found, input.missing, step), step);
        break;
      }
      case "reconcileFailed": {
        const found = relay.bySub.get(input.session);
        if (found) settle(state, relay, found, onReconcileFailed(state, relay, found, input.kind, false, step), step);
        if (input.kind === "rate-limited") this.#slowDown(relay, step);
        break;
      }
    }
  }

  #onEvent(relay: Relay, input: Extract<Input, { type: "event" }>, step: Step): void {
    const state = this.#state;
    const found = relay.bySub.get(input.subscription);
    const asked = isAskedFor(state, relay, input.event, found?.job);
    if (!found) {
      if (asked) onArrival(state, relay, input.subscription, undefined, input.event, step);
      else drop(relay, "not-asked", step);
      return;
    }
    noteDownload(state, input.event.raw.length, step.now.monotonicMs);
    const meaning = onQueryEvent(state, found.query, input.event, asked, step);
    if (meaning === "inside") onArrival(state, relay, input.subscription, found.job, input.event, step);
    else drop(relay, "not-asked", step);
    if (typeof meaning === "string") return;
    settle(state, relay, found, meaning, step);
    state.touched.add(relay);
  }

  #slowDown(relay: Relay, step: Step): void {
    const { health, config } = this.#state;
    health.of(relay.key).askAgainMs = step.now.monotonicMs + config.syncRateLimitPauseSecs * secondMs;
    excuseSilence(relay);
  }

  /** A NOTICE does not say what it is about: at most a session that waits for its first answer. */
  #onNotice(relay: Relay, message: string, step: Step): void {
    const state = this.#state;
    const meaning = meaningOf(message);
    if (meaning === "rate-limited") {
      this.#slowDown(relay, step);
      reopenUnanswered(state, relay, step);
      resendUnanswered(relay, step);
      return;
    }
    if (meaning === "other") return;
    const kind = meaningOfNegErr(message);
    for (const asked of [...relay.bySub.values()]) {
      const { query } = asked;
      if (query.state !== "reconciling" || query.readsOwn) continue;
      if (query.answered && meaning !== "no-negentropy") continue;
      settle(state, relay, asked, onReconcileFailed(state, relay, asked, kind, false, step), step);
    }
  }

  /** The first input opens the window; later ones join and do not move its end, except for one that is in a hurry. */
  #openWindow(input: Input["type"], step: Step): void {
    const state = this.#state;
    const { syncBatchWindowMs: windowMs, waitingWindowMs } = state.config;
    const isOpen = state.windowEndMs !== Number.POSITIVE_INFINITY;
    const isUrgent = input === "waiting" && state.wanted.replayEnded;
    if (!state.wanted.changed || (isOpen && !isUrgent)) return;
    const endMs = step.now.monotonicMs + (isUrgent ? Math.min(windowMs, waitingWindowMs) : windowMs);
    state.windowEndMs = Math.min(state.windowEndMs, endMs);
  }

  #runDue(step: Step): void {
    const state = this.#state;
    const nowMs = step.now.monotonicMs;
    if (state.windowEndMs <= nowMs) {
      state.windowEndMs = Number.POSITIVE_INFINITY;
      applyWindow(state, step);
      state.started = true;
    }
    const isTold = state.wanted.replayEnded && !state.wanted.changed;
    if (isTold && !state.resumed && state.windowEndMs === Number.POSITIVE_INFINITY) {
      giveBackPlaces(state, step);
      resume(state, step);
    }
    if (state.tidyMs <= nowMs) {
      state.tidyMs = nowMs + state.config.syncDisconnectCheckIntervalSecs * secondMs;
      everyMinute(state, step);
    }
    if (state.nextDueMs > nowMs) return;
    state.nextDueMs = Number.POSITIVE_INFINITY;
    for (const relay of state.relays.values()) {
      if (relay.dueMs <= nowMs) state.touched.add(relay);
      else state.nextDueMs = Math.min(state.nextDueMs, relay.dueMs);
    }
  }

  #pumpTouched(step: Step): void {
    const { touched } = this.#state;
    // A pump may touch others (a dial that ended makes room for the next).
    for (const relay of touched) {
      touched.delete(relay);
      if (!relay.forgotten) this.#pump(relay, step);
    }
  }

  /** Brings one relay forward as far as it goes, and notes when to look again. */
  #pump(relay: Relay, step: Step): void {
    const state = this.#state;
    const nowMs = step.now.monotonicMs;
    if (relay.status === "connecting" && nowMs >= relay.dialedMs + state.config.syncDialTimeoutSecs * secondMs * 1.5) {
      // The shell should have said so itself.
      step.out.push({ type: "disconnect", relay: relay.key, link: relay.link });
      onConnectFailed(state, relay, "timeout", step);
    }
    tryDial(state, relay, step);
    listen(state, relay, nowMs);
    if (relay.status === "connected") {
      expireQueries(state, relay, step);
      reviveRetries(state, relay, nowMs);
      syncAgain(state, relay, step);
      rotate(state, relay, step);
      if (state.health.of(relay.key).askAgainMs <= nowMs) {
        pumpLive(state, relay, step);
        if (liveIsOpen(relay, nowMs)) startWork(state, relay, step);
      }
      noteProgress(state, relay, step);
    }
    relay.dueMs = dueMsOf(state, relay, step.now);
    state.nextDueMs = Math.min(state.nextDueMs, relay.dueMs);
  }
}

/** Relays without targets go, memory that is over goes, a new day gives new budgets. */
function everyMinute(state: SyncState, step: Step): void {
  let forgot = false;
  for (const relay of [...state.relays.values()]) {
    if (hasTargets(relay)) continue;
    disconnect(state, relay, step);
    step.out.push({ type: "dropKept", relay: relay.key });
    log(step, "info", "relay-dropped", relay);
    forgetRelay(state, relay);
    forgot = true;
  }
  if (forgot) placeTheRefused(state, step);
  makeRoom(state, step);
  passTurnsOn(state, step.now.monotonicMs);
  state.tidies += 1;
  const { keepEveryTidies } = state.config;
  for (const relay of state.relays.values()) {
    if ((relay.ix + state.tidies) % keepEveryTidies === 0) keep(state, relay, step);
  }
  state.remembered.tidy(step.now, step.out);
  compareAfterLists(state, step);
  state.health.tidy((key) => state.relays.has(key), step.now.monotonicMs);
  for (const account of state.budgets.turnDay(step.now.monotonicMs)) fetchAgain(state, account);
}

/** The day's budget cut its history short. */
function fetchAgain(state: SyncState, account: Account): void {
  const items = ({ ix, roots }: Repo): Item[] =>
    "identifier" in account ? [stateItem(ix)] : [repositoryItem(ix), ...[...roots].map(rootItem)];
  for (const repo of state.wanted.reposOf(account)) askAgain(state, repo, items(repo));
}

function askAgain(state: SyncState, repo: Repo, items: readonly Item[]): void {
  for (const ix of repo.placed) {
    const relay = state.byIx[ix];
    if (!relay) continue;
    for (const item of items) makeFresh(state, relay, item);
    state.touched.add(relay);
  }
}
