// The operator's operations over a running server's rooms, for the HTTP routes and the admin socket.

import { randomBytes } from "node:crypto";
import type { Members } from "../access/members.js";
import { credentialsRefused } from "../access/metrics.js";
import type { Clock } from "../base/clock.js";
import { sharedAbort } from "../base/shared-abort.js";
import { repositoryList } from "../catalogue/bans-and-lists.js";
import type { DecisionLog } from "../catalogue/decisions.js";
import { catalogueRows } from "../catalogue/repositories.js";
import { publicUrls } from "../config/config.js";
import type { Logger } from "../config/logging.js";
import type { Context } from "../context.js";
import type { GitHost } from "../git/git-host.js";
import type { CarryOut } from "../intake/carry-out.js";
import type { Intake } from "../intake/intake.js";
import { reachOf } from "../net/address.js";
import type { Pubkey } from "../nostr/event.js";
import type { SecretKey } from "../nostr/keys.js";
import { parseNpub } from "../nostr/nip19.js";
import { verificationAdvice } from "../nostr/verify/advice.js";
import type { Verifier } from "../nostr/verify/pool.js";
import type { AdminParts, Caller, OperationContext, Outcome, RunningParts } from "./context.js";
import { LoginLinks, Nip98, type Shelves } from "./login.js";
import { repositoryText } from "./naming.js";
import type { OperationName } from "./operations.js";
import type { RunTimeRules } from "./rules.js";
import type { ResultOf } from "./run.js";
import { type AdminSocket, openAdminSocket } from "./socket.js";
import { type PublicStatus, publicStatus } from "./status.js";

/** What the HTTP routes and the admin pages are given. */
export interface OperatorApi {
  /** Requests signed by an admin. */
  readonly nip98: Nip98;
  /** Requests signed by a member of a private service. */
  readonly memberNip98: Nip98;
  readonly links: LoginLinks;
  /** The npub a browser's session belongs to, while its key is an admin's. */
  readonly sessionOwner: (session: string) => Promise<string | undefined>;
  /** The same, while its key is a member's. */
  readonly sessionMember: (session: string) => Promise<string | undefined>;
  readonly run: <Name extends OperationName>(
    operation: Name,
    parameters: object,
    caller: Caller,
  ) => Promise<Outcome<ResultOf<Name>>>;
  readonly publicStatus: () => Promise<PublicStatus>;
  /** `https://host/base`. */
  readonly publicUrl: string;
  readonly clock: Clock;
}

export interface RunningOperator {
  readonly rules: RunTimeRules;
  readonly api: OperatorApi;
  run(
    request: { readonly operation: string; readonly parameters: unknown },
    context: OperationContext,
  ): Promise<Outcome<unknown>>;
}

type AskedOfOtherRooms =
  | "askedServers"
  | "verified"
  | "isFetching"
  | "askNow"
  | "relays"
  | "damaged"
  | "checkLargeFiles"
  | "askedForLargeFiles"
  | "housekeep";

