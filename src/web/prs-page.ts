// The page at `/prs/<npub>/<identifier>.git` (grasp.md, GRASP-06): whose pull requests these are, what for, and which are
// here. An empty one is a page as well, not a 404: to git it is an empty repository, and one URL must not be both.
// Served pull requests only; what waits is not shown (threats.md row 31).

import {
  catalogueRow,
  isReleased,
  type RepositoryName,
  repositoryAddress,
  repositoryKey,
  underPrs,
} from "../catalogue/repositories.js";
import { diskAddress, parseGitPath } from "../git/address.js";
import { type Document, onlyToRead, type Route, type RouteRequest, sendDocument } from "../http/routes.js";
import { type EventId, isEventId, kinds, type Pubkey } from "../nostr/event.js";
import { npubOf, parseNpub } from "../nostr/nip19.js";
import { pullRequestOf } from "../nostr/nip34.js";
import type { Reader } from "../store/port.js";
import { type CiResults, ciMarks, ciResultsOf } from "./ci-results.js";
import { foreign, type Html, html, time } from "./html.js";
import { copyLine, pageDocument, repositoryPath, type Site, threadUrl } from "./layout.js";
import { retryAfterSeconds, tryLaterPage, type VisitorRates } from "./page-limits.js";
import { type Person, peopleOf, personLink } from "./people.js";
import { linked, list, listLine, oidMark, quiet, section, tag } from "./pieces.js";
import { publicMaintainers } from "./public-maintainers.js";
import { ownText, readWithin } from "./read-within.js";
import type { RepositorySources } from "./repository-facts.js";
import { titleOf } from "./talk/thread.js";

interface Target {
  readonly name: RepositoryName;
  readonly owner: Person | undefined;
  readonly isHostedHere: boolean;
}

interface HeldPullRequest {
  readonly id: EventId;
  readonly author: Pubkey;
  readonly kind: number;
  readonly created_at: number;
  readonly title: string;
  readonly tip: string;
}

interface PrsFacts {
  readonly name: RepositoryName;
  readonly signer: Person | undefined;
  readonly pullRequests: readonly HeldPullRequest[];
  readonly ci: CiResults;
  readonly targets: readonly Target[];
  /** There are more than are shown. */
  readonly isCut: boolean;
}

const shownPullRequests = 100;
const maxPullRequestBytes = 4 * 2 ** 20;
const shownTargets = 20;

export function prsRoutes(site: () => Site, sources: RepositorySources, rates: VisitorRates): Route[] {
  const nameIn = (request: RouteRequest): RepositoryName | undefined => {
    const path = parseGitPath(request.localPath);
    const owner = path?.area === "prs" && path.rest === "" && path.identifier !== "" ? parseNpub(path.npub) : undefined;
    return path && owner && { owner, identifier: path.identifier };
  };
  return [
    onlyToRead({
      matches: (request) => nameIn(request) !== undefined,
      async handle(request, response) {
        const name = nameIn(request);
        const page =
          name && rates.takePage(request.ip)
            ? prsPage(site(), await factsOf(sources, name))
            : tryLaterPage(site(), 429, retryAfterSeconds);
        sendDocument(request, response, page);
      },
    }),
  ];
}

