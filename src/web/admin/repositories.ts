// /admin/repositories: all repositories with what they hold, and who uses how much of the quota; and
// /admin/repository?name=…: one of them as the operator sees it, with everything that can be done with it.

import type { Document } from "../../http/routes.js";
import { repositoryNamedBy } from "../../operator/naming.js";
import { repositoryStatuses } from "../../operator/parameter-values.js";
import type { RepositoryDetails, RepositoryLine, RepositoryLines } from "../../operator/repositories.js";
import { bytes, count, counted, foreign, type Html, html, shortNpub, time } from "../html.js";
import { repositoryPath } from "../layout.js";
import { andMore, faint, npubMark, oidMark, quiet, section, stackTable, tag } from "../pieces.js";
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

const shownStandings = 20;
const shownOwners = 10;
const shownRepositories = 300;

const statusLooks = {
  waiting: "warn",
  soft: "warn",
  served: "good",
  archived: "good",
  leaving: "warn",
  deleted: "bad",
} as const;

const statusTag = (status: RepositoryLine["status"]): Html => tag(status, statusLooks[status]);

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
${section("all", [
  counted(shown.length, "repository", "repositories"),
  more && " and more",
])`${shown.length > 0 && table(view, shown.slice(0, shownRepositories))}
${shown.length > shownRepositories && html`<p class="quiet">and ${count(shown.length - shownRepositories)} more: <code>holdfast repos list</code>.</p>`}`}
${section("owners", "Owners by use")`${ownersTable(view, repositories, ownerQuotaBytes)}`}`,
  });
}

const table = (view: View, lines: readonly RepositoryLine[]): Html =>
  stackTable(lines, [
    [
      "Repository",
      ({ repository: name }) => html`<a href="${repositoryHref(view, name)}">${repositoryLabel(name)}</a>`,
    ],
    ["Status", ({ status, partial }) => [statusTag(status), partial !== null && html` ${tag("partial", "warn")}`]],
    ["Received", ({ receivedBytes }) => html`<span class="number">${bytes(receivedBytes)}</span>`],
    ["Pushes", ({ pushes }) => count(pushes)],
    ["Since", ({ since }) => time(since)],
  ]);

function ownersTable(view: View, lines: readonly RepositoryLine[], quotaBytes: number): Html {
  const owners = new Map<string, { repositories: number; bytes: number }>();
  for (const { repository, receivedBytes } of lines) {
    const owner = repository.slice(0, repository.indexOf("/"));
    const known = owners.get(owner) ?? { repositories: 0, bytes: 0 };
    owners.set(owner, { repositories: known.repositories + 1, bytes: known.bytes + receivedBytes });
  }
  const largest = [...owners].sort(([, a], [, b]) => b.bytes - a.bytes).slice(0, shownOwners);
  if (largest.length === 0) return quiet("None.");
  const href = `${view.site.basePath}/admin/repositories?owner=`;
  return stackTable(largest, [
    ["Owner", ([owner]) => html`<a class="mono" title="${owner}" href="${href}${owner}">${shortNpub(owner)}</a>`],
    ["Repositories", ([, use]) => count(use.repositories)],
    ["Received", ([, use]) => bytes(use.bytes)],
    ["Of the quota", ([, use]) => quotaMeter(use.bytes, quotaBytes)],
  ]);
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
    main: html`<p>${statusTag(status)} ${partial !== null && tag("partial", "warn")} ${details.isArchive && tag("mirror")} since ${time(details.since)}${isShown && name !== undefined && html` · <a href="${repositoryPath(view.site, name)}">public page</a>`} · <a href="${view.site.basePath}/admin/purgatory?repository=${encodeURIComponent(repository)}">${counted(details.waitingEvents, "event waits", "events wait")}</a></p>
