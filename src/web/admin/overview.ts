// /admin: how the server is, what deserves a look, and what was changed last.

import type { RecentLine } from "../../config/logging.js";
import type { Document } from "../../http/routes.js";
import type { AuditRow } from "../../operator/context.js";
import type { RelayList } from "../../operator/relays.js";
import type { Status } from "../../operator/status.js";
import { type Html, html } from "../html.js";
import { bytes, count, counted, time } from "../words.js";
import { auditTable } from "./audit.js";
import { adminPage, type View } from "./frame.js";
import { logLines } from "./log.js";

export interface OverviewFacts {
  readonly status: Status;
  readonly relays: RelayList;
  readonly changes: readonly AuditRow[];
  /** Warnings and errors, newest last. */
  readonly trouble: readonly RecentLine[];
}

export function overviewPage(view: View, { status, relays, changes, trouble }: OverviewFacts): Document {
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
<section aria-labelledby="looks"><h2 id="looks">Worth a look</h2>
${worthALook(base, status, followed)}</section>
<section aria-labelledby="server"><h2 id="server">Server</h2>
<dl class="facts">
<dt>Version</dt><dd>Holdfast ${server?.version ?? view.site.version}, git ${server?.gitVersion ?? "unknown"}, signatures ${server?.verification ?? "unknown"}</dd>
<dt>Running since</dt><dd>${time(view.nowSeconds - (server?.uptimeSeconds ?? 0))}</dd>
<dt>Database</dt><dd>${bytes(store.bytesOnDisk)}, ${counted(store.queuedWorks, "write waits", "writes wait")}</dd>
<dt>Repositories</dt><dd>${Object.entries(repositories)
      .filter(([, number]) => number > 0)
      .map(([word, number]) => `${count(number)} ${word}`)
      .join(", ")}</dd>
<dt>Bans and lists</dt><dd>${counted(status.bans, "ban", "bans")}, ${counted(status.listEntries, "entry on lists", "entries on lists")}</dd>
<dt>Subscriptions</dt><dd>${count(server?.subscriptions ?? 0)} open</dd>
</dl></section>
<section aria-labelledby="trouble"><h2 id="trouble">Last warnings</h2>
${trouble.length === 0 ? html`<p class="quiet">None since the start.</p>` : html`<ol class="log short" tabindex="0" aria-label="Last warnings">${logLines(trouble)}</ol>`}
<p class="small"><a href="${base}/log">The whole log</a></p></section>
<section aria-labelledby="changes"><h2 id="changes">Last changes</h2>
${changes.length === 0 ? html`<p class="quiet">Nothing was changed by an operator yet.</p>` : auditTable(changes)}
${changes.length > 0 && html`<p class="small"><a href="${base}/audit">All changes</a></p>`}</section>
</div>`,
  });
}

function worthALook(base: string, status: Status, followed: RelayList["relays"]): Html {
  const failing = followed.filter(({ failures, state }) => failures > 0 && state === "disconnected").length;
  const { repositories, partialStates, placeholders, waiting } = status;
  const lines = [
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
  ].filter((line) => line !== false);
  return lines.length === 0 ? html`<p class="quiet">Nothing: all is well.</p>` : html`<ul class="plain">${lines}</ul>`;
}
