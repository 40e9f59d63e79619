// How the server is: /admin (what deserves a look, what was changed last), /admin/audit and /admin/relays.

import type { RecentLine } from "../../config/logging.js";
import type { Document } from "../../http/routes.js";
import type { AuditRow } from "../../operator/context.js";
import type { IgnoredRelay, RelayList } from "../../operator/relays.js";
import type { Status } from "../../operator/status.js";
import type { RelayStatus } from "../../sync/status.js";
import { bytes, count, counted, foreign, type Html, html, shortNpub, time } from "../html.js";
import { faint, npubMark, quiet, section, stackTable, tag, timeOr } from "../pieces.js";
import { actionForm, adminPage, foldedForm, reasonColumn, textField, type View } from "./frame.js";
import { logLines } from "./log.js";

export interface OverviewFacts {
  readonly status: Status;
  readonly relays: RelayList;
  readonly changes: readonly AuditRow[];
  /** Warnings and errors, newest last. */
  readonly trouble: readonly RecentLine[];
  /** Pictures of the last day and month. */
  readonly busy: Html;
}

export function overviewPage(view: View, { status, relays, changes, trouble, busy }: OverviewFacts): Document {
  const { repositories, waiting, server, store } = status;
  const followed = relays.relays.filter(({ ignored }) => !ignored);
  const connected = followed.filter(({ state }) => state !== "disconnected" && state !== "connecting").length;
  const base = `${view.site.basePath}/admin`;
  return adminPage(view, "", {
    title: "Overview",
    everySeconds: 20,
    main: html`<div id="overview" data-live>
<ul class="numbers">
<li><b>${count(repositories.served + repositories.archived)}</b> repositories served</li>
<li><b>${count(waiting.entries)}</b> events wait</li>
<li><b>${count(store.events)}</b> events stored</li>
<li><b>${count(connected)} of ${count(followed.length)}</b> relays connected</li>
<li><b>${count(server?.connections ?? 0)}</b> clients connected</li>
</ul>
${section("looks", "Worth a look")`${worthALook(base, status, followed)}`}
${busy}
${section("server", "Server")`<dl class="facts">
<dt>Version</dt><dd>Holdfast ${server?.version ?? view.site.version}, git ${server?.gitVersion ?? "unknown"}, signatures ${server?.verification ?? "unknown"}</dd>
<dt>Running since</dt><dd>${time(view.nowSeconds - (server?.uptimeSeconds ?? 0))}</dd>
<dt>Database</dt><dd>${bytes(store.bytesOnDisk)}, ${counted(store.queuedWorks, "write waits", "writes wait")}</dd>
<dt>Repositories</dt><dd>${Object.entries(repositories)
  .filter(([, number]) => number > 0)
  .map(([word, number]) => `${count(number)} ${word}`)
  .join(", ")}</dd>
<dt>Bans and lists</dt><dd>${counted(status.bans, "ban", "bans")}, ${counted(status.listEntries, "entry on lists", "entries on lists")}</dd>
<dt>Subscriptions</dt><dd>${count(server?.subscriptions ?? 0)} open</dd>
</dl>`}
${section(
  "trouble",
  "Last warnings",
)`${trouble.length === 0 ? quiet("None since the start.") : html`<ol class="log short" tabindex="0" aria-label="Last warnings">${logLines(trouble)}</ol>`}
<p class="small"><a href="${base}/log">The whole log</a></p>`}
${section(
  "changes",
  "Last changes",
)`${changes.length === 0 ? quiet("Nothing was changed by an operator yet.") : auditTable(changes)}
${changes.length > 0 && html`<p class="small"><a href="${base}/audit">All changes</a></p>`}`}
</div>`,
  });
}

function worthALook(base: string, status: Status, followed: RelayList["relays"]): Html {
  const failing = followed.filter(({ failures, state }) => failures > 0 && state === "disconnected").length;
  const { repositories, partialStates, placeholders, waiting } = status;
  const advice = status.server?.verificationAdvice;
  const lines = [
    advice && html`<li>${advice.charAt(0).toUpperCase()}${advice.slice(1)}</li>`,
    failing > 0 &&
      html`<li><a href="${base}/relays">${counted(failing, "relay is", "relays are")} not reached</a></li>`,
    partialStates > 0 &&
      html`<li><a href="${base}/repositories?show=partial">${counted(partialStates, "repository lacks", "repositories lack")} some of what was signed</a></li>`,
    repositories.leaving > 0 &&
      html`<li><a href="${base}/repositories?status=leaving">${counted(repositories.leaving, "repository is", "repositories are")} leaving</a></li>`,
    waiting.waitingAnnouncements > 0 &&
      html`<li><a href="${base}/purgatory">${counted(waiting.waitingAnnouncements, "repository waits", "repositories wait")} for a first push</a></li>`,
    placeholders > 0 &&
      html`<li><a href="${base}/purgatory">${counted(placeholders, "push waits", "pushes wait")} for an event</a></li>`,
  ].filter((line) => line !== false && line !== undefined && line !== null && line !== "");
  return lines.length === 0 ? quiet("Nothing: all is well.") : html`<ul class="plain">${lines}</ul>`;
}

