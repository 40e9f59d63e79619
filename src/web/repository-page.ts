// The page at a repository's git URL (grasp.md G7), made of facts. Everything strangers wrote goes through `html`,
// the README through the small Markdown of markdown.ts (threats row 14).

import { standingText } from "../catalogue/maintainer-set.js";
import { type CommitView, countedCommits, type Readme } from "../git/browse.js";
import type { Document } from "../http/routes.js";
import { kinds } from "../nostr/event.js";
import { npubOf } from "../nostr/nip19.js";
import { formatName } from "../nostr/nip34.js";
import { ciMarks } from "./ci-results.js";
import { bytes, count, counted, foreign, foreignLink, type Html, html, shortNpub, time, webUrl } from "./html.js";
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
import { faint, linked, list, listLine, oidMark, quiet, section, stackTable, tag, timeOr } from "./pieces.js";
import {
  isOpen,
  type Maintainer,
  type OverallStanding,
  type RepositoryFacts,
  type Standing,
  shownOf,
} from "./repository-facts.js";
import type { PeerStatus, RepositoryOutbox } from "./status-page.js";
import { personLink, statusKinds, type Thread } from "./threads.js";

const shownRefs = 60;

const overallTags: Readonly<Record<OverallStanding, Html>> = {
  "in line": tag("state: in line", "good"),
  partial: tag("state: partial", "warn"),
  differs: tag("state: differs", "bad"),
  none: tag("no signed state"),
};

