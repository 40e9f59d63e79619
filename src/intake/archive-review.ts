// Brings mirrors (GRASP-05) in line with the archive rules after these changed, and once at each start: what is no
// longer to be mirrored leaves, what is again comes back. Judged by admission, written here, then git and sync follow
// as they do for any verdict.

import { isUnderReview, type Review, reviewArchived } from "../admission/archive-review.js";
import type { AdmissionSettings } from "../admission/settings.js";
import { applyVerdict, decisionRecord } from "../admission/verdict.js";
import { unixSeconds } from "../base/clock.js";
import { putDecisions } from "../catalogue/decisions.js";
import { type CatalogueRow, catalogueRow, catalogueRows, repositoryAddress } from "../catalogue/repositories.js";
import type { Context } from "../context.js";
import type { CarryOut } from "./carry-out.js";

interface UsedRooms {
  readonly settings: AdmissionSettings;
  readonly carryOut: CarryOut;
}

export class ArchiveReview {
  #running: Promise<void> | undefined;
  #again = false;
  #closed = false;

  constructor(
    private readonly context: Context,
    private readonly rooms: UsedRooms,
  ) {}

  /** Begins a round; one that is asked for meanwhile follows it. */
  start(): void {
    if (this.#running) {
      this.#again = true;
      return;
    }
    if (this.#closed) return;
    this.#running = this.#round()
      .catch((error) => {
        if (!this.#closed) this.context.onFault(error);
      })
      .finally(() => {
        this.#running = undefined;
        if (!this.#again) return;
        this.#again = false;
        this.start();
      });
  }

  async #round(): Promise<void> {
    const rows: CatalogueRow[] = [];
    for await (const row of catalogueRows(this.context.store)) if (isUnderReview(row)) rows.push(row);
    for (const row of rows) {
      if (this.#closed) return;
      await this.#review(row);
    }
  }

  async #review(row: CatalogueRow): Promise<void> {
    const { store, clock, logger } = this.context;
    const { settings, carryOut } = this.rooms;
    const now = unixSeconds(clock);
    // Most stay as they are: that is found out without a place in the writer's queue.
    if (!(await reviewArchived(store, row, settings, now))) return;
    const review = await store.transact(async (tx): Promise<Review | undefined> => {
      const current = await catalogueRow(tx, row);
      const found = current && isUnderReview(current) ? await reviewArchived(tx, current, settings, now) : undefined;
      if (!found) return undefined;
      const { event, verdict } = found;
      await applyVerdict(tx, event, verdict, now, true);
      await putDecisions(tx, [decisionRecord(event, { type: "own" }, verdict, now)]);
      return found;
    });
    if (!review) return;
    const { event, verdict } = review;
    logger.info(
      { repository: repositoryAddress(row), rule: verdict.rule, outcome: verdict.action },
      "archive reviewed",
    );
    const isHostedAnew = verdict.action === "store" || verdict.action === "leave";
    await carryOut.follow(event, verdict, isHostedAnew ? { event, hosted: verdict.action === "store" } : undefined);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
  }
}