async function factsOf({ store, repositories }: RepositorySources, name: RepositoryName): Promise<PrsFacts> {
  const address = diskAddress(underPrs(name));
  const refs = (await repositories.exists(address)) ? (await repositories.open(address).refs()).refs : new Map();
  const ids = [...refs.keys()].map((ref) => ref.slice("refs/nostr/".length)).filter(isEventId) as EventId[];
  const pullRequests: HeldPullRequest[] = [];
  const targets = new Map<string, RepositoryName>();
  const asked = { ids: ids.slice(0, shownPullRequests) };
  const hasMore = await readWithin(store, [asked], maxPullRequestBytes, ({ event }) => {
    const { id, pubkey: author, kind, created_at } = event;
    const said = pullRequestOf(event);
    pullRequests.push({
      id,
      author,
      kind,
      created_at,
      title: titleOf(event),
      tip: ownText(said?.tip.slice(0, 64) ?? ""),
    });
    for (const { pubkey: owner, identifier } of said?.repositories ?? []) {
      if (identifier === name.identifier) targets.set(repositoryKey({ owner, identifier }), { owner, identifier });
    }
  });
  const shown = [...targets.values()].slice(0, shownTargets);
  const ci = await ciResultsOf(store, {
    repositories: shown.map(repositoryAddress),
    commits: [],
    pullRequests: pullRequests.map(({ id }) => id),
    maintainers: await maintainersOfThose(store, shown),
  });
  const people = await peopleOf(store, [name.owner, ...shown.map(({ owner }) => owner)]);
  return {
    name,
    signer: people.get(name.owner),
    pullRequests,
    ci,
    targets: await Promise.all(
      shown.map(async (target) => ({
        name: target,
        owner: people.get(target.owner),
        isHostedHere: isReleased(await catalogueRow(store, target)),
      })),
    ),
    isCut: hasMore || ids.length > shownPullRequests,
  };
}

/** A pull request may name twenty repositories: who maintains them is worked out for a few. */
const judgedTargets = 3;

async function maintainersOfThose(store: Reader, names: readonly RepositoryName[]): Promise<ReadonlySet<Pubkey>> {
  const maintainers = new Set<Pubkey>();
  for (const name of names.slice(0, judgedTargets)) {
    for (const key of (await publicMaintainers(store, name)).members) maintainers.add(key);
  }
  return maintainers;
}

function prsPage(site: Site, facts: PrsFacts): Document {
  const { name, signer, pullRequests } = facts;
  const [newest] = pullRequests;
  const url = `${site.httpUrl}/prs/${npubOf(name.owner)}/${encodeURIComponent(name.identifier)}.git`;
  return pageDocument(site, {
    title: `Pull requests for ${name.identifier.slice(0, 100)} · ${site.name}`,
    main: html`<h1>Pull requests for ${foreign(name.identifier, 120)}</h1>
<p class="lead">By ${signer && personLink(site, signer)}. Contributors may push their pull requests here, also for repositories this server does not host.</p>
${section("held", "Held here")`${
  pullRequests.length === 0
    ? quiet("Nothing yet: no pull request of this contributor for this name has its data on this server.")
    : [list(pullRequests.map((held) => line(site, held, facts.ci))), facts.isCut && quiet("and more")]
}`}
${facts.targets.length > 0 && section("for", "Proposed to")`${list(facts.targets.map((target) => targetLine(site, target)))}`}
${newest !== undefined && section("fetch", "Fetch the newest")`${copyLine("Fetch a pull request with git", `git fetch ${url} refs/nostr/${newest.id}`)}`}
${section(
  "push",
  "If this place is yours",
)`<p>Name it in the <code>clone</code> tag of your pull request (kind 1618), then push the commit:</p>
${copyLine("Address for the clone tag of a pull request", url)}
${copyLine("Push a pull request with git", `git push ${url} HEAD:refs/nostr/<event id>`)}`}`,
  });
}

const line = (site: Site, held: HeldPullRequest, ci: CiResults): Html =>
  listLine(
    linked(threadUrl(site, held), foreign(held.title, 120)),
    [held.kind === kinds.pullRequestUpdate && html` ${tag("update")}`, ciMarks(ci.byPullRequest.get(held.id))],
    html`${oidMark(held.tip)} ${time(held.created_at)}`,
  );

function targetLine(site: Site, { name, owner, isHostedHere }: Target): Html {
  const place = linked(isHostedHere ? repositoryPath(site, name) : undefined, foreign(name.identifier, 120));
  return html`<li>${place}${owner && html` by ${personLink(site, owner)}`} ${tag(isHostedHere ? "hosted here" : "hosted elsewhere")}</li>`;
}
