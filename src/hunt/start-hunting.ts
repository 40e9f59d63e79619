// The hunt for missing git data and the repair of what is here, from settings as operators name them. Each machine repairs
// its own copy; the one that leads hunts for all of them.

import { randomBytes } from "node:crypto";
import { repositoryAuthorization } from "../access/signed-request.js";
import type { RepositoryName } from "../catalogue/repositories.js";
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
import type { Found } from "./wants.js";

interface UsedRooms {
  readonly gitHost: Pick<GitHost, "git" | "launcher" | "repositories">;
  readonly purgatory: Purgatory;
  /** A repository that was damaged has got objects. */
  readonly repaired: (name: RepositoryName) => Promise<unknown>;
  /** A private server shows who it is to the hosts of an announcement; not given: it never does. */
  readonly serverSecret?: SecretKey;
  /** Instead of the system's; for tests. */
  readonly resolve?: Resolve;
  /** Instead of what the settings say; for tests. */
  readonly huntConfig?: (config: HuntConfig) => HuntConfig;
}

export interface HuntingRoom {
  readonly hunting: Hunting;
  close(): Promise<void>;
}

/** To be opened and closed by the caller; `found` is told what to hunt for. */
export const repairOf = (
  { live, logger, clock, store, onFault }: Context,
  { gitHost, purgatory }: Pick<UsedRooms, "gitHost" | "purgatory">,
  found: (name: RepositoryName, found: Found) => void,
): Repair =>
  new Repair({
    store,
    repositories: gitHost.repositories,
    purgatory,
    clock,
    intervalMs: () => live.current.gitRepairIntervalHours * 3_600_000,
    found,
    logger,
    onFault,
  });

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
    ledBy: context.ledBy,
    repositories,
    purgatory,
    clock,
    config,
    measure,
    logger,
    onFault,
    repaired: (name) => void parts.repaired(name).catch(onFault),
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
  await hunting.open();
  return {
    hunting,
    async close() {
      stopListening();
      await hunting.close();
    },
  };
}
