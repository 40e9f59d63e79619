// Opens the port: the relay and the git host behind one HTTP server, and /metrics on its own address if asked for.

import { randomBytes } from "node:crypto";
import { GitAccess } from "./access/git-access.js";
import type { Members } from "./access/members.js";
import { credentialsRefused } from "./access/metrics.js";
import { type Clock, repeatedly, unixSeconds } from "./base/clock.js";
import { Late } from "./base/late.js";
import { isOneFile } from "./base/one-file.js";
import { publicUrls } from "./config/config.js";
import { type LiveConfig, memo } from "./config/load.js";
import { LogRing } from "./config/logging.js";
import type { Context } from "./context.js";
import type { GitHost } from "./git/git-host.js";
import { GitHttp } from "./git/http.js";
import { type GitMetrics, gitObserver } from "./git/metrics.js";
import { healthRoutes, type MetricsAccess, mayReadMetrics, metricsRoute } from "./http/monitoring.js";
import { type RelayFacts, relayFacts, relayInformationRoute, wellKnownRoutes } from "./http/nip11.js";
import { privateRoute } from "./http/private.js";
import { type Route, type RouteRequest, sendPlain } from "./http/routes.js";
import { createHttpServer, type HttpServer, httpLimits, isLocalPeer } from "./http/server.js";
import type { Intake } from "./intake/intake.js";
import { FilesByHash } from "./lfs/by-hash.js";
import type { LargeFilesRoom } from "./lfs/start-large-files.js";
import type { Verifier } from "./nostr/verify/pool.js";
import type { BusyHours } from "./operator/busy-hours.js";
import type { RunningOperator } from "./operator/running.js";
import { measureQueues } from "./process-metrics.js";
import type { Purgatory } from "./purgatory/purgatory.js";
import { relayLimits } from "./relay/limits.js";
import type { RelayMetrics } from "./relay/metrics.js";
import { createRelay } from "./relay/relay.js";
import type { Pages } from "./web/pages.js";
import { RelayHistory, sampleEveryMs } from "./web/relay-history.js";
import type { StatusSources } from "./web/status-page.js";

interface UsedRooms {
  readonly members: Members;
  readonly operator: RunningOperator;
  readonly verifier: Verifier;
  readonly intake: Intake;
  readonly gitHost: GitHost;
  /** Events are taken. */
  readonly isDiskFit: () => boolean;
  readonly purgatory: Purgatory;
  /** Absent while large files are switched off. */
  readonly largeFiles?: LargeFilesRoom;
  readonly relayMetrics: RelayMetrics;
  readonly gitMetrics: GitMetrics;
  readonly repositoryCount: () => number | Promise<number>;
  /** What the status page says of sync and hunt; nothing when not given. */
  readonly status?: () => Promise<StatusSources>;
  readonly syncStatus: () => unknown;
  readonly recentLog?: LogRing;
  readonly busyHours: Pick<BusyHours, "upToNow">;
}

export interface Service {
  /** Where it listens, for the log. */
  readonly address: string;
  readonly traffic: { readonly connections: number; readonly subscriptions: number };
  close(): Promise<void>;
}

const closeWithinMs = 3_000;

