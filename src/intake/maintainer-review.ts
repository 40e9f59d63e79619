// Brings everything in line with the rule about maintainers after it changed: NGIT_MAINTAINERS_MUTUAL was set or unset, or
// this version of the server reads role tags in another way than the one before. The rule itself is a row and holds from
// the moment it is written; then, one repository after the other, who names whom is noted again, exceptions that no
// longer hold go, and what may be released is.

import { ownerNaming } from "../admission/maintainer-exception.js";
import type { Withdrawal } from "../admission/withdrawal.js";
import { unixSeconds } from "../base/clock.js";
import { refreshListings, setAsksForAnswers, storedAuthority } from "../catalogue/maintainers.js";
import {
  catalogueRow,
  catalogueRows,
  type RepositoryName,
  repositoryKey,
  takesStates,
} from "../catalogue/repositories.js";
import type { Context } from "../context.js";
import { addressOf, kinds } from "../nostr/event.js";
import { type CarryOut, withdraw } from "./carry-out.js";

/** To be raised when maintainer sets, or the index of who names whom, are worked out in another way. */
const rulesVersion = 2;
const reviewedKey = "maintainers-reviewed";

interface Reviewed {
  readonly version: number;
  readonly mutual: boolean;
}

export class MaintainerReview {
  #running: Promise<void> | undefined;
  #isClosed = false;

  constructor(
    private readonly context: Context,
    private readonly carryOut: CarryOut,
  ) {}

  /** Writes the rule. To be awaited before anything is judged by it. */
  async adopt(): Promise<void> {
    const { store, live } = this.context;
    await store.transact(async (tx) => setAsksForAnswers(tx, live.current.maintainersMutual));
  }

  /** Begins a review if the rule is another one than at the last. */
  start(): void {
    if (this.#isClosed || this.#running) return;
    this.#running = this.#reviewIfChanged()
      .catch((error) => {
        if (!this.#isClosed) this.context.onFault(error);
      })
      .finally(() => {
        this.#running = undefined;
      });
  }

  async #reviewIfChanged(): Promise<void> {
    const { store, live, logger } = this.context;
    for (;;) {
      const { maintainersMutual: mutual } = live.current;
      const last = await store.row<Reviewed>("meta", reviewedKey);
      if (last?.version === rulesVersion && last.mutual === mutual) return;
      await this.adopt();
      const names = await this.#everybody();
      for (const name of names) {
        if (this.#isClosed) return;
        await this.#review(name, last?.mutual ?? false, mutual);
      }
      await store.transact(async (tx) => tx.setRow<Reviewed>("meta", reviewedKey, { version: rulesVersion, mutual }));
      if (names.length > 0) logger.info({ repositories: names.length, mutual }, "maintainers reviewed");
    }
  }

  /** Repositories, and announcements that are here by exception. */
  async #everybody(): Promise<RepositoryName[]> {
    const { store } = this.context;
    const names = new Map<string, RepositoryName>();
    const add = ({ owner, identifier }: RepositoryName): void => {
      names.set(repositoryKey({ owner, identifier }), { owner, identifier });
    };
    for await (const row of catalogueRows(store)) add(row);
    for await (const page of store.query([{ kinds: [kinds.announcement] }], { passingRows: true })) {
      for (const { event } of page) add({ owner: event.pubkey, identifier: addressOf(event)?.identifier ?? "" });
    }
    return [...names.values()];
  }

  async #review(name: RepositoryName, wasMutual: boolean, mutual: boolean): Promise<void> {
    const { store, clock } = this.context;
    const now = unixSeconds(clock);
    const end = await store.transact(async (tx): Promise<Withdrawal | undefined> => {
      await refreshListings(tx, name, now);
      if (wasMutual === mutual || (await catalogueRow(tx, name))) return undefined;
      const stored = await tx.latest({ kind: kinds.announcement, pubkey: name.owner, identifier: name.identifier });
      const after = storedAuthority(tx);
      const before = { ...after, mutual: async () => wasMutual };
      // What an operator imported leans on nobody, and stays.
      const wasNamed = stored !== undefined && (await ownerNaming(before, name, () => false)) !== undefined;
      if (!wasNamed || (await ownerNaming(after, name, () => false)) !== undefined) return undefined;
      return withdraw(tx, { stored: [stored.event], waiting: [], cause: "unhosted" }, now);
    });
    if (end) return this.carryOut.followWithdrawal(end);
    if (takesStates(await catalogueRow(store, name)))
      await this.carryOut.purgatory.releaser.release([name], "present", this.context);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#running;
  }
}
