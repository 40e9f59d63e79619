// The one door for events. Clients, peers, imports and the server's own events all enter here:
//   1. known already?  2. signature  3. verdict and write, in one transaction  4. what follows from it in git
//   5. the answer, after it is durable
// There is no second path into the store.

import {
  type DailyBytes,
  expired,
  refusedForDisk,
  refusedForTime,
  refusedFromClient,
} from "../admission/at-the-door.js";
import {
  type AdmissionPolicy,
  applyVerdict,
  decisionRecord,
  type KnownVerdict,
  needsNoGit,
  type Source,
  type Verdict,
} from "../admission/verdict.js";
import { type Clock, unixSeconds } from "../base/clock.js";
import type { DecisionLog } from "../catalogue/decisions.js";
import type { Config } from "../config/config.js";
import type { Logger } from "../config/logging.js";
import type { EventId, NostrEvent, VerifiedEvent } from "../nostr/event.js";
import { type Refusal, type RefusalCode, refuse } from "../nostr/refusals.js";
import { type Verifier, VerifierBusyError, VerifierClosedError } from "../nostr/verify/pool.js";
import type { Disks } from "../store/disk-space.js";
import {
  SharedLogError,
  type Store,
  StoreBusyError,
  StoreClosedError,
  StoreFullError,
  type Transaction,
} from "../store/port.js";
import type { CarryOut } from "./carry-out.js";

export type IntakeAnswer =
  | {
      readonly ok: true;
      /** `held`: it waits from now on; `waiting`: it waited already. */
      readonly outcome: "stored" | "held" | KnownVerdict["because"];
      /** "", "duplicate: …" or "purgatory: …", for the client. */
      readonly message: string;
    }
  | Refusal;

export interface Intake {
  submit(event: NostrEvent, source: Source): Promise<IntakeAnswer>;
  /** Resolves when nothing is under way: whoever sent an event may have left before its answer, git has not. */
  idle(): Promise<void>;
}

export interface IntakeObserver {
  received(event: NostrEvent, source: Source): void;
  decided(event: NostrEvent, source: Source, answer: IntakeAnswer): void;
}

interface IntakeParts {
  readonly store: Store;
  readonly verifier: Verifier;
  readonly policy: AdmissionPolicy;
  /** Absent where there is no git host (an import into a store at rest). */
  readonly carryOut?: Pick<CarryOut, "follow">;
  /** Git could not follow; the event is kept, and the next start tries again. */
  readonly gitFailed?: (event: NostrEvent, error: unknown) => void;
  /** Where each verdict is noted for `why`. */
  readonly decisions?: Pick<DecisionLog, "note">;
  readonly clock: Clock;
  readonly observer: IntakeObserver;
  readonly live: { readonly current: Pick<Config, "maxFutureSecs" | "diskEventsMaxPercent"> };
  /** What clients may have us keep in a day; absent where there are none. */
  readonly dailyBytes?: Pick<DailyBytes, "take">;
  /** Absent where nobody watches how full they are. */
  readonly disks?: Pick<Disks, "shareUsed">;
}

const duplicate: IntakeAnswer = { ok: true, outcome: "duplicate", message: "duplicate: this event is stored already" };
const passedOnBefore: IntakeAnswer = { ok: true, outcome: "duplicate", message: "duplicate: this event was passed on" };
const maxPassedOn = 10_000;
const superseded: IntakeAnswer = { ok: true, outcome: "superseded", message: "duplicate: a newer version is stored" };

