// `/status`: the relays this server keeps in step with and how each was in the last day, what waits (as numbers),
// versions. Made of facts.

import type { WaitingTotals } from "../catalogue/waiting.js";
import type { Document } from "../http/routes.js";
import type { Announcement } from "../nostr/nip34.js";
import { count, counted, foreign, type Html, html, time } from "./html.js";
import { pageDocument, type Site } from "./layout.js";
import { andMore, faint, quiet, section, stackTable, tag, timeOr } from "./pieces.js";
import { type Sample, samplesKept } from "./relay-history.js";

const shownRelays = 200;

const healthTags: Readonly<Record<RelayStatus["health"], Html>> = {
  healthy: tag("healthy", "good"),
  degraded: tag("degraded", "warn"),
  dead: tag("dead", "bad"),
  "rate-limited": tag("rate-limited", "warn"),
};

export function statusPage(site: Site, facts: StatusFacts, historyOf: (url: string) => readonly Sample[]): Document {
  const { relays, waiting, versions } = facts;
  const gaps = relays.reduce((sum, { gapEvents }) => sum + gapEvents, 0);
  return pageDocument(site, {
    title: `Status · ${site.name}`,
    description: `How ${site.name} is doing`,
    current: "status",
    everySeconds: 30,
    main: html`<h1>Status</h1>
<div id="status" data-live>
<ul class="numbers">
<li><b>${count(facts.repositories)}</b> ${facts.repositories === 1 ? "repository" : "repositories"}</li>
<li><b>${count(facts.events)}</b> ${facts.events === 1 ? "event" : "events"}</li>
<li><b>${count(relays.filter(({ isConnected }) => isConnected).length)} of ${count(relays.length)}</b> relays connected</li>
<li><b>${count(gaps)}</b> events found late</li>
${facts.machines && machinesItem(facts.machines)}
${facts.refsBehind > 0 && html`<li><b>${count(facts.refsBehind)}</b> ${facts.refsBehind === 1 ? "repository" : "repositories"} behind on refs</li>`}
</ul>
${facts.busy}
${section(
  "waiting",
  "Waiting for git data",
)`<p class="quiet">Announced or signed, but not pushed yet. What waits is shown when its data is here.</p>
<dl class="facts short">
<dt>Repositories</dt><dd>${count(waiting.waitingAnnouncements)}</dd>
<dt>Waited too long</dt><dd>${count(waiting.softAnnouncements)}</dd>
<dt>Events in all</dt><dd>${count(waiting.entries)}</dd>
<dt>Hunting queue</dt><dd>${facts.huntingQueue === undefined ? "not hunting" : counted(facts.huntingQueue, "job", "jobs")}</dd>
</dl>`}
${section(
  "relays",
  "Relays",
)`<p class="quiet">Other servers that repositories here name, and how each has been in the last day. Found late: events they had that did not come at once. Found equal: when nothing they had was missing here, for the repository whose turn was longest ago.</p>
${relays.length === 0 ? quiet("No other relay is followed.") : relayTable(relays, historyOf)}
${facts.outbox && html`<p class="quiet">${outboxWords(facts.outbox)}</p>`}`}
${section("versions", "Versions")`<dl class="facts short">
<dt>Holdfast</dt><dd>${versions.holdfast}</dd><dt>git</dt><dd>${versions.git}</dd><dt>Node</dt><dd>${versions.node}</dd>
<dt>Running since</dt><dd>${time(facts.startedSeconds)}</dd>
</dl>`}
</div>`,
  });
}

const machinesItem = ({ all, alive, behind }: Machines): Html =>
  html`<li><b>${count(alive)} of ${count(all)}</b> machines answer${behind > 0 && html`, this one is ${counted(behind, "change", "changes")} behind`}</li>`;

function relayTable(relays: readonly RelayStatus[], historyOf: (url: string) => readonly Sample[]): Html {
  const ordered = [...relays].sort(
    (a, b) => Number(b.isConnected) - Number(a.isConnected) || a.url.localeCompare(b.url, "en"),
  );
  const off = html` <span class="quiet small">not connected</span>`;
  return html`${stackTable(ordered.slice(0, shownRelays), [
    ["Relay", ({ url }) => foreign(url.replace(/^wss:\/\//, ""), 100)],
    ["Health", ({ health, isConnected }) => [healthTags[health], !isConnected && off]],
    ["Last event", ({ lastEvent }) => timeOr(lastEvent, "none")],
    ["Found late", ({ gapEvents }) => count(gapEvents)],
    ["Found equal", ({ compared }) => comparedClean(compared)],
    ["Last day", ({ url }) => sparkline(historyOf(url))],
  ])}
${andMore(ordered.length, shownRelays)}`;
}

const outboxWords = ({ participants, relays, connected, incomplete }: OutboxStatus): string =>
  `Relays of participants: what ${counted(participants, "person wrote", "people wrote")} only there is gathered from ${counted(relays, "relay", "relays")}, ${count(connected)} connected${incomplete > 0 ? `; ${counted(incomplete, "repository is", "repositories are")} not complete yet` : ""}.`;

