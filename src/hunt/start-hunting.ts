// The hunt for missing git data and the repair of what is here, from settings as operators name them.

import { randomBytes } from "node:crypto";
import { repositoryAuthorization } from "../access/signed-request.js";
import type { Context } from "../context.js";
import type { GitHost } from "../git/git-host.js";
import { reachOf } from "../net/address.js";
import { guardWith, type Resolve, systemResolver } from "../net/guard.js";
import type { SecretKey } from "../nostr/keys.js";
import type { Purgatory } from "../purgatory/purgatory.js";
import { type HuntConfig, huntConstants } from "./core/messages.js";
import { createHuntMetrics, Hunting } from "./hunting.js";
import { PlainHosts } from "./look-up.js";
import { Repair } from "./repair.js";

interface UsedRooms {
  readonly gitHost: Pick<GitHost, "git" | "launcher" | "repositories">;
  readonly purgatory: Purgatory;
  /** A private server shows who it is to the hosts of an announcement; not given: it never does. */
  readonly serverSecret?: SecretKey;
  /** Instead of the system's; for tests. */
  readonly resolve?: Resolve;
  /** Instead of what the settings say; for tests. */
  readonly huntConfig?: (config: HuntConfig) => HuntConfig;
}

export interface HuntingRoom {
  readonly hunting: Hunting;
  readonly repair: Repair;
  close(): Promise<void>;
}

export async function startHunting(context: Context, parts: UsedRooms): Promise<HuntingRoom> {
  const { live, logger, clock, store, services, registry, onFault } = context;
  const { purgatory } = parts;
  const { repositories, git, launcher } = parts.gitHost;
  const fromSettings = (): HuntConfig => {
    const settings = { ...live.current, ...huntConstants, ours: services };
    return parts.huntConfig?.(settings) ?? settings;
  };
  const config = fromSettings();
  // The core reads its numbers when it needs them, in the object it was given.
  const stopListening = live.onChange(() => Object.assign(config, fromSettings()));
  const { measure, fetched } = createHuntMetrics(registry);
  const guard = guardWith({ resolve: parts.resolve ?? systemResolver(clock), reach: reachOf(live.current) });
  const { serverSecret } = parts;
  const sign =
    live.current.privateMode && serverSecret
      ? (root: string) => repositoryAuthorization(serverSecret, root, clock, randomBytes)
      : undefined;
  const hunting: Hunting = new Hunting({
    store,
    repositories,
    purgatory,
    clock,
    config,
    measure,
    logger,
    onFault,
    repaired: (name) => void repair.check(name).catch(onFault),
    server: {
      git,
      clock,
      guard,
      plainHosts: new PlainHosts(clock),
      config,
      scratchRoot: launcher.scratchDirectory,
      sign,
      fetched,
    },
  });
  const repair: Repair = new Repair({
    store,
    repositories,
    purgatory,
    clock,
    intervalMs: () => live.current.gitRepairIntervalHours * 3_600_000,
    found: (name, found) => hunting.found(name, found),
    logger,
    onFault,
  });
  await hunting.open();
  repair.open();
  return {
    hunting,
    repair,
    async close() {
      stopListening();
      await repair.close();
      await hunting.close();
    },
  };
}
