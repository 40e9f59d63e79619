// /admin/audit: who changed what, when, and by which way.

import type { Document } from "../../http/routes.js";
import type { AuditRow } from "../../operator/context.js";
import { foreign, type Html, html } from "../html.js";
import { shortNpub, time } from "../words.js";
import { adminPage, type View } from "./frame.js";

const shortened = (text: string): Html =>
  /^npub1[^/]{50,}$/.test(text)
    ? html`<span class="mono" title="${text}">${shortNpub(text)}</span>`
    : /^npub1[^/]{50,}\//.test(text)
      ? html`<span title="${text}"><span class="mono">${shortNpub(text.slice(0, 63))}</span>/${foreign(text.slice(64), 60)}</span>`
      : /^[0-9a-f]{64}$/.test(text)
        ? html`<code title="${text}">${text.slice(0, 12)}…</code>`
        : foreign(text, 80);

export const auditTable = (
  rows: readonly AuditRow[],
): Html => html`<table class="stack"><thead><tr><th scope="col">When</th><th scope="col">Who</th><th scope="col">What</th><th scope="col">Target</th><th scope="col">Reason</th></tr></thead>
<tbody>${rows.map(
  ({ at, who, via, what, target, reason }) => html`<tr><th scope="row">${time(at)}</th>
<td data-label="Who"><span>${shortened(who)} <span class="quiet small">${via}</span></span></td><td data-label="What"><span>${what}</span></td><td data-label="Target"><span>${shortened(target)}</span></td><td data-label="Reason"><span>${reason === "" ? html`<span class="quiet">none</span>` : foreign(reason, 200)}</span></td></tr>`,
)}</tbody></table>`;

export function auditPage(view: View, rows: readonly AuditRow[]): Document {
  return adminPage(view, "/audit", {
    title: "Audit",
    main:
      rows.length === 0
        ? html`<p class="quiet">Nothing was changed by an operator yet.</p>`
        : html`<p class="quiet">The newest ${rows.length}. Every change is here, whether it came from a page, the command line or relay management.</p>${auditTable(rows)}`,
  });
}