function comparedClean({ repositories, clean, oldest }: RelayStatus["compared"]): Html {
  if (repositories === 0) return faint("no repository");
  const part =
    clean < repositories && html` <span class="quiet small">${count(clean)} of ${count(repositories)}</span>`;
  return html`${timeOr(oldest, "not yet")}${part}`;
}

const heights: Readonly<Record<Sample, number>> = { up: 20, part: 13, down: 7 };

/** Told by height as well as by colour. */
export function sparkline(samples: readonly Sample[]): Html {
  const up = samples.filter((sample) => sample === "up").length;
  const said = samples.length === 0 ? "no history yet" : `healthy at ${up} of ${samples.length} looks`;
  const first = samplesKept - samples.length;
  const bar = (index: number): Html => {
    const sample = samples[index - first];
    const height = sample ? heights[sample] : 2;
    return html`<rect${sample && html` class="${sample}"`} x="${index * 4}" y="${20 - height}" width="3" height="${height}"></rect>`;
  };
  return html`<svg class="spark" viewBox="0 0 ${samplesKept * 4 - 1} 20" preserveAspectRatio="none" role="img" aria-label="${said}">${Array.from(
    { length: samplesKept },
    (_, index) => bar(index),
  )}</svg>`;
}

// What `/status` asks of the rooms that know. Public data only (threats row 31): no held event, no answer or error of
// a remote server, nothing that names what waits.

export interface RelayStatus {
  readonly url: string;
  readonly health: "healthy" | "degraded" | "dead" | "rate-limited";
  readonly isConnected: boolean;
  /** Unix seconds of the last event it brought, if any. */
  readonly lastEvent: number | null;
  /** New events that only a catch-up found. */
  readonly gapEvents: number;
  /** Repositories followed there, those compared clean at least once, and when the one that waits longest was. */
  readonly compared: { readonly repositories: number; readonly clean: number; readonly oldest: number | null };
}

/** A relay or git server of one repository: when it was in step, or asked, last; never what it said. */
export interface PeerStatus {
  readonly url: string;
  readonly type: "relay" | "git server";
  /** Unix seconds; undefined: not yet, or it is in step right now. */
  readonly at: number | undefined;
  /** Unix seconds of the last comparison that found nothing missing here; undefined: none since the start. */
  readonly lastClean: number | undefined;
  /** Events that were here and not there at the last comparison; undefined where nobody counted. */
  readonly theyLack: number | undefined;
  readonly result: "in step" | "ok" | "failed" | "not yet" | "not followed";
}

/** What is gathered at participants' own relays: numbers, never whose they are. */
export interface OutboxStatus {
  readonly participants: number;
  readonly relays: number;
  readonly connected: number;
  /** Repositories some of whose participants' relays have not answered yet. */
  readonly incomplete: number;
}

/** The same of one repository. */
export interface RepositoryOutbox {
  readonly participants: number;
  readonly relays: number;
  /** Every relay has answered, or cannot be asked at the moment. */
  readonly isComplete: boolean;
}

export interface StatusSources {
  /** Undefined when nothing is gathered (GRASP-03 is off). */
  outbox(): OutboxStatus | undefined;
  outboxOf(announcement: Announcement): RepositoryOutbox | undefined;
  /** Of what its served announcement lists: relays, then git servers, without ourselves. */
  peersOf(announcement: Announcement): readonly PeerStatus[];
  /** Without relays that only waiting announcements name: who is followed for them would tell of them. */
  syncStatus(): readonly RelayStatus[];
  /** Jobs that look for git data; undefined when nothing hunts. */
  huntingQueue(): number | undefined;
  /** Undefined for a server that is alone. */
  machines(): Machines | undefined;
}

/** Several machines as one: numbers, never their names. */
export interface Machines {
  readonly all: number;
  readonly alive: number;
  /** Changes this one has not applied yet. */
  readonly behind: number;
}

export const nothingFollowed: StatusSources = {
  outbox: () => undefined,
  outboxOf: () => undefined,
  peersOf: () => [],
  syncStatus: () => [],
  huntingQueue: () => undefined,
  machines: () => undefined,
};

export interface StatusFacts {
  readonly relays: readonly RelayStatus[];
  readonly huntingQueue: number | undefined;
  readonly outbox: OutboxStatus | undefined;
  readonly machines: Machines | undefined;
  readonly waiting: Omit<WaitingTotals, "bytes">;
  readonly repositories: number;
  /** Repositories whose git files do not say yet what is served. */
  readonly refsBehind: number;
  readonly events: number;
  /** Pictures of the last day and month. */
  readonly busy: Html;
  readonly startedSeconds: number;
  readonly versions: { readonly holdfast: string; readonly git: string; readonly node: string };
}
