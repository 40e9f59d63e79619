// The rooms around the hunt, real ones: store, git host, purgatory, admission, intake, hunt. Without a relay and without
// event sync: events enter by intake as if a client or a peer had sent them.

import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "prom-client";
import { membersOf } from "../../src/access/testing/members-of.js";
import { createAdmissionPolicy } from "../../src/admission/policy.js";
import { type AdmissionSettings, admissionSettings } from "../../src/admission/settings.js";
import type { Source } from "../../src/admission/verdict.js";
import { type Clock, systemClock, unixSeconds } from "../../src/base/clock.js";
import { listsOf } from "../../src/catalogue/bans-and-lists.js";
import { DecisionLog } from "../../src/catalogue/decisions.js";
import type { RepositoryName } from "../../src/catalogue/repositories.js";
import type { LiveConfig } from "../../src/config/load.js";
import { createLog, type Logger } from "../../src/config/logging.js";
import type { Context } from "../../src/context.js";
import { diskAddress } from "../../src/git/address.js";
import { type GitHost, openGitHost } from "../../src/git/git-host.js";
import { keepHouse } from "../../src/git/housekeeping-scheduler.js";
import { createGitMetrics } from "../../src/git/metrics.js";
import type { GitRepository } from "../../src/git/repository.js";
import type { HuntConfig } from "../../src/hunt/core/messages.js";
import type { Repair } from "../../src/hunt/repair.js";
import { type HuntingRoom, repairOf, startHunting } from "../../src/hunt/start-hunting.js";
import { CarryOut } from "../../src/intake/carry-out.js";
import { createIntake, type Intake, type IntakeAnswer } from "../../src/intake/intake.js";
import { Sweep } from "../../src/intake/sweep.js";
import type { Resolve } from "../../src/net/guard.js";
import { type ServiceName, serviceName } from "../../src/net/url.js";
import type { NostrEvent } from "../../src/nostr/event.js";
import { SecretKey } from "../../src/nostr/keys.js";
import { npubOf } from "../../src/nostr/nip19.js";
import { createVerifierPool, type VerifierPool } from "../../src/nostr/verify/pool.js";
import { memoryShelves } from "../../src/operator/login.js";
import { RunTimeRules } from "../../src/operator/rules.js";
import { operatorOf, type RunningOperator } from "../../src/operator/running.js";
import type { Expiry, Released } from "../../src/purgatory/context.js";
import { Purgatory } from "../../src/purgatory/purgatory.js";
import { createRelayMetrics } from "../../src/relay/metrics.js";
import { type Service, startService } from "../../src/service.js";
import { createMemoryStore } from "../../src/store/memory/memory-store.js";
import type { Store } from "../../src/store/port.js";
import { survivable } from "../../src/survivable-errors.js";
import { freePort } from "./free-port.js";
import { liveConfigOf } from "./live-config.js";
import { keyOf, sign, type TestKey } from "./relay-events.js";

export { untilSo as until } from "./server.js";

export const fromSync: Source = { type: "sync", relay: "wss://peer.example", phase: "live" };
export const fromClient: Source = { type: "client", ip: "192.0.2.1", authenticated: new Set() };

export interface HouseWish {
  readonly clock?: Clock;
  /** Of a house that was shut before: what it kept. */
  readonly from?: HuntHouse;
  readonly environment?: Readonly<Record<string, string>>;
  readonly hunt?: (config: HuntConfig) => HuntConfig;
  readonly resolve?: Resolve;
  /** `host:port`; then it listens there, and git clients can talk to it. */
  readonly listensAt?: string;
}

export class HuntHouse {
  readonly faults: unknown[] = [];
  readonly released: Released[] = [];
  readonly expired: Expiry[] = [];
  readonly registry = new Registry();
  readonly logged: { readonly level: string; readonly message: string; readonly fields: unknown }[] = [];

  private constructor(
    readonly clock: Clock,
    readonly folder: string,
    readonly store: Store,
    readonly live: LiveConfig,
    readonly domain: string,
    readonly environment: Record<string, string>,
  ) {}

  /** As an operator changes settings while the server runs. */
  reload(settings: Readonly<Record<string, string>>): void {
    Object.assign(this.environment, settings);
    const result = this.live.reload();
    if (!result.ok) throw new Error(JSON.stringify(result.problems));
  }

  gitHost!: GitHost;
  purgatory!: Purgatory;
  carryOut!: CarryOut;
  #sweep!: Sweep;
  intake!: Intake;
  room!: HuntingRoom & { readonly repair: Repair };
  admissionSettings!: AdmissionSettings;
  decisions!: DecisionLog;
  operator!: RunningOperator;
  #service: Service | undefined;
  #verifier!: VerifierPool;

  sweep(): Promise<void> {
    return this.#sweep.run();
  }

