// The page at a repository's git URL (grasp.md G7), made of facts. Everything strangers wrote goes through `html`,
// the README through the small Markdown of markdown.ts (threats row 14).

import { countedCommits, type Readme } from "../git/browse.js";
import type { Document } from "../http/routes.js";
import { kinds } from "../nostr/event.js";
import { bytes, count, counted, foreign, foreignLink, type Html, html, shortOid, time, webUrl } from "./html.js";
import {
  badgePath,
  clientUrl,
  cloneUrl,
  copyLine,
  naddr,
  nostrUrl,
  pageDocument,
  repositoryPath,
  type Site,
  threadUrl,
} from "./layout.js";
import { renderMarkdown } from "./markdown.js";
import {
  type ComparedRef,
  isOpen,
  type OverallStanding,
  type RepositoryFacts,
  type Standing,
  shownOf,
} from "./repository-facts.js";
import type { PeerStatus } from "./status-page.js";
import { personLink, statusKinds, type Thread } from "./threads.js";

const shownRefs = 60;

const overallTags: Readonly<Record<OverallStanding, Html>> = {
  "in line": html`<span class="tag good">state: in line</span>`,
  partial: html`<span class="tag warn">state: partial</span>`,
  differs: html`<span class="tag bad">state: differs</span>`,
  none: html`<span class="tag">no signed state</span>`,
};

const standingTags: Readonly<Record<Standing, Html>> = {
  equal: html`<span class="tag good">equal</span>`,
  differs: html`<span class="tag bad">differs</span>`,
  missing: html`<span class="tag warn">missing</span>`,
  unsigned: html`<span class="tag bad">not signed</span>`,
};

export function repositoryPage(site: Site, facts: RepositoryFacts): Document {
  const { announcement, name } = facts;
  const title = announcement.name.trim() || name.identifier;
  return pageDocument(site, {
    title: `${title} · ${site.name}`.slice(0, 200),
    description: announcement.description,
    listenFor: {
      "#a": [announcementAddress(facts)],
      kinds: [kinds.issue, kinds.pullRequest, kinds.patch, ...statusKinds.keys()],
    },
    main: html`
<div class="heading-line"><h1>${foreign(title, 120)}</h1> ${overallTags[facts.comparison.overall]}</div>
${announcement.description.trim() !== "" && html`<p class="lead">${foreign(announcement.description.trim(), 1_000)}</p>`}
${statusNote(facts)}
${jumpList(facts)}
<section aria-labelledby="clone"><h2 id="clone">Clone</h2>
${copyLine("Clone with git", `git clone ${cloneUrl(site, name)}`)}
${copyLine("Clone with ngit", `git clone ${nostrUrl(site, name)}`)}
<p class="quiet small">The second line needs <a href="https://gitworkshop.dev/ngit">ngit</a>, and is the one to contribute with.</p>
</section>
<section aria-labelledby="about"><h2 id="about">About</h2>
${aboutList(site, facts)}
</section>
${refSection(facts)}
${peerSection(facts)}
<div id="threads" data-live>
${threadSection(site, facts, "issues", "Open issues", facts.threads.issues)}
${threadSection(site, facts, "proposals", "Open pull requests and patches", facts.threads.proposals)}
</div>
${commitSection(facts)}
${readmeSection(facts)}`,
  });
}

function jumpList({ threads, view, comparison }: RepositoryFacts): Html {
  const open = (list: readonly Thread[]): string => count(list.filter(isOpen).length);
  return html`<ul class="jump small">
<li><a href="#refs">Branches and tags (${count(comparison.refs.length)})</a></li>
<li><a href="#issues">Issues (${open(threads.issues)})</a></li>
<li><a href="#proposals">Pull requests (${open(threads.proposals)})</a></li>
${view && view.commits.length > 0 && html`<li><a href="#commits">Commits</a></li>`}
${view?.readme && html`<li><a href="#readme">README</a></li>`}
</ul>`;
}

const announcementAddress = ({ name }: RepositoryFacts): string =>
  `${kinds.announcement}:${name.owner}:${name.identifier}`;

function statusNote({ status, isReadOnly, partialSince, comparison }: RepositoryFacts): Html | undefined {
  if (status === "leaving")
    return html`<p class="note">This repository is leaving: its newest announcement does not list this server. It is read-only here and will be removed.</p>`;
  if (status === "archived")
    return html`<p class="note">Archived here${isReadOnly && ", read-only"}: its announcement does not list this server, which keeps a copy.${isReadOnly && " Push to a server it lists."}</p>`;
  if (comparison.overall === "partial")
    return html`<p class="note">Some of what the state lists is not here yet${partialSince !== undefined && html`, since ${time(partialSince)}`}. What is here is as signed.</p>`;
  return undefined;
}

