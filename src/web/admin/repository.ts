// /admin/repository?name=…: one repository as the operator sees it, and everything he can do with it.

import type { Document } from "../../http/routes.js";
import { repositoryNamedBy } from "../../operator/naming.js";
import type { RepositoryDetails } from "../../operator/repositories.js";
import { foreign, type Html, html } from "../html.js";
import { repositoryPath } from "../repository-urls.js";
import { bytes, count, counted, shortNpub, shortOid, time } from "../words.js";
import { decisionTable } from "./decisions.js";
import { actionForm, adminPage, foldedForm, textField, type View, whyHref } from "./frame.js";
import { quotaMeter, statusTag } from "./repositories.js";

const shownDifferences = 50;

export function repositoryAdminPage(view: View, details: RepositoryDetails): Document {
  const { repository, status, partial, disk, quota, differences } = details;
  const identifier = repository.slice(repository.indexOf("/") + 1);
  const name = repositoryNamedBy(repository);
  const isShown = status === "served" || status === "archived" || status === "leaving";
  return adminPage(view, "/repositories", {
    title: identifier.length > 80 ? `${identifier.slice(0, 80)}…` : identifier,
    main: html`<p>${statusTag(status)} ${partial !== null && html`<span class="tag warn">partial</span>`} ${details.isArchive && html`<span class="tag">mirror</span>`} since ${time(details.since)}${isShown && name !== undefined && html` · <a href="${repositoryPath(view.site, name)}">public page</a>`} · <a href="${view.site.basePath}/admin/purgatory?repository=${encodeURIComponent(repository)}">${counted(details.waitingEvents, "event waits", "events wait")}</a></p>
<section aria-labelledby="facts"><h2 id="facts">Facts</h2>
<dl class="facts">
<dt>Name</dt><dd><code>${foreign(repository, 400)}</code></dd>
<dt>Received</dt><dd>${bytes(details.receivedBytes)} in ${counted(details.pushes, "push", "pushes")} ${quotaMeter(details.receivedBytes, quota.repositoryBytes)}</dd>
<dt>Owner's use</dt><dd>${bytes(quota.ownerUsedBytes)} in all repositories ${quotaMeter(quota.ownerUsedBytes, quota.ownerBytes)}</dd>
<dt>On disk</dt><dd>${disk === null ? html`<span class="quiet">no directory</span>` : html`${bytes(disk.bytes)}, ${counted(disk.refs, "ref", "refs")}, HEAD <code>${foreign(disk.head, 100)}</code>${disk.unclaimedPushes > 0 && `, ${counted(disk.unclaimedPushes, "push", "pushes")} without an event`}`}</dd>
<dt>Governing state</dt><dd>${details.governing === null ? html`<span class="quiet">none</span>` : html`<a href="${whyHref(view, details.governing)}"><code>${details.governing.slice(0, 16)}…</code></a>${details.mark !== null && html`, signed ${time(details.mark.created_at)}`}`}</dd>
<dt>Announcement</dt><dd>${details.announcement === null ? html`<span class="quiet">none is served</span>` : html`<a href="${whyHref(view, details.announcement)}"><code>${details.announcement.slice(0, 16)}…</code></a>`}</dd>
<dt>Maintainers</dt><dd>${details.maintainers.slice(0, 10).map((npub) => html`<span class="mono" title="${npub}">${shortNpub(npub)}</span> `)}${details.maintainers.length > 10 && `and ${count(details.maintainers.length - 10)} more`}</dd>
</dl></section>
${differenceSection(differences)}
<section aria-labelledby="actions"><h2 id="actions">Actions</h2>
<div class="actions">
${disk !== null && actionForm(view, { operation: "repos.fsck", label: "Check (fsck)", fields: { repository } })}
${disk !== null && actionForm(view, { operation: "repos.gc", label: "Tidy up (gc)", fields: { repository } })}
${partial !== null && actionForm(view, { operation: "purgatory.ask", label: "Ask git servers now", fields: { repository } })}
${(status === "leaving" || status === "deleted") && actionForm(view, { operation: "repos.restore", label: "Restore", fields: { repository } })}
${status !== "deleted" && foldedForm(view, "Un-host…", { operation: "repos.delete", label: "Un-host this repository", fields: { repository }, inputs: html`<p class="small quiet">Its page and git URL are gone at once; the data is kept for a while and can be restored. Its owner may announce it anew.</p>${textField("unhost-reason", "reason", "Reason")}` })}
${foldedForm(view, "Ban…", { operation: "ban", label: "Ban this repository", fields: { type: "repository", target: repository }, inputs: html`<p class="small quiet">Un-hosts it and keeps it out until the ban is lifted.</p>${textField("ban-reason", "reason", "Reason")}` })}
</div></section>
<section aria-labelledby="latest"><h2 id="latest">Latest decisions</h2>
${details.latestDecisions.length === 0 ? html`<p class="quiet">None on record.</p>` : decisionTable(view, details.latestDecisions)}
<p class="small"><a href="${whyHref(view, repository)}">All decisions about it</a></p></section>`,
  });
}

function differenceSection(differences: RepositoryDetails["differences"]): Html | undefined {
  if (differences === null) return undefined;
  const oid = (value: string | null): Html =>
    value === null ? html`<span class="quiet">none</span>` : html`<code title="${value}">${shortOid(value)}</code>`;
  return html`<section aria-labelledby="refs"><h2 id="refs">Refs against what was signed</h2>
${
  differences.length === 0
    ? html`<p class="quiet">All as signed.</p>`
    : html`<table class="stack"><thead><tr><th scope="col">Ref</th><th scope="col">Signed</th><th scope="col">Held here</th><th scope="col">Known</th></tr></thead>
<tbody>${differences
        .slice(0, shownDifferences)
        .map(
          ({ ref, signed, here, recorded }) =>
            html`<tr><th scope="row"><code>${foreign(ref, 120)}</code></th><td data-label="Signed">${oid(signed)}</td><td data-label="Held here">${oid(here)}</td><td data-label="Known"><span>${recorded ? html`<span class="tag warn">looked for</span>` : html`<span class="tag bad">unexpected</span>`}</span></td></tr>`,
        )}</tbody></table>`
}
${differences.length > shownDifferences && html`<p class="quiet">and ${count(differences.length - shownDifferences)} more.</p>`}</section>`;
}