  static async start(wish: HouseWish = {}): Promise<HuntHouse> {
    const domain = wish.listensAt ?? wish.from?.domain ?? "grasp.example";
    const clock = wish.clock ?? wish.from?.clock ?? systemClock;
    const folder = wish.from?.folder ?? (await mkdtemp(join(tmpdir(), "hunt-house-")));
    const environment: Record<string, string> = {
      NGIT_DOMAIN: domain,
      NGIT_BIND_ADDRESS: wish.listensAt ?? "127.0.0.1:1",
      NGIT_GIT_DATA_PATH: folder,
      NGIT_DATABASE_BACKEND: "memory",
      NGIT_TEST: "1",
      NGIT_GIT_HUNT_SYNC_DELAY_MS: "500",
      ...wish.environment,
    };
    const live = liveConfigOf(environment);
    const store = wish.from?.store ?? createMemoryStore({ clock });
    const house = new HuntHouse(clock, folder, store, live, domain, environment);
    await house.#open(wish);
    return house;
  }

  async #open(wish: HouseWish): Promise<void> {
    const { clock, store, live, domain } = this;
    this.gitHost = await openGitHost(live.current, clock, store, () => undefined);
    this.#verifier = await createVerifierPool({ workers: 0 });
    this.purgatory = new Purgatory({
      store,
      repositories: this.gitHost.repositories,
      clock,
      live,
      disks: { fullest: 0 },
      ...(live.current.grasp06Enable && {
        contributorRules: { services: [serviceName(domain) as ServiceName], lists: () => listsOf(live.current) },
      }),
      observer: {
        released: (released) => void this.released.push(released),
        expired: (_entry, expiry) => void this.expired.push(expiry),
        problem: (_name, what) => void this.faults.push(what),
        failed: (_what, error) => void this.faults.push(error),
      },
    });
    this.carryOut = new CarryOut(this.purgatory);
    this.#sweep = new Sweep(this.carryOut);
    await this.purgatory.resume();
    await this.purgatory.startClocks();
    this.admissionSettings = {
      ...admissionSettings(() => live.current, keyOf("server").pubkey, [serviceName(domain) as ServiceName]),
      adminKeys: () => new Set(),
    };
    this.decisions = new DecisionLog({ store, clock, failed: (error) => void this.faults.push(error) });
    this.intake = createIntake({
      store,
      decisions: this.decisions,
      verifier: this.#verifier,
      policy: createAdmissionPolicy(this.admissionSettings),
      carryOut: this.carryOut,
      gitFailed: (_event, error) => void this.faults.push(error),
      clock,
      observer: { received: () => undefined, decided: () => undefined },
      live,
    });
    const context = this.context(survivable(this.#logger(), (error) => void this.faults.push(error)));
    const repair = repairOf(context, this, (name, found) => hunts.hunting.found(name, found));
    const hunts = await startHunting(context, {
      gitHost: this.gitHost,
      purgatory: this.purgatory,
      repaired: (name) => repair.check(name),
      serverSecret: SecretKey.fromBytes(keyOf("server").secret) as SecretKey,
      ...(wish.hunt ? { huntConfig: wish.hunt } : {}),
      ...(wish.resolve ? { resolve: wish.resolve } : {}),
    });
    repair.open();
    this.room = {
      ...hunts,
      repair,
      async close() {
        await repair.close();
        await hunts.close();
      },
    };
    await this.room.hunting.caughtUp();
    this.operator = this.#operator();
    if (wish.listensAt !== undefined) this.#service = await this.#serve();
  }

  context(onFault: (error: unknown) => void): Context {
    const { live, clock, store, registry } = this;
    return {
      ...{ live, clock, store, registry, onFault },
      logger: this.#logger(),
      services: [serviceName(this.domain) as ServiceName],
      serverKey: keyOf("server").pubkey,
      version: "0",
    };
  }

  #operator(): RunningOperator {
    const { live, clock, store, intake, gitHost } = this;
    const context = this.context((error) => void this.faults.push(error));
    const common = { gitHost, intake, verifier: this.#verifier, repositoryCount: () => 0 };
    return operatorOf(context, {
      ...common,
      rules: new RunTimeRules(store),
      adminKeys: () => new Set(),
      members: membersOf(() => live.current),
      serverSecret: SecretKey.fromBytes(keyOf("server").secret) as SecretKey,
      shelves: memoryShelves(clock),
      traffic: () => undefined,
      askedServers: () => [],
      verified: () => undefined,
      isFetching: () => false,
      housekeep: (address, kind, signal) =>
        keepHouse(
          { store, clock, repositories: gitHost.repositories, config: () => live.current },
          address,
          kind,
          signal,
        ),
      damaged: async () => undefined,
      checkLargeFiles: async () => [],
      askedForLargeFiles: () => [],
      askNow: () => false,
      relays: { status: () => [], reconnect: () => false },
      carryOut: this.carryOut,
      decisions: this.decisions,
    });
  }

  /** As an operator at the socket; answers what came of it. */
  async operate(operation: string, parameters: unknown): Promise<unknown> {
    const context = {
      caller: { who: "operator", via: "socket" as const },
      progress: () => undefined,
      signal: new AbortController().signal,
    };
    await this.operator.rules.refresh();
    const outcome = await this.operator.run({ operation, parameters }, context);
    assert.ok(outcome.ok, JSON.stringify(outcome));
    return outcome.result;
  }

  #serve(): Promise<Service> {
    const { intake, gitHost, purgatory, registry } = this;
    const context = this.context((error) => void this.faults.push(error));
    return startService(context, {
      ...{ gitHost, purgatory, intake, verifier: this.#verifier, repositoryCount: () => 0 },
      isDiskFit: () => true,
      relayMetrics: createRelayMetrics(registry, () => 10),
      gitMetrics: createGitMetrics(registry, () => 10),
      operator: this.operator,
      members: membersOf(() => this.live.current),
      busyHours: { upToNow: async () => [] },
      syncStatus: () => undefined,
    });
  }

  /** Where its git clients find a repository. */
  url(name: RepositoryName): string {
    return `http://${this.domain}/${npubOf(name.owner)}/${encodeURIComponent(name.identifier)}.git`;
  }

  #logger(): Logger {
    const { logger } = createLog({ level: "silent", format: "json" });
    const keep =
      (level: string) =>
      (fields: unknown, message?: string): void =>
        void this.logged.push({ level, message: message ?? String(fields), fields });
    return Object.assign(Object.create(logger) as Logger, {
      debug: keep("debug"),
      info: keep("info"),
      warn: keep("warn"),
      error: keep("error"),
    });
  }

