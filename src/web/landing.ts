// The page at `/`: what this server is, how to use it, what happens on it, and a search over its repositories. Served
// events only.

import type { RepositoryName } from "../catalogue/repositories.js";
import type { Config } from "../config/config.js";
import type { RelayFacts } from "../http/nip11.js";
import { type Document, isRead, type Route, sendDocument, untilClosed } from "../http/routes.js";
import { type EventId, kinds, type NostrEvent, type Pubkey } from "../nostr/event.js";
import { npubOf } from "../nostr/nip19.js";
import { announcementOf, repositoriesTagged, stateOf } from "../nostr/nip34.js";
import type { Reader } from "../store/port.js";
import { bytes, count, counted, foreign, type Html, html, personUrl, shortNpub, time, webUrl } from "./html.js";
import { clientUrl, copyLine, ngitLine, pageDocument, repositoryPath, type Site, threadUrl } from "./layout.js";
import { linked, list, listLine, quiet, section, tag } from "./pieces.js";
import { releasedRow } from "./repository-facts.js";
import { ownText, type Person, peopleOf, personLink, titleOf } from "./threads.js";

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
  readonly search?: { readonly words: string; readonly found: readonly RepositoryEntry[] };
}

export function landingPage(facts: LandingFacts): Document {
  const { site, relay, search } = facts;
  return pageDocument(site, {
    title: search ? `${search.words.slice(0, 60)} · ${site.name}` : site.name,
    description: relay.description,
    current: "home",
    ...(search ? {} : { listenFor: { kinds: activityKinds } }),
    main: html`<h1>${site.name}</h1>
<p class="lead">${relay.description}</p>
<p>A GRASP server: git repositories whose owners announce and sign them over Nostr. No account is needed: to read, clone;
to write, sign with your own key.</p>
${search ? undefined : html`<ul class="jump small"><li><a href="#use">How to use it</a></li><li><a href="#server">About this server</a></li></ul>`}
${searchForm(facts)}
${search ? searchSection(facts, search) : html`<div id="now" data-live>${numbers(facts)}${activitySection(facts)}</div>`}
${search ? undefined : html`${howTo(facts)}${aboutSection(facts)}`}`,
  });
}

const searchForm = ({
  site,
  search,
}: LandingFacts): Html => html`<form class="search" role="search" method="get" action="${site.basePath}/">
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
      html`<span class="mono">${shortNpub(npubOf(entry.name.owner))}</span>, announced ${time(entry.created_at)}${!entry.isHere && " (elsewhere)"}`,
    );
  const said =
    found.length >= maxFound
      ? `The newest ${maxFound} repositories`
      : counted(found.length, "repository", "repositories");
  return html`<section aria-labelledby="found"><h2 id="found">${said} for “${foreign(words, 80)}”</h2>
${found.length > 0 ? list(found.map(line)) : quiet("Words are looked for in names, identifiers and descriptions; the last one may be a beginning.")}
</section>`;
}

function activitySection({ site, activity }: LandingFacts): Html {
  const line = (item: Activity): Html => {
    const repository = repositoryLink(site, item.repository);
    const { type, title, author, created_at } = item;
    const below = html`${time(created_at)} by ${personLink(author)}${title !== undefined && html` in ${repository}`}`;
    if (title === undefined) {
      return listLine(
        type === "pushed" ? html`Push to ${repository}` : html`${repository} was announced`,
        undefined,
        below,
      );
    }
    const thread = linked(threadUrl(site, { ...item, author: author.pubkey }), foreign(title, 140));
    return listLine(html`${thread} ${tag(type)}`, undefined, below);
  };
  const nothing = quiet("Nothing yet. Yours can be the first repository.");
  return section("activity", "Newest activity")`${activity.length > 0 ? list(activity.map(line)) : nothing}`;
}

const howTo = ({ site, relay }: LandingFacts): Html =>
  section("use", "Use it")`<h3>Host a repository with ngit</h3>