${section("facts", "Facts")`<dl class="facts">
<dt>Name</dt><dd><code>${foreign(repository, 400)}</code></dd>
<dt>Received</dt><dd>${bytes(details.receivedBytes)} in ${counted(details.pushes, "push", "pushes")} ${quotaMeter(details.receivedBytes, quota.repositoryBytes)}</dd>
<dt>Owner's use</dt><dd>${bytes(quota.ownerUsedBytes)} in all repositories ${quotaMeter(quota.ownerUsedBytes, quota.ownerBytes)}</dd>
<dt>On disk</dt><dd>${disk === null ? faint("no directory") : html`${bytes(disk.bytes)}, ${counted(disk.refs, "ref", "refs")}, HEAD <code>${foreign(disk.head, 100)}</code>${disk.unclaimedPushes > 0 && `, ${counted(disk.unclaimedPushes, "push", "pushes")} without an event`}`}</dd>
<dt>Newest signed state</dt><dd>${details.governing === null ? faint("none") : html`<a href="${whyHref(view, details.governing)}"><code>${details.governing.slice(0, 16)}…</code></a>${details.mark !== null && html`, signed ${time(details.mark.created_at)}`}`}</dd>
<dt>Announcement</dt><dd>${details.announcement === null ? faint("none is served") : html`<a href="${whyHref(view, details.announcement)}"><code>${details.announcement.slice(0, 16)}…</code></a>`}</dd>
<dt>Maintainers</dt><dd><ul>${details.standings
  .slice(0, shownStandings)
  .map(
    ({ npub, decides, because }) =>
      html`<li>${npubMark(npub)} ${!decides && tag("not a maintainer")} <span class="small quiet">${because}</span></li>`,
  )}${details.standings.length > shownStandings && html`<li>and ${count(details.standings.length - shownStandings)} more</li>`}</ul></dd>
</dl>`}
${differenceSection(differences)}
${section("actions", "Actions")`<div class="actions">
${disk !== null && actionForm(view, { operation: "repos.fsck", label: "Check (fsck)", fields: { repository } })}
${disk !== null && actionForm(view, { operation: "repos.gc", label: "Tidy up (gc)", fields: { repository } })}
${partial !== null && actionForm(view, { operation: "purgatory.ask", label: "Ask git servers now", fields: { repository } })}
${(status === "leaving" || status === "deleted") && actionForm(view, { operation: "repos.restore", label: "Restore", fields: { repository } })}
${status !== "deleted" && foldedForm(view, "Un-host…", { operation: "repos.delete", label: "Un-host this repository", fields: { repository }, inputs: html`<p class="small quiet">Its page and git URL are gone at once; the data is kept for a while and can be restored. Its owner may announce it anew.</p>${textField("unhost-reason", "reason", "Reason")}` })}
${foldedForm(view, "Ban…", { operation: "ban", label: "Ban this repository", fields: { type: "repository", target: repository }, inputs: html`<p class="small quiet">Un-hosts it and keeps it out until the ban is lifted.</p>${textField("ban-reason", "reason", "Reason")}` })}
</div>`}
${section(
  "latest",
  "Latest decisions",
)`${details.latestDecisions.length === 0 ? quiet("None on record.") : decisionTable(view, details.latestDecisions)}
<p class="small"><a href="${whyHref(view, repository)}">All decisions about it</a></p>`}`,
  });
}

function differenceSection(differences: RepositoryDetails["differences"]): Html | undefined {
  if (differences === null) return undefined;
  const oid = (value: string | null): Html => (value === null ? faint("none") : oidMark(value));
  return section("refs", "Refs against what was signed")`${
    differences.length === 0
      ? quiet("All as signed.")
      : stackTable(differences.slice(0, shownDifferences), [
          ["Ref", ({ ref }) => html`<code>${foreign(ref, 120)}</code>`],
          ["Signed", ({ signed }) => oid(signed)],
          ["Held here", ({ here }) => oid(here)],
          ["Known", ({ recorded }) => (recorded ? tag("looked for", "warn") : tag("unexpected", "bad"))],
        ])
  }
${andMore(differences.length, shownDifferences)}`;
}
