// /admin/repositories: all repositories with what they hold, and who uses how much of the quota; and
// /admin/repository?name=…: one of them as the operator sees it, with everything that can be done with it.

import type { Document } from "../../http/routes.js";
import { repositoryNamedBy } from "../../operator/naming.js";
import { repositoryStatuses } from "../../operator/operations.js";
import type { RepositoryDetails, RepositoryLine, RepositoryLines } from "../../operator/repositories.js";
import { bytes, count, counted, foreign, type Html, html, shortNpub, shortOid, time } from "../html.js";
import { repositoryPath } from "../layout.js";
import {
  actionForm,
  adminPage,
  choiceField,
  foldedForm,
  questionForm,
  repositoryHref,
  repositoryLabel,
  textField,
  type View,
  whyHref,
} from "./frame.js";
import { decisionTable } from "./purgatory.js";

export interface RepositoriesQuestion {
  readonly status: string;
  readonly owner: string;
  readonly onlyPartial: boolean;
}

const shownOwners = 10;
const shownRepositories = 300;

const statusLooks: Readonly<Record<RepositoryLine["status"], string>> = {
  waiting: "warn",
  soft: "warn",
  served: "good",
  archived: "good",
  leaving: "warn",
  deleted: "bad",
};

const statusTag = (status: RepositoryLine["status"]): Html =>
  html`<span class="tag ${statusLooks[status]}">${status}</span>`;

export function repositoriesPage(
  view: View,
  { repositories, more }: RepositoryLines,
  question: RepositoriesQuestion,
  ownerQuotaBytes: number,
): Document {
  const shown = repositories.filter(({ partial }) => !question.onlyPartial || partial !== null);
  const statuses = [["", "any"], ...repositoryStatuses.map((status) => [status, status] as const)] as const;
  return adminPage(view, "/repositories", {
    title: "Repositories",
    main: html`${questionForm(
      view,
      "/repositories",
      html`${choiceField("status", "status", "Status", statuses, question.status)}${choiceField(
        "show",
        "show",
        "State",
        [
          ["", "any"],
          ["partial", "partial only"],
        ] as const,
        question.onlyPartial ? "partial" : "",
      )}${textField("owner", "owner", "Owner", { placeholder: "npub1…", value: question.owner })}`,
      "Show",
    )}
<section aria-labelledby="all"><h2 id="all">${counted(shown.length, "repository", "repositories")}${more && " and more"}</h2>
${shown.length > 0 && table(view, shown.slice(0, shownRepositories))}
${shown.length > shownRepositories && html`<p class="quiet">and ${count(shown.length - shownRepositories)} more: <code>holdfast repos list</code>.</p>`}</section>
<section aria-labelledby="owners"><h2 id="owners">Owners by use</h2>
${ownersTable(view, repositories, ownerQuotaBytes)}</section>`,
  });
}

const table = (
  view: View,
  lines: readonly RepositoryLine[],
): Html => html`<table class="stack"><thead><tr><th scope="col">Repository</th><th scope="col">Status</th><th scope="col">Received</th><th scope="col">Pushes</th><th scope="col">Since</th></tr></thead>
<tbody>${lines.map(
  (
    line,
  ) => html`<tr><th scope="row"><a href="${repositoryHref(view, line.repository)}">${repositoryLabel(line.repository)}</a></th>
<td data-label="Status"><span>${statusTag(line.status)}${line.partial !== null && html` <span class="tag warn">partial</span>`}</span></td><td data-label="Received"><span class="number">${bytes(line.receivedBytes)}</span></td><td data-label="Pushes">${count(line.pushes)}</td><td data-label="Since">${time(line.since)}</td></tr>`,
)}</tbody></table>`;

function ownersTable(view: View, lines: readonly RepositoryLine[], quotaBytes: number): Html {
  const owners = new Map<string, { repositories: number; bytes: number }>();
  for (const { repository, receivedBytes } of lines) {
    const owner = repository.slice(0, repository.indexOf("/"));
    const known = owners.get(owner) ?? { repositories: 0, bytes: 0 };
    owners.set(owner, { repositories: known.repositories + 1, bytes: known.bytes + receivedBytes });
  }
  const largest = [...owners].sort(([, a], [, b]) => b.bytes - a.bytes).slice(0, shownOwners);
  if (largest.length === 0) return html`<p class="quiet">None.</p>`;
  return html`<table class="stack"><thead><tr><th scope="col">Owner</th><th scope="col">Repositories</th><th scope="col">Received</th><th scope="col">Of the quota</th></tr></thead>
<tbody>${largest.map(
    ([
      owner,
      use,
    ]) => html`<tr><th scope="row"><a class="mono" title="${owner}" href="${view.site.basePath}/admin/repositories?owner=${owner}">${shortNpub(owner)}</a></th>
<td data-label="Repositories">${count(use.repositories)}</td><td data-label="Received">${bytes(use.bytes)}</td><td data-label="Of the quota">${quotaMeter(use.bytes, quotaBytes)}</td></tr>`,
  )}</tbody></table>`;
}

/** Told in words beside the bar. */
function quotaMeter(usedBytes: number, quotaBytes: number): Html {
  const percent = quotaBytes > 0 ? Math.min(100, (usedBytes / quotaBytes) * 100) : 100;
  const said = percent > 0 && percent < 0.1 ? "below 0.1" : percent.toFixed(percent > 0 && percent < 10 ? 1 : 0);
  return html`<span class="meter"><meter min="0" max="100" high="80" value="${percent.toFixed(2)}" aria-label="${said} % of ${bytes(quotaBytes)}"></meter> <span>${said} % of ${bytes(quotaBytes)}</span></span>`;
}

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
