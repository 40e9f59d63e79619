// The repositories under `/prs/` (grasp.md, GRASP-06): made by a push or a hunt, gone when nothing is left in them. They
// have no row in the catalogue: what lies in one is what its refs and its placeholders say.

import { type AdmissionLists, isRepositoryBlocked } from "../catalogue/bans-and-lists.js";
import {
  catalogueRow,
  isReleased,
  type RepositoryName,
  repositoryAddress,
  repositoryKey,
  underPrs,
} from "../catalogue/repositories.js";
import { contributionsUnderPrs, forgetContribution } from "../catalogue/used-bytes.js";
import { type PlaceholderRow, placeholders, waitingEntry } from "../catalogue/waiting.js";
import { diskAddress } from "../git/address.js";
import { nostrRefEventId } from "../git/decide-push.js";
import type { Repositories } from "../git/repositories.js";
import type { ServiceName } from "../net/url.js";
import { type EventId, isPubkey, type RefName } from "../nostr/ids.js";
import { repositoriesTagged } from "../nostr/nip34.js";
import type { Store } from "../store/port.js";
import type { ContributorRules, PurgatoryContext } from "./context.js";
import type { PullRequestCopies } from "./copy-pull-requests.js";
import type { PullRequestRefs } from "./pull-request-refs.js";

/** What lies under `/prs/`: no catalogue row names it. */
export async function contributorRepositories(repositories: Repositories): Promise<RepositoryName[]> {
  const found: RepositoryName[] = [];
  for await (const { npubOrOwner: owner, identifier, area } of repositories.list()) {
    if (area === "prs" && isPubkey(owner)) found.push(underPrs({ owner, identifier }));
  }
  return found;
}

export class Contributors {
  constructor(
    private readonly parts: PurgatoryContext & {
      readonly isBusy: (name: RepositoryName) => boolean;
      readonly pullRequests: PullRequestRefs;
      readonly copies: PullRequestCopies;
    },
  ) {}

  /** If nothing is left in it, its directory goes, and its bytes are its author's no more. */
  async tidy(name: RepositoryName): Promise<void> {
    const { store, repositories, isBusy } = this.parts;
    if (isBusy(underPrs(name))) return;
    if (await repositories.removeIfEmpty(diskAddress(underPrs(name)))) {
      await store.transact(async (tx) => forgetContribution(tx, name));
    }
  }

  /** At start and hourly: what a crash, a moderator or an expiry left without an owner goes; pull requests that are not in the repositories they are for are copied there. */
  async sweep(): Promise<void> {
    const { store, repositories } = this.parts;
    const uncopied = new Map<string, RepositoryName>();
    for (const name of await contributorRepositories(repositories)) {
      if (this.parts.isBusy(name)) continue;
      for (const target of await this.#sweepOne(name)) uncopied.set(repositoryKey(target), target);
      await this.tidy(name);
    }
    for (const name of uncopied.values()) await this.parts.copies.copyInto(name);
    for (const name of await contributionsUnderPrs(store)) {
      if (await repositories.exists(diskAddress(underPrs(name)))) continue;
      await store.transact(async (tx) => forgetContribution(tx, name));
    }
  }

  /** Answers the repositories that lack a pull request of this one. */
  async #sweepOne(name: RepositoryName): Promise<RepositoryName[]> {
    const { store, repositories } = this.parts;
    const repository = repositories.open(diskAddress(underPrs(name)));
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
    if (orphans.length > 0) await this.parts.pullRequests.drop(orphans, underPrs(name));
    for (const { eventId } of await repository.unclaimed()) {
      if (!(await placeholders(store, eventId)).some(isFor(name))) await repository.dropUnclaimed(eventId);
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

const isFor =
  ({ owner, identifier }: RepositoryName) =>
  ({ area, repository }: PlaceholderRow): boolean =>
    area === "prs" && repository === repositoryAddress({ owner, identifier });

export const contributorRules = (
  store: Store,
  services: readonly ServiceName[],
  lists: () => AdmissionLists,
): ContributorRules => ({ services, isBlocked: (name) => isRepositoryBlocked(store, lists(), name) });