export function createIntake(parts: IntakeParts): Intake {
  const { store, verifier, policy, clock, observer, live, disks } = parts;
  /** Ephemeral events that were passed on lately: id → signature, the oldest first. */
  const passedOn = new Map<EventId, string>();
  store.onForeignCommit(({ passing }) => {
    for (const event of passing) notePassedOn(passedOn, event);
    return undefined;
  });
  let underWay = 0;
  const isIdle: (() => void)[] = [];

  async function judge(event: NostrEvent, source: Source): Promise<IntakeAnswer> {
    const nowSeconds = unixSeconds(clock);
    const early =
      (source.type === "client" && refusedFromClient(event, source)) ||
      refusedForTime(event, nowSeconds, live.current.maxFutureSecs);
    if (early) return early;
    // A duplicate costs a look-up, a signature fifty times that. Only the very copy that was verified is known: one with
    // another signature is judged like any other (threats row 21).
    const held = await store.event(event.id);
    if (held?.event.sig === event.sig) return duplicate;
    // Two servers that follow each other would pass an ephemeral event to and fro for ever.
    if (passedOn.get(event.id) === event.sig) return passedOnBefore;
    const used = disks && { git: disks.shareUsed("git"), relay: disks.shareUsed("relay") };
    const full = used && refusedForDisk(event, used, live.current.diskEventsMaxPercent);
    if (full) return full;
    const verified = await verifier.verify(event);
    if (!verified) return refuse("bad-signature", "the signature does not belong to this pubkey and id");
    if (held) return duplicate;
    const bytes = source.type === "client" ? parts.dailyBytes?.take(verified, source.ip) : undefined;
    if (bytes && !bytes.ok) return bytes;
    let isKept = false;
    try {
      const answer = await decide(verified, source, nowSeconds);
      isKept = answer.ok && (answer.outcome === "stored" || answer.outcome === "held");
      return answer;
    } finally {
      if (!isKept) bytes?.giveBack();
    }
  }

  async function decide(verified: VerifiedEvent, source: Source, nowSeconds: number): Promise<IntakeAnswer> {
    const passing = new PassingOnce(passedOn, verified);
    const { verdict, answer } = await store
      .transact((tx) => decideAndWrite(tx, verified, source, passing))
      .catch((error: unknown) => {
        passing.failed();
        throw error;
      });
    parts.decisions?.note(decisionRecord(verified, source, verdict, nowSeconds));
    if (!verdict.ok || !answer.ok) return answer;
    const wasWritten = answer.outcome === "stored" || (verdict.action !== "store" && verdict.action !== "leave");
    if (!wasWritten || !parts.carryOut || needsNoGit(verified, verdict)) return answer;
    try {
      const isServed = await parts.carryOut.follow(verified, verdict);
      return isServed ? { ok: true, outcome: "stored", message: "" } : answer;
    } catch (error) {
      parts.gitFailed?.(verified, error);
      return refuse("internal", "it was kept, but git could not follow: try again later");
    }
  }

  async function decideAndWrite(
    tx: Transaction,
    event: VerifiedEvent,
    source: Source,
    passing: PassingOnce,
  ): Promise<{ readonly verdict: Verdict; readonly answer: IntakeAnswer }> {
    const nowSeconds = unixSeconds(clock);
    const verdict = await policy(event, { reader: tx, source, nowSeconds });
    const isOver = verdict.ok && verdict.action === "relay" && !passing.isMine();
    const put = isOver ? undefined : await applyVerdict(tx, event, verdict, nowSeconds);
    if (!verdict.ok) return { verdict, answer: verdict };
    const message = verdict.message ?? "";
    if (!put) return { verdict, answer: { ok: true, outcome: outcomeOf(verdict), message } };
    if (put.stored) return { verdict, answer: { ok: true, outcome: "stored", message } };
    switch (put.reason) {
      case "duplicate":
        return { verdict, answer: duplicate };
      case "older":
        return { verdict, answer: superseded };
      case "deleted":
        return { verdict, answer: refuse("deleted", "its author has asked for this event to be deleted") };
      case "expired":
        return { verdict, answer: expired };
    }
  }

  async function submit(event: NostrEvent, source: Source): Promise<IntakeAnswer> {
    observer.received(event, source);
    let answer: IntakeAnswer;
    underWay += 1;
    try {
      answer = await judge(event, source);
    } catch (error) {
      answer = failureOf(error);
    } finally {
      underWay -= 1;
      if (underWay === 0) for (const resolve of isIdle.splice(0)) resolve();
    }
    observer.decided(event, source, answer);
    return answer;
  }

  return {
    submit,
    idle: () =>
      new Promise((resolve) => {
        if (underWay === 0) resolve();
        else isIdle.push(resolve);
      }),
  };
}

/** One submission of an ephemeral event, of which the first copy is passed on. Its work may be run again. */
class PassingOnce {
  #isMine = false;

  constructor(
    private readonly passedOn: Map<EventId, string>,
    private readonly event: VerifiedEvent,
  ) {}

  isMine(): boolean {
    if (!this.#isMine && this.passedOn.has(this.event.id)) return false;
    this.#isMine = true;
    notePassedOn(this.passedOn, this.event);
    return true;
  }

  failed(): void {
    if (this.#isMine) this.passedOn.delete(this.event.id);
  }
}

function notePassedOn(passedOn: Map<EventId, string>, { id, sig }: VerifiedEvent): void {
  passedOn.set(id, sig);
  const [oldest] = passedOn.size > maxPassedOn ? passedOn.keys() : [];
  if (oldest !== undefined) passedOn.delete(oldest);
}

/** Of what was admitted and not put into the store. */
function outcomeOf(verdict: Verdict & { readonly ok: true }): "held" | KnownVerdict["because"] {
  if (verdict.action === "hold") return "held";
  return verdict.action === "known" ? verdict.because : "duplicate";
}

const diskFull = refuse("disk-full", "the server's disk is full: try again later");

function failureOf(error: unknown): Refusal {
  if (error instanceof StoreFullError) return diskFull;
  if (error instanceof SharedLogError) return refuse("store-failed", error.message);
  if (error instanceof StoreBusyError || error instanceof VerifierBusyError) {
    return refuse("busy", "the server is busy: try again in a few seconds");
  }
  if (error instanceof StoreClosedError || error instanceof VerifierClosedError) {
    return refuse("shutting-down", "the server is shutting down: try again later");
  }
  throw error;
}

const unreadable = new Set<RefusalCode>(["bad-announcement", "bad-state"]);

/**
 * A line for scripts about each announcement or state that cannot be read (purgatory.md, "Metrics and logs"). Fields are
 * our own words and hexadecimal ids: nothing a stranger chose is in it.
 */
export const notingParseFailures = (observer: IntakeObserver, logger: Pick<Logger, "info">): IntakeObserver => ({
  ...observer,
  decided(event, source, answer) {
    observer.decided(event, source, answer);
    if (answer.ok || !unreadable.has(answer.code)) return;
    const { id, kind } = event;
    const text = `[PARSE_FAIL] id=${id} kind=${kind} source=${source.type} reason=${answer.code}`;
    logger.info({ id, kind }, text);
  },
});
