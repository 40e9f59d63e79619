// A relay on a real port, made of its real parts, over the memory store.

import { randomBytes } from "node:crypto";
import type { TestContext } from "node:test";
import { Registry } from "prom-client";
import type { Members } from "../../src/access/members.js";
import { membersOf } from "../../src/access/testing/members-of.js";
import type { AdmissionPolicy } from "../../src/admission/verdict.js";
import { type Clock, systemClock } from "../../src/base/clock.js";
import { defaultConfig } from "../../src/config/testing/default-config.js";
import { relayInformationRoute } from "../../src/http/nip11.js";
import type { Route } from "../../src/http/routes.js";
import { createHttpServer, trustedProxies } from "../../src/http/server.js";
import { createIntake, type Intake } from "../../src/intake/intake.js";
import { type ServiceName, serviceName } from "../../src/net/url.js";
import { isEphemeral } from "../../src/nostr/event.js";
import { type RelayLimits, relayLimits } from "../../src/relay/limits.js";
import { createRelayMetrics } from "../../src/relay/metrics.js";
import { createRelay, type Relay } from "../../src/relay/relay.js";
import { testFacts } from "./relay-facts.js";
import { type WatchedStore, watchedStore } from "./relay-store.js";
import { borrowVerifier } from "./shared-verifier.js";

export const acceptAll: AdmissionPolicy = async (event) =>
  isEphemeral(event.kind) ? { ok: true, action: "relay", rule: "test" } : { ok: true, action: "store", rule: "test" };

export interface TestRelayWish {
  readonly limits?: Partial<RelayLimits>;
  readonly clock?: Clock;
  readonly policy?: AdmissionPolicy;
  readonly routes?: readonly Route[];
  readonly basePath?: string;
  readonly serviceNames?: readonly string[];
  /** Everybody, if not given. */
  readonly members?: Members;
  readonly abuseThreshold?: number;
  readonly headersTimeoutMs?: number;
  /** 0: any free one. */
  readonly port?: number;
}

export interface TestRelay {
  readonly url: string;
  readonly httpUrl: string;
  readonly port: number;
  readonly store: WatchedStore;
  readonly relay: Relay;
  readonly intake: Intake;
  readonly registry: Registry;
  readonly faults: unknown[];
  /** As after a reload of the settings. */
  change(limits: TestRelayWish["limits"]): void;
  close(withinMs?: number): Promise<void>;
}

/** With a test's context it is closed when the test ends, however it ends. */
export async function startRelay(wish: TestRelayWish = {}, context?: TestContext): Promise<TestRelay> {
  const clock = wish.clock ?? systemClock;
  let limits = { ...relayLimits(defaultConfig()), ...wish.limits };
  const store = watchedStore(clock);
  const registry = new Registry();
  const metrics = createRelayMetrics(registry, () => wish.abuseThreshold ?? 10);
  const { verifier, giveBack } = await borrowVerifier();
  const faults: unknown[] = [];
  const onFault = (error: unknown) => faults.push(error);
  const intake = createIntake({
    store,
    verifier,
    clock,
    policy: wish.policy ?? acceptAll,
    observer: metrics.intakeObserver,
    live: { current: { ...defaultConfig(), maxFutureSecs: limits.maxFutureSecs } },
  });
  const relay = createRelay({
    store,
    intake,
    verifier,
    clock,
    limits: () => limits,
    serviceNames: (wish.serviceNames ?? ["relay.example.com"]).map((name) => serviceName(name) as ServiceName),
    members: wish.members ?? membersOf(),
    metrics,
    newChallenge: () => randomBytes(16).toString("hex"),
    onFault,
  });
  const proxies = trustedProxies(["127.0.0.0/8", "::1"]).list;
  const http = createHttpServer({
    // Both are at `/`: the document is asked first, then the page.
    routes: [
      relayInformationRoute(
        () => testFacts,
        () => limits,
      ),
      ...(wish.routes ?? []),
    ],
    webSocket: relay,
    basePath: wish.basePath ?? "",
    trustedProxies: () => proxies,
    clock: systemClock,
    ...(wish.headersTimeoutMs !== undefined && { headersTimeoutMs: wish.headersTimeoutMs }),
    onFault,
  });
  const { port } = await http.listen({ host: "127.0.0.1", port: wish.port ?? 0 });
  let closed: Promise<void> | undefined;
  const close = async (withinMs: number): Promise<void> => {
    const stopped = http.close(withinMs);
    await relay.close(withinMs);
    await stopped;
    giveBack();
    await store.close();
  };
  const started: TestRelay = {
    url: `ws://127.0.0.1:${port}/`,
    httpUrl: `http://127.0.0.1:${port}`,
    port,
    store,
    relay,
    change(other) {
      limits = { ...limits, ...other };
      relay.limitsChanged();
    },
    intake,
    registry,
    faults,
    close(withinMs = 2_000) {
      closed ??= close(withinMs);
      return closed;
    },
  };
  context?.after(() => started.close());
  return started;
}
