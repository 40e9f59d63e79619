// The page at `/`: the repositories of this server and a search over them, what happens in them, and, folded, how to begin.
// Served events only.

import type { RepositoryName } from "../catalogue/repositories.js";
import type { Config } from "../config/config.js";
import type { RelayFacts } from "../http/nip11.js";
import { type Document, isRead, type Route, sendDocument, untilClosed } from "../http/routes.js";
import { kinds, type NostrEvent, type Pubkey } from "../nostr/event.js";
import { npubOf } from "../nostr/nip19.js";
import { announcementOf } from "../nostr/nip34.js";
import type { Reader } from "../store/port.js";
import type { Directory, DirectoryEntry } from "./directory.js";
import { bytes, count, counted, foreign, type Html, html, shortNpub, time, webUrl } from "./html.js";
import { clientUrl, copyLine, ngitLine, ownerPath, pageDocument, repositoryPath, type Site } from "./layout.js";
import { type Person, peopleOf, shortPersonLink } from "./people.js";
import { linked, list, listLine, quiet, section, tag } from "./pieces.js";
import { ownText } from "./read-within.js";
import { type CardChoice, type Cards, cardChoiceIn, cardsView, sortEntries } from "./repository-cards.js";
import { releasedRow } from "./repository-facts.js";
import { threadPath } from "./talk/list-page.js";

type Budgets = Pick<
  Config,
  "maxEventBytes" | "pushMaxBytes" | "maxObjectBytes" | "repositoryMaxBytes" | "npubMaxBytes"
>;

export interface LandingFacts {
  readonly site: Site;
  /** What NIP-11 says: the page says the same. */
  readonly relay: RelayFacts;
  readonly repositories: number;
  readonly events: number;
  readonly budgets: Budgets;
  readonly activity: readonly Activity[];
  readonly cards: Cards;
  readonly search?: { readonly words: string; readonly found: readonly RepositoryEntry[] };
}

export function landingPage(facts: LandingFacts): Document {
  const { site, relay, search } = facts;
  const home = homePath(site);
  return pageDocument(site, {
    title: search ? `${search.words.slice(0, 60)} · ${site.name}` : site.name,
    description: relay.description,
    current: "home",
    isWide: true,
    ...(search ? {} : { listenFor: [{ kinds: activityKinds }] }),
    main: html`<h1>${site.name}</h1>
<p class="lead">${relay.description}</p>
${searchForm(facts)}
${
  search
    ? searchSection(facts, search)
    : html`<div id="now" data-live>${numbers(facts)}
<div class="beside"><section aria-labelledby="repositories"><h2 id="repositories">${facts.cards.choice.topic === undefined ? "Repositories" : html`Repositories about ${foreign(facts.cards.choice.topic, 40)}`}</h2>
${cardsView(site, home, facts.cards)}</section>
${facts.activity.length > 0 && activitySection(facts)}</div></div>`
}
${search ? undefined : html`${howTo(facts)}${aboutSection(facts)}`}`,
  });
}

const homePath = ({ basePath }: Site): string => `${basePath}/`;

const searchForm = ({
  site,
  search,
}: LandingFacts): Html => html`<form class="search" role="search" method="get" action="${homePath(site)}">
<label for="q">Search repositories</label>
<input type="search" id="q" name="q" maxlength="${maxSearchCharacters}" value="${search?.words ?? ""}" autocomplete="off">
<button type="submit">Search</button>
</form>`;

const numbers = ({ repositories, events }: LandingFacts): Html => html`<ul class="numbers">
<li><b>${count(repositories)}</b> ${repositories === 1 ? "repository" : "repositories"}</li>
<li><b>${count(events)}</b> ${events === 1 ? "event" : "events"}</li>
</ul>`;

function repositoryLink(site: Site, { name, title, isHere }: RepositoryEntry): Html {
  return linked(isHere ? repositoryPath(site, name) : clientUrl(site, name), foreign(title, 100));
}

