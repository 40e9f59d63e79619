// /admin/purgatory: what waits, why, what is missing of it, who was asked, and until when.

import type { Document } from "../../http/routes.js";
import type { AskedServer } from "../../operator/context.js";
import type { WaitingLine, WaitingList } from "../../operator/purgatory.js";
import { foreign, type Html, html } from "../html.js";
import { bytes, count, counted, shortNpub, shortOid, time } from "../words.js";
import {
  actionForm,
  adminPage,
  foldedForm,
  questionForm,
  repositoryHref,
  repositoryLabel,
  textField,
  type View,
  whyHref,
} from "./frame.js";

const shownObjects = 8;
const shownServers = 10;

export function purgatoryPage(view: View, list: WaitingList, question: { readonly repository: string }): Document {
  const { totals, waiting, more } = list;
  return adminPage(view, "/purgatory", {
    title: "Purgatory",
    everySeconds: 20,
    main: html`<p class="quiet">Events wait here until the git data they name has come.</p>
${questionForm(view, "/purgatory", textField("repository", "repository", "Only one repository", { placeholder: "npub1…/identifier", value: question.repository }), "Show")}
<div id="waiting" data-live>
<p>${counted(totals.entries, "event waits", "events wait")} (${bytes(totals.bytes)}): ${counted(totals.waitingAnnouncements, "announcement", "announcements")}, ${count(totals.softAnnouncements)} more that waited too long.</p>
${waiting.length === 0 && html`<p class="quiet">Nothing waits${question.repository !== "" && " for this repository"}.</p>`}
<ul class="cards">${waiting.map((line, index) => card(view, line, index))}</ul>
${more && html`<p class="quiet">Not all are shown: <code>holdfast purgatory list --limit 10000</code> lists them.</p>`}
</div>`,
  });
}

function card(view: View, line: WaitingLine, index: number): Html {
  const { id, kind, phase, author, repositories, missing, asked } = line;
  const [first] = repositories;
  return html`<li>
<div class="heading-line"><h2 class="as-text">${first === undefined ? html`No repository` : html`<a href="${repositoryHref(view, first)}">${repositoryLabel(first)}</a>`}</h2> <span class="tag">${kind}</span> ${phase === "soft" && html`<span class="tag warn">waited too long</span>`}</div>
<p>${sentence(line.why)}</p>
<dl class="facts tight">
<dt>Event</dt><dd><code title="${id}">${id.slice(0, 16)}…</code>${author !== null && html` by <span class="mono" title="${author}">${shortNpub(author)}</span>`}, ${bytes(line.bytes)}</dd>
<dt>Came</dt><dd>${time(line.entered)} ${line.relay === null ? `from a ${line.source === "push" ? "push" : line.source}` : html`by sync from ${foreign(line.relay, 100)}`}</dd>
<dt>Expires</dt><dd>${time(line.expires)}</dd>
${missing !== null && missing.length > 0 && html`<dt>Missing</dt><dd>${missing.slice(0, shownObjects).map((oid) => html`<code title="${oid}">${shortOid(oid)}</code> `)}${missing.length > shownObjects && html`and ${count(missing.length - shownObjects)} more`}</dd>`}
${missing !== null && html`<dt>Asked</dt><dd>${asked.length === 0 ? html`<span class="quiet">nobody yet</span>` : html`<ul>${asked.slice(0, shownServers).map(server)}</ul>`}</dd>`}
</dl>
<div class="actions">
${first !== undefined && missing !== null && missing.length > 0 && actionForm(view, { operation: "purgatory.ask", label: "Ask again now", about: first, fields: { repository: first } })}
<a class="button" href="${whyHref(view, id)}" aria-label="Why: event ${id.slice(0, 16)}">Why?</a>
${kind !== "placeholder" && foldedForm(view, "Delete…", { operation: "purgatory.drop", label: "Delete this event", about: id.slice(0, 16), fields: { event: id } })}
${kind !== "placeholder" && foldedForm(view, "Ban…", { operation: "ban", label: "Ban this event", about: id.slice(0, 16), fields: { type: "event", target: id }, inputs: textField(`ban-${index}`, "reason", "Reason") })}
</div></li>`;
}

const sentence = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;

const server = ({ url, at, answer }: AskedServer): Html =>
  html`<li><span class="tag ${answer === "ok" ? "good" : "warn"}">${answer}</span> ${foreign(url, 120)} <span class="quiet small">${time(at)}</span></li>`;