const standingTags: Readonly<Record<Standing, Html>> = {
  equal: tag("equal", "good"),
  differs: tag("differs", "bad"),
  missing: tag("missing", "warn"),
  unsigned: tag("not signed", "bad"),
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
${section("clone", "Clone")`${copyLine("Clone with git", `git clone ${cloneUrl(site, name)}`)}
${copyLine("Clone with ngit", `git clone ${nostrUrl(site, name)}`)}
<p class="quiet small">The second line needs <a href="https://gitworkshop.dev/ngit">ngit</a>, and is the one to contribute with.</p>`}
${section("about", "About")`${aboutList(site, facts)}`}
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

/** The owner's own standing needs no words. */
const standingNote = ({ standing }: Maintainer): Html | undefined =>
  standing.as === "owner"
    ? undefined
    : html`<br><span class="small quiet">${standingText(standing, (key) => shortNpub(npubOf(key)))}</span>`;

function aboutList(site: Site, facts: RepositoryFacts): Html {
  const { announcement, name, maintainers, others, state, people } = facts;
  const signer = state && people.get(state.author);
  const web = announcement.web.flatMap((text) => webUrl(text) ?? []).slice(0, 5);
  const client = clientUrl(site, name);
  const address = naddr(site, name);
  return html`<dl class="facts">
<dt>Maintainers</dt><dd><ul>${maintainers
    .slice(0, 20)
    .map(
      (person) =>
        html`<li>${personLink(person)}${person.pubkey === name.owner && html` ${tag("owner")}`}${
          person.standing.as === "lead" && html` ${tag("lead")}`
        }${
          person.isHostedHere &&
          html` <a class="small" href="${repositoryPath(site, { ...name, owner: person.pubkey })}">their copy here</a>`
        }${standingNote(person)}</li>`,
    )}${maintainers.length > 20 && html`<li class="quiet">and ${count(maintainers.length - 20)} more</li>`}</ul></dd>
${others.length > 0 && html`<dt>Named, not maintainers</dt><dd><ul>${others.map((person) => html`<li>${personLink(person)}${standingNote(person)}</li>`)}</ul></dd>`}
<dt>Last push</dt><dd>${state ? html`${time(state.event.created_at)}${signer && html`, signed by ${personLink(signer)}`}` : "none yet"}</dd>
<dt>Storage</dt><dd>${storageText(facts)}</dd>
${largeFilesLine(facts)}
${facts.format === "sha256" && html`<dt>Object ids</dt><dd>${formatName(facts.format)}: needs git 2.29 or newer, or another client that knows them</dd>`}
<dt>Identifier</dt><dd><code>${foreign(name.identifier, 300)}</code></dd>
${announcement.hashtags.length > 0 && html`<dt>Topics</dt><dd>${announcement.hashtags.slice(0, 12).map((topic) => html`${tag(foreign(topic, 40))} `)}</dd>`}
${web.length > 0 && html`<dt>Web</dt><dd><ul>${web.map((url) => html`<li>${foreignLink(url, foreign(url, 100))}</li>`)}</ul></dd>`}
${client !== undefined && html`<dt>Open in</dt><dd><a href="${client}">gitworkshop.dev</a> or <a href="nostr:${address}">a Nostr client</a></dd>`}
<dt>Badge</dt><dd><a href="${site.basePath}${badgePath(name)}"><img src="${site.basePath}${badgePath(name)}" alt="Badge, state: ${facts.comparison.overall}" height="20"></a></dd>
</dl>`;
}

function largeFilesLine({ largeFiles }: RepositoryFacts): Html | undefined {
  const { here, hereBytes, missing } = largeFiles;
  if (here + missing === 0) return undefined;
  const lacking = missing > 0 && html` ${tag(`${count(missing)} missing`, "warn")}`;
  return html`<dt>Large files</dt><dd>${counted(here, "file", "files")}, ${bytes(hereBytes)}${lacking}</dd>`;
}

function storageText({ status, storage }: RepositoryFacts): string {
  const { usedBytes, repositoryBytes, ownerUsedBytes, ownerBytes } = storage;
  const own = `${bytes(usedBytes)} of ${bytes(repositoryBytes)}`;
  // The owner of a mirror did not ask for it.
  return status === "archived" ? own : `${own}; its owner uses ${bytes(ownerUsedBytes)} of ${bytes(ownerBytes)}`;
}

const peerTags: Readonly<Record<PeerStatus["result"], Html>> = {
  "in step": tag("in step", "good"),
  ok: tag("ok", "good"),
  failed: tag("failed", "bad"),
  "not yet": tag("not yet"),
  "not followed": tag("not followed"),
};

/** When each place the announcement lists was last in step with us, or asked: our words only, never theirs. */
function peerSection({ peers, outbox }: RepositoryFacts): Html | undefined {
  const gathered = outbox && html`<p class="quiet">${outboxWords(outbox)}</p>`;
  if (peers.length === 0) return gathered && section("peers", "Kept in step with")`${gathered}`;
  return section("peers", "Kept in step with")`
<p class="quiet">Relays and git servers the announcement lists. A git server is asked when something is missing here. Compared clean: everything it had was here.</p>
${stackTable(peers, [
  ["Where", ({ url }) => foreign(url.replace(/^(?:wss|https):\/\//, ""), 100)],
  ["What", ({ type }) => type],
  ["Last sync", ({ at, result }) => timeOr(at, result === "in step" ? "now" : "none")],
  ["Compared clean", ({ lastClean }) => timeOr(lastClean, "not yet")],
  ["Result", ({ result, theyLack = 0 }) => [peerTags[result], theyLack > 0 && lacks(theyLack)]],
])}
${gathered}`;
}

/** Numbers only: where somebody writes is told by that person's own list. */
const outboxWords = ({ participants, relays, isComplete }: RepositoryOutbox): string =>
  `Relays of participants: ${counted(participants, "person takes", "people take")} part; what they wrote only to relays of their own is gathered from ${counted(relays, "relay", "relays")}${isComplete ? "" : ", not all of which have answered yet"}.`;

const lacks = (events: number): Html => html` <span class="quiet small">lacks ${count(events)}</span>`;

function refSection({ comparison, state }: RepositoryFacts): Html {
  const { refs } = comparison;
  const off = refs.filter(({ standing }) => standing !== "equal");
  // What is out of line must not hide behind many that are in line.
  const shown = new Set([...off, ...refs.filter(({ standing }) => standing === "equal")].slice(0, shownRefs));
  const inOrder = refs.filter((ref) => shown.has(ref));
  const branches = refs.filter(({ kind }) => kind === "branch").length;
  const oid = (value: string | undefined): Html => (value === undefined ? faint("none") : oidMark(value));
  const said = state ? "What the maintainers signed, beside what this server holds." : "No state has been signed yet.";
  return section("refs", "Branches and tags")`
<p class="quiet">${counted(branches, "branch", "branches")}, ${counted(refs.length - branches, "tag", "tags")}. ${said}</p>
${
  inOrder.length > 0 &&
  stackTable(inOrder, [
    ["Name", ({ name, kind }) => [html`<code>${foreign(name, 100)}</code>`, kind === "tag" && html` ${tag("tag")}`]],
    ["Signed", ({ signed }) => oid(signed)],
    ["Held here", ({ held }) => oid(held)],
    ["Standing", ({ standing }) => standingTags[standing]],
  ])
}
${refs.length > inOrder.length && html`<p class="quiet">${count(refs.length - inOrder.length)} more are equal or not shown; <code>git ls-remote</code> lists all.</p>`}`;
}

/** Of issues and pull requests that are settled, the newest. */
const shownSettled = 5;

const threadTag = ({ status, kind }: Thread): Html =>
  status === "done" ? tag(kind === kinds.issue ? "resolved" : "merged", "good") : tag(status);

function threadSection(
  site: Site,
  facts: RepositoryFacts,
  id: string,
  title: string,
  threads: readonly Thread[],
): Html {
  const open = threads.filter(isOpen);
  const line = (thread: Thread): Html => {
    const author = facts.people.get(thread.author);
    return listLine(
      linked(threadUrl(site, thread), foreign(thread.title, 160)),
      [
        thread.status !== "open" && html` ${threadTag(thread)}`,
        thread.kind === kinds.patch && html` ${tag("patch")}`,
        ciMarks(facts.ci.byPullRequest.get(thread.id)),
      ],
      html`${time(thread.created_at)}${author && html` by ${personLink(author)}`}`,
    );
  };
  const settled = threads.filter((thread) => !isOpen(thread));
  const ended = settled.length;
  if (threads.length === 0) return section(id, title)`<p class="quiet">None.</p>`;
  return section(id, title)`${list([...shownOf(threads), ...settled.slice(0, shownSettled)].map(line))}
<p class="quiet small">${count(open.length)}${facts.threads.isCut && " or more"} open, ${count(ended)} settled.</p>`;
}

function commitSection({ view, headBranch, ci }: RepositoryFacts): Html | undefined {
  if (!view || view.commits.length === 0) return undefined;
  const total =
    view.commitCount >= countedCommits
      ? `${count(countedCommits)} or more commits`
      : counted(view.commitCount, "commit", "commits");
  const line = ({ oid, subject, author, time: seconds }: CommitView["commits"][number]): Html => {
    const below = html`${oidMark(oid)} ${time(seconds)} by ${foreign(author, 60)}`;
    return listLine(foreign(subject || "(no message)", 160), ciMarks(ci.byCommit.get(oid)), below);
  };
  return section("commits", "Recent commits")`
<p class="quiet">${total} on <code>${foreign(headBranch.replace(/^refs\/heads\//, ""), 100)}</code>.</p>
${list(view.commits.map(line))}`;
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
  return section("readme", readme.name)`<div class="readme">${renderReadme(readme)}</div>
${readme.isCut && quiet("The rest is in the repository.")}`;
}
