// Events of another server through the one door, in the order in which they make sense: announcements make
// repositories, states give them their branches, the rest belongs to something that is here already.

import { repositoryKey } from "../catalogue/repositories.js";
import type { Intake } from "../intake/intake.js";
import { addressOf, compareNewestFirst, kinds, type NostrEvent } from "../nostr/event.js";
import type { Refusal } from "../nostr/refusals.js";

export const ranks = ["announcements", "states", "others"] as const;
export type Rank = (typeof ranks)[number];

export const rankOf = ({ kind }: Pick<NostrEvent, "kind">): Rank =>
  kind === kinds.announcement ? "announcements" : kind === kinds.state ? "states" : "others";

/** All events of a rank, in pages; may answer events of other ranks too. */
export type EventSource = (rank: Rank) => AsyncIterable<readonly NostrEvent[]>;

export interface EventTally {
  taken: number;
  known: number;
  refused: Record<string, number>;
}

/** Refused because what they are about was not here yet: looked at again, so many of them at most. */
const maxKept = 100_000;
const maxRounds = 5;

export class EventTaking {
  readonly tally: EventTally = { taken: 0, known: 0, refused: {} };
  /** Why a repository's newest announcement was refused. */
  readonly refusedAnnouncements = new Map<string, { readonly event: NostrEvent; readonly refusal: Refusal }>();

  constructor(
    private readonly intake: Intake,
    private readonly progress: (done: number, label: string) => void,
  ) {}

  async take(source: EventSource, rank: Rank): Promise<void> {
    let again: NostrEvent[] = [];
    let done = 0;
    for await (const page of source(rank)) {
      const mine = page.filter((event) => rankOf(event) === rank);
      again.push(...(await this.#submit(mine)));
      if (again.length > maxKept) throw new Error(`more than ${maxKept} events belong to nothing that is here`);
      done += mine.length;
      this.progress(done, rank);
    }
    for (let round = 0; round < maxRounds && again.length > 0; round++) {
      const before = again.length;
      again = await this.#submit(again.sort((a, b) => compareNewestFirst(b, a)));
      if (again.length === before) break;
    }
    for (const event of again) this.#count(event, await this.intake.submit(event, { type: "import" }));
  }

  /** Those whose subject is not here (yet) are returned. */
  async #submit(events: readonly NostrEvent[]): Promise<NostrEvent[]> {
    const again: NostrEvent[] = [];
    const answers = await Promise.all(
      events.map(async (event) => ({ event, answer: await this.intake.submit(event, { type: "import" }) })),
    );
    for (const { event, answer } of answers) {
      if (!answer.ok && answer.code === "unrelated") again.push(event);
      else this.#count(event, answer);
    }
    return again;
  }

  #count(event: NostrEvent, answer: Awaited<ReturnType<Intake["submit"]>>): void {
    if (event.kind === kinds.announcement && !answer.ok) this.#noteRefused(event, answer);
    if (!answer.ok) this.tally.refused[answer.code] = (this.tally.refused[answer.code] ?? 0) + 1;
    else if (answer.outcome === "stored" || answer.outcome === "held") this.tally.taken++;
    else this.tally.known++;
  }

  #noteRefused(event: NostrEvent, refusal: Refusal): void {
    const key = repositoryKey({ owner: event.pubkey, identifier: addressOf(event)?.identifier ?? "" });
    const before = this.refusedAnnouncements.get(key);
    if (!before || compareNewestFirst(event, before.event) < 0) {
      this.refusedAnnouncements.set(key, { event, refusal });
    }
  }
}
