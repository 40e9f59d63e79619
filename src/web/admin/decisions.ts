// /admin/decisions: which rule accepted, held or refused an event, or what was decided about a repository (`why`).

import type { DecisionRecord } from "../../catalogue/decisions.js";
import type { Document } from "../../http/routes.js";
import { npubOf } from "../../nostr/nip19.js";
import type { Outcome } from "../../operator/context.js";
import type { Explanation } from "../../operator/status.js";
import { foreign, type Html, html } from "../html.js";
import { shortNpub, time } from "../words.js";
import { adminPage, questionForm, textField, type View, whyHref } from "./frame.js";

export function decisionsPage(view: View, subject: string, outcome: Outcome<Explanation> | undefined): Document {
  return adminPage(view, "/decisions", {
    title: "Decisions",
    main: html`<p class="quiet">Why an event was taken, held or refused, or what was decided about a repository.</p>
${questionForm(view, "/decisions", textField("subject", "subject", "Event or repository", { placeholder: "event id, note, nevent, npub1…/identifier or naddr", value: subject, isRequired: true }), "Why?")}
${outcome && (outcome.ok ? answer(view, outcome.result) : html`<p class="note" role="status">${outcome.message}.</p>`)}`,
  });
}

const answer = (
  view: View,
  { subject, now, decisions }: Explanation,
): Html => html`<section aria-labelledby="now"><h2 id="now">How it stands now</h2>
<p class="quiet mono small">${foreign(subject, 400)}</p>
<ul class="plain">${now.map((text) => html`<li>${text.slice(0, 1).toUpperCase()}${text.slice(1)}.</li>`)}</ul></section>
<section aria-labelledby="decided"><h2 id="decided">What was decided</h2>
${decisions.length === 0 ? html`<p class="quiet">No decision is on record.</p>` : decisionTable(view, decisions)}</section>`;

const outcomeLooks: Readonly<Record<string, string>> = { store: "good", hold: "warn", refuse: "bad" };

export const decisionTable = (
  view: View,
  decisions: readonly DecisionRecord[],
): Html => html`<table class="stack"><thead><tr><th scope="col">When</th><th scope="col">Outcome</th><th scope="col">Rule and reason</th><th scope="col">Event</th><th scope="col">From</th></tr></thead>
<tbody>${decisions.map(
  ({ id, pubkey, kind, at, source, relay, outcome, rule, code, message }) => html`<tr><th scope="row">${time(at)}</th>
<td data-label="Outcome"><span><span class="tag ${outcomeLooks[outcome] ?? ""}">${outcome}</span></span></td>
<td data-label="Rule"><span><code>${rule}</code>${code !== null && html` <span class="tag">${code}</span>`}${message !== "" && html`<br>${foreign(message, 300)}`}</span></td>
<td data-label="Event"><span><a href="${whyHref(view, id)}"><code>${id.slice(0, 12)}…</code></a> kind ${kind}<br><span class="quiet small mono">${shortNpub(npubOf(pubkey))}</span></span></td>
<td data-label="From"><span>${relay === null ? source : foreign(relay, 80)}</span></td></tr>`,
)}</tbody></table>`;