/** `context.onFault`: a request or message failed; it was answered, the server goes on. */
export async function startService(context: Context, rooms: UsedRooms): Promise<Service> {
  const { live, clock, store, onFault } = context;
  const { operator } = rooms;
  const config = live.current;
  const basePath = config.domain.includes("/") ? config.domain.slice(config.domain.indexOf("/")) : "";
  const git = gitHttp(context, rooms);
  measureQueues(context, {
    store: () => store.stats.queuedWorks,
    fetches: () => git.queued.fetches,
    pushes: () => git.queued.pushes,
  });
  const relay = createRelay({
    store,
    intake: rooms.intake,
    verifier: rooms.verifier,
    clock,
    limits: memo(() => live.current, relayLimits),
    serviceNames: context.services,
    members: rooms.members,
    metrics: rooms.relayMetrics,
    newChallenge: () => randomBytes(16).toString("hex"),
    onFault,
  });
  const { rules, api } = operator;
  const facts = () => relayFacts(rules.over(live.current), rules.keepsOut, context.serverKey, context.version);
  const { trustedProxies, requestTimeoutMs } = httpLimits(live);
  const common = { basePath, trustedProxies, clock, onFault };
  const startedSeconds = unixSeconds(clock);
  const sources = new Late(async () => await rooms.status?.());
  const history = new RelayHistory();
  const lateApi = new Late(() => loadApi(rooms));
  const apiRoutes = (): Promise<readonly Route[]> => lateApi.get();
  const latePages = new Late(async () => {
    const { createPages } = await import("./web/pages.js");
    const status = await sources.get();
    const recentLog = rooms.recentLog ?? new LogRing((raw) => raw);
    const { gitHost, repositoryCount, busyHours } = rooms;
    return createPages(context, {
      ...{ api, gitHost, repositoryCount, recentLog, busyHours, basePath, relayFacts: facts, history, startedSeconds },
      isPrivate: rooms.members.isPrivate,
      ...(status && { status }),
    });
  });
  const pages = (): Promise<Pages> => latePages.get();
  const access = gitAccessOf(context, rooms);
  const table = [
    ...largeFileRoutes(context, rooms, access),
    ...routes(context, rooms, git, apiRoutes, facts),
    loadedLater(
      () => true,
      async () => {
        // What another machine has acknowledged is shown here.
        await store.upToDate();
        return (await pages()).routes;
      },
    ),
  ];
  const open = rooms.members.isPrivate ? [behindGate(context, rooms, access, table, pages)] : table;
  const http = createHttpServer({
    ...common,
    requestTimeoutMs,
    networks: rules,
    routes: open,
    webSocket: relay,
  });
  const { testListenerFd: fd, bindAddress } = config;
  const listening = await http.listen(fd === undefined ? bindAddress : { fd });
  // A start that fails here must not leave the port open: the process would live on and serve nothing.
  const metricsServer = await ownMetricsServer(context, common).catch(async (error: unknown) => {
    await http.close(closeWithinMs);
    await relay.close(closeWithinMs);
    await git.close();
    throw error;
  });
  // Loaded once the port is open: clients of the relay and of git do not wait for them. In the program's one file they are
  // read already and wait for the first reader; files of their own might be missing then for want of descriptors.
  if (!isOneFile) for (const load of [apiRoutes, pages]) load().catch(onFault);
  const sampling = repeatedly(
    clock,
    () => sampleEveryMs,
    async () => history.look((await sources.get())?.syncStatus() ?? []),
    onFault,
  );
  const stopChanging = live.onChange(() => relay.limitsChanged());
  const stopDropping = rules.onRefresh(() => http.endConnections((ip) => rules.isBlocked(ip)));
  return {
    address: `${listening.address}:${listening.port}`,
    get traffic() {
      return { connections: relay.connections, subscriptions: relay.subscriptions };
    },
    async close() {
      stopChanging();
      stopDropping();
      const loaded = await latePages.begun?.catch(() => undefined);
      loaded?.endStreams();
      const stopped = http.close(closeWithinMs);
      await relay.close(closeWithinMs);
      await stopped;
      await metricsServer?.close(closeWithinMs);
      await sampling.close();
      await loaded?.close();
      await git.close();
    },
  };
}

const loadedLater = (matches: Route["matches"], load: () => Promise<readonly Route[]>): Route => ({
  matches,
  async handle(request, response) {
    const route = (await load()).find((one) => one.matches(request));
    if (route) await route.handle(request, response);
    else sendPlain(response, 404, "not found");
  },
});

const gitHttp = ({ live, logger, clock }: Context, { gitHost, purgatory, gitMetrics }: UsedRooms): GitHttp =>
  new GitHttp({
    repositories: gitHost.repositories,
    capabilities: gitHost.capabilities,
    clock,
    served: purgatory,
    live,
    cacheDirectory: `${gitHost.launcher.scratchDirectory}/answers`,
    observe: gitObserver(logger, gitMetrics),
  });

