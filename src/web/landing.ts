// The page at `/`: what this server is, how to use it, what happens on it, and a search over its repositories.

import { type Document, isRead, type Route, type RouteRequest, sendDocument } from "../http/routes.js";
import type { Pubkey } from "../nostr/ids.js";
import { npubOf } from "../nostr/nip19.js";
import { type Activity, activityKinds, maxFound, maxSearchCharacters, type RepositoryEntry } from "./activity.js";
import { foreign, type Html, html, webUrl } from "./html.js";
import { copyLine, ngitLine, pageDocument, type Site } from "./layout.js";
import { personLink } from "./people.js";
import { clientUrl, repositoryPath, threadUrl } from "./repository-urls.js";
import { bytes, count, counted, personUrl, shortNpub, time } from "./words.js";

export interface LandingFacts {
  readonly site: Site;
  readonly description: string;
  readonly repositories: number;
  readonly events: number;
  readonly repoAcceptanceCriteria: string;
  readonly supportedGrasps: readonly string[];
  readonly supportedNips: readonly number[];
  readonly operator?: Pubkey;
  readonly contact?: string;
  readonly postingPolicy?: string;
  readonly curation?: string;
  /** Bytes. */
  readonly budgets: {
    readonly event: number;
    readonly push: number;
    readonly object: number;
    readonly repository: number;
    readonly owner: number;
  };
  readonly activity: readonly Activity[];
  readonly search?: { readonly words: string; readonly found: readonly RepositoryEntry[] };
}

export function landingPage(facts: LandingFacts): Document {
  const { site, search } = facts;
  return pageDocument(site, {
    title: search ? `${search.words.slice(0, 60)} · ${site.name}` : site.name,
    description: facts.description,
    current: "home",
    ...(search ? {} : { listenFor: { kinds: activityKinds } }),
    main: html`<h1>${site.name}</h1>
<p class="lead">${facts.description}</p>
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
  const url = isHere ? repositoryPath(site, name) : clientUrl(site, name);
  const label = foreign(title, 100);
  return url === undefined ? html`${label}` : html`<a href="${url}">${label}</a>`;
}

function searchSection({ site }: LandingFacts, { words, found }: NonNullable<LandingFacts["search"]>): Html {
  const line = (entry: RepositoryEntry): Html => html`<li><span class="title">${repositoryLink(site, entry)}</span>
${entry.description !== "" && html`<span class="text">${foreign(entry.description, 240)}</span>`}
<span class="meta"><span class="mono">${shortNpub(npubOf(entry.name.owner))}</span>, announced ${time(entry.created_at)}${!entry.isHere && " (elsewhere)"}</span></li>`;
  const said =
    found.length >= maxFound
      ? `The newest ${maxFound} repositories`
      : counted(found.length, "repository", "repositories");
  return html`<section aria-labelledby="found"><h2 id="found">${said} for “${foreign(words, 80)}”</h2>
${found.length > 0 ? html`<ul class="list">${found.map(line)}</ul>` : html`<p class="quiet">Words are looked for in names, identifiers and descriptions; the last one may be a beginning.</p>`}
</section>`;
}

function activitySection({ site, activity }: LandingFacts): Html {
  const line = (item: Activity): Html => {
    const repository = repositoryLink(site, item.repository);
    const thread =
      item.title === undefined
        ? undefined
        : threadUrl(site, { id: item.id, author: item.author.pubkey, kind: item.kind });
    const label = foreign(item.title ?? "", 140);
    const what =
      item.type === "announced"
        ? html`${repository} was announced`
        : item.type === "pushed"
          ? html`Push to ${repository}`
          : html`${thread === undefined ? label : html`<a href="${thread}">${label}</a>`} <span class="tag">${item.type}</span>`;
    return html`<li><span class="title">${what}</span>
<span class="meta">${time(item.created_at)} by ${personLink(item.author)}${item.title !== undefined && html` in ${repository}`}</span></li>`;
  };
  return html`<section aria-labelledby="activity"><h2 id="activity">Newest activity</h2>
${activity.length > 0 ? html`<ul class="list">${activity.map(line)}</ul>` : html`<p class="quiet">Nothing yet. Yours can be the first repository.</p>`}
</section>`;
}

const howTo = ({
  site,
  repoAcceptanceCriteria,
}: LandingFacts): Html => html`<section aria-labelledby="use"><h2 id="use">Use it</h2>
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
<p>${repoAcceptanceCriteria}</p>
</section>`;

/** The operator's own words: an address of the web or of mail is a link. */
function operatorsLink(text: string): Html {
  const url = webUrl(text) ?? (/^mailto:[^\s]+$/.test(text) ? text : undefined);
  return url === undefined ? html`${text}` : html`<a href="${url}">${text.replace(/^mailto:/, "")}</a>`;
}

const budgetText = ({ event, push, object, repository, owner }: LandingFacts["budgets"]): string =>
  `${bytes(repository)} a repository, ${bytes(owner)} for all of one key; ${bytes(push)} a push, ${bytes(object)} a file, ${bytes(event)} an event`;

const aboutSection = (
  facts: LandingFacts,
): Html => html`<section aria-labelledby="server"><h2 id="server">About this server</h2>
<dl class="facts">
<dt>Relay</dt><dd><code>${facts.site.relayUrl}</code></dd>
<dt>Supports</dt><dd>${facts.supportedGrasps.join(", ")}; NIPs ${facts.supportedNips.join(", ")}</dd>
<dt>Budgets</dt><dd>${budgetText(facts.budgets)}</dd>
${facts.operator !== undefined && html`<dt>Operator</dt><dd><a class="mono" href="${personUrl(facts.operator)}">${shortNpub(npubOf(facts.operator))}</a></dd>`}
${facts.contact !== undefined && html`<dt>Contact</dt><dd>${operatorsLink(facts.contact)}</dd>`}
${facts.postingPolicy !== undefined && html`<dt>Policy</dt><dd>${operatorsLink(facts.postingPolicy)}</dd>`}
${facts.curation !== undefined && html`<dt>Curation</dt><dd>${facts.curation}</dd>`}
<dt>Software</dt><dd>Holdfast ${facts.site.version}</dd>
</dl>
</section>`;

/** Facts are asked for with the words of a search, if there are any. */
export function landingRoute(
  facts: (
    words: string | undefined,
    request: RouteRequest,
    signal: AbortSignal,
  ) => LandingFacts | Promise<LandingFacts>,
): Route {
  return {
    matches: (request) => isRead(request, "/"),
    async handle(request, response) {
      const words = request.query.get("q")?.trim().slice(0, maxSearchCharacters);
      const gone = new AbortController();
      response.once("close", () => gone.abort());
      sendDocument(request, response, landingPage(await facts(words || undefined, request, gone.signal)));
    },
  };
}
