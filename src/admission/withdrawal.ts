// What follows when an author withdraws stored or waiting events: rows, repositories, exceptions
// that leaned on them. Shared by deletions (5) and vanish requests (62); the stored events themselves are removed by
// the store when the request is put.

import { setImmediate as nextTurn } from "node:timers/promises";
import { maintainerTags } from "../catalogue/maintainer-set.js";
import {
  type AuthorityChange,
  countingAnnouncements,
  repositoriesTrusting,
  storedAuthority,
} from "../catalogue/maintainers.js";
import {
  type CatalogueRow,
  catalogueRow,
  deletedRow,
  isReleased,
  type RepositoryName,
  repositoryAddress,
  repositoryKey,
} from "../catalogue/repositories.js";
import { type WaitingEntry, waitingEvent } from "../catalogue/waiting.js";
import { addressOf, addressText, kinds, type NostrEvent } from "../nostr/event.js";
import { repositoriesTagged } from "../nostr/nip34.js";
import type { Reader } from "../store/port.js";
import { membershipChange } from "./membership.js";
import type { Change, RepositoryChange, UnholdCause, Withdrawn } from "./verdict.js";

interface EndOfWait {
  readonly changes: readonly Change[];
  readonly repositories: readonly RepositoryChange[];
}

/** What follows when a waiting announcement is withdrawn or deleted: its entry goes, and its repository with it. */
export function endOfWait(
  entry: WaitingEntry,
  name: RepositoryName,
  row: CatalogueRow | undefined,
  cause: UnholdCause,
  nowSeconds: number,
): EndOfWait {
  const unhold: Change = { type: "unhold", id: entry.id, cause };
  if (row?.status !== "waiting" && row?.status !== "soft") return { changes: [unhold], repositories: [] };
  // It was served once (deleted, announced again): its data is kept for the grace period. A mark alone says only that
  // something was pushed that never was enough.
  if (row.governing !== null) {
    return {
      changes: [unhold, { type: "catalogue", row: deletedRow(row, waitingEvent(entry), nowSeconds) }],
      repositories: [{ name, to: "delete" }],
    };
  }
  return {
    changes: [unhold, { type: "uncatalogue", name }],
    repositories: row.status === "waiting" ? [{ name, to: "remove" }] : [],
  };
}

export interface Withdrawal {
  readonly changes: readonly Change[];
  readonly repositories: readonly RepositoryChange[];
  readonly withdrawn: readonly Withdrawn[];
  /** Whose maintainer sets are without what goes: what may be released there is looked at again. */
  readonly concerned: readonly RepositoryName[];
}

interface Affected {
  readonly name: RepositoryName;
  readonly row: CatalogueRow | undefined;
}

const withGitData = new Set<number>([kinds.announcement, kinds.state, kinds.pullRequest, kinds.pullRequestUpdate]);

const tagsOf = {
  announcement: new Set(["d", "t", ...maintainerTags]),
  others: new Set(["d", "a"]),
};

/** All of an event that a withdrawal reads: a key may have thousands, of a megabyte each (threats row 39). */
export function inShort({ id, pubkey, kind, created_at, sig, tags }: NostrEvent): NostrEvent {
  const read = kind === kinds.announcement ? tagsOf.announcement : tagsOf.others;
  const kept = tags.filter(([name]) => name !== undefined && read.has(name));
  return { id, pubkey, kind, created_at, sig, tags: kept, content: "", raw: "" };
}

/** Of one state. */
const maxGoverned = 100;
/** Each costs some look-ups. */
const repositoriesATurn = 50;

/**
 * Also for an operator who removes events and for entries that expire for good (`expired`): then the caller removes
 * the stored events itself, before it applies the changes.
 */
export async function withdrawalOf(
  reader: Reader,
  stored: readonly NostrEvent[],
  waiting: readonly WaitingEntry[],
  cause: "deletion" | "vanish" | "expired",
  nowSeconds: number,
  isBlocked: (name: RepositoryName) => boolean,
): Promise<Withdrawal> {
  const changes: Change[] = [];
  const repositories: RepositoryChange[] = [];
  const affected = new Map<string, Affected>();
  const ungoverned = new Map<string, CatalogueRow>();

  for (const entry of waiting) {
    if (entry.kind !== "announcement") {
      changes.push({ type: "unhold", id: entry.id, cause });
      continue;
    }
    const name = { owner: entry.pubkey, identifier: entry.identifier };
    const row = await catalogueRow(reader, name);
    const ending = endOfWait(entry, name, row, cause, nowSeconds);
    changes.push(...ending.changes);
    repositories.push(...ending.repositories);
    affected.set(repositoryKey(name), { name, row: isReleased(row) || row?.status === "leaving" ? row : undefined });
  }
  for (const state of stored) {
    if (state.kind !== kinds.state) continue;
    // A state that is gone governs nothing; the mark stays (git-http.md, "Push" 3).
    const identifier = addressOf(state)?.identifier ?? "";
    const isGoverned = (row: CatalogueRow): boolean => row.governing === state.id;
    const governed = await repositoriesTrusting(
      storedAuthority(reader),
      state.pubkey,
      identifier,
      maxGoverned,
      isGoverned,
    );
    for (const { row } of governed) ungoverned.set(repositoryKey(row), { ...row, governing: null, partial: null });
  }
  for (const row of ungoverned.values()) changes.push({ type: "catalogue", row });
  const gone = new Set([...waiting.map((entry) => entry.id), ...stored.map((event) => event.id)]);
  const announcements = stored.filter((one) => one.kind === kinds.announcement);
  for (const [index, event] of announcements.entries()) {
    if (index % repositoriesATurn === repositoriesATurn - 1) await nextTurn();
    const name = { owner: event.pubkey, identifier: addressOf(event)?.identifier ?? "" };
    const row = ungoverned.get(repositoryKey(name)) ?? (await catalogueRow(reader, name));
    // A waiting row belongs to the newer announcement that waits, not to the stored one.
    const ends = isReleased(row) || row?.status === "leaving";
    const next = row && ends ? deletedRow(row, event, nowSeconds) : row;
    if (!affected.has(repositoryKey(name)) || ends) affected.set(repositoryKey(name), { name, row: next });
    if (!next || !ends) continue;
    changes.push({ type: "catalogue", row: next });
    repositories.push({ name, to: "delete" });
  }
  const authority: AuthorityChange[] = [];
  for (const { name, row } of affected.values()) {
    if (authority.length % repositoriesATurn === repositoriesATurn - 1) await nextTurn();
    changes.push({ type: "listings", name });
    const counting = await countingAnnouncements(reader, name.owner, name.identifier);
    authority.push({ name, announcements: counting.filter((event) => !gone.has(event.id)), row });
  }
  const { lapsed, concerned } = await membershipChange(reader, authority, isBlocked, announcements);
  for (const lapse of lapsed) {
    changes.push({ type: "remove", id: lapse.id, cause: "unhosted" }, { type: "listings", name: lapse.name });
  }
  const withdrawn = stored.filter(({ kind }) => withGitData.has(kind)).map(withdrawnOf);
  return { changes, repositories, withdrawn, concerned };
}

const withdrawnOf = (event: NostrEvent): Withdrawn => ({
  id: event.id,
  kind: event.kind,
  author: event.pubkey,
  identifier: addressOf(event)?.identifier ?? "",
  repositories: ownRepositories(event),
});

function ownRepositories(event: NostrEvent): string[] {
  if (event.kind === kinds.announcement) {
    return [repositoryAddress({ owner: event.pubkey, identifier: addressOf(event)?.identifier ?? "" })];
  }
  return repositoriesTagged(event).map(addressText);
}
