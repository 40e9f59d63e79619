// What a release stores, in the transaction that writes its refs: what waited is stored, the catalogue says what governs.
// What the release was planned on is asked for again, and an Overtaken ends the transaction. Announcements
// first, so that the feed and every subscriber hear of a repository before they hear of its state.

import { refreshListings, stateDecides } from "../catalogue/maintainers.js";
import {
  bookCopies,
  bookOwners,
  type CatalogueRow,
  catalogueRow,
  isReleased,
  type RepositoryName,
  repositoryKey,
  setCatalogueRow,
  takesStates,
  withStatus,
} from "../catalogue/repositories.js";
import {
  endPartial,
  isStillHere,
  removeWaiting,
  type WaitingEntry,
  waitingAnnouncement,
  waitingEntries,
  waitingEntry,
  waitingEvent,
  waitingKeys,
} from "../catalogue/waiting.js";
import { Overtaken } from "../git/change-refs.js";
import { compareNewestFirst, type EventId } from "../nostr/event.js";
import { stateOf } from "../nostr/nip34.js";
import type { Transaction } from "../store/port.js";
import type { Released, Via } from "./context.js";
import type { RepositoryPlan } from "./plan.js";
import type { PullRequestPlan } from "./pull-requests.js";

const maxRelatedReleased = 200;

/** Moves one entry from the waiting room to the store. */
async function releaseEntry(
  tx: Transaction,
  entry: WaitingEntry,
  via: Via,
  nowSeconds: number,
): Promise<Released | undefined> {
  // Deleted, replaced or expired while git worked: then it has no business being served.
  if ((await waitingEntry(tx, entry.id)) === undefined) return undefined;
  const result = await tx.put(waitingEvent(entry));
  await removeWaiting(tx, entry.id);
  // An older version of something stored meanwhile: it only leaves.
  if (!result.stored) return undefined;
  return { id: entry.id, kind: entry.kind, entry, via, waitedSeconds: nowSeconds - entry.entered };
}

function governedRow(row: CatalogueRow, plan: RepositoryPlan, nowSeconds: number): CatalogueRow {
  const { governing } = plan;
  if (!governing) return plan.isUngoverned && isReleased(row) ? { ...row, governing: null, partial: null } : row;
  const { id, created_at } = governing.state.event;
  const stamp = { id, created_at };
  const { missing } = governing.alignment;
  const since = row.partial?.state === id ? row.partial.since : nowSeconds;
  const marked: CatalogueRow = {
    ...row,
    governing: id,
    mark: row.mark && compareNewestFirst(row.mark, stamp) < 0 ? row.mark : stamp,
    partial: missing.length > 0 ? { state: id, missingRefs: missing, since } : null,
  };
  if (row.status !== "waiting" && row.status !== "soft") return marked;
  return withStatus(marked, row.archive ? "archived" : "served", nowSeconds);
}

/** Announcement of a repository that has data now, its empty states, and what was related to it. */
async function releaseRepository(
  tx: Transaction,
  name: RepositoryName,
  via: Via,
  nowSeconds: number,
): Promise<{ readonly first: Released[]; readonly after: Released[] }> {
  const first: Released[] = [];
  const after: Released[] = [];
  const announcement = await waitingAnnouncement(tx, name);
  if (announcement) push(first, await releaseEntry(tx, announcement, via, nowSeconds));
  await refreshListings(tx, name, nowSeconds);
  for (const entry of await waitingEntries(tx, waitingKeys.repositoryKind(name, "state"), maxRelatedReleased)) {
    if (stateOf(waitingEvent(entry))?.refs.length === 0) push(after, await releaseEntry(tx, entry, via, nowSeconds));
  }
  for (const entry of await waitingEntries(tx, waitingKeys.repositoryKind(name, "related"), maxRelatedReleased)) {
    push(after, await releaseEntry(tx, entry, via, nowSeconds));
  }
  return { first, after };
}

/** What waited because it is about this event, and what is about that. */
async function releaseAbout(tx: Transaction, id: EventId, via: Via, nowSeconds: number): Promise<Released[]> {
  const released: Released[] = [];
  for (const about of await waitingEntries(tx, waitingKeys.tagsEvent(id), maxRelatedReleased)) {
    const one = about.kind === "related" ? await releaseEntry(tx, about, via, nowSeconds) : undefined;
    if (one) released.push(one, ...(await releaseAbout(tx, one.id, via, nowSeconds)));
  }
  return released;
}

function push<T>(list: T[], item: T | undefined): void {
  if (item !== undefined) list.push(item);
}

interface Releasable {
  /** Bytes copied into each repository from others: its owner's. */
  readonly copied: ReadonlyMap<string, number>;
  readonly plans: readonly RepositoryPlan[];
  readonly pullRequests: readonly PullRequestPlan[];
  readonly via: Via;
  readonly nowSeconds: number;
}

export async function storeReleased(
  tx: Transaction,
  { plans, pullRequests, copied, via, nowSeconds }: Releasable,
): Promise<Released[]> {
  const released: Released[] = [];
  const later: Released[] = [];
  const states = new Map<EventId, { entry: WaitingEntry; via: Via }>();
  for (const plan of plans) {
    const found = await catalogueRow(tx, plan.name);
    if (!found || !takesStates(found) || found.status === "soft")
      throw new Overtaken("a repository takes no states now");
    const row = bookOwners(tx, found, copied.get(repositoryKey(plan.name)) ?? 0);
    if (plan.governing && !(await stateDecides(tx, plan.name, plan.governing.state.event.id))) {
      throw new Overtaken("a state was deleted, or its author left");
    }
    const changed = governedRow(row, plan, nowSeconds);
    setCatalogueRow(tx, changed);
    if (changed.status !== row.status) {
      const { first, after } = await releaseRepository(tx, plan.name, via, nowSeconds);
      released.push(...first);
      later.push(...after);
    }
    const { governing } = plan;
    if (governing?.state.entry) {
      const isPartial = governing.alignment.missing.length > 0;
      states.set(governing.state.event.id, { entry: governing.state.entry, via: isPartial ? "partial" : via });
      endPartial(tx, plan.name, governing.state.event.id);
    }
    for (const { entry } of plan.superseded) if (entry) states.set(entry.id, { entry, via });
  }
  for (const { entry, targets } of pullRequests) {
    if (!(await isStillHere(tx, entry.id))) throw new Overtaken("a pull request was deleted");
    for (const { name, copiedBytes } of targets) {
      const isServed = name.area === "prs" || isReleased(await catalogueRow(tx, name));
      if (!isServed) throw new Overtaken("a repository is not served now");
      if (copiedBytes) await bookCopies(tx, name, copiedBytes);
    }
  }
  // Oldest first, so that the newest wins.
  const ordered = [...states.values()].sort((a, b) => compareNewestFirst(b.entry, a.entry));
  for (const { entry, via: how } of [...ordered, ...pullRequests.map(({ entry }) => ({ entry, via }))]) {
    const one = await releaseEntry(tx, entry, how, nowSeconds);
    if (!one) continue;
    released.push(one);
    later.push(...(await releaseAbout(tx, one.id, how, nowSeconds)));
  }
  return [...released, ...later];
}