  get now(): number {
    return unixSeconds(this.clock);
  }

  name(key: TestKey, identifier: string): RepositoryName {
    return { owner: key.pubkey, identifier };
  }

  submit(event: NostrEvent, source: Source = fromSync): Promise<IntakeAnswer> {
    return this.intake.submit(event, source);
  }

  async announce(
    key: TestKey,
    identifier: string,
    clone: readonly string[],
    extra: {
      readonly tags?: readonly string[][];
      readonly relays?: readonly string[];
      readonly source?: Source;
      readonly created_at?: number;
    } = {},
  ): Promise<NostrEvent> {
    const ours = this.url(this.name(key, identifier));
    const event = sign(key, {
      kind: 30617,
      created_at: extra.created_at ?? this.now,
      tags: [
        ["d", identifier],
        ["clone", ours, ...clone],
        ["relays", `ws://${this.domain}`, ...(extra.relays ?? [])],
        ...(extra.tags ?? []),
      ],
    });
    await this.#accepted(event, extra.source ?? fromSync);
    return event;
  }

  async state(
    key: TestKey,
    identifier: string,
    refs: Readonly<Record<string, string>>,
    extra: { readonly source?: Source; readonly created_at?: number } = {},
  ): Promise<NostrEvent> {
    const tags = [["d", identifier], ...Object.entries(refs), ["HEAD", "ref: refs/heads/main"]];
    const event = sign(key, { kind: 30618, created_at: extra.created_at ?? this.now, tags });
    await this.#accepted(event, extra.source ?? fromSync);
    return event;
  }

  async pullRequest(
    key: TestKey,
    to: RepositoryName,
    tip: string,
    clone: readonly string[],
    source: Source = fromSync,
  ): Promise<NostrEvent> {
    const tags = [
      ["a", `30617:${to.owner}:${to.identifier}`],
      ["c", tip],
      ["clone", ...clone],
    ];
    const event = sign(key, { kind: 1618, created_at: this.now, tags });
    await this.#accepted(event, source);
    return event;
  }

  async #accepted(event: NostrEvent, source: Source): Promise<void> {
    const answer = await this.submit(event, source);
    if (!answer.ok) throw new Error(answer.message);
  }

  repository(name: RepositoryName): GitRepository {
    return this.gitHost.repositories.open(diskAddress(name));
  }

  async refs(name: RepositoryName): Promise<Record<string, string>> {
    const { refs } = await this.repository(name).refs();
    return Object.fromEntries([...refs].map(([ref, { oid }]) => [ref, oid]));
  }

  isServed(event: NostrEvent): Promise<boolean> {
    return this.store.has(event.id);
  }

  /** Nothing of a fetch is left: no quarantine, no temporary file, no scratch directory, no process. */
  async leftovers(name: RepositoryName): Promise<string[]> {
    const objects = join(this.repository(name).directory, "objects");
    const found: string[] = [];
    for (const folder of [objects, join(objects, "pack")]) {
      for (const file of await readdir(folder).catch(() => [])) if (file.startsWith("tmp_")) found.push(file);
    }
    for (const file of await readdir(this.gitHost.launcher.scratchDirectory)) {
      if (file.startsWith("fetch-")) found.push(file);
    }
    if (this.gitHost.launcher.jobsInFlight > 0) found.push(`${this.gitHost.launcher.jobsInFlight} processes`);
    return found;
  }

  async packs(name: RepositoryName): Promise<string[]> {
    const names = await readdir(join(this.repository(name).directory, "objects/pack"));
    return names.filter((file) => file.endsWith(".pack"));
  }

  /** Ends what runs; the store and the folder stay for another house. */
  async shut(): Promise<void> {
    await this.#service?.close();
    await this.room.close();
    await this.purgatory.close();
    await this.gitHost.close();
  }

  async close(): Promise<void> {
    await this.shut();
    await this.store.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** A loopback address whose port is free at this moment. */
export const freeAddress = async (): Promise<string> => `127.0.0.1:${await freePort()}`;
