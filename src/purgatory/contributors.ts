// The repositories under `/prs/` (grasp.md, GRASP-06): made by a push or a hunt, gone when nothing is left in them. Their
// rows are written with the first data and deleted after their directories: a directory without a row is what a crash left.

import { unixSeconds } from "../base/clock.js";
import {
  catalogueRow,
  contributedRows,
  deleteCatalogueRow,
  isReleased,
  newRepositoryRow,
  type RepositoryName,
  repositoryAddress,
  repositoryKey,
  setCatalogueRow,
} from "../catalogue/repositories.js";
import { placeholders, waitingEntry } from "../catalogue/waiting.js";
import { diskAddress } from "../git/address.js";
import { nostrRefEventId } from "../git/decide-push.js";
import type { EventId } from "../nostr/event.js";
import { type RefName, repositoriesTagged } from "../nostr/nip34.js";
import type { PurgatoryContext } from "./context.js";
import type { PullRequestRefs } from "./pull-requests.js";

export class Contributors {
  constructor(
    private readonly parts: PurgatoryContext & {
      readonly isBusy: (name: RepositoryName) => boolean;
      readonly pullRequests: PullRequestRefs;
    },
  ) {}

  /** If nothing is left in a repository under `/prs/`, its directory goes, and its row with the bytes of its author. */
  async tidy(name: RepositoryName): Promise<void> {
    const { store, repositories, isBusy } = this.parts;
    if (name.area !== "prs" || isBusy(name) || (await repositories.isBusyElsewhere(name))) return;
    const address = diskAddress(name);
    await repositories.removeIfEmpty(address);
    if ((await repositories.exists(address)) || !(await catalogueRow(store, name))) return;
    await store.transact(async (tx) => {
      // Whoever brings data is busy with the repository before it writes the row, and may have come and gone meanwhile.
      if (!isBusy(name) && !(await repositories.exists(address))) deleteCatalogueRow(tx, name);
    });
  }

  /** At start: a directory without a row gets one, so that the sweep finds it. */
  async adopt(): Promise<void> {
    const { store, repositories, clock } = this.parts;
    for await (const { address } of repositories.list(["prs"])) {
      if (!address || (await catalogueRow(store, address))) continue;
      await store.transact(async (tx) => setCatalogueRow(tx, newRepositoryRow(address, unixSeconds(clock))));
    }
  }

  /** At start and hourly: what a crash, a moderator or an expiry left without an owner goes; pull requests that are not in the repositories they are for are copied there. */
  async sweep(): Promise<void> {
    const uncopied = new Map<string, RepositoryName>();
    for await (const name of contributedRows(this.parts.store)) {
      if (this.parts.isBusy(name)) continue;
      for (const target of await this.#sweepOne(name)) uncopied.set(repositoryKey(target), target);
      await this.tidy(name);
    }
    for (const name of uncopied.values()) await this.parts.pullRequests.copyInto(name);
  }

  /** Answers the repositories that lack a pull request of this one. */
  async #sweepOne(name: RepositoryName): Promise<RepositoryName[]> {
    const { store, repositories } = this.parts;
    const address = diskAddress(name);
    if (!(await repositories.exists(address))) return [];
    const repository = repositories.open(address);
    const uncopied: RepositoryName[] = [];
    const orphans: EventId[] = [];
    for (const ref of (await repository.refs()).refs.keys()) {
      const id = nostrRefEventId(ref);
      // In this order: a release between the two looks must not make an orphan of it.
      const waiting = id && (await waitingEntry(store, id));
      const stored = id && (await store.event(id));
      if (id && !waiting && !stored) orphans.push(id);
      if (!stored) continue;
      for (const { pubkey: owner, identifier } of repositoriesTagged(stored.event)) {
        const target = { owner, identifier };
        if (identifier === name.identifier && (await this.#lacks(target, ref))) uncopied.push(target);
      }
    }
    if (orphans.length > 0) await this.parts.pullRequests.drop(orphans, name);
    for (const { eventId } of await repository.unclaimed()) {
      if (!(await placeholders(store, eventId)).some(({ repository: at }) => at === repositoryAddress(name)))
        await repository.dropUnclaimed(eventId);
    }
    return uncopied;
  }

  async #lacks(target: RepositoryName, ref: RefName): Promise<boolean> {
    const { store, repositories } = this.parts;
    if (!isReleased(await catalogueRow(store, target))) return false;
    const address = diskAddress(target);
    if (!(await repositories.exists(address))) return false;
    return !(await repositories.open(address).refs()).refs.has(ref);
  }
}
