// The addresses of a repository's pages: takes them apart, finds the repository and the ref, picks the page. Pages answer
// GET and HEAD. What git asks for below a repository never comes here (git/http.ts).

import type { ServerResponse } from "node:http";
import type { Clock } from "../../base/clock.js";
import { type RepositoryName, repositoryAddress } from "../../catalogue/repositories.js";
import { parseGitPath } from "../../git/address.js";
import type { ReadingRoom } from "../../git/reading/reading-room.js";
import {
  type Document,
  isReading,
  onlyToRead,
  type Route,
  type RouteRequest,
  sendDocument,
  sendLongDocument,
  untilClosed,
} from "../../http/routes.js";
import { parseNpub } from "../../nostr/nip19.js";
import { isOid, type Oid } from "../../nostr/nip34.js";
import { governingState } from "../../operator/repositories.js";
import { type CiResults, ciMarks, ciResultsOf } from "../ci-results.js";
import { repositoryFeed } from "../feeds.js";
import { html, time } from "../html.js";
import { repositoryPath, type Site } from "../layout.js";
import {
  missingRepositoryPage,
  retryAfterSeconds,
  tookTooLongPage,
  tryLaterPage,
  type VisitorRates,
  waitingRepositoryPage,
} from "../page-limits.js";
import { peopleOf, personLink } from "../people.js";
import { publicMaintainers } from "../public-maintainers.js";
import { comparisonOf, factsOf, findRepository, type RepositorySources } from "../repository-facts.js";
import { repositoryPage } from "../repository-page.js";
import { countOpen, proposalsOf } from "../talk/proposals.js";
import { type Talk, talkPage } from "../talk/talk-routes.js";
import { archivedOf, sendArchive } from "./archive.js";
import { blamePage } from "./blame-page.js";
import { blobPage } from "./blob-page.js";
import { branchesPage } from "./branches-page.js";
import type { Painter } from "./colours/painted.js";
import { commitPage } from "./commit-page.js";
import { commitsPage } from "./commits-page.js";
import { comparedOf, comparePage } from "./compare-page.js";
import { copiesPage, countCopies } from "./copies-page.js";
import { findPage } from "./find-page.js";
import { branchPicker, type Looking, type Shown, sorryPage } from "./looking.js";
import { type CodePath, codePathOf, codeUrl, type Place, placeOf, redirectOf, startPlace } from "./paths.js";
import { sendRaw } from "./raw.js";
import { folderView, treePage } from "./tree-page.js";

export interface CodeSources extends RepositorySources {
  readonly room: ReadingRoom;
  readonly painter: Painter;
  readonly clock: Clock;
}

interface Asked {
  readonly name: RepositoryName;
  readonly rest: string;
}

function askedFor(localPath: string): Asked | undefined {
  const path = parseGitPath(localPath);
  const owner = path && path.area === "main" ? parseNpub(path.npub) : undefined;
  if (!path || !owner || !path.identifier.isWellFormed()) return undefined;
  return { name: { owner, identifier: path.identifier }, rest: path.rest };
}

/** `pages` are made in turns; `streams` send as fast as their readers take them, and have places of their own. */
export function codeRoutes(
  site: () => Site,
  sources: CodeSources,
  rates: VisitorRates,
): { readonly redirects: readonly Route[]; readonly pages: readonly Route[]; readonly streams: readonly Route[] } {
  const isStream = ({ localPath }: RouteRequest): boolean => /^\/[^/]+\/[^/]+\/(?:raw|archive)\//.test(localPath);
  const answer = async (request: RouteRequest, response: ServerResponse): Promise<void> => {
    const here = site();
    const asked = askedFor(request.localPath);
    if (!asked) return sendDocument(request, response, missingRepositoryPage(here));
    if (!rates.takePage(request.ip)) return sendDocument(request, response, tryLaterPage(here, 429, retryAfterSeconds));
    const shown = await show(here, sources, rates, asked, request, response);
    if (shown === "sent") return;
    await send(here, request, response, shown);
  };
  const isCodePage = (request: RouteRequest): boolean => parseGitPath(request.localPath)?.area === "main";
  return {
    redirects: [
      {
        matches: (request) => isReading(request) && redirectOf(request.localPath) !== undefined,
        handle: (request, response) =>
          redirect(response, `${site().basePath}${redirectOf(request.localPath) ?? ""}${queryOf(request)}`),
      },
    ],
    streams: [onlyToRead({ matches: (request) => isStream(request) && isCodePage(request), handle: answer })],
    pages: [onlyToRead({ matches: isCodePage, handle: answer })],
  };
}

