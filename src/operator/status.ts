// How things stand: `status` counts everything (the public subset is counts only; purgatory.md, "Visible"); `why` tells
// which rule accepted, held or refused an event, from the record of that decision, and how it stands now.

import { unixSeconds } from "../base/clock.js";
import { counted, timeText } from "../base/text.js";
import { type BanRow, bannedAuthorKey, bannedEventKey } from "../catalogue/bans-and-lists.js";
import {
  type DecisionRecord,
  decisionsAbout,
  decisionsOn,
  type LeftRepository,
  leftRepository,
  recordCount,
  refusedLately,
  rememberedId,
} from "../catalogue/decisions.js";
import {
  type ArchiveUse,
  archiveUse,
  type CatalogueRow,
  catalogueRow,
  catalogueRows,
  type RepositoryName,
  type RepositoryStatus,
  repositoryNamed,
} from "../catalogue/repositories.js";
import { type WaitingTotals, waitingEntry, waitingEvent, waitingTotals } from "../catalogue/waiting.js";
import { addressOf, type EventId, kinds, type NostrEvent, type Pubkey } from "../nostr/event.js";
import type { StoreStats } from "../store/port.js";
import { bansOf } from "./bans.js";
import { type AdminParts, done, type Outcome, type RunningFacts, refusal } from "./context.js";
import { showLists } from "./lists.js";
import { authorSentences, standingSentence, standingsOf } from "./maintainers.js";
import { eventNamed, repositoryNamedBy, repositoryText } from "./naming.js";
import { waitingAbout } from "./repositories.js";

export interface Status {
  readonly running: boolean;
  readonly server: RunningFacts | null;
  readonly store: StoreStats;
  readonly repositories: Readonly<Record<RepositoryStatus, number>>;
  readonly partialStates: number;
  /** Mirrors (GRASP-05) and their disk budget. */
  readonly archive: ArchiveUse & { readonly maxBytes: number };
  readonly waiting: WaitingTotals;
  readonly placeholders: number;
  readonly bans: number;
  readonly listEntries: number;
  readonly decisions: number;
}

export async function statusOf(parts: AdminParts): Promise<Status> {
  const { store } = parts;
  const repositories = { waiting: 0, soft: 0, served: 0, archived: 0, leaving: 0, deleted: 0 };
  let partialStates = 0;
  for await (const row of catalogueRows(store)) {
    repositories[row.status]++;
    if (row.partial) partialStates++;
  }
  let placeholders = 0;
  for await (const _ of store.rows("purgatory", { prefix: "g:" })) placeholders++;
  const { events, bytesOnDisk, queuedWorks } = store.stats;
  return {
    running: parts.running !== undefined,
    server: parts.running?.facts() ?? null,
    store: { events, bytesOnDisk, queuedWorks },
    repositories,
    partialStates,
    archive: { ...(await archiveUse(store)), maxBytes: parts.config().archiveMaxBytes },
    waiting: await waitingTotals(store),
    placeholders,
    bans: (await bansOf(parts)).length,
    listEntries: showLists(parts).length,
    decisions: await recordCount(store),
  };
}

export interface PublicStatus {
  readonly version: string;
  readonly uptimeSeconds: number;
  readonly events: number;
  readonly repositories: number;
  readonly waiting: number;
}

/** Cheap enough for anybody to ask: nothing is counted here. */
export async function publicStatus(
  { store }: Pick<AdminParts, "store">,
  facts: RunningFacts,
  servedRepositories: number,
): Promise<PublicStatus> {
  return {
    version: facts.version,
    uptimeSeconds: facts.uptimeSeconds,
    events: store.stats.events,
    repositories: servedRepositories,
    waiting: (await waitingTotals(store)).entries,
  };
}

/** What was refused lately, newest first. */
export async function recentRefusals(
  { store, running }: AdminParts,
  limit: number,
): Promise<Outcome<{ readonly decisions: readonly DecisionRecord[] }>> {
  await running?.decisionsWritten();
  return done({ decisions: await refusedLately(store, limit) });
}

export interface Explanation {
  readonly subject: string;
  /** One sentence each: how it stands now. */
  readonly now: readonly string[];
  /** Newest first. */
  readonly decisions: readonly DecisionRecord[];
}

export async function explain(parts: AdminParts, text: string, limit: number): Promise<Outcome<Explanation>> {
  await parts.running?.decisionsWritten();
  const id = eventNamed(text);
  if (id) return explainEvent(parts, id);
  const name = repositoryNamedBy(text);
  if (name) return explainRepository(parts, name, limit);
  return refusal("bad-request", `${JSON.stringify(text)} is neither an event id nor npub/identifier`);
}