function searchSection({ site }: LandingFacts, { words, found }: NonNullable<LandingFacts["search"]>): Html {
  const line = (entry: RepositoryEntry): Html =>
    listLine(
      repositoryLink(site, entry),
      entry.description !== "" && html`\n<span class="text">${foreign(entry.description, 240)}</span>`,
      html`<a class="mono" href="${ownerPath(site, entry.name.owner)}">${shortNpub(npubOf(entry.name.owner))}</a>, announced ${time(entry.created_at)}${!entry.isHere && " (elsewhere)"}`,
    );
  const said =
    found.length >= maxFound
      ? `The newest ${maxFound} repositories`
      : counted(found.length, "repository", "repositories");
  return html`<section aria-labelledby="found"><h2 id="found">${said} for “${foreign(words, 80)}”</h2>
${found.length > 0 ? list(found.map(line)) : quiet("Words are looked for in names, identifiers and descriptions; the last one may be a beginning.")}
<p><a href="${homePath(site)}">All repositories</a></p></section>`;
}

/** One line for each repository: what happened there last. */
function activitySection({ site, activity }: LandingFacts): Html {
  const line = ({ entry, type, author, at }: Activity): Html => {
    const root = repositoryPath(site, entry.name);
    const repository = html`<a href="${root}">${foreign(entry.title, 80)}</a>`;
    const below = html`${time(at)}${author && html` by ${shortPersonLink(site, author)}`}`;
    if (type === "announced") return listLine(html`${repository} was announced`, undefined, below);
    if (type === "pushed") return listLine(html`Push to ${repository}`, undefined, below);
    const { talk } = entry;
    const thread = talk && html`<a href="${threadPath(root, talk)}">${foreign(talk.title, 120)}</a>`;
    return listLine(html`${thread} ${tag(type)}`, undefined, html`${below} in ${repository}`);
  };
  return section("activity", "Newest activity")`${list(activity.map(line))}`;
}

const howTo = ({ site, relay }: LandingFacts): Html =>
  section(
    "use",
    "How to begin",
  )`<details><summary>Host, clone and push: no account is needed, you sign with your own key</summary>
<p>A GRASP server: git repositories whose owners announce and sign them over Nostr. To read, clone; to write, sign.</p>
<h3>Host a repository with ngit</h3>
<p><a href="https://gitworkshop.dev/ngit">ngit</a> announces, signs and pushes. In your repository:</p>
${copyLine("Announce a repository with ngit", ngitLine(site))}
<p>After that, <code>git push</code> works as ever.</p>
<h3>Clone with git</h3>
${copyLine("Clone with git", `git clone ${site.httpUrl}/<npub>/<identifier>.git`)}
<h3>With any Nostr git client</h3>
<p>Name this server in the announcement (kind 30617), then sign a state (kind 30618) and push what it lists:</p>
<pre tabindex="0" role="group" aria-label="Tags of an announcement"><code>["clone", "${site.httpUrl}/&lt;npub&gt;/&lt;identifier&gt;.git"]
["relays", "${site.relayUrl}"]</code></pre>
<p>${relay.repoAcceptanceCriteria}</p></details>`;

/** The operator's own words: an address of the web or of mail is a link. */
function operatorsLink(text: string): Html {
  const url = webUrl(text) ?? (/^mailto:[^\s]+$/.test(text) ? text : undefined);
  return url === undefined ? html`${text}` : html`<a href="${url}">${text.replace(/^mailto:/, "")}</a>`;
}

const budgetText = (most: Budgets): string =>
  `${bytes(most.repositoryMaxBytes)} a repository, ${bytes(most.npubMaxBytes)} for all of one key; ${bytes(most.pushMaxBytes)} a push, ${bytes(most.maxObjectBytes)} a file, ${bytes(most.maxEventBytes)} an event`;

const aboutSection = ({ site, relay, budgets }: LandingFacts): Html => section(
  "server",
  "About this server",
)`<details><summary>Address, limits, operator</summary><dl class="facts">
<dt>Relay</dt><dd><code>${site.relayUrl}</code></dd>
<dt>Supports</dt><dd>${relay.supportedGrasps.join(", ")}; NIPs ${relay.supportedNips.join(", ")}</dd>
<dt>Budgets</dt><dd>${budgetText(budgets)}</dd>
${relay.pubkey !== undefined && html`<dt>Operator</dt><dd><a class="mono" href="${ownerPath(site, relay.pubkey)}">${shortNpub(npubOf(relay.pubkey))}</a></dd>`}
${relay.contact !== undefined && html`<dt>Contact</dt><dd>${operatorsLink(relay.contact)}</dd>`}
${relay.postingPolicy !== undefined && html`<dt>Policy</dt><dd>${operatorsLink(relay.postingPolicy)}</dd>`}
${relay.curation !== undefined && html`<dt>Curation</dt><dd>${relay.curation}</dd>`}
<dt>Software</dt><dd>Holdfast ${site.version}</dd>
</dl></details>`;

