// The rooms for commands that work on a server's data while it does not run: over a store the command has opened, behind
// the same door and rules as always, without a port. What git has to do and was not done follows at the next start.

import type { Clock } from "./base/clock.js";
import { sharedAbort } from "./base/shared-abort.js";
import { DecisionLog } from "./catalogue/decisions.js";
import type { Operator } from "./cli/abilities.js";
import type { Config } from "./config/config.js";
import { loadServerKey } from "./config/server-key.js";
import { type GitHost, openGitHost } from "./git/git-host.js";
import type { Repositories } from "./git/repositories.js";
import { GitError } from "./git/run.js";
import type { ImportHouse } from "./import/import-repositories.js";
import { CarryOut } from "./intake/carry-out.js";
import { createIntake, type Intake } from "./intake/intake.js";
import { reachOf } from "./net/address.js";
import { serviceNames } from "./net/url.js";
import { SecretKey } from "./nostr/keys.js";
import { createVerifierPool } from "./nostr/verify/pool.js";
import type { AdminParts } from "./operator/context.js";
import { type PolicyInForce, policyInForce, RunTimeRules } from "./operator/rules.js";
import { runOperation } from "./operator/run.js";
import { adoptRefs } from "./purgatory/adopt-refs.js";
import { Purgatory } from "./purgatory/purgatory.js";
import type { Store } from "./store/port.js";

/** The operator's operations; git is started only if one needs it. */
export async function openOperator(config: Config, store: Store, clock: Clock): Promise<Operator> {
  const rules = new RunTimeRules(store);
  await rules.refresh();
  let gitHost: Promise<GitHost> | undefined;
  let consequences: Promise<CarryOut> | undefined;
  let door: Promise<Door> | undefined;
  const parts: AdminParts = {
    store,
    rules,
    clock,
    repositories: () => {
      gitHost ??= openGitHost(config, clock, store, () => undefined).then(async (opened) => {
        await adoptRefs({ store, repositories: opened.repositories, clock }, unlessBroken);
        // What no file of git's names would count as garbage.
        await opened.repositories.alignAll(() => undefined);
        return opened;
      });
      return gitHost.then(({ repositories }) => repositories);
    },
    carryOut: () => {
      consequences ??= parts.repositories().then(async (repositories) => {
        const purgatory = purgatoryAtRest(rules.over(config), store, repositories, clock);
        // What a crash left undone comes first, as at a start.
        await purgatory.resume();
        return new CarryOut(purgatory);
      });
      return consequences;
    },
    config: () => config,
    reach: () => reachOf(config),
    intake: async () => {
      if (!door) {
        const policies = policiesOf(config, rules);
        if (!policies) return undefined;
        door = openDoor(config, store, clock, policies.policy);
      }
      return (await door).intake;
    },
    adminKeys: () => {
      const own = serverSecret(config);
      return new Set(config.adminNpubs ?? (own ? [own.pubkey] : []));
    },
    members: () => policiesOf(config, rules)?.members,
    serverSecret: () => serverSecret(config),
  };
  const { signal } = sharedAbort();
  return {
    run: (request, progress, lines) =>
      runOperation(parts, request, {
        caller: { who: "operator", via: "offline" },
        progress,
        signal,
        ...(lines && { lines }),
      }),
    async close() {
      await (await door)?.close();
      // Git's own refs are on disk before git is closed.
      await consequences?.then(
        ({ purgatory }) => purgatory.close(),
        () => undefined,
      );
      // One that could not be opened is closed already, and the operation has said why.
      await gitHost?.then(
        (opened) => opened.close(),
        () => undefined,
      );
    },
  };
}

/** What git cannot work with is told by the command that asks for it. */
const unlessBroken = (work: () => Promise<void>): Promise<boolean> =>
  work().then(
    () => true,
    (error: unknown) => {
      if (!(error instanceof GitError)) throw error;
      return false;
    },
  );

/** The rooms that take events and git data, for moving another server's data here. Undefined: no usable key or domain. */
export async function openImport(
  config: Config,
  store: Store,
  clock: Clock,
): Promise<(ImportHouse & { close(): Promise<void> }) | undefined> {
  const rules = new RunTimeRules(store);
  await rules.refresh();
  const policies = policiesOf(config, rules);
  if (!policies) return undefined;
  const gitHost = await openGitHost(config, clock, store, () => undefined);
  const purgatory = purgatoryAtRest(policies.inForce(), store, gitHost.repositories, clock);
  await purgatory.resume();
  await purgatory.startClocks();
  const door = await openDoor(config, store, clock, policies.movingPolicy, new CarryOut(purgatory));
  return {
    store,
    intake: door.intake,
    repositories: gitHost.repositories,
    purgatory,
    // A whole history comes as one pack: the repository's quota bounds it, not a push's.
    budgets: { ...config, pushMaxBytes: config.repositoryMaxBytes, pushMaxObjects: 2 ** 31 },
    pushWallClockMs: 6 * 60 * 60_000,
    async close() {
      await purgatory.close();
      await door.close();
      await gitHost.close();
    },
  };
}

/** Where events and git data wait, while no server runs. */
function purgatoryAtRest(config: Config, store: Store, repositories: Repositories, clock: Clock): Purgatory {
  return new Purgatory({
    store,
    repositories,
    clock,
    live: { current: config },
    // The operator is there and watches.
    disks: { fullest: 0 },
    observer: {
      released: () => undefined,
      expired: () => undefined,
      problem: () => undefined,
      failed(what, error) {
        throw new Error(`${what} failed`, { cause: error });
      },
    },
  });
}

interface Door {
  readonly intake: Intake;
  close(): Promise<void>;
}

async function openDoor(
  config: Config,
  store: Store,
  clock: Clock,
  policy: PolicyInForce["policy"],
  carryOut?: CarryOut,
): Promise<Door> {
  const verifier = await createVerifierPool({ workers: 1 });
  const decisions = new DecisionLog({ store, clock, failed: () => undefined });
  const intake = createIntake({
    store,
    verifier,
    policy,
    decisions,
    clock,
    observer: { received: () => undefined, decided: () => undefined },
    live: { current: config },
    ...(carryOut && { carryOut }),
    gitFailed(event, error) {
      throw new Error(`git could not follow event ${event.id}`, { cause: error });
    },
  });
  return {
    intake,
    async close() {
      await decisions.written();
      await verifier.close();
    },
  };
}

/** Undefined when the server's key or domain cannot be used. */
function policiesOf(config: Config, rules: RunTimeRules): PolicyInForce | undefined {
  const secret = serverSecret(config);
  const services = serviceNames(config);
  if (!secret || services.length === 0) return undefined;
  return policyInForce({ current: config }, rules, secret.pubkey, services);
}

function serverSecret(config: Config): SecretKey | undefined {
  const key = loadServerKey(config);
  return key.ok ? SecretKey.fromHex(key.secretHex) : undefined;
}