/** Relay management (NIP-86) and `/api`. */
async function loadApi({ operator: { api }, members, syncStatus }: UsedRooms): Promise<Route[]> {
  const { apiRoutes, isAdmin, managementRoute, syncStatusRoute } = await import("./http/api.js");
  return [
    managementRoute(api),
    // This machine's own verbs may ask a public server, as with /metrics; a private one tells them by its admin socket.
    syncStatusRoute(
      syncStatus,
      async (request) => (!members.isPrivate && isLocalPeer(request.message)) || isAdmin(api, request),
    ),
    ...apiRoutes(api),
  ];
}

const isForApi = ({ method, localPath }: RouteRequest): boolean =>
  localPath === "/api" || localPath.startsWith("/api/") || (method === "POST" && localPath === "/");

function routes(
  context: Context,
  rooms: UsedRooms,
  git: GitHttp,
  apiRoutes: () => Promise<readonly Route[]>,
  facts: () => RelayFacts,
): Route[] {
  const { live, clock, store, registry, serverKey, onFault } = context;
  const { gitHost, members } = rooms;
  const urls = publicUrls(live.current);
  const keeping = keepingOf(live, clock);
  const checks = [
    { name: "store", isReady: () => store.isWritable() },
    { name: "git", isReady: () => gitHost.git.version !== "" },
    { name: "disk", isReady: rooms.isDiskFit },
  ];
  return [
    git,
    loadedLater(isForApi, apiRoutes),
    relayInformationRoute(facts, () => relayLimits(live.current)),
    ...healthRoutes(checks, keeping, onFault),
    ...(live.current.metricsEnabled && live.current.metricsBindAddress === undefined
      ? [metricsRoute(registry, keeping, () => metricsAccess(live))]
      : []),
    ...wellKnownRoutes(serverKey, urls.relay, members.isPrivate),
  ];
}

/** GRASP-08: members only. */
function behindGate(
  context: Context,
  { operator: { api } }: UsedRooms,
  access: GitAccess,
  table: readonly Route[],
  pages: () => Promise<Pages>,
): Route {
  const { live } = context;
  return privateRoute(
    {
      api,
      git: access,
      refused: credentialsRefused(context.registry),
      mayReadMetrics: (request) => live.current.metricsEnabled && mayReadMetrics(request, metricsAccess(live)),
      signInPage: async (status) => (await pages()).signInPage(status),
      signInFiles: async () => (await pages()).signInFiles,
    },
    table,
  );
}

/** Who asks for a repository: git's requests of a private service, and those of large files, go by it. Members sign for the
 * public origin, where one is set. */
function gitAccessOf(context: Context, { members, verifier }: UsedRooms): GitAccess {
  const { live, clock, store } = context;
  const services = live.current.privatePublicOrigin === undefined ? context.services : context.services.slice(-1);
  const refused = credentialsRefused(context.registry);
  return new GitAccess({ members, store, verifier, clock, services, refused });
}

/** Before git's own route, which every other address below a repository belongs to. */
function largeFileRoutes(context: Context, { largeFiles, members }: UsedRooms, access: GitAccess): Route[] {
  if (!largeFiles) return [];
  const byHash = context.live.current.blossomRead ? [new FilesByHash(context, largeFiles.holdings)] : [];
  return [largeFiles.http(access, members.isPrivate), ...byHash];
}

function metricsAccess(live: LiveConfig): MetricsAccess {
  const { metricsPublic, metricsToken, privateMode } = live.current;
  const token = metricsToken === undefined ? {} : { token: metricsToken };
  return { isPublic: metricsPublic, needsToken: privateMode, ...token };
}

const keepingOf = (live: LiveConfig, clock: Clock) => ({ clock, keptMs: () => live.current.healthAnswerMs });

async function ownMetricsServer(
  { live, registry }: Context,
  common: Pick<Parameters<typeof createHttpServer>[0], "basePath" | "trustedProxies" | "clock" | "onFault">,
): Promise<HttpServer | undefined> {
  const address = live.current.metricsBindAddress;
  if (!live.current.metricsEnabled || address === undefined) return undefined;
  const server = createHttpServer({
    ...common,
    routes: [metricsRoute(registry, keepingOf(live, common.clock), () => ({ isPublic: true }))],
  });
  await server.listen(address);
  return server;
}
