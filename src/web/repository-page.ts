// A repository's first page (grasp.md G7): its files and README, and beside them what it is, how it is cloned, who keeps
// it. Everything strangers wrote goes through `html` (threats row 14).

import { standingText } from "../catalogue/maintainer-set.js";
import type { Document } from "../http/routes.js";
import { npubOf } from "../nostr/nip19.js";
import { formatName } from "../nostr/nip34.js";
import { ciMarks } from "./ci-results.js";
import { behindWords, type CopyCount } from "./code/copies-page.js";
import { repositoryFrame } from "./code/frame.js";
import { bytes, count, counted, foreign, foreignLink, type Html, html, shortNpub, time, webUrl } from "./html.js";
import { badgePath, clientUrl, cloneUrl, copyLine, naddr, nostrUrl, repositoryPath, type Site } from "./layout.js";
import { personLink } from "./people.js";
import { section, tag } from "./pieces.js";
import type { Maintainer, OverallStanding, RepositoryFacts } from "./repository-facts.js";

/** Whether what is held is what the maintainers signed, in a reader's words. */
export const overallWords: Readonly<Record<OverallStanding, string>> = {
  complete: "signed and complete",
  partial: "signed, not complete yet",
  differs: "not as signed",
  none: "not signed yet",
};

export const overallTags: Readonly<Record<OverallStanding, Html>> = {
  complete: tag(overallWords.complete, "good"),
  partial: tag(overallWords.partial, "warn"),
  differs: tag(overallWords.differs, "bad"),
  none: tag(overallWords.none),
};

/** `files`: what its head holds; undefined while it has no commit. */
export function repositoryPage(
  site: Site,
  facts: RepositoryFacts,
  files: { readonly picker: Html; readonly view: Html } | undefined,
  copies: CopyCount,
): Document {
  const { announcement, name, table } = facts;
  const tip = table.refs.get(table.head)?.oid;
  return repositoryFrame(site, facts, {
    tab: "code",
    description: announcement.description,
    marks: [
      overallTags[facts.comparison.overall],
      copies.behind > 0 &&
        html` <a class="tag warn" href="${repositoryPath(site, name)}/copies">${behindWords(copies)}</a>`,
      ciMarks(tip && facts.ci.byCommit.get(tip)),
    ],
    main: html`${announcement.description.trim() !== "" && html`<p class="lead">${foreign(announcement.description.trim(), 1_000)}</p>`}
${announcement.hashtags.length > 0 && html`<p>${announcement.hashtags.slice(0, 12).map((topic) => html`${tag(foreign(topic, 40))} `)}</p>`}
${statusNote(facts)}
<div class="bar">${files?.picker}<details class="clone"><summary>Clone</summary>${copyLine("Clone with git", `git clone ${cloneUrl(site, name)}`)}
${copyLine("Clone with ngit", `git clone ${nostrUrl(site, name)}`)}
<p class="quiet small">The second line needs <a href="https://gitworkshop.dev/ngit">ngit</a>, and is the one to contribute with.</p></details></div>
<div id="code" data-live>${files ? files.view : html`<p class="note">Nothing has been pushed yet.</p>`}</div>
${section("about", "About")`${aboutList(site, facts)}`}`,
  });
}

function statusNote({ status, isReadOnly, partialSince, comparison }: RepositoryFacts): Html | undefined {
  if (status === "leaving")
    return html`<p class="note">This repository is leaving: its newest announcement does not list this server. It is read-only here and will be removed.</p>`;
  if (status === "archived")
    return html`<p class="note">Archived here${isReadOnly && ", read-only"}: its announcement does not list this server, which keeps a copy.${isReadOnly && " Push to a server it lists."}</p>`;
  if (comparison.overall === "partial")
    return html`<p class="note">Some of what its maintainers signed is not here yet${partialSince !== undefined && html`, since ${time(partialSince)}`}. What is here is as signed.</p>`;
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
        html`<li>${personLink(site, person)}${person.pubkey === name.owner && html` ${tag("owner")}`}${
          person.standing.as === "lead" && html` ${tag("lead")}`
        }${
          person.isHostedHere &&
          html` <a class="small" href="${repositoryPath(site, { ...name, owner: person.pubkey })}">their copy here</a>`
        }${standingNote(person)}</li>`,
    )}${maintainers.length > 20 && html`<li class="quiet">and ${count(maintainers.length - 20)} more</li>`}</ul></dd>
${others.length > 0 && html`<dt>Named, not maintainers</dt><dd><ul>${others.map((person) => html`<li>${personLink(site, person)}${standingNote(person)}</li>`)}</ul></dd>`}
<dt>Last push</dt><dd>${state ? html`${time(state.event.created_at)}${signer && html`, signed by ${personLink(site, signer)}`}` : "none yet"}</dd>
<dt>Storage</dt><dd>${storageText(facts)}</dd>
${largeFilesLine(facts)}
${facts.format === "sha256" && html`<dt>Object ids</dt><dd>${formatName(facts.format)}: needs git 2.29 or newer, or another client that knows them</dd>`}
<dt>Identifier</dt><dd><code>${foreign(name.identifier, 300)}</code></dd>
${web.length > 0 && html`<dt>Web</dt><dd><ul>${web.map((url) => html`<li>${foreignLink(url, foreign(url, 100))}</li>`)}</ul></dd>`}
${client !== undefined && html`<dt>Open in</dt><dd><a href="${client}">gitworkshop.dev</a> or <a href="nostr:${address}">a Nostr client</a></dd>`}
<dt>Badge</dt><dd><a href="${site.basePath}${badgePath(name)}"><img src="${site.basePath}${badgePath(name)}" alt="Badge: ${overallWords[facts.comparison.overall]}" height="20"></a></dd>
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
