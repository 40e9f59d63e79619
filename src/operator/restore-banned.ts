// `unban --restore`: what a ban removed comes back while it is kept. Repositories whose data is on disk are served again as by
// `repos restore`; everything else comes through the one door for events, announcements first, and is judged anew.

import { type BanPlace, countRemovedBy, forgetRemoved, removedBy } from "../catalogue/removed-by-ban.js";
import type { RepositoryName } from "../catalogue/repositories.js";
import { addressOf, eventFromStoredText, kinds } from "../nostr/event.js";
import type { Banning } from "./ban-targets.js";
import type { AdminParts, Caller, Progress } from "./context.js";
import { importEvents } from "./events.js";
import { restoreRepository } from "./hosting.js";
import { repositoryText } from "./naming.js";

export interface RestoredByUnban {
  readonly repositories: readonly string[];
  /** Events that are served or wait again, or were here already. */
  readonly events: number;
  /** By the refusal's code. */
  readonly refused: Readonly<Record<string, number>>;
}

const eventsPerStep = 200;

/** The order in which they are judged: each by what the ones before it made known. */
const ranks: readonly ((kind: number) => boolean)[] = [
  (kind) => kind === kinds.announcement,
  (kind) => kind === kinds.state,
  (kind) => kind !== kinds.announcement && kind !== kinds.state,
];

export async function restoreBanned(
  parts: AdminParts,
  caller: Caller,
  banning: Banning,
  progress: Progress,
): Promise<RestoredByUnban> {
  const repositories: string[] = [];
  const serveAgain = async (name: RepositoryName): Promise<void> => {
    // One without data on disk comes back as an announcement that waits for it.
    if ((await restoreRepository(parts, caller, name)).ok) repositories.push(repositoryText(name));
  };
  if (banning.type === "repository") await serveAgain(banning.name);
  let events = 0;
  const refused: Record<string, number> = {};
  const total = await countRemovedBy(parts.store, banning);
  let judged = 0;
  for (const isRank of ranks) {
    for (;;) {
      const removed = await removedBy(parts.store, banning satisfies BanPlace, eventsPerStep, isRank);
      if (removed.length === 0) break;
      const values = removed.map(({ raw }) => eventFromStoredText(raw));
      for (const event of values) {
        const identifier = addressOf(event)?.identifier ?? "";
        if (event.kind === kinds.announcement) await serveAgain({ owner: event.pubkey, identifier });
      }
      const tally = await importEvents(
        parts,
        values.map(({ raw: _, ...event }) => event),
      );
      if (!tally.ok) return { repositories, events, refused };
      events += tally.result.stored + tally.result.waiting + tally.result.known;
      for (const [code, count] of Object.entries(tally.result.refused)) refused[code] = (refused[code] ?? 0) + count;
      await parts.store.transact(async (tx) => forgetRemoved(tx, removed));
      judged += removed.length;
      progress(judged, total, "restoring events");
    }
  }
  return { repositories, events, refused };
}
