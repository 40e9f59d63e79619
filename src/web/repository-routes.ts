// The addresses of a repository's page and badge: takes the path apart, looks, picks the page. GET and HEAD of the
// repository's own URL only; git always asks for something below it.

import type { ServerResponse } from "node:http";
import type { RepositoryName } from "../catalogue/repositories.js";
import { diskAddress, type GitPath, parseGitPath } from "../git/address.js";
import { type Document, isReading, type Route, type RouteRequest, sendDocument, untilClosed } from "../http/routes.js";
import { parseNpub } from "../nostr/nip19.js";
import { governingState } from "../operator/repositories.js";
import { html } from "./html.js";
import type { Site } from "./layout.js";
import {
  missingRepositoryPage,
  retryAfterSeconds,
  tryLaterPage,
  type VisitorRates,
  waitingRepositoryPage,
} from "./page-limits.js";
import {
  comparisonOf,
  lookAtRepository,
  type OverallStanding,
  type RepositorySources,
  releasedRow,
} from "./repository-facts.js";
import { repositoryPage } from "./repository-page.js";

function nameOf(path: GitPath | undefined): RepositoryName | undefined {
  const owner = path && path.area === "main" ? parseNpub(path.npub) : undefined;
  return path && owner && path.identifier.isWellFormed() ? { owner, identifier: path.identifier } : undefined;
}

export function repositoryRoutes(site: () => Site, sources: RepositorySources, rates: VisitorRates): Route[] {
  const pagePath = (request: RouteRequest): GitPath | undefined => {
    const path = parseGitPath(request.localPath);
    return path?.rest === "" ? path : undefined;
  };
  return [
    {
      matches: (request) => isReading(request) && pagePath(request) !== undefined,
      async handle(request, response) {
        const name = nameOf(pagePath(request));
        const page = name
          ? await pageOf(site(), sources, rates, name, request, response)
          : missingRepositoryPage(site());
        sendDocument(request, response, page);
      },
    },
    {
      matches: (request) => isReading(request) && badgePathOf(request) !== undefined,
      async handle(request, response) {
        if (!rates.takePage(request.ip))
          return sendDocument(request, response, tryLaterPage(site(), 429, retryAfterSeconds));
        const name = nameOf(badgePathOf(request));
        const word = name ? await badgeWord(sources, name) : "unknown";
        const status = word === "unknown" ? 404 : 200;
        // Shown on pages of others: a minute old is fresh enough.
        const cacheControl = "public, max-age=60";
        sendDocument(request, response, { status, contentType: "image/svg+xml", body: badge(word), cacheControl });
      },
    },
  ];
}

/** `/badge/<npub>/<identifier>.svg` */
function badgePathOf({ localPath }: RouteRequest): GitPath | undefined {
  if (!localPath.startsWith("/badge/") || !localPath.endsWith(".svg")) return undefined;
  const path = parseGitPath(`${localPath.slice("/badge".length, -".svg".length)}.git`);
  return path?.rest === "" ? path : undefined;
}

async function pageOf(
  site: Site,
  sources: RepositorySources,
  rates: VisitorRates,
  name: RepositoryName,
  { ip }: RouteRequest,
  response: ServerResponse,
): Promise<Document> {
  if (!rates.takePage(ip)) return tryLaterPage(site, 429, retryAfterSeconds);
  const visitor = { ip, signal: untilClosed(response), mayStartGit: () => rates.takeGitPage(ip) };
  const look = await lookAtRepository(sources, name, visitor);
  switch (look.type) {
    case "found":
      return repositoryPage(site, look.facts);
    case "waiting":
      return waitingRepositoryPage(site);
    case "unknown":
      return missingRepositoryPage(site);
    case "too-many":
      return tryLaterPage(site, 429, retryAfterSeconds);
    case "busy":
      return tryLaterPage(site, 503, retryAfterSeconds);
  }
}

async function badgeWord({ store, repositories }: RepositorySources, name: RepositoryName): Promise<BadgeWord> {
  const row = await releasedRow(store, name);
  if (row === undefined) return "unknown";
  if (row === "waiting") return "waiting";
  const table = await repositories.open(diskAddress(name)).refs();
  return comparisonOf(table, await governingState(store, row)).overall;
}

// A small picture that says whether a repository's refs are as its maintainers signed them, for READMEs elsewhere.

type BadgeWord = OverallStanding | "waiting" | "unknown";

const colours: Readonly<Record<BadgeWord, string>> = {
  "in line": "#1d6b3f",
  partial: "#8a5300",
  differs: "#a3271f",
  none: "#566068",
  waiting: "#566068",
  unknown: "#566068",
};

const widthOf = (text: string): number => Math.round(text.length * 6.6 + 12);

function badge(word: BadgeWord): string {
  const label = "state";
  const [left, right] = [widthOf(label), widthOf(word)];
  return html`<svg xmlns="http://www.w3.org/2000/svg" width="${left + right}" height="20" role="img" aria-label="${label}: ${word}"><title>${label}: ${word}</title><clipPath id="r"><rect width="${left + right}" height="20" rx="4"/></clipPath><g clip-path="url(#r)"><rect width="${left}" height="20" fill="#333a3e"/><rect x="${left}" width="${right}" height="20" fill="${colours[word]}"/></g><g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11"><text x="${left / 2}" y="14">${label}</text><text x="${left + right / 2}" y="14">${word}</text></g></svg>`.toString();
}
