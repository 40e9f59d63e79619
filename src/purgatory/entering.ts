// An event's verdict was written: git follows. Repositories are made and removed, data that came first is claimed, and what
// can be released is (purgatory.md, "Waiting room"). Owns no rule: admission decided, release.ts releases.

import type { Verdict, Withdrawn } from "../admission/verdict.js";
import { restarted } from "../admission/waiting-capacity.js";
import { unixSeconds } from "../base/clock.js";
import {
  type CatalogueRow,
  catalogueRow,
  type RepositoryName,
  repositoryNamed,
  setCatalogueRow,
  takesStates,
  withStatus,
} from "../catalogue/repositories.js";
import { repositoriesTrusting, storedAuthority } from "../catalogue/trusting-repositories.js";
import { contributorOf, putWaiting, waitingAnnouncement } from "../catalogue/waiting.js";
import { diskAddress, type PlacedName, underPrs } from "../git/address.js";
import type { Repositories } from "../git/repositories.js";
import { addressOf, type VerifiedEvent } from "../nostr/event.js";
import type { EventId, Pubkey } from "../nostr/ids.js";
import { kinds } from "../nostr/kinds.js";
import type { Store } from "../store/port.js";
import type { PurgatoryContext } from "./context.js";
import type { Contributors } from "./contributors.js";
import type { PullRequestCopies } from "./copy-pull-requests.js";
import type { Placeholders } from "./placeholders.js";
import type { PullRequestRefs } from "./pull-request-refs.js";
import { knownPullRequest, placesOf } from "./pull-requests.js";
import type { Releaser } from "./release.js";

type Accepted = Verdict & { readonly ok: true };

/** Most events are talk about a repository: they are stored, and nothing else follows. */
const needsNoGit = (event: VerifiedEvent, verdict: Accepted): boolean =>
  verdict.action === "store" &&
  event.kind !== kinds.announcement &&
  [verdict.changes, verdict.repositories, verdict.withdrawn].every((list) => (list ?? []).length === 0);

export class Entering {
  constructor(
    private readonly parts: PurgatoryContext & {
      readonly placeholders: Placeholders;
      readonly releaser: Releaser;
      readonly copies: PullRequestCopies;
      readonly pullRequests: PullRequestRefs;
      readonly contributors: Contributors;
      readonly changed: (names: readonly PlacedName[], entries: readonly { readonly id: EventId }[]) => void;
    },
  ) {}

  /** Data that was pushed before its event was known joins the repository. */
  async claim(id: EventId): Promise<void> {
    const known = await knownPullRequest(this.parts.store, id, this.parts.contributorRules?.services ?? []);
    if (known) await this.parts.placeholders.claim(known);
  }

  /** After a verdict was written: makes git follow. Answers whether the event is served now. */
  async entered(event: VerifiedEvent, verdict: Verdict): Promise<boolean> {
    if (!verdict.ok || needsNoGit(event, verdict)) return false;
    const concerned = await this.#concernedBy(event, verdict);
    try {
      return await this.#follow(event, verdict, concerned);
    } finally {
      const held = (verdict.changes ?? []).flatMap((change) => (change.type === "hold" ? [change.entry] : []));
      const unheld = (verdict.changes ?? []).flatMap((change) => (change.type === "unhold" ? [change] : []));
      const changed = (verdict.repositories ?? []).map(({ name }) => name);
      this.parts.changed([...changed, ...concerned, ...held.flatMap(placesOf)], unheld);
    }
  }

