// /admin/bans: what is kept out. Bans of keys, repositories, events and networks; white- and blacklists; kinds.

import type { Document } from "../../http/routes.js";
import type { BanPreview } from "../../operator/ban-targets.js";
import { banSummary, comingBackWords, unbanSummary, unservedWords } from "../../operator/ban-words.js";
import type { Banned } from "../../operator/bans.js";
import type { ListedEntry } from "../../operator/lists.js";
import type { ListName } from "../../operator/rules.js";
import { foreign, type Html, html, time } from "../html.js";
import { andMore, faint, quiet, section, stackTable, timeOr } from "../pieces.js";
import type { Fields } from "./actions.js";
import { actionForm, adminPage, choiceField, reasonColumn, textField, type View } from "./frame.js";

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
  "private-members": "members of a private service: keys only",
};

export function bansPage(view: View, { bans, entries, refusedKinds }: BansFacts): Document {
  return adminPage(view, "/bans", {
    title: "Bans and lists",
    main: html`${section(
      "bans",
      "Bans",
    )`<p class="quiet">What would go is shown first. What is banned goes at once and does not come back by sync; lifting the ban can bring it back for a while. A blocked network's open connections are ended.</p>
${bans.length === 0 ? quiet("Nothing is banned.") : banTable(view, bans)}
${actionForm(view, {
  operation: "ban",
  label: "Ban",
  className: "row",
  isDangerous: true,
  inputs: html`${choiceField("ban-type", "type", "What", banChoices)}${textField("ban-target", "target", "Target", { placeholder: "npub1…, nevent1…, IP", isRequired: true })}${textField("ban-reason", "reason", "Reason")}`,
})}`}
${section(
  "lists",
  "Lists",
)`<p class="quiet">Who may host here, and what is mirrored. What is configured can only be changed in the configuration.</p>
${entries.length === 0 ? quiet("The lists are empty: everybody may host.") : listTable(view, entries)}
${actionForm(view, {
  operation: "lists.add",
  label: "Add",
  className: "row",
  inputs: html`${choiceField("list", "list", "List", Object.entries(listLabels))}${textField("list-entry", "entry", "Entry", { placeholder: "npub1…/identifier or host", isRequired: true })}${textField("list-reason", "reason", "Reason")}`,
})}`}
${section(
  "kinds",
  "Kinds that are not taken",
)`${refusedKinds.length === 0 ? quiet("None: every kind is taken if it belongs to a repository here.") : html`<ul class="chips">${refusedKinds.map((kind) => html`<li>kind ${kind} ${actionForm(view, { operation: "kinds.set", label: "Take again", about: `kind ${kind}`, fields: { kind: String(kind), taken: "yes" } })}</li>`)}</ul>`}
${actionForm(view, {
  operation: "kinds.set",
  label: "Refuse",
  className: "row",
  fields: { taken: "no" },
  inputs: html`${textField("kind", "kind", "Kind", { placeholder: "1621", isRequired: true })}${textField("kind-reason", "reason", "Reason")}`,
})}`}`,
  });
}

/** Asked before anything is done: what would go, or could come back. `fields` are those of the form that was sent. */
export function confirmPage(view: View, operation: "ban" | "unban", preview: BanPreview, fields: Fields): Document {
  const isBan = operation === "ban";
  const { repositories, moreRepositories, restorable, type } = preview;
  const restore = html`<p><label><input type="checkbox" name="restore" value="yes" checked> Bring back what the ban removed</label></p>`;
  return adminPage(view, "/bans", {
    title: isBan ? "Ban?" : "Lift the ban?",
    main: html`<p class="lead">${foreign(isBan ? banSummary(preview) : unbanSummary(preview), 500)}</p>
${isBan && repositories.length > 0 && html`<p>${unservedWords}</p><ul>${repositories.map((name) => html`<li><code>${foreign(name, 200)}</code></li>`)}</ul>${andMore(repositories.length + moreRepositories, repositories.length)}`}
${isBan && type !== "ip" && quiet(comingBackWords(preview))}
${actionForm(view, {
  operation,
  label: isBan ? "Yes, ban" : "Yes, lift the ban",
  isDangerous: isBan,
  fields: { type: fields.type ?? "", target: fields.target ?? "", reason: fields.reason ?? "", sure: "yes" },
  ...(!isBan && restorable > 0 && { inputs: restore }),
})}
<p><a href="${view.site.basePath}${view.here}">No, go back</a></p>`,
  });
}

const banTable = (view: View, bans: readonly Banned[]): Html =>
  stackTable(bans, [
    ["Target", ({ target }) => html`<code>${foreign(target, 200)}</code>`],
    ["What", ({ type }) => type],
    ["Since", ({ since }) => time(since)],
    reasonColumn,
    ["Lift", ({ type, target }) => lift(view, type, target), "form"],
  ]);

const lift = (view: View, type: string, target: string): Html =>
  actionForm(view, { operation: "unban", label: "Lift", about: target, fields: { type, target } });

const listTable = (view: View, entries: readonly ListedEntry[]): Html =>
  stackTable(entries, [
    ["Entry", ({ entry }) => html`<code>${foreign(entry, 200)}</code>`],
    ["List", ({ list }) => list],
    ["Since", ({ since, origin }) => timeOr(since, origin === "peer relay" ? origin : "configured")],
    reasonColumn,
    ["Remove", (entry) => (entry.origin === "run time" ? remove(view, entry) : faint(notHere[entry.origin])), "form"],
  ]);

const notHere = { configuration: "in the configuration", "peer relay": "while it runs a relay listed here" } as const;

const remove = (view: View, { list, entry }: ListedEntry): Html =>
  actionForm(view, { operation: "lists.remove", label: "Remove", about: entry, fields: { list, entry } });
