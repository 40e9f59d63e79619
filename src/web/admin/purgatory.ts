// Why something is not here: /admin/purgatory (what waits, why, what is missing of it, who was asked, until when) and
// /admin/decisions (which rule accepted, held or refused an event, or what was decided about a repository).

import type { DecisionRecord } from "../../catalogue/decisions.js";
import type { Document } from "../../http/routes.js";
import { npubOf } from "../../nostr/nip19.js";
import type { AskedServer, Outcome } from "../../operator/context.js";
import type { WaitingLine, WaitingList } from "../../operator/purgatory.js";
import type { Explanation } from "../../operator/status.js";
import { bytes, count, counted, foreign, type Html, html, shortNpub, time } from "../html.js";
import { faint, npubMark, oidMark, quiet, section, stackTable, tag } from "../pieces.js";
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
<div class="heading-line"><h2 class="as-text">${first === undefined ? html`No repository` : html`<a href="${repositoryHref(view, first)}">${repositoryLabel(first)}</a>`}</h2> ${tag(kind)} ${phase === "soft" && tag("waited too long", "warn")}</div>
<p>${sentence(line.why)}</p>
<dl class="facts tight">
<dt>Event</dt><dd><code title="${id}">${id.slice(0, 16)}…</code>${author !== null && html` by ${npubMark(author)}`}, ${bytes(line.bytes)}</dd>
<dt>Came</dt><dd>${time(line.entered)} ${line.relay === null ? `from a ${line.source === "push" ? "push" : line.source}` : html`by sync from ${foreign(line.relay, 100)}`}</dd>
<dt>Expires</dt><dd>${time(line.expires)}</dd>
${missing !== null && missing.length > 0 && html`<dt>Missing</dt><dd>${missing.slice(0, shownObjects).map((oid) => html`${oidMark(oid)} `)}${missing.length > shownObjects && html`and ${count(missing.length - shownObjects)} more`}</dd>`}
${missing !== null && html`<dt>Asked</dt><dd>${asked.length === 0 ? faint("nobody yet") : html`<ul>${asked.slice(0, shownServers).map(server)}</ul>`}</dd>`}
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
  html`<li>${tag(answer, answer === "ok" ? "good" : "warn")} ${foreign(url, 120)} <span class="quiet small">${time(at)}</span></li>`;

export function decisionsPage(
  view: View,
  subject: string,
  outcome: Outcome<Explanation> | undefined,
  refused: readonly DecisionRecord[],
): Document {
  return adminPage(view, "/decisions", {
    title: "Decisions",
    main: html`<p class="quiet">Why an event was taken, held or refused, or what was decided about a repository.</p>
${questionForm(view, "/decisions", textField("subject", "subject", "Event or repository", { placeholder: "event id, note, nevent, npub1…/identifier or naddr", value: subject, isRequired: true }), "Why?")}
${outcome && (outcome.ok ? answer(view, outcome.result) : html`<p class="note" role="status">${outcome.message}.</p>`)}
${!outcome && section("refused", "Refused lately")`${refused.length === 0 ? quiet("Nothing was refused lately.") : decisionTable(view, refused)}`}`,
  });
}

const answer = (view: View, { subject, now, decisions }: Explanation): Html => html`${section(
  "now",
  "How it stands now",
)`<p class="quiet mono small">${foreign(subject, 400)}</p>
<ul class="plain">${now.map((text) => html`<li>${sentence(text)}</li>`)}</ul>`}
${section("decided", "What was decided")`${decisions.length === 0 ? quiet("No decision is on record.") : decisionTable(view, decisions)}`}`;

const outcomeLooks: Readonly<Record<string, "good" | "warn" | "bad">> = { store: "good", hold: "warn", refuse: "bad" };

export const decisionTable = (view: View, decisions: readonly DecisionRecord[]): Html =>
  stackTable(decisions, [
    ["When", ({ at }) => time(at)],
    ["Outcome", ({ outcome }) => tag(outcome, outcomeLooks[outcome])],
    ["Rule and reason", reasonOf],
    ["Event", (record) => eventOf(view, record)],
    ["From", ({ relay, source }) => (relay === null ? source : foreign(relay, 80))],
  ]);

const reasonOf = ({ rule, code, message }: DecisionRecord): Html =>
  html`<code>${rule}</code>${code !== null && html` ${tag(code)}`}${message !== "" && html`<br>${foreign(message, 300)}`}`;

const eventOf = (view: View, { id, kind, pubkey }: DecisionRecord): Html =>
  html`<a href="${whyHref(view, id)}"><code>${id.slice(0, 12)}…</code></a> kind ${kind}<br><span class="quiet small mono">${shortNpub(npubOf(pubkey))}</span>`;
