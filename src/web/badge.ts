// `/badge/<npub>/<identifier>.svg`: a small picture that says whether a repository's refs are as its maintainers signed
// them, for READMEs elsewhere.

import type { RepositoryName } from "../catalogue/repositories.js";
import { diskAddress, type GitPath, parseGitPath } from "../git/address.js";
import { onlyToRead, type Route, type RouteRequest, sendDocument } from "../http/routes.js";
import { parseNpub } from "../nostr/nip19.js";
import { governingState } from "../operator/repositories.js";
import { html } from "./html.js";
import type { Site } from "./layout.js";
import { retryAfterSeconds, tryLaterPage, type VisitorRates } from "./page-limits.js";
import { comparisonOf, type OverallStanding, type RepositorySources, releasedRow } from "./repository-facts.js";
import { overallWords } from "./repository-page.js";

function nameOf(path: GitPath | undefined): RepositoryName | undefined {
  const owner = path && path.area === "main" ? parseNpub(path.npub) : undefined;
  return path && owner && path.identifier.isWellFormed() ? { owner, identifier: path.identifier } : undefined;
}

export function badgeRoutes(site: () => Site, sources: RepositorySources, rates: VisitorRates): Route[] {
  return [
    onlyToRead({
      matches: (request) => badgePathOf(request) !== undefined,
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
    }),
  ];
}

function badgePathOf({ localPath }: RouteRequest): GitPath | undefined {
  if (!localPath.startsWith("/badge/") || !localPath.endsWith(".svg")) return undefined;
  const path = parseGitPath(`${localPath.slice("/badge".length, -".svg".length)}.git`);
  return path?.rest === "" ? path : undefined;
}

async function badgeWord({ store, repositories }: RepositorySources, name: RepositoryName): Promise<BadgeWord> {
  const row = await releasedRow(store, name);
  if (row === undefined) return "unknown";
  if (row === "waiting") return "waiting";
  const table = await repositories.open(diskAddress(name)).refs();
  return (await comparisonOf(table, await governingState(store, row))).overall;
}

type BadgeWord = OverallStanding | "waiting" | "unknown";

const colours: Readonly<Record<BadgeWord, string>> = {
  complete: "#1d6b3f",
  partial: "#8a5300",
  differs: "#a3271f",
  none: "#566068",
  waiting: "#566068",
  unknown: "#566068",
};

const widthOf = (text: string): number => Math.round(text.length * 6.6 + 12);

function badge(state: BadgeWord): string {
  const label = "branches";
  const word = state === "waiting" ? "waiting for data" : state === "unknown" ? "unknown" : overallWords[state];
  const [left, right] = [widthOf(label), widthOf(word)];
  return html`<svg xmlns="http://www.w3.org/2000/svg" width="${left + right}" height="20" role="img" aria-label="${label}: ${word}"><title>${label}: ${word}</title><clipPath id="r"><rect width="${left + right}" height="20" rx="4"/></clipPath><g clip-path="url(#r)"><rect width="${left}" height="20" fill="#333a3e"/><rect x="${left}" width="${right}" height="20" fill="${colours[state]}"/></g><g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11"><text x="${left / 2}" y="14">${label}</text><text x="${left + right / 2}" y="14">${word}</text></g></svg>`.toString();
}
