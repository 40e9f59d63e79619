// What another machine of the cluster did to what waits and to what is hosted: told to this machine's bell, and to what
// purgatory keeps in memory. Read from the rows as they are now, because several changes may be followed at once.

import type { Change } from "../admission/verdict.js";
import type { CatalogueRow, RepositoryName } from "../catalogue/repositories.js";
import { type JournalRow, type PlaceholderRow, placesOf, type WaitingEntry } from "../catalogue/waiting.js";
import type { EventId } from "../nostr/event.js";
import type { Commit, TableReader } from "../store/port.js";
import type { AwaitedEvent, Bell } from "./bell.js";
import type { PartialClock } from "./partial-clock.js";
import type { Placeholders } from "./placeholders.js";
import type { ArchiveBudget } from "./quotas.js";
import type { Releaser } from "./release.js";

interface Followers {
  readonly placeholders: Pick<Placeholders, "follow">;
  readonly partials: Pick<PartialClock, "watch">;
  readonly releaser: Pick<Releaser, "unfinishedElsewhere">;
  readonly archiveBudget: Pick<ArchiveBudget, "countAgain">;
  readonly bell: Pick<Bell, "ring">;
}

export async function followForeign(
  reader: TableReader,
  commit: Commit,
  { placeholders, partials, releaser, archiveBudget, bell }: Followers,
): Promise<void> {
  const names: RepositoryName[] = [];
  const ids: EventId[] = [];
  const changes: Change[] = [];
  const awaited: AwaitedEvent[] = [];
  for (const key of commit.changedKeys("purgatory")) {
    if (key.startsWith("e:")) {
      const entry = await reader.row<WaitingEntry>("purgatory", key);
      // How a wait ended is not in the rows: who follows it looks.
      ids.push(key.slice("e:".length) as EventId);
      if (!entry) continue;
      names.push(...placesOf(entry));
      changes.push({ type: "hold", entry });
    } else if (key.startsWith("g:")) {
      const row = await reader.row<PlaceholderRow>("purgatory", key);
      placeholders.follow(key, row);
      if (row) awaited.push({ id: row.id, repository: row.repository });
    }
  }
  for (const key of commit.changedKeys("catalogue")) {
    const row = isListing(key) ? undefined : await reader.row<CatalogueRow>("catalogue", key);
    if (row) names.push(row);
    archiveBudget.countAgain();
  }
  for (const key of commit.changedKeys("journal")) {
    const row = await reader.row<JournalRow>("journal", key);
    if (key.startsWith("unfinished:")) releaser.unfinishedElsewhere(key.slice("unfinished:".length), row);
    else if (row?.state !== undefined) await partials.watch(row, row.state);
  }
  if (names.length + ids.length + changes.length + awaited.length > 0) bell.ring({ names, ids, changes, awaited });
}

/** The index of who lists whom, in the same table. */
const isListing = (key: string): boolean => key.startsWith("lister:") || key.startsWith("listing:");
