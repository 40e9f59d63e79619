// One session of the relay without a socket: frames go in as bytes, what it says is counted and the last of it kept.

import assert from "node:assert/strict";
import { Registry } from "prom-client";
import { membersOf } from "../../src/access/testing/members-of.js";
import { systemClock } from "../../src/base/clock.js";
import { defaultConfig } from "../../src/config/testing/default-config.js";
import { createIntake } from "../../src/intake/intake.js";
import { RecordBudget } from "../../src/relay/connection.js";
import type { RelayLimits } from "../../src/relay/limits.js";
import { Live } from "../../src/relay/live.js";
import type { RelayVerb } from "../../src/relay/messages.js";
import { createRelayMetrics } from "../../src/relay/metrics.js";
import { FlushTurn, Outbox } from "../../src/relay/outbox.js";
import { Session } from "../../src/relay/session.js";
import { relayBudgets, Visitors } from "../../src/relay/visitors.js";
import { createMemoryStore } from "../../src/store/memory/memory-store.js";
import type { Store } from "../../src/store/port.js";
import { acceptAll } from "./relay-server.js";
import { borrowVerifier } from "./shared-verifier.js";

export interface TestSession {
  readonly session: Session;
  readonly outbox: Outbox;
  readonly store: Store;
  readonly live: Live;
  readonly records: RecordBudget;
  readonly faults: unknown[];
  /** Why the session wanted its connection closed. */
  readonly givenUp: readonly string[];
  readonly sent: ReadonlyMap<RelayVerb, number>;
  /** The text of the newest batch of frames, headers included. */
  last(): string;
  close(): Promise<void>;
}

export async function startSession(
  limits: RelayLimits,
  onText: (text: string) => void = () => undefined,
): Promise<TestSession> {
  const store = createMemoryStore();
  const { verifier, giveBack } = await borrowVerifier();
  const faults: unknown[] = [];
  const givenUp: string[] = [];
  const sent = new Map<RelayVerb, number>();
  const metrics = createRelayMetrics(new Registry(), () => 10);
  const intake = createIntake({
    store,
    verifier,
    policy: acceptAll,
    clock: systemClock,
    observer: metrics.intakeObserver,
    live: { current: { ...defaultConfig(), maxFutureSecs: limits.maxFutureSecs } },
  });
  const budgets = relayBudgets({ limits });
  let last = "";
  const outbox = new Outbox({
    write(pieces, done) {
      last = Buffer.concat(pieces).toString("latin1");
      onText(last);
      setImmediate(done);
    },
    held: budgets.outgoing.open("192.0.2.1"),
    turn: new FlushTurn(systemClock),
    clock: systemClock,
    maxHeldBytes: () => limits.sendMaxBytes,
    onOverflow: () => assert.fail("the outbox overflowed"),
    onSent: (verb) => sent.set(verb, (sent.get(verb) ?? 0) + 1),
    onTaken: () => undefined,
  });
  const live = new Live(store, budgets.outgoing);
  const records = new RecordBudget();
  const session = new Session({
    parts: {
      store,
      intake,
      verifier,
      clock: systemClock,
      limits,
      serviceNames: [],
      members: membersOf(),
      metrics,
      newChallenge: () => "challenge",
      onFault: (error) => faults.push(error),
    },
    live,
    records,
    budgets,
    incoming: budgets.incoming.open("192.0.2.1"),
    ip: "192.0.2.1",
    visit: new Visitors(systemClock, { limits }).enter("192.0.2.1"),
    outbox,
    onLoad: () => undefined,
    giveUp: (reason) => givenUp.push(reason),
  });
  return {
    session,
    outbox,
    store,
    live,
    records,
    faults,
    givenUp,
    sent,
    last: () => last,
    async close() {
      session.close();
      live.close();
      giveBack();
      await store.close();
    },
  };
}
