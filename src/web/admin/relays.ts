// /admin/relays: the relays sync follows and how each is; dialled now, left alone, or followed again.

import type { Document } from "../../http/routes.js";
import type { IgnoredRelay, RelayList } from "../../operator/relays.js";
import type { RelayStatus } from "../../sync/status.js";
import { foreign, type Html, html } from "../html.js";
import { count, time } from "../words.js";
import { actionForm, adminPage, foldedForm, textField, type View } from "./frame.js";

const shownRelays = 300;

export function relaysPage(view: View, { relays, ignored }: RelayList): Document {
  const followed = relays
    .filter((relay) => !relay.ignored)
    .sort((a, b) => b.failures - a.failures || a.relay.localeCompare(b.relay, "en"));
  return adminPage(view, "/relays", {
    title: "Relays",
    everySeconds: 10,
    main: html`<p class="quiet">Relays that repositories here list, and bootstrap relays. Those in trouble come first.</p>
<div id="relays" data-live>
${followed.length === 0 ? html`<p class="quiet">No relay is followed.</p>` : html`<ul class="cards">${followed.slice(0, shownRelays).map((relay, index) => card(view, relay, index))}</ul>`}
${followed.length > shownRelays && html`<p class="quiet">and ${count(followed.length - shownRelays)} more: <code>holdfast relays list</code>.</p>`}
<section aria-labelledby="ignored"><h2 id="ignored">Left alone</h2>
${ignored.length === 0 ? html`<p class="quiet">None.</p>` : ignoredTable(view, ignored)}</section>
</div>
<section aria-labelledby="leave"><h2 id="leave">Leave a relay alone</h2>
<p>Its connection is closed at once and it is not dialled until you take that back, also after a restart.</p>
${actionForm(view, {
  operation: "relays.ignore",
  label: "Ignore",
  className: "row",
  inputs: html`${textField("ignore-relay", "relay", "Relay", { placeholder: "wss://relay.example.com", isRequired: true })}${textField("ignore-reason", "reason", "Reason")}`,
})}</section>`,
  });
}

const stateTag = ({ state, health }: RelayStatus): Html => {
  if (health === "dead") return html`<span class="tag bad">dead</span>`;
  if (health === "rate-limited") return html`<span class="tag warn">rate-limited</span>`;
  const look = state === "live" ? "good" : state === "disconnected" ? "bad" : "warn";
  return html`<span class="tag ${look}">${state.replaceAll("-", " ")}</span>`;
};

function card(view: View, relay: RelayStatus, index: number): Html {
  const name = relay.url ?? relay.relay;
  const { lastFailure, nextAttemptSeconds, lastInStep } = relay;
  return html`<li>
<div class="heading-line"><h2 class="as-text">${foreign(name.replace(/^wss:\/\//, ""), 120)}</h2> ${stateTag(relay)} ${relay.bootstrap && html`<span class="tag">bootstrap</span>`} ${relay.waitingOnly && html`<span class="tag">for waiting repositories only</span>`}</div>
<dl class="facts tight">
<dt>In step</dt><dd>${relay.inStep ? "now" : lastInStep === null ? html`<span class="quiet">not yet</span>` : html`last ${time(lastInStep)}`}, ${count(relay.confirmedItems)} of ${count(relay.wantedItems)} items${relay.failedItems > 0 && `, ${count(relay.failedItems)} fail`}</dd>
<dt>Last event</dt><dd>${relay.lastEvent === null ? html`<span class="quiet">none</span>` : time(relay.lastEvent)}${relay.gapEvents > 0 && `, ${count(relay.gapEvents)} found late`}</dd>
<dt>Last error</dt><dd>${lastFailure === null ? html`<span class="quiet">none</span>` : html`${lastFailure.kind} ${time(lastFailure.at)}${relay.failures > 1 && `, ${count(relay.failures)} in a row`}`}</dd>
${nextAttemptSeconds !== null && html`<dt>Next attempt</dt><dd>${nextAttemptSeconds > 0 ? time(view.nowSeconds + nextAttemptSeconds) : "now"}</dd>`}
</dl>
<div class="actions">
${actionForm(view, { operation: "relays.reconnect", label: "Reconnect now", about: name, fields: { relay: name } })}
${foldedForm(view, "Ignore…", { operation: "relays.ignore", label: "Ignore this relay", about: name, fields: { relay: name }, inputs: textField(`reason-${index}`, "reason", "Reason") })}
</div></li>`;
}

const ignoredTable = (
  view: View,
  ignored: readonly IgnoredRelay[],
): Html => html`<table class="stack"><thead><tr><th scope="col">Relay</th><th scope="col">Since</th><th scope="col">Reason</th><th scope="col">Take back</th></tr></thead>
<tbody>${ignored.map(
  ({ relay, since, reason }) => html`<tr><th scope="row">${foreign(relay, 120)}</th>
<td data-label="Since">${time(since)}</td><td data-label="Reason"><span>${reason === "" ? html`<span class="quiet">none</span>` : foreign(reason, 200)}</span></td>
<td data-label="Take back">${actionForm(view, { operation: "relays.unignore", label: "Follow again", about: relay, fields: { relay } })}</td></tr>`,
)}</tbody></table>`;