function aboutList(site: Site, facts: RepositoryFacts): Html {
  const { announcement, name, maintainers, state, people } = facts;
  const signer = state && people.get(state.author);
  const web = announcement.web.flatMap((text) => webUrl(text) ?? []).slice(0, 5);
  const client = clientUrl(site, name);
  const address = naddr(site, name);
  return html`<dl class="facts">
<dt>Maintainers</dt><dd><ul>${maintainers
    .slice(0, 20)
    .map(
      (person) =>
        html`<li>${personLink(person)}${person.pubkey === name.owner && html` <span class="tag">owner</span>`}${
          person.isHostedHere &&
          html` <a class="small" href="${repositoryPath(site, { ...name, owner: person.pubkey })}">their copy here</a>`
        }</li>`,
    )}${maintainers.length > 20 && html`<li class="quiet">and ${count(maintainers.length - 20)} more</li>`}</ul></dd>
<dt>Last push</dt><dd>${state ? html`${time(state.event.created_at)}${signer && html`, signed by ${personLink(signer)}`}` : "none yet"}</dd>
<dt>Storage</dt><dd>${storageText(facts)}</dd>
<dt>Identifier</dt><dd><code>${foreign(name.identifier, 300)}</code></dd>
${announcement.hashtags.length > 0 && html`<dt>Topics</dt><dd>${announcement.hashtags.slice(0, 12).map((topic) => html`<span class="tag">${foreign(topic, 40)}</span> `)}</dd>`}
${web.length > 0 && html`<dt>Web</dt><dd><ul>${web.map((url) => html`<li>${foreignLink(url, foreign(url, 100))}</li>`)}</ul></dd>`}
${client !== undefined && html`<dt>Open in</dt><dd><a href="${client}">gitworkshop.dev</a> or <a href="nostr:${address}">a Nostr client</a></dd>`}
<dt>Badge</dt><dd><a href="${site.basePath}${badgePath(name)}"><img src="${site.basePath}${badgePath(name)}" alt="Badge, state: ${facts.comparison.overall}" height="20"></a></dd>
</dl>`;
}

function storageText({ status, storage }: RepositoryFacts): string {
  const { usedBytes, repositoryBytes, ownerUsedBytes, ownerBytes } = storage;
  const own = `${bytes(usedBytes)} of ${bytes(repositoryBytes)}`;
  // The owner of a mirror did not ask for it.
  return status === "archived" ? own : `${own}; its owner uses ${bytes(ownerUsedBytes)} of ${bytes(ownerBytes)}`;
}

const peerTags: Readonly<Record<PeerStatus["result"], Html>> = {
  "in step": html`<span class="tag good">in step</span>`,
  ok: html`<span class="tag good">ok</span>`,
  failed: html`<span class="tag bad">failed</span>`,
  "not yet": html`<span class="tag">not yet</span>`,
  "not followed": html`<span class="tag">not followed</span>`,
};