/** Facts are asked for with the words of a search, if there are any. */
export function landingRoute(
  facts: (words: string | undefined, choice: CardChoice, signal: AbortSignal) => LandingFacts | Promise<LandingFacts>,
): Route {
  return {
    matches: (request) => isRead(request, "/"),
    async handle(request, response) {
      const words = request.query.get("q")?.trim().slice(0, maxSearchCharacters);
      const choice = cardChoiceIn(request.query);
      sendDocument(request, response, landingPage(await facts(words || undefined, choice, untilClosed(response))));
    },
  };
}

export interface RepositoryEntry {
  readonly name: RepositoryName;
  readonly title: string;
  readonly description: string;
  /** Has a page on this server; others are known here by their announcement only. */
  readonly isHere: boolean;
  readonly created_at: number;
}

export interface Activity {
  readonly entry: DirectoryEntry;
  readonly type: "announced" | "pushed" | "issue" | "pull request" | "patch";
  readonly author: Person | undefined;
  readonly at: number;
}

const maxTextCharacters = 2_000;

const types: ReadonlyMap<number, Activity["type"]> = new Map([
  [kinds.announcement, "announced"],
  [kinds.state, "pushed"],
  [kinds.issue, "issue"],
  [kinds.pullRequest, "pull request"],
  [kinds.patch, "patch"],
]);

export const activityKinds: readonly number[] = [...types.keys()];

/** What happened last in each repository, newest first. */
export async function recentActivity(
  store: Reader,
  directory: Directory,
  limit: number,
  nowSeconds: number,
): Promise<Activity[]> {
  const newest = sortEntries(await directory.all(), "activity", nowSeconds).slice(0, limit);
  const found: (Omit<Activity, "author"> & { readonly by: Pubkey | undefined })[] = [];
  for (const entry of newest) {
    const { push, talk, announcedAt, name } = entry;
    if (talk && talk.at >= (push?.at ?? 0) && talk.at >= announcedAt)
      found.push({ entry, type: types.get(talk.kind) ?? "issue", by: talk.author, at: talk.at });
    else if (push && push.at >= announcedAt) {
      const state = push.state && (await store.event(push.state));
      found.push({ entry, type: "pushed", by: state ? state.event.pubkey : undefined, at: push.at });
    } else found.push({ entry, type: "announced", by: name.owner, at: announcedAt });
  }
  const people = await peopleOf(
    store,
    found.flatMap(({ by }) => by ?? []),
  );
  return found.map(({ by, ...one }) => ({ ...one, author: by && people.get(by) }));
}

async function entryOf(store: Reader, event: NostrEvent): Promise<RepositoryEntry | undefined> {
  const announcement = announcementOf(event);
  if (!announcement) return undefined;
  const name = { owner: announcement.owner, identifier: announcement.identifier };
  const row = await releasedRow(store, name);
  return {
    name,
    title: ownText((announcement.name.trim() || announcement.identifier).slice(0, maxTextCharacters)),
    description: ownText(announcement.description.trim().slice(0, maxTextCharacters)),
    isHere: row !== undefined && row !== "waiting",
    created_at: event.created_at,
  };
}

export const maxFound = 50;
export const maxSearchCharacters = 200;

/** NIP-50: words of the name, identifier and description; the last one may be a beginning. */
export async function searchRepositories(
  store: Reader,
  words: string,
  signal: AbortSignal,
): Promise<RepositoryEntry[]> {
  const search = words.slice(0, maxSearchCharacters);
  const found: RepositoryEntry[] = [];
  for await (const page of store.query([{ kinds: [kinds.announcement], search, limit: maxFound }], {
    limit: maxFound,
    signal,
  })) {
    for (const { event } of page) {
      const entry = await entryOf(store, event);
      if (entry) found.push(entry);
    }
  }
  return found;
}
