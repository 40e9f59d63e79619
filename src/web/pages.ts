// All pages, wired: landing, repositories, status, files they need, and a page for every other address. The last
// routes of the table, because the last of them answers any browser.

import { keptFor, unixSeconds } from "../base/clock.js";
import { waitingTotals } from "../catalogue/waiting.js";
import { publicUrls } from "../config/config.js";
import type { LogRing } from "../config/logging.js";
import type { Context } from "../context.js";
import type { GitHost } from "../git/git-host.js";
import { ReadingRoom } from "../git/reading/reading-room.js";
import type { RelayFacts } from "../http/nip11.js";
import { type Document, isReading, onlyToRead, type Route, type RouteRequest, sendDocument } from "../http/routes.js";
import { type BusyHours, hourOf } from "../operator/busy-hours.js";
import type { OperatorApi } from "../operator/running.js";
import { createAdminPages } from "./admin/routes.js";
import { assetRoutes, signInFiles } from "./assets.js";
import { badgeRoutes } from "./badge.js";
import { busySection } from "./charts.js";
import { codeRoutes } from "./code/code-routes.js";
import { Painter } from "./code/colours/painted.js";
import { TextThread } from "./code/colours/text-thread.js";
import { Directory } from "./directory.js";
import { landingRoute, recentActivity, searchRepositories } from "./landing.js";
import type { Site } from "./layout.js";
import { ownerRoutes } from "./owner-page.js";
import { despiteDamage, inTurns, missingPage, retryAfterSeconds, tryLaterPage, VisitorRates } from "./page-limits.js";
import { prsRoutes } from "./prs-page.js";
import type { RelayHistory } from "./relay-history.js";
import { cardsOf } from "./repository-cards.js";
import { signInPage } from "./sign-in.js";
import { nothingFollowed, type StatusSources, statusPage } from "./status-page.js";
import { ThreadIndex } from "./talk/thread-index.js";

interface UsedRooms {
  /** "" or `/base`. */
  readonly basePath: string;
  readonly isPrivate: boolean;
  readonly gitHost: GitHost;
  readonly repositoryCount: () => number | Promise<number>;
  /** What NIP-11 says: the landing page says the same. */
  readonly relayFacts: () => RelayFacts;
  readonly status?: StatusSources;
  readonly api: OperatorApi;
  /** The last lines of the log. */
  readonly recentLog: LogRing;
  readonly busyHours: Pick<BusyHours, "upToNow">;
  /** Of the relays that are followed. */
  readonly history: RelayHistory;
  /** When the server did. */
  readonly startedSeconds: number;
}

export interface Pages {
  readonly routes: readonly Route[];
  /** What strangers see of a private service, and the paths of the files that page needs. */
  signInPage(status: number): Document;
  readonly signInFiles: readonly string[];
  /** Ends what would go on for ever; before the server waits for its requests. */
  endStreams(): void;
  close(): Promise<void>;
}

const shownActivity = 12;
const busyKeptMs = 5_000;

export function createPages(context: Context, parts: UsedRooms): Pages {
  const { live, clock, store, version, logger } = context;
  const { gitHost, basePath, status = nothingFollowed, history, startedSeconds } = parts;
  // First: these read files, and where that fails nothing has been begun.
  const [files, neededToSignIn] = [assetRoutes(), signInFiles()];
  const rates = new VisitorRates(clock);
  const site = (): Site => {
    const urls = publicUrls(live.current);
    // The operator may have given it another name at run time.
    const { name } = parts.relayFacts();
    return { name, basePath, httpUrl: urls.http, relayUrl: urls.relay, version, isPrivate: parts.isPrivate };
  };
  const directory = new Directory(store);
  const nowSeconds = (): number => unixSeconds(clock);
  const texts = new TextThread(clock);
  const sources = {
    store,
    repositories: gitHost.repositories,
    room: new ReadingRoom(clock),
    painter: new Painter(texts),
    clock,
    threads: new ThreadIndex(store),
    quotas: () => ({ repositoryBytes: live.current.repositoryMaxBytes, ownerBytes: live.current.npubMaxBytes }),
    peersOf: status.peersOf,
    outboxOf: status.outboxOf,
    archiveReadOnly: () => live.current.archiveReadOnly,
  };

  // The same for every reader, and metrics are read for it.
  const busy = keptFor({ clock, keptMs: () => busyKeptMs }, async () =>
    busySection(await parts.busyHours.upToNow(), hourOf(clock.nowMs())),
  );
  const admin = createAdminPages({
    api: parts.api,
    site,
    clock,
    log: parts.recentLog,
    rates,
    ownerQuotaBytes: () => live.current.npubMaxBytes,
    busy,
  });

  const limited = (route: Route): Route => ({
    matches: (request) => route.matches(request),
    handle: (request, response) =>
      rates.takePage(request.ip)
        ? route.handle(request, response)
        : sendDocument(request, response, tryLaterPage(site(), 429, retryAfterSeconds)),
  });
  const landing = landingRoute(async (words, choice, signal) => ({
    site: site(),
    relay: parts.relayFacts(),
    repositories: await parts.repositoryCount(),
    events: store.stats.events,
    budgets: live.current,
    activity: words === undefined ? await recentActivity(store, directory, shownActivity, nowSeconds()) : [],
    cards: await cardsOf(store, directory, choice, nowSeconds()),
    ...(words !== undefined && { search: { words, found: await searchRepositories(store, words, signal) } }),
  }));
  const statusRoute = onlyToRead({
    matches: (request) => request.localPath === "/status",
    async handle(request, response) {
      const facts = {
        relays: status.syncStatus(),
        huntingQueue: status.huntingQueue(),
        outbox: status.outbox(),
        machines: status.machines(),
        waiting: await waitingTotals(store),
        repositories: await parts.repositoryCount(),
        refsBehind: gitHost.repositories.countBehind,
        events: store.stats.events,
        busy: await busy(),
        startedSeconds,
        versions: { holdfast: version, git: gitHost.git.version, node: process.versions.node },
      };
      const page = statusPage(site(), facts, (url) => history.of(url));
      sendDocument(request, response, page);
    },
  });
  const nothing: Route = {
    matches: (request) => isReading(request) && wantsPage(request),
    handle: (request, response) => sendDocument(request, response, missingPage(site())),
  };
  const ofRepositories = [
    ...(live.current.grasp06Enable ? prsRoutes(site, sources, rates) : []),
    ...badgeRoutes(site, sources, rates),
    ...ownerRoutes(site, { store, directory, clock }, rates),
  ];
  const code = codeRoutes(site, sources, rates);
  const readably = (routes: readonly Route[]): Route[] =>
    despiteDamage(routes, site, (err) => logger.error({ err }, "a repository cannot be read"));
  return {
    routes: [
      admin.route,
      ...code.redirects,
      ...readably(code.streams),
      ...inTurns([limited(landing), limited(statusRoute), ...readably([...ofRepositories, ...code.pages])], site),
      ...files,
      nothing,
    ],
    signInPage: (status) => signInPage(site(), status),
    signInFiles: neededToSignIn,
    endStreams: () => admin.close(),
    async close() {
      sources.threads.close();
      directory.close();
      await sources.room.close();
      await texts.close();
    },
  };
}

const wantsPage = ({ message }: RouteRequest): boolean => (message.headers.accept ?? "").includes("text/html");