// /admin/audit: who changed what, when, and by which way.

const shortened = (text: string): Html =>
  /^npub1[^/]{50,}$/.test(text)
    ? npubMark(text)
    : /^npub1[^/]{50,}\//.test(text)
      ? html`<span title="${text}"><span class="mono">${shortNpub(text.slice(0, 63))}</span>/${foreign(text.slice(64), 60)}</span>`
      : /^[0-9a-f]{64}$/.test(text)
        ? html`<code title="${text}">${text.slice(0, 12)}…</code>`
        : foreign(text, 80);

const auditTable = (rows: readonly AuditRow[]): Html =>
  stackTable(rows, [
    ["When", ({ at }) => time(at)],
    ["Who", ({ who, via }) => html`${shortened(who)} <span class="quiet small">${via}</span>`],
    ["What", ({ what }) => what],
    ["Target", ({ target }) => shortened(target)],
    reasonColumn,
  ]);

export function auditPage(view: View, rows: readonly AuditRow[]): Document {
  return adminPage(view, "/audit", {
    title: "Audit",
    main:
      rows.length === 0
        ? quiet("Nothing was changed by an operator yet.")
        : html`<p class="quiet">The newest ${rows.length}. Every change is here, whether it came from a page, the command line or relay management.</p>${auditTable(rows)}`,
  });
}

// /admin/relays: the relays sync follows and how each is; dialled now, left alone, or followed again.

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
${followed.length === 0 ? quiet("No relay is followed.") : html`<ul class="cards">${followed.slice(0, shownRelays).map((relay, index) => card(view, relay, index))}</ul>`}
${followed.length > shownRelays && html`<p class="quiet">and ${count(followed.length - shownRelays)} more: <code>holdfast relays list</code>.</p>`}
${section("ignored", "Left alone")`${ignored.length === 0 ? quiet("None.") : ignoredTable(view, ignored)}`}
</div>
${section(
  "leave",
  "Leave a relay alone",
)`<p>Its connection is closed at once and it is not dialled until you take that back, also after a restart.</p>
${actionForm(view, {
  operation: "relays.ignore",
  label: "Ignore",
  className: "row",
  inputs: html`${textField("ignore-relay", "relay", "Relay", { placeholder: "wss://relay.example.com", isRequired: true })}${textField("ignore-reason", "reason", "Reason")}`,
})}`}`,
  });
}

const stateTag = ({ state, health }: RelayStatus): Html => {
  if (health === "dead") return tag("dead", "bad");
  if (health === "rate-limited") return tag("rate-limited", "warn");
  return tag(state.replaceAll("-", " "), state === "live" ? "good" : state === "disconnected" ? "bad" : "warn");
};

function card(view: View, relay: RelayStatus, index: number): Html {
  const name = relay.url ?? relay.relay;
  const { lastFailure, nextAttemptSeconds, lastInStep } = relay;
  return html`<li>
<div class="heading-line"><h2 class="as-text">${foreign(name.replace(/^wss:\/\//, ""), 120)}</h2> ${stateTag(relay)} ${relay.bootstrap && tag("bootstrap")} ${relay.waitingOnly && tag("for waiting repositories only")}</div>
<dl class="facts tight">
<dt>In step</dt><dd>${relay.inStep ? "now" : lastInStep === null ? faint("not yet") : html`last ${time(lastInStep)}`}, ${count(relay.confirmedItems)} of ${count(relay.wantedItems)} items${relay.failedItems > 0 && `, ${count(relay.failedItems)} fail`}</dd>
<dt>Last event</dt><dd>${timeOr(relay.lastEvent, "none")}${relay.gapEvents > 0 && `, ${count(relay.gapEvents)} found late`}</dd>
<dt>Last error</dt><dd>${lastFailure === null ? faint("none") : html`${lastFailure.kind} ${time(lastFailure.at)}${relay.failures > 1 && `, ${count(relay.failures)} in a row`}`}</dd>
${nextAttemptSeconds !== null && html`<dt>Next attempt</dt><dd>${nextAttemptSeconds > 0 ? time(view.nowSeconds + nextAttemptSeconds) : "now"}</dd>`}
</dl>
<div class="actions">
${actionForm(view, { operation: "relays.reconnect", label: "Reconnect now", about: name, fields: { relay: name } })}
${foldedForm(view, "Ignore…", { operation: "relays.ignore", label: "Ignore this relay", about: name, fields: { relay: name }, inputs: textField(`reason-${index}`, "reason", "Reason") })}
</div></li>`;
}

const ignoredTable = (view: View, ignored: readonly IgnoredRelay[]): Html =>
  stackTable(ignored, [
    ["Relay", ({ relay }) => foreign(relay, 120)],
    ["Since", ({ since }) => time(since)],
    reasonColumn,
    ["Take back", ({ relay }) => followAgain(view, relay), "form"],
  ]);

const followAgain = (view: View, relay: string): Html =>
  actionForm(view, { operation: "relays.unignore", label: "Follow again", about: relay, fields: { relay } });
