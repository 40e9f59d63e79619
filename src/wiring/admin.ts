// What operators reach: the operations over this server's rooms, given to the HTTP routes and to the admin socket.

import { randomBytes } from "node:crypto";
import type { Clock } from "../base/clock.js";
import type { DecisionLog } from "../catalogue/decisions.js";
import type { LiveConfig } from "../config/load.js";
import type { Logger } from "../config/logging.js";
import type { GitHost } from "../git/git-host.js";
import type { ApiParts } from "../http/api.js";
import { publicUrls } from "../http/nip11.js";
import type { CarryOut } from "../intake/carry-out.js";
import type { Intake } from "../intake/intake.js";
import { reachOf } from "../net/address.js";
import type { ServiceName } from "../net/url.js";
import type { Pubkey } from "../nostr/ids.js";
import { parseNpub } from "../nostr/nip19.js";
import type { Verifier } from "../nostr/verify/pool.js";
import type { AdminParts, OperationContext, Outcome, RunningParts } from "../operator/context.js";
import { LoginLinks, Nip98 } from "../operator/login.js";
import type { RunTimeRules } from "../operator/rules.js";
import { runOperation } from "../operator/run.js";
import { type AdminSocket, openAdminSocket } from "../operator/socket.js";
import { publicStatus } from "../operator/status.js";
import type { Store } from "../store/port.js";

export interface AdminRooms {
  readonly live: LiveConfig;
  readonly rules: RunTimeRules;
  readonly adminKeys: () => ReadonlySet<Pubkey>;
  readonly services: readonly ServiceName[];
  readonly version: string;
  readonly store: Store;
  readonly gitHost: GitHost;
  readonly carryOut: CarryOut;
  readonly verifier: Verifier;
  readonly clock: Clock;
  /** What other git servers answered when its data was hunted. */
  readonly askedServers: RunningParts["askedServers"];
  readonly verified: RunningParts["verified"];
  readonly decisions: DecisionLog;
  readonly intake: Intake;
  readonly isFetching?: RunningParts["isFetching"];
  readonly askNow: RunningParts["askNow"];
  readonly relays: RunningParts["relays"];
  readonly damaged: RunningParts["damaged"];
  readonly housekeep: RunningParts["housekeep"];
}

type Traffic = () => { readonly connections: number; readonly subscriptions: number };

export interface Admin {
  readonly parts: AdminParts & { readonly running: RunningParts };
  /** For the HTTP routes. */
  api(servedRepositories: () => number | Promise<number>): ApiParts;
  run(
    request: { readonly operation: string; readonly parameters: unknown },
    context: OperationContext,
  ): Promise<Outcome<unknown>>;
  /** The relay is built after this. */
  watchTraffic(traffic: Traffic): void;
}

export function buildAdmin(rooms: AdminRooms): Admin {
  const { live, rules, adminKeys, store, gitHost, carryOut, clock, verifier } = rooms;
  const startedMs = clock.monotonicMs();
  let traffic: Traffic = () => ({ connections: 0, subscriptions: 0 });
  const links = new LoginLinks(clock, randomBytes);
  const publicUrl = publicUrls(live.current).http;
  const running: RunningParts = {
    facts: () => ({
      version: rooms.version,
      uptimeSeconds: Math.floor((clock.monotonicMs() - startedMs) / 1000),
      verification: verifier.engine,
      gitVersion: gitHost.git.version,
      ...traffic(),
    }),
    askedServers: rooms.askedServers,
    decisionsWritten: () => rooms.decisions.written(),
    verified: rooms.verified,
    isFetching: (name) => rooms.isFetching?.(name) ?? false,
    askNow: rooms.askNow,
    relays: rooms.relays,
    damaged: rooms.damaged,
    housekeep: rooms.housekeep,
    links,
    publicUrl,
  };
  const parts = {
    store,
    repositories: async () => gitHost.repositories,
    carryOut: async () => carryOut,
    clock,
    rules,
    config: () => live.current,
    intake: async () => rooms.intake,
    reach: () => reachOf(live.current),
    adminKeys,
    running,
  };
  const nip98 = new Nip98({ services: rooms.services, adminKeys, verifier, clock });
  return {
    parts,
    run: (request, context) => runOperation(parts, request, context),
    api: (servedRepositories) => ({
      nip98,
      links,
      sessionOwner(session) {
        const who = links.whoOf(session);
        const key = who === undefined ? undefined : parseNpub(who);
        // A key that is no admin's any more opens nothing, however young its session.
        return key && !adminKeys().has(key) ? undefined : who;
      },
      clock,
      publicUrl,
      publicStatus: async () => publicStatus(parts, running.facts(), await servedRepositories()),
      run: (operation, parameters, caller) =>
        runOperation(
          parts,
          { operation, parameters },
          // What an HTTP client asked for is done to its end, even when the client goes away.
          { caller, progress: () => undefined, signal: new AbortController().signal },
        ) as Promise<Outcome<never>>,
    }),
    watchTraffic(watched) {
      traffic = watched;
    },
  };
}

/** A server without its socket still serves: the operator is told in the log. */
export async function openSocket(admin: Admin, directory: string, logger: Logger): Promise<AdminSocket> {
  try {
    return await openAdminSocket({
      directory,
      run: (request, context) => admin.run(request, { ...context, caller: { who: "operator", via: "socket" } }),
      onFault: (error) => logger.error({ err: error }, "an operator's request failed"),
    });
  } catch (error) {
    logger.warn({ err: error, directory }, "the admin socket cannot be opened: verbs need the server to be stopped");
    return { close: async () => undefined };
  }
}
