// /admin/bans: what is kept out. Bans of keys, repositories, events and networks; white- and blacklists; kinds.

import type { Document } from "../../http/routes.js";
import type { Banned } from "../../operator/bans.js";
import type { ListedEntry } from "../../operator/lists.js";
import type { ListName } from "../../operator/rules.js";
import { foreign, type Html, html, time } from "../html.js";
import { actionForm, adminPage, choiceField, reasonCell, textField, type View } from "./frame.js";

export interface BansFacts {
  readonly bans: readonly Banned[];
  readonly entries: readonly ListedEntry[];
  readonly refusedKinds: readonly number[];
}

const banChoices = [
  ["key", "key and all it sent"],
  ["repository", "repository"],
  ["event", "event"],
  ["ip", "IP address or network"],
] as const;

const listLabels: Readonly<Record<ListName, string>> = {
  "repository-blacklist": "repository blacklist",
  "repository-whitelist": "repository whitelist: only these may host",
  "event-blacklist": "event blacklist: keys only",
  "archive-whitelist": "archive: mirror these",
  "archive-grasp-services": "archive: mirror a GRASP service",
};

export function bansPage(view: View, { bans, entries, refusedKinds }: BansFacts): Document {
  return adminPage(view, "/bans", {
    title: "Bans and lists",
    main: html`<section aria-labelledby="bans"><h2 id="bans">Bans</h2>
<p class="quiet">What is banned goes at once and does not come back, not even by sync. A blocked network's open connections are ended.</p>
${bans.length === 0 ? html`<p class="quiet">Nothing is banned.</p>` : banTable(view, bans)}
${actionForm(view, {
  operation: "ban",
  label: "Ban",
  className: "row",
  isDangerous: true,
  inputs: html`${choiceField("ban-type", "type", "What", banChoices)}${textField("ban-target", "target", "Target", { placeholder: "npub1…, nevent1…, IP", isRequired: true })}${textField("ban-reason", "reason", "Reason")}`,
})}</section>
<section aria-labelledby="lists"><h2 id="lists">Lists</h2>
<p class="quiet">Who may host here, and what is mirrored. What is configured can only be changed in the configuration.</p>
${entries.length === 0 ? html`<p class="quiet">The lists are empty: everybody may host.</p>` : listTable(view, entries)}
${actionForm(view, {
  operation: "lists.add",
  label: "Add",
  className: "row",
  inputs: html`${choiceField("list", "list", "List", Object.entries(listLabels))}${textField("list-entry", "entry", "Entry", { placeholder: "npub1…/identifier or host", isRequired: true })}${textField("list-reason", "reason", "Reason")}`,
})}</section>
<section aria-labelledby="kinds"><h2 id="kinds">Kinds that are not taken</h2>
${refusedKinds.length === 0 ? html`<p class="quiet">None: every kind is taken if it belongs to a repository here.</p>` : html`<ul class="chips">${refusedKinds.map((kind) => html`<li>kind ${kind} ${actionForm(view, { operation: "kinds.set", label: "Take again", about: `kind ${kind}`, fields: { kind: String(kind), taken: "yes" } })}</li>`)}</ul>`}
${actionForm(view, {
  operation: "kinds.set",
  label: "Refuse",
  className: "row",
  fields: { taken: "no" },
  inputs: html`${textField("kind", "kind", "Kind", { placeholder: "1621", isRequired: true })}${textField("kind-reason", "reason", "Reason")}`,
})}</section>`,
  });
}

const banTable = (
  view: View,
  bans: readonly Banned[],
): Html => html`<table class="stack"><thead><tr><th scope="col">Target</th><th scope="col">What</th><th scope="col">Since</th><th scope="col">Reason</th><th scope="col">Lift</th></tr></thead>
<tbody>${bans.map(
  ({ type, target, since, reason }) => html`<tr><th scope="row"><code>${foreign(target, 200)}</code></th>
<td data-label="What"><span>${type}</span></td><td data-label="Since">${time(since)}</td>${reasonCell(reason)}
<td data-label="Lift">${actionForm(view, { operation: "unban", label: "Lift", about: target, fields: { type, target } })}</td></tr>`,
)}</tbody></table>`;

const listTable = (
  view: View,
  entries: readonly ListedEntry[],
): Html => html`<table class="stack"><thead><tr><th scope="col">Entry</th><th scope="col">List</th><th scope="col">Since</th><th scope="col">Reason</th><th scope="col">Remove</th></tr></thead>
<tbody>${entries.map(
  ({ list, entry, origin, since, reason }) => html`<tr><th scope="row"><code>${foreign(entry, 200)}</code></th>
<td data-label="List"><span>${list}</span></td><td data-label="Since"><span>${since === null ? html`<span class="quiet">configured</span>` : time(since)}</span></td>${reasonCell(reason)}
<td data-label="Remove">${origin === "run time" ? actionForm(view, { operation: "lists.remove", label: "Remove", about: entry, fields: { list, entry } }) : html`<span class="quiet">in the configuration</span>`}</td></tr>`,
)}</tbody></table>`;
