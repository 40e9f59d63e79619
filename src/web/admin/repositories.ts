// /admin/repositories: all repositories with what they hold, and who uses how much of the quota.

import type { Document } from "../../http/routes.js";
import type { RepositoryLine, RepositoryLines } from "../../operator/repositories.js";
import { type Html, html } from "../html.js";
import { bytes, count, counted, shortNpub, time } from "../words.js";
import {
  adminPage,
  choiceField,
  questionForm,
  repositoryHref,
  repositoryLabel,
  textField,
  type View,
} from "./frame.js";

export const repositoryStatuses = ["waiting", "soft", "served", "archived", "leaving", "deleted"] as const;

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

export const statusTag = (status: RepositoryLine["status"]): Html =>
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
export function quotaMeter(usedBytes: number, quotaBytes: number): Html {
  const percent = quotaBytes > 0 ? Math.min(100, (usedBytes / quotaBytes) * 100) : 100;
  const said = percent > 0 && percent < 0.1 ? "below 0.1" : percent.toFixed(percent > 0 && percent < 10 ? 1 : 0);
  return html`<span class="meter"><meter min="0" max="100" high="80" value="${percent.toFixed(2)}" aria-label="${said} % of ${bytes(quotaBytes)}"></meter> <span>${said} % of ${bytes(quotaBytes)}</span></span>`;
}