async function explainEvent({ store, clock, running }: AdminParts, id: EventId): Promise<Outcome<Explanation>> {
  const decisions = await decisionsOn(store, id);
  const stored = await store.event(id);
  const waiting = await waitingEntry(store, id);
  const remembered = await rememberedId(store, id, unixSeconds(clock));
  const author = decisions[0]?.pubkey ?? stored?.event.pubkey ?? waiting?.pubkey;
  const now = [
    ...(stored ? ["it is stored and served"] : []),
    ...(waiting ? [`it waits (${waiting.phase}) until ${timeText(waiting.expires)} UTC`] : []),
    ...((waiting?.repositories ?? []).map(repositoryNamed).some((name) => name && lacksRoom(running, name))
      ? [noRoom]
      : []),
    ...(await banSentences(store, id, author)),
    ...(await stateSentences(store, decisions[0], stored?.event ?? (waiting && waitingEvent(waiting)))),
    ...(remembered ? [`its id is remembered (${remembered.reason}) until ${timeText(remembered.until)} UTC`] : []),
  ];
  if (now.length === 0 && decisions.length === 0) {
    return refusal("unknown", "no decision about this event is on record: it never came, or too long ago");
  }
  const standing = now.length > 0 ? now : ["it is not here"];
  return done({ subject: id, now: standing, decisions });
}

/** What a state is worth depends on how its author stands. */
async function stateSentences(
  reader: AdminParts["store"],
  decision: DecisionRecord | undefined,
  event: NostrEvent | undefined,
): Promise<readonly string[]> {
  const author = event?.pubkey ?? decision?.pubkey;
  if ((event?.kind ?? decision?.kind) !== kinds.state || !author) return [];
  const identifier = event
    ? addressOf(event)?.identifier
    : repositoryNamed(decision?.repositories[0] ?? "")?.identifier;
  return identifier === undefined ? [] : authorSentences(reader, author, identifier);
}

const noRoom = "its git data is not fetched: the disk budget for mirrors is used up (NGIT_ARCHIVE_MAX_BYTES)";

const lacksRoom = (running: AdminParts["running"], name: RepositoryName): boolean =>
  running?.askedServers(name).some(({ answer }) => answer === "archive-full") ?? false;

async function banSentences(
  reader: AdminParts["store"],
  id: EventId,
  author: Pubkey | undefined,
): Promise<readonly string[]> {
  const event = await reader.row<BanRow>("bans", bannedEventKey(id));
  const key = author && (await reader.row<BanRow>("bans", bannedAuthorKey(author)));
  const because = (row: BanRow): string => (row.reason === "" ? "" : `: ${row.reason}`);
  return [
    ...(event ? [`this event is banned${because(event)}`] : []),
    ...(key ? [`its author's key is banned${because(key)}`] : []),
  ];
}

async function explainRepository(
  { store, clock, rules, config, running }: AdminParts,
  name: RepositoryName,
  limit: number,
): Promise<Outcome<Explanation>> {
  const row = await catalogueRow(store, name);
  const left = await leftRepository(store, name, unixSeconds(clock));
  const decisions = await decisionsAbout(store, name, limit);
  const waiting = await waitingAbout(store, name);
  const blacklisted = rules
    .over(config())
    .repositoryBlacklist.some(
      (entry) =>
        (entry.type === "author" && entry.pubkey === name.owner) ||
        (entry.type !== "author" &&
          entry.identifier === name.identifier &&
          (entry.type === "identifier" || entry.pubkey === name.owner)),
    );
  if (!row && decisions.length === 0 && !blacklisted) {
    return refusal("unknown", `nothing about ${repositoryText(name)} is on record`);
  }
  const now = [
    row ? standing(row, left) : "it has no repository here",
    ...(waiting > 0 ? [counted(waiting, "event about it waits", "events about it wait")] : []),
    ...(lacksRoom(running, name) ? [noRoom] : []),
    ...(blacklisted ? ["it is on the repository blacklist"] : []),
    ...(row ? (await standingsOf(store, name)).slice(0, maintainersTold).map(standingSentence) : []),
  ];
  return done({ subject: repositoryText(name), now, decisions });
}

const maintainersTold = 30;

function standing(row: CatalogueRow, left: LeftRepository | undefined): string {
  const partial = row.partial
    ? `, ${counted(row.partial.missingRefs.length, "ref of its state is", "refs of its state are")} missing`
    : "";
  const withdrawn = left ? "; announcements up to the withdrawn one do not bring it back" : "";
  return `it is ${row.status} since ${timeText(row.since)} UTC${partial}${withdrawn}`;
}