function queryOf({ message }: RouteRequest): string {
  const at = (message.url ?? "").indexOf("?");
  return at < 0 ? "" : (message.url ?? "").slice(at);
}

function redirect(response: ServerResponse, location: string): void {
  response.writeHead(302, { Location: location, "Cache-Control": "no-cache", "Content-Length": 0 }).end();
}

async function send(
  site: Site,
  request: RouteRequest,
  response: ServerResponse,
  shown: Exclude<Shown, "missing">,
): Promise<void> {
  if (shown === "late") sendDocument(request, response, tookTooLongPage(site));
  else if (shown === "busy") sendDocument(request, response, tryLaterPage(site, 503, retryAfterSeconds));
  else if (shown === "too-many") sendDocument(request, response, tryLaterPage(site, 429, retryAfterSeconds));
  else if ("redirect" in shown) redirect(response, shown.redirect);
  else await sendLongDocument(request, response, shown);
}

async function show(
  site: Site,
  sources: CodeSources,
  rates: VisitorRates,
  { name, rest }: Asked,
  request: RouteRequest,
  response: ServerResponse,
): Promise<Exclude<Shown, "missing"> | "sent"> {
  const found = await findRepository(sources, name);
  if (found === "waiting") return { ...waitingRepositoryPage(site), status: rest === "" ? 200 : 404 };
  if (found === "unknown") return missingRepositoryPage(site);
  const { ip, query } = request;
  const visitor = { ip, signal: untilClosed(response), mayStartGit: () => rates.takeGitPage(ip) };
  const { room, painter } = sources;
  const quiet: Looking = { site, found, root: repositoryPath(site, name), room, painter, visitor, query };
  const talk = { store: sources.store, threads: await sources.threads.of(name) };
  const looking = await withTalk(quiet, talk);
  if (rest === "") return await firstPage(looking, sources, talk);
  const path = codePathOf(rest);
  const shown = path ? await pageOf(looking, sources, talk, rates, path, request, response) : "missing";
  return shown === "missing" ? nothingThere(looking) : shown;
}

const nothingThere = (looking: Looking): Document =>
  sorryPage(
    looking,
    "code",
    undefined,
    404,
    "Nothing here",
    html`This repository has no such page, branch or file. It may have been renamed or removed: <a href="${looking.root}">look at what there is</a>.`,
  );

/** The numbers beside the tabs. */
async function withTalk(looking: Looking, { threads }: Talk): Promise<Looking> {
  const proposals = await proposalsOf(looking, threads);
  const counts = {
    openIssues: countOpen(threads.issues),
    openProposals: countOpen(proposals),
    maintainers: [...threads.maintainers],
  };
  return { ...looking, found: { ...looking.found, talk: counts } };
}

async function firstPage(
  looking: Looking,
  sources: CodeSources,
  { threads }: Talk,
): Promise<Exclude<Shown, "missing">> {
  const { site, found, room, visitor } = looking;
  const facts = await factsOf(sources, found, threads, visitor.signal);
  const copies = countCopies(sources.peersOf(found.announcement));
  const place = startPlace(found.table);
  const commit = place && (await room.commit(found.repository, place.commit));
  if (!place || !commit) return repositoryPage(site, facts, undefined, copies);
  const tree = { kind: "folder", name: Buffer.alloc(0), oid: commit.tree } as const;
  const view = await folderView(looking, place, tree, commit);
  const picker = branchPicker(looking, place, "tree");
  if (view === "too-large") {
    const note = html`<p class="note">Its files are too many for a page: <code>git clone</code> has them all.</p>`;
    return repositoryPage(site, facts, { picker, view: note }, copies);
  }
  return view.ok ? repositoryPage(site, facts, { picker, view: view.value }, copies) : view.code;
}