<p><a href="https://gitworkshop.dev/ngit">ngit</a> announces, signs and pushes. In your repository:</p>
${copyLine("Announce a repository with ngit", ngitLine(site))}
<p>After that, <code>git push</code> works as ever.</p>
<h3>Clone with git</h3>
${copyLine("Clone with git", `git clone ${site.httpUrl}/<npub>/<identifier>.git`)}
<h3>With any Nostr git client</h3>
<p>Name this server in the announcement (kind 30617), then sign a state (kind 30618) and push what it lists:</p>
<pre tabindex="0" role="group" aria-label="Tags of an announcement"><code>["clone", "${site.httpUrl}/&lt;npub&gt;/&lt;identifier&gt;.git"]
["relays", "${site.relayUrl}"]</code></pre>
<p>${relay.repoAcceptanceCriteria}</p>`;

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
)`<dl class="facts">
<dt>Relay</dt><dd><code>${site.relayUrl}</code></dd>
<dt>Supports</dt><dd>${relay.supportedGrasps.join(", ")}; NIPs ${relay.supportedNips.join(", ")}</dd>
<dt>Budgets</dt><dd>${budgetText(budgets)}</dd>
${relay.pubkey !== undefined && html`<dt>Operator</dt><dd><a class="mono" href="${personUrl(relay.pubkey)}">${shortNpub(npubOf(relay.pubkey))}</a></dd>`}
${relay.contact !== undefined && html`<dt>Contact</dt><dd>${operatorsLink(relay.contact)}</dd>`}
${relay.postingPolicy !== undefined && html`<dt>Policy</dt><dd>${operatorsLink(relay.postingPolicy)}</dd>`}
${relay.curation !== undefined && html`<dt>Curation</dt><dd>${relay.curation}</dd>`}
<dt>Software</dt><dd>Holdfast ${site.version}</dd>
</dl>`;

/** Facts are asked for with the words of a search, if there are any. */
export function landingRoute(
  facts: (words: string | undefined, signal: AbortSignal) => LandingFacts | Promise<LandingFacts>,
): Route {
  return {
    matches: (request) => isRead(request, "/"),
    async handle(request, response) {
      const words = request.query.get("q")?.trim().slice(0, maxSearchCharacters);
      sendDocument(request, response, landingPage(await facts(words || undefined, untilClosed(response))));
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
  readonly type: "announced" | "pushed" | "issue" | "pull request" | "patch";
  readonly id: EventId;
  readonly kind: number;
  readonly author: Person;
  readonly created_at: number;
  /** Of an issue, pull request or patch. */
  readonly title: string | undefined;
  readonly repository: RepositoryEntry;
}

const maxTextCharacters = 2_000;
const looked = 40;
/** Longer events are left out: reading forty of a megabyte for a line each would cost everybody (threats row 33). */
const longestShown = 64 * 1024;

const types: ReadonlyMap<number, Activity["type"]> = new Map([
  [kinds.announcement, "announced"],
  [kinds.state, "pushed"],
  [kinds.issue, "issue"],
  [kinds.pullRequest, "pull request"],
  [kinds.patch, "patch"],
]);

export const activityKinds: readonly number[] = [...types.keys()];

export async function recentActivity(store: Reader, limit: number): Promise<Activity[]> {
  const found: Omit<Activity, "author">[] = [];
  const authors: Pubkey[] = [];
  for await (const page of store.query([{ kinds: activityKinds, limit: looked }], { limit: looked })) {
    for (const row of page) {
      if (found.length === limit || row.size > longestShown) continue;
      const { event } = row;
      const type = types.get(event.kind);
      const repository = type && (await repositoryOf(store, event));
      if (!type || !repository) continue;
      authors.push(event.pubkey);
      found.push({
        type,
        id: event.id,
        kind: event.kind,
        created_at: event.created_at,
        title: type === "announced" || type === "pushed" ? undefined : titleOf(event),
        repository,
      });
    }
  }
  const people = await peopleOf(store, authors);
  return found.map((one, index) => ({ ...one, author: people.get(authors[index] as Pubkey) as Person }));
}

async function repositoryOf(store: Reader, event: NostrEvent): Promise<RepositoryEntry | undefined> {
  if (event.kind === kinds.announcement) return await entryOf(store, event);
  const state = stateOf(event);
  const tagged = state
    ? [{ pubkey: state.author, identifier: state.identifier }]
    : repositoriesTagged(event).slice(0, 5);
  for (const { pubkey, identifier } of tagged) {
    const entry = await storedEntry(store, pubkey, identifier);
    if (entry) return entry;
  }
  return undefined;
}

async function storedEntry(store: Reader, pubkey: Pubkey, identifier: string): Promise<RepositoryEntry | undefined> {
  const stored = await store.latest({ kind: kinds.announcement, pubkey, identifier });
  return stored && (await entryOf(store, stored.event));
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