export function operatorOf(
  { live, clock, store, services, version, registry }: Context,
  rooms: {
    readonly rules: RunTimeRules;
    readonly adminKeys: () => ReadonlySet<Pubkey>;
    readonly members: Members;
    readonly serverSecret: SecretKey;
    /** Where login keeps what it must not forget. */
    readonly shelves: Shelves;
    readonly gitHost: GitHost;
    readonly carryOut: CarryOut;
    readonly verifier: Verifier;
    readonly decisions: DecisionLog;
    readonly intake: Intake;
    readonly repositoryCount: () => number | Promise<number>;
    /** Nothing yet while the port is not open. */
    readonly traffic: () => { readonly connections: number; readonly subscriptions: number } | undefined;
  } & Pick<RunningParts, AskedOfOtherRooms>,
): RunningOperator {
  const { members, serverSecret, shelves } = rooms;
  const { rules, adminKeys, gitHost, carryOut, verifier, decisions, intake, repositoryCount, traffic } = rooms;
  const { askedServers, verified, isFetching, askNow, relays, damaged, housekeep } = rooms;
  const { checkLargeFiles, askedForLargeFiles } = rooms;
  const startedMs = clock.monotonicMs();
  const links = new LoginLinks(shelves, randomBytes);
  const publicUrl = publicUrls(live.current).http;
  const running: RunningParts = {
    facts: () => ({
      version,
      uptimeSeconds: Math.floor((clock.monotonicMs() - startedMs) / 1000),
      verification: verifier.engine,
      verificationAdvice: verificationAdvice(verifier.engine) ?? null,
      gitVersion: gitHost.git.version,
      ...(traffic() ?? { connections: 0, subscriptions: 0 }),
    }),
    decisionsWritten: () => decisions.written(),
    ...{ askedServers, verified, isFetching, askNow, relays, damaged, housekeep, links, publicUrl },
    ...{ checkLargeFiles, askedForLargeFiles },
  };
  const parts: AdminParts = {
    store,
    repositories: async () => gitHost.repositories,
    carryOut: async () => carryOut,
    clock,
    rules,
    config: () => live.current,
    intake: async () => intake,
    reach: () => reachOf(live.current),
    adminKeys,
    members: () => members,
    serverSecret: () => serverSecret,
    running,
  };
  const isAdmin = (key: Pubkey): boolean => adminKeys().has(key);
  // A key that does not count any more opens nothing, however young its session.
  const ownerIf = async (session: string, isKnown: (key: Pubkey) => boolean): Promise<string | undefined> => {
    const who = await links.whoOf(session);
    const key = who === undefined ? undefined : parseNpub(who);
    return key && !isKnown(key) ? undefined : who;
  };
  const { isPrivate } = members;
  const signed = { services, verifier, clock, isPrivate, shelves, refused: credentialsRefused(registry) };
  // Loaded by the first request: the table of operations is large, and a start does not wait for it.
  const run: RunningOperator["run"] = async (request, context) => {
    const { runOperation } = await import("./run.js");
    return runOperation(parts, request, context);
  };
  return {
    rules,
    run,
    api: {
      nip98: new Nip98({
        ...signed,
        whose: "admins",
        isKnown: isAdmin,
        strangersAreTold: "this key is not an admin's",
      }),
      memberNip98: new Nip98({
        ...signed,
        whose: "members",
        isKnown: (key) => members.has(key),
        strangersAreTold: "a member's key must have signed this request, for this URL and within the last minute",
      }),
      links,
      sessionOwner: (session) => ownerIf(session, isAdmin),
      sessionMember: (session) => ownerIf(session, (key) => members.has(key)),
      clock,
      publicUrl,
      publicStatus: async () => publicStatus(parts, running.facts(), await repositoryCount()),
      run: (operation, parameters, caller) =>
        run(
          { operation, parameters },
          // What an HTTP client asked for is done to its end, even when the client goes away.
          { caller, progress: () => undefined, signal: sharedAbort().signal },
        ) as Promise<Outcome<never>>,
    },
  };
}

/**
 * NGIT_STARTUP_INTEGRITY_IDENTIFIERS: these repositories are checked before anybody can ask for them. What is wrong is said
 * in the log and mended as `repos fsck` mends it; a server that stayed away would serve the others no more either.
 */
export async function checkBeforeServing(
  operator: RunningOperator,
  { live, store, logger }: Pick<Context, "live" | "store" | "logger">,
): Promise<void> {
  const wanted = repositoryList(live.current.startupIntegrityIdentifiers);
  if (wanted.size === 0) return;
  const found: string[] = [];
  for await (const row of catalogueRows(store))
    if (wanted.has(row) && row.status !== "soft") found.push(repositoryText(row));
  for (const repository of found) {
    const answer = await operator.api.run("repos.fsck", { repository }, { who: "operator", via: "offline" });
    if (!answer.ok) logger.error({ repo: repository, reason: answer.message }, "a repository could not be checked");
    for (const { problems } of answer.ok ? answer.result.unsound : [])
      logger.error(
        { repo: repository, problems },
        "a repository is damaged: what can be had elsewhere is fetched again",
      );
  }
  if (found.length === 0) logger.warn("NGIT_STARTUP_INTEGRITY_IDENTIFIERS names no repository of this server");
  else logger.info({ checked: found.length }, "repositories were checked before the start");
}

/** A server without its socket still serves: the operator is told in the log. */
export async function openSocket(operator: RunningOperator, directory: string, logger: Logger): Promise<AdminSocket> {
  try {
    return await openAdminSocket({
      directory,
      run: (request, context) => operator.run(request, { ...context, caller: { who: "operator", via: "socket" } }),
      onFault: (error) => logger.error({ err: error }, "an operator's request failed"),
    });
  } catch (error) {
    logger.warn({ err: error, directory }, "the admin socket cannot be opened: verbs need the server to be stopped");
    return { close: async () => undefined };
  }
}