/** When each place the announcement lists was last in step with us, or asked: our words only, never theirs. */
function peerSection({ peers }: RepositoryFacts): Html | undefined {
  if (peers.length === 0) return undefined;
  return html`<section aria-labelledby="peers"><h2 id="peers">Kept in step with</h2>
<p class="quiet">Relays and git servers the announcement lists. A git server is asked when something is missing here. Compared clean: everything it had was here.</p>
<table class="stack"><thead><tr><th scope="col">Where</th><th scope="col">What</th><th scope="col">Last sync</th><th scope="col">Compared clean</th><th scope="col">Result</th></tr></thead>
<tbody>${peers.map(
    ({
      url,
      type,
      at,
      lastClean,
      theyLack,
      result,
    }) => html`<tr><th scope="row">${foreign(url.replace(/^(?:wss|https):\/\//, ""), 100)}</th>
<td data-label="What"><span>${type}</span></td><td data-label="Last sync"><span>${at === undefined ? html`<span class="quiet">${result === "in step" ? "now" : "none"}</span>` : time(at)}</span></td><td data-label="Compared clean"><span>${lastClean === undefined ? html`<span class="quiet">not yet</span>` : time(lastClean)}</span></td><td data-label="Result"><span>${peerTags[result]}${theyLack !== undefined && theyLack > 0 && html` <span class="quiet small">lacks ${count(theyLack)}</span>`}</span></td></tr>`,
  )}</tbody></table></section>`;
}

function refSection({ comparison, state }: RepositoryFacts): Html {
  const { refs } = comparison;
  const off = refs.filter(({ standing }) => standing !== "equal");
  // What is out of line must not hide behind many that are in line.
  const shown = new Set([...off, ...refs.filter(({ standing }) => standing === "equal")].slice(0, shownRefs));
  const inOrder = refs.filter((ref) => shown.has(ref));
  const branches = refs.filter(({ kind }) => kind === "branch").length;
  const oid = (value: string | undefined): Html =>
    value === undefined
      ? html`<span class="quiet">none</span>`
      : html`<code title="${value.slice(0, 64)}">${shortOid(value)}</code>`;
  const row = (
    ref: ComparedRef,
  ): Html => html`<tr><th scope="row"><code>${foreign(ref.name, 100)}</code>${ref.kind === "tag" && html` <span class="tag">tag</span>`}</th>
<td data-label="Signed">${oid(ref.signed)}</td><td data-label="Held here">${oid(ref.held)}</td><td data-label="Standing">${standingTags[ref.standing]}</td></tr>`;
  return html`<section aria-labelledby="refs"><h2 id="refs">Branches and tags</h2>
<p class="quiet">${counted(branches, "branch", "branches")}, ${counted(refs.length - branches, "tag", "tags")}. ${
    state ? html`What the maintainers signed, beside what this server holds.` : html`No state has been signed yet.`
  }</p>
${
  inOrder.length > 0 &&
  html`<table class="stack"><thead><tr><th scope="col">Name</th><th scope="col">Signed</th><th scope="col">Held here</th><th scope="col">Standing</th></tr></thead>
<tbody>${inOrder.map(row)}</tbody></table>`
}
${refs.length > inOrder.length && html`<p class="quiet">${count(refs.length - inOrder.length)} more are equal or not shown; <code>git ls-remote</code> lists all.</p>`}
</section>`;
}

function threadSection(
  site: Site,
  facts: RepositoryFacts,
  id: string,
  title: string,
  threads: readonly Thread[],
): Html {
  const open = threads.filter(isOpen);
  const line = (thread: Thread): Html => {
    const url = threadUrl(site, thread);
    const label = foreign(thread.title, 160);
    const author = facts.people.get(thread.author);
    return html`<li><span class="title">${url === undefined ? label : html`<a href="${url}">${label}</a>`}</span>${
      thread.status === "draft" && html` <span class="tag">draft</span>`
    }${thread.kind === kinds.patch && html` <span class="tag">patch</span>`}
<span class="meta">${time(thread.created_at)}${author && html` by ${personLink(author)}`}</span></li>`;
  };
  const ended = threads.length - open.length;
  return html`<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2>
${open.length === 0 ? html`<p class="quiet">None${ended > 0 && ` (${counted(ended, "has", "have")} been settled)`}.</p>` : html`<ul class="list">${shownOf(threads).map(line)}</ul>`}
${open.length > 0 && html`<p class="quiet small">${count(open.length)}${facts.threads.isCut && " or more"} open, ${count(ended)} settled.</p>`}
</section>`;
}

function commitSection({ view, headBranch }: RepositoryFacts): Html | undefined {
  if (!view || view.commits.length === 0) return undefined;
  const total =
    view.commitCount >= countedCommits
      ? `${count(countedCommits)} or more commits`
      : counted(view.commitCount, "commit", "commits");
  return html`<section aria-labelledby="commits"><h2 id="commits">Recent commits</h2>
<p class="quiet">${total} on <code>${foreign(headBranch.replace(/^refs\/heads\//, ""), 100)}</code>.</p>
<ul class="list">${view.commits.map(
    ({
      oid,
      subject,
      author,
      time: seconds,
    }) => html`<li><span class="title">${foreign(subject || "(no message)", 160)}</span>
<span class="meta"><code title="${oid}">${shortOid(oid)}</code> ${time(seconds)} by ${foreign(author, 60)}</span></li>`,
  )}</ul>
</section>`;
}

/** Rendered once for each commit that is kept, not for each reader. */
const renderedReadmes = new WeakMap<Readme, Html>();

function renderReadme(readme: Readme): Html {
  const known = renderedReadmes.get(readme);
  if (known) return known;
  const rendered = readme.isMarkdown ? renderMarkdown(readme.text, 2) : html`<pre class="plain">${readme.text}</pre>`;
  renderedReadmes.set(readme, rendered);
  return rendered;
}

function readmeSection({ view }: RepositoryFacts): Html | undefined {
  const readme = view?.readme;
  if (!readme) return undefined;
  return html`<section aria-labelledby="readme"><h2 id="readme">${readme.name}</h2>
<div class="readme">${renderReadme(readme)}</div>
${readme.isCut && html`<p class="quiet">The rest is in the repository.</p>`}
</section>`;
}