  async #follow(event: VerifiedEvent, verdict: Accepted, names: readonly PlacedName[]): Promise<boolean> {
    const { store, repositories, placeholders } = this.parts;
    for (const change of verdict.repositories ?? []) {
      if (change.to === "create" || change.to === "return") await repositories.create(diskAddress(change.name));
      if (change.to === "remove") {
        if (await removeRepository(store, repositories, change.name)) await placeholders.repositoryGone(change.name);
      }
    }
    if (verdict.action === "store" || verdict.action === "leave") {
      await this.dropRefs(verdict.withdrawn ?? [], event.pubkey);
    }
    if (verdict.action === "known" && event.kind === kinds.announcement) await this.#ensureOnDisk(event);
    if (names.length === 0) return false;
    const release = async (): Promise<boolean> => {
      if (verdict.action === "hold" && verdict.entry.kind === "pull-request") await this.claim(event.id);
      const released = await this.parts.releaser.release(names, "present", undefined, [event.id]);
      return released.some(({ id }) => id === event.id);
    };
    const contributor = verdict.action === "hold" ? contributorOf(verdict.entry) : undefined;
    const isServed = contributor
      ? // Between claim and release its data hangs on nothing.
        await repositories.whileUsed(diskAddress(underPrs(contributor)), release)
      : await release();
    if (contributor) await this.parts.contributors.tidy(contributor);
    for (const { name, to } of verdict.repositories ?? []) if (to === "return") await this.parts.copies.copyInto(name);
    return isServed;
  }

  /** Refs of pull requests whose events are gone. */
  async dropRefs(withdrawn: readonly Withdrawn[], author: Pubkey): Promise<void> {
    const pullRequests = withdrawn.filter(({ kind }) => kind === kinds.pullRequest || kind === kinds.pullRequestUpdate);
    for (const { id, repositories } of pullRequests) {
      for (const name of repositories.flatMap((text) => repositoryNamed(text) ?? [])) {
        await this.parts.pullRequests.drop([id], name);
        const own = { owner: author, identifier: name.identifier };
        await this.parts.pullRequests.drop([id], underPrs(own));
        await this.parts.contributors.tidy(own);
      }
    }
  }

  /** A hunt found data for a repository whose announcement had gone soft: it waits again, on disk. */
  async revive(name: RepositoryName): Promise<void> {
    const { store, repositories, clock, config } = this.parts;
    const now = unixSeconds(clock);
    await store.transact(async (tx) => {
      const row = await catalogueRow(tx, name);
      const entry = await waitingAnnouncement(tx, name);
      if (row?.status !== "soft" || !entry) return;
      await putWaiting(tx, restarted(entry, now, config()));
      setCatalogueRow(tx, withStatus(row, "waiting", now));
    });
    await repositories.create(diskAddress(name));
  }

  /** The first time git may have failed after the event was written; whoever sends it again may rely on the OK. */
  async #ensureOnDisk(event: VerifiedEvent): Promise<void> {
    const name = { owner: event.pubkey, identifier: addressOf(event)?.identifier ?? "" };
    const row = await catalogueRow(this.parts.store, name);
    if (row?.status === "waiting") await this.parts.repositories.create(diskAddress(name));
  }

  async #concernedBy(event: VerifiedEvent, verdict: Accepted): Promise<PlacedName[]> {
    if (verdict.action !== "hold" && verdict.action !== "store") return [];
    // A new version of an announcement may add a maintainer whose state is here already: to its own repository, and
    // to each one that trusts its author.
    if (event.kind === kinds.announcement) {
      const name = { owner: event.pubkey, identifier: addressOf(event)?.identifier ?? "" };
      const max = this.parts.config().releaseMaxRepositories;
      const authority = storedAuthority(this.parts.store);
      const trusting = await repositoriesTrusting(authority, event.pubkey, name.identifier, max, takesStates);
      return [name, ...trusting.map(({ owner, identifier }) => ({ owner, identifier }))];
    }
    if (verdict.action === "store") return [];
    return placesOf(verdict.entry);
  }
}

/** Soft ones have no directory, except where one was served once (deleted, announced again): that data is kept. */
export const wantsNoDirectory = (row: CatalogueRow | undefined): boolean =>
  row === undefined || (row.status === "soft" && row.governing === null);

/**
 * A repository's directory goes only while the catalogue wants none. Rows change in the store first and directories after
 * them: whoever announces it again in between must find it. False: the repository is wanted again, and stays.
 */
export function removeRepository(store: Store, repositories: Repositories, name: RepositoryName): Promise<boolean> {
  return repositories.delete(diskAddress(name), async () => wantsNoDirectory(await catalogueRow(store, name)));
}
