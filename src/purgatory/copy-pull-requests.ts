// Pull requests from one repository to another: what lies under `/prs/` is also placed in the repositories it is for,
// never the other way (grasp.md, GRASP-06). Copies are the receiving repository's share for pull requests, not its
// owner's; their author's share they were when they came (git-http.md, "Budgets").

import {
  catalogueRow,
  isReleased,
  type RepositoryName,
  repositoryAddress,
  setCatalogueRow,
  underPrs,
} from "../catalogue/repositories.js";
import { diskAddress } from "../git/address.js";
import { Overtaken, RefChanges } from "../git/change-refs.js";
import type { GitRepository } from "../git/repository.js";
import { kinds } from "../nostr/event.js";
import type { EventId, Oid, Pubkey } from "../nostr/ids.js";
import type { PurgatoryContext } from "./context.js";
import { pullRequestRef } from "./pull-requests.js";
import { accountsOf, quotaLeft } from "./quotas.js";

interface Lacking {
  readonly id: EventId;
  readonly author: Pubkey;
}

const maxPullRequestsLookedAt = 10_000;

export class PullRequestCopies {
  constructor(private readonly parts: PurgatoryContext) {}

  /** Under both locks: the commit and all it reaches, from the one to the other. */
  async copyFrom(name: RepositoryName, repository: GitRepository, source: GitRepository, tip: Oid): Promise<boolean> {
    const { store, live, observer } = this.parts;
    if ((await repository.missingObjects([tip])).size === 0) return true;
    if (quotaLeft(await accountsOf(store, name, [], live.current)).isUsedUp) {
      observer.problem(name, "its share for pull requests is full: one was not copied into it");
      return false;
    }
    const before = await repository.sizeBytes();
    if (!(await repository.copyObjectsFrom(source, [tip]))) return false;
    const copied = (await repository.sizeBytes()) - before;
    await store.transact(async (tx) => {
      const row = await catalogueRow(tx, name);
      const counters = row && { ...row.counters, pullRequestBytes: row.counters.pullRequestBytes + copied };
      if (row && counters) setCatalogueRow(tx, { ...row, counters });
    });
    return true;
  }

  /** Under the repository's lock, commits in place. Only events that are served in that very transaction get their ref. */
  async setRefs(repository: GitRepository, tips: readonly (readonly [EventId, Oid])[]): Promise<void> {
    const { store, repositories } = this.parts;
    for (;;) {
      const served: (readonly [EventId, Oid])[] = [];
      for (const [id, tip] of tips) if (await store.has(id)) served.push([id, tip]);
      const updates = served.map(([id, to]) => ({ ref: pullRequestRef(id), to }));
      try {
        return await repositories.changeRefs(new RefChanges().add(repository, updates), async (tx) => {
          for (const [id] of served) if (!(await tx.has(id))) throw new Overtaken("a pull request was deleted");
        });
      } catch (error) {
        // One more is gone each time, so this ends.
        if (!(error instanceof Overtaken)) throw error;
      }
    }
  }

  /** Served pull requests for this repository that lie under `/prs/` and have no ref in it get one. */
  async copyInto(name: RepositoryName): Promise<void> {
    const { store, repositories } = this.parts;
    if (!isReleased(await catalogueRow(store, name))) return;
    const main = diskAddress(name);
    if (!(await repositories.exists(main))) return;
    for (const { id, author } of await this.#lacking(name)) {
      const prs = diskAddress(underPrs({ owner: author, identifier: name.identifier }));
      if (!(await repositories.exists(prs))) continue;
      await repositories.withLocks([main, prs], async () => {
        const source = repositories.open(prs);
        const tip = (await source.refs()).refs.get(pullRequestRef(id))?.oid;
        // Deleted meanwhile: then its ref has no business here either.
        if (!tip || !(await store.has(id))) return;
        const repository = repositories.open(main);
        if (await this.copyFrom(name, repository, source, tip)) await this.setRefs(repository, [[id, tip]]);
      });
    }
  }

  async #lacking(name: RepositoryName): Promise<Lacking[]> {
    const { store, repositories } = this.parts;
    const { refs } = await repositories.open(diskAddress(name)).refs();
    const filter = {
      kinds: [kinds.pullRequest, kinds.pullRequestUpdate],
      tags: new Map([["a", [repositoryAddress(name)]]]),
    };
    const lacking: Lacking[] = [];
    for await (const page of store.query([filter], { limit: maxPullRequestsLookedAt })) {
      for (const { id, event } of page) {
        if (!refs.has(pullRequestRef(id))) lacking.push({ id, author: event.pubkey });
      }
    }
    return lacking;
  }
}