async function pageOf(
  looking: Looking,
  sources: CodeSources,
  talk: Talk,
  rates: VisitorRates,
  { page, segments }: CodePath,
  request: RouteRequest,
  response: ServerResponse,
): Promise<Shown | "sent"> {
  const { found, root } = looking;
  switch (page) {
    case "branches":
      return segments.length > 0 ? "missing" : await branchesOf(looking, sources);
    case "tags":
      return { redirect: `${root}/branches` };
    case "copies":
      return segments.length > 0
        ? "missing"
        : copiesPage(looking, sources.peersOf(found.announcement), sources.outboxOf(found.announcement));
    case "activity.atom":
      return segments.length > 0 ? "missing" : await repositoryFeed(looking, talk);
    case "issues":
    case "pulls":
    case "text":
      return await talkPage(looking, talk, page, segments.map(String));
    case "commit": {
      const [oid] = segments.map(String);
      return segments.length === 1 && isOid(oid)
        ? await reached(looking, oid, async (isProposal) =>
            commitPage(looking, oid, isProposal, ciMarks((await ciOf(looking, sources, [oid])).get(oid))),
          )
        : "missing";
    }
    case "compare": {
      const [one, other] = (comparedOf(segments) ?? []).map((part) => placeOf(found.table, part));
      if (!one || !other) return "missing";
      return await reachedPlace(looking, one, (isOneProposal) =>
        reachedPlace(looking, other, (isOtherProposal) => {
          const proposed = [...(isOneProposal ? [one.commit] : []), ...(isOtherProposal ? [other.commit] : [])];
          return comparePage(looking, one, other, proposed);
        }),
      );
    }
    case "archive": {
      const archived = archivedOf(segments);
      const place = archived && placeOf(found.table, archived.ref);
      if (!place || place.path.length > 0) return "missing";
      return await reachedPlace(looking, place, async (): Promise<Shown | "sent"> => {
        if (!rates.takeArchive(request.ip)) return "too-many";
        return await sendArchive(looking, place, archived.format, request, response, sources.clock);
      });
    }
    case "find":
    case "tree":
    case "blob":
    case "blame":
    case "raw":
    case "commits": {
      if (segments.length === 0) {
        const start = startPlace(found.table);
        const isWhole = page === "commits" || page === "find";
        return start ? { redirect: isWhole ? codeUrl(root, page, start.inAddress) : root } : "missing";
      }
      const place = placeOf(found.table, segments);
      if (!place) return "missing";
      return await reachedPlace(looking, place, async (isProposal): Promise<Shown | "sent"> => {
        if (page === "tree") return await treePage(looking, place, isProposal);
        if (page === "blob") return await blobPage(looking, place, isProposal);
        if (page === "blame") return await blamePage(looking, place, isProposal);
        if (page === "find") return await findPage(looking, place, isProposal);
        if (page === "commits")
          return await commitsPage(looking, place, isProposal, (oids) => ciOf(looking, sources, oids));
        return await sendRaw(looking, place, request, response, sources.clock);
      });
    }
    default:
      return "missing";
  }
}

/** What a branch or tag names is reached by it. */
const reachedPlace = <Answer>(
  looking: Looking,
  place: Place,
  then: (isProposal: boolean) => Promise<Answer>,
): Promise<Answer | Shown> => (place.kind === "commit" ? reached(looking, place.commit, then) : then(false));

/** A commit by its id is shown only while something reaches it. */
async function reached<Answer>(
  { room, found, visitor }: Looking,
  oid: Place["commit"],
  then: (isProposal: boolean) => Promise<Answer>,
): Promise<Answer | Shown> {
  const reach = await room.reach(found.repository, found.table, oid, visitor);
  if (!reach.ok) return reach.code;
  return reach.value === "nothing" ? "missing" : await then(reach.value === "proposal");
}

async function ciOf(
  { found, visitor }: Looking,
  { store }: CodeSources,
  commits: readonly Oid[],
): Promise<CiResults["byCommit"]> {
  const { members } = await publicMaintainers(store, found.name);
  const question = { repositories: [repositoryAddress(found.name)], commits, pullRequests: [], maintainers: members };
  return (await ciResultsOf(store, question, visitor.signal)).byCommit;
}

async function branchesOf(looking: Looking, { store }: CodeSources): Promise<Shown> {
  const { found } = looking;
  const state = await governingState(store, found.row);
  const signer = state && (await peopleOf(store, [state.author])).get(state.author);
  const signedBy =
    state && html`${signer && html`${personLink(looking.site, signer)} `}${time(state.event.created_at)}`;
  return await branchesPage(looking, await comparisonOf(found.table, state), signedBy);
}
