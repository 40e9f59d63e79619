// `unban --restore`: what a ban removed comes back while it is kept. Repositories whose data is on disk are served again as by
// `repos restore`; everything else comes through the one door for events, announcements first, and is judged anew. The kept
// copy of an event is often the only one: it is forgotten only when the event is here again or refused for good.

import { type BanPlace, countRemovedBy, forgetRemoved, removedBy } from "../catalogue/removed-by-ban.js";
import type { RepositoryName } from "../catalogue/repositories.js";
import type { IntakeAnswer } from "../intake/intake.js";
import { addressOf, eventFromStoredText, kinds } from "../nostr/event.js";
import type { RefusalCode } from "../nostr/refusals.js";
import type { Banning } from "./ban-targets.js";
import { nothingRestored } from "./ban-words.js";
import { type AdminParts, type Caller, done, type Outcome, type Progress, refusal } from "./context.js";
import { type ImportTally, noteAnswer, submitAll } from "./events.js";
import { restoreRepository } from "./hosting.js";
import { repositoryText } from "./naming.js";

export interface RestoredByUnban {
  readonly repositories: readonly string[];
  /** Events that are served or wait again, or were here already. */
  readonly events: number;
  /** By the refusal's code. */
  readonly refused: Readonly<Record<string, number>>;
  /** Events that were refused, though not for good: `unban --restore` can be tried again. */
  readonly kept: number;
}

const eventsPerStep = 200;

/** The order in which they are judged: each by what the ones before it made known. */
const ranks: readonly ((kind: number) => boolean)[] = [
  (kind) => kind === kinds.announcement,
  (kind) => kind === kinds.state,
  (kind) => kind !== kinds.announcement && kind !== kinds.state,
];

/** What no later attempt changes. A full disk, another ban or a missing announcement may pass. */
const refusedForGood: ReadonlySet<RefusalCode> = new Set([
  "bad-event",
  "bad-id",
  "bad-signature",
  "bad-announcement",
  "bad-state",
  "expired",
  "deleted",
  "vanished",
]);

const isSettled = (answer: IntakeAnswer | undefined): boolean =>
  answer !== undefined && (answer.ok || refusedForGood.has(answer.code));

/** Refused where nothing at all came back, although something is kept. */
export async function restoreBanned(
  parts: AdminParts,
  caller: Caller,
  banning: Banning,
  progress: Progress,
): Promise<Outcome<RestoredByUnban>> {
  const { store } = parts;
  const repositories: string[] = [];
  const serveAgain = async (name: RepositoryName): Promise<void> => {
    // One without data on disk comes back as an announcement that waits for it.
    if ((await restoreRepository(parts, caller, name)).ok) repositories.push(repositoryText(name));
  };
  if (banning.type === "repository") await serveAgain(banning.name);
  const tally: ImportTally = { stored: 0, waiting: 0, known: 0, refused: {} };
  const total = await countRemovedBy(store, banning);
  let judged = 0;
  for (const isWanted of ranks) {
    for (let after: string | undefined; ; ) {
      const removed = await removedBy(store, banning satisfies BanPlace, { limit: eventsPerStep, after, isWanted });
      if (removed.length === 0) break;
      after = removed.at(-1)?.rowKey;
      const values = removed.map(({ raw }) => eventFromStoredText(raw));
      for (const event of values) {
        const identifier = addressOf(event)?.identifier ?? "";
        if (event.kind === kinds.announcement) await serveAgain({ owner: event.pubkey, identifier });
      }
      const answers = await submitAll(
        parts,
        values.map(({ raw: _, ...event }) => event),
      );
      if (!answers.ok) return refusal(answers.code, nothingRestored(banning.target, answers.message, total));
      for (const answer of answers.result) noteAnswer(tally, answer);
      const settled = removed.filter((_, index) => isSettled(answers.result[index]));
      await store.transact(async (tx) => forgetRemoved(tx, settled));
      judged += removed.length;
      progress(judged, total, "restoring events");
    }
  }
  const events = tally.stored + tally.waiting + tally.known;
  const kept = await countRemovedBy(store, banning);
  if (events === 0 && repositories.length === 0 && kept > 0) {
    const causes = Object.entries(tally.refused).map(([code, count]) => `${count} × ${code}`);
    return refusal("not-possible", nothingRestored(banning.target, causes.join(", "), kept));
  }
  return done({ repositories, events, refused: tally.refused, kept });
}
