// The frame of the admin's pages: tabs, who is logged in, what the last action came to, and the forms. Complete without
// script; never kept by a browser.

import type { Document } from "../../http/routes.js";
import type { Notice } from "../../operator/login.js";
import { foreign, type Html, type HtmlValue, html, shortNpub } from "../html.js";
import { pageDocument, type Site } from "../layout.js";
import { type Column, faint } from "../pieces.js";
import type { FormOperation } from "./actions.js";

export const tabs = [
  ["", "Overview"],
  ["/purgatory", "Purgatory"],
  ["/relays", "Relays"],
  ["/repositories", "Repositories"],
  ["/bans", "Bans and lists"],
  ["/tokens", "Tokens"],
  ["/decisions", "Decisions"],
  ["/audit", "Audit"],
  ["/log", "Log"],
] as const;

export type Tab = (typeof tabs)[number][0];

/** One request of somebody who is logged in. */
export interface View {
  readonly site: Site;
  /** `operator`, or an npub. */
  readonly who: string;
  readonly formToken: string;
  readonly notice: Notice | undefined;
  /** Path and query of this page below the base path: where an action returns to. */
  readonly here: string;
  readonly nowSeconds: number;
}

export const privately = (document: Document): Document => ({
  ...document,
  cacheControl: "no-store",
  // With no-referrer a browser would call our own forms' origin "null".
  headers: { ...document.headers, "Referrer-Policy": "same-origin" },
});

export const adminFooter = "One cookie, for this login; no tracking.";

export function adminPage(
  view: View,
  tab: Tab,
  page: { readonly title: string; readonly main: Html; readonly everySeconds?: number; readonly status?: number },
): Document {
  const { site, notice } = view;
  return privately(
    pageDocument(site, {
      title: `${page.title} · Admin · ${site.name}`,
      ...(page.status !== undefined && { status: page.status }),
      ...(page.everySeconds !== undefined && { everySeconds: page.everySeconds }),
      current: "admin",
      isAdmins: true,
      footer: adminFooter,
      below: tabRow(view, tab),
      main: html`<h1>${page.title}</h1>
${notice && html`<p class="said ${notice.isGood ? "good" : "bad"}" role="status">${notice.text}</p>`}
${page.main}`,
    }),
  );
}

const tabRow = ({ site, who, formToken }: View, current: Tab): Html => html`<div class="tabs">
<nav aria-label="Admin">${tabs.map(
  ([path, label]) =>
    html`<a href="${site.basePath}/admin${path}"${path === current && html` aria-current="page"`}>${label}</a>`,
)}</nav>
<form method="post" action="${site.basePath}/admin/logout">${hidden("form", formToken)}<span class="quiet small">${who.startsWith("npub1") ? html`<span title="${who}">${who.slice(0, 9)}…${who.slice(-4)}</span>` : who}</span> <button class="small" type="submit">Log out</button></form>
</div>`;

export const hidden = (name: string, value: string): Html =>
  html`<input type="hidden" name="${name}" value="${value}">`;

export interface ActionForm {
  readonly operation: FormOperation;
  readonly label: string;
  readonly fields?: Readonly<Record<string, string>>;
  /** Fields to fill in. */
  readonly inputs?: HtmlValue;
  /** Cannot be taken back with one more click. */
  readonly isDangerous?: boolean;
  /** For readers who hear the button without what stands beside it. */
  readonly about?: string;
  readonly className?: string;
}

/** One button (and fields) that does one operation and comes back to this page. */
export function actionForm({ site, formToken, here }: View, form: ActionForm): Html {
  return html`<form method="post" action="${site.basePath}/admin/do/${form.operation}"${form.className && html` class="${form.className}"`}>${hidden("form", formToken)}${hidden("back", here)}${Object.entries(
    form.fields ?? {},
  ).map(([name, value]) =>
    hidden(name, value),
  )}${form.inputs}<button type="submit"${form.isDangerous && html` class="danger"`}${form.about && html` aria-label="${form.label}: ${form.about}"`}>${form.label}</button></form>`;
}

/** A second click that is meant: what removes something is folded away with its reason. */
export const foldedForm = (view: View, summary: string, form: ActionForm): Html =>
  html`<details class="fold"><summary>${summary}</summary>${actionForm(view, { isDangerous: true, ...form })}</details>`;

export const textField = (
  id: string,
  name: string,
  label: string,
  more: { readonly placeholder?: string; readonly value?: string; readonly isRequired?: boolean } = {},
): Html =>
  html`<span class="field"><label for="${id}">${label}</label><input type="text" id="${id}" name="${name}" maxlength="5000" autocomplete="off" spellcheck="false" value="${more.value ?? ""}"${more.placeholder && html` placeholder="${more.placeholder}"`}${more.isRequired && html` required`}></span>`;

export const choiceField = (
  id: string,
  name: string,
  label: string,
  choices: readonly (readonly [string, string])[],
  chosen = "",
): Html =>
  html`<span class="field"><label for="${id}">${label}</label><select id="${id}" name="${name}">${choices.map(
    ([value, text]) => html`<option value="${value}"${value === chosen && html` selected`}>${text}</option>`,
  )}</select></span>`;

/** A form that asks this page something. */
export const questionForm = ({ site }: View, tab: Tab, inputs: HtmlValue, label: string): Html =>
  html`<form class="row" method="get" action="${site.basePath}/admin${tab}">${inputs}<button type="submit">${label}</button></form>`;

export const repositoryHref = ({ site }: View, repository: string): string =>
  `${site.basePath}/admin/repository?name=${encodeURIComponent(repository)}`;

export const whyHref = ({ site }: View, subject: string): string =>
  `${site.basePath}/admin/decisions?subject=${encodeURIComponent(subject)}`;

/** `npub1abc…xyz/identifier`, whole in its title. */
export function repositoryLabel(repository: string): Html {
  const slash = repository.indexOf("/");
  const identifier = repository.slice(slash + 1);
  return html`<span title="${repository}"><b><bdi>${identifier.length > 60 ? `${identifier.slice(0, 60)}…` : identifier}</bdi></b> <span class="quiet small mono">${shortNpub(repository.slice(0, slash))}</span></span>`;
}

export const reasonColumn: Column<{ readonly reason: string }> = [
  "Reason",
  ({ reason }) => (reason === "" ? faint("none") : foreign(reason, 200)),
];
