// The refs of pull requests, `refs/nostr/<event id>`: written when the commit is here and the event is about to be served,
// taken away when the event is gone (purgatory.md, "Release" 3). Which ones go where: pull-requests.ts.

import {
  catalogueRow,
  isReleased,
  type RepositoryName,
  repositoryKey,
  repositoryNamed,
} from "../catalogue/repositories.js";
import { contributorOf, type WaitingEntry } from "../catalogue/waiting.js";
import { diskAddress } from "../git/address.js";
import type { GitRepository } from "../git/repository.js";
import type { RefUpdate } from "../git/repository-refs.js";
import type { EventId, Oid } from "../nostr/ids.js";
import type { PurgatoryContext } from "./context.js";
import type { PullRequestCopies } from "./copy-pull-requests.js";
import type { RefWriter } from "./journal.js";
import type { RepositoryPlan } from "./plan.js";
import { type PullRequestPlan, planPullRequest, pullRequestRef, tipOf, waitingPullRequests } from "./pull-requests.js";

export class PullRequestRefs {
  constructor(
    private readonly parts: PurgatoryContext & { readonly writer: RefWriter; readonly copies: PullRequestCopies },
  ) {}

  readonly #open = (name: RepositoryName): GitRepository => this.parts.repositories.open(diskAddress(name));

  /**
   * Writes the refs of those whose commit is here, under the locks of all these repositories. `asked`: looked at however
   * many others wait there.
   */
  async place(
    names: readonly RepositoryName[],
    plans: readonly RepositoryPlan[],
    asked: readonly EventId[],
  ): Promise<PullRequestPlan[]> {
    const { store, writer, copies } = this.parts;
    const released = new Set(plans.filter((plan) => plan.governing).map((plan) => repositoryKey(plan.name)));
    const mine = new Set(names.map(repositoryKey));
    const placed = new Map<string, PullRequestPlan>();
    for (const name of names) {
      for (const entry of await this.#withCommitHere(name, asked)) {
        if (placed.has(entry.id)) continue;
        const contributor = contributorOf(entry);
        const prs = contributor && mine.has(repositoryKey(contributor)) ? contributor : undefined;
        const willBeReleased = (other: RepositoryName): boolean => released.has(repositoryKey(other));
        const isMine = (other: RepositoryName): boolean => mine.has(repositoryKey(other));
        const plan = await planPullRequest(entry, store, this.#open, isMine, willBeReleased, prs && this.#open(prs));
        if (!plan) continue;
        let done = 0;
        for (const { name: target, repository, copyFrom } of plan.targets) {
          if (copyFrom && !(await copies.copyFrom(target, repository, copyFrom, plan.tip))) continue;
          if (await writer.write(repository, [{ ref: plan.ref, to: plan.tip }])) done++;
        }
        if (done > 0) placed.set(entry.id, plan);
      }
    }
    return [...placed.values()];
  }

  /** Those that are served now get their ref in the other repositories they name, each under its own lock. */
  async spread(plans: readonly PullRequestPlan[]): Promise<void> {
    const { store, repositories, writer, copies } = this.parts;
    for (const { entry, ref, tip, targets } of plans) {
      const done = new Set(targets.map(({ name }) => repositoryKey(name)));
      const source = targets.find(({ copyFrom }) => !copyFrom)?.repository;
      for (const name of entry.repositories.flatMap((text) => repositoryNamed(text) ?? [])) {
        if (!source || done.has(repositoryKey(name)) || !isReleased(await catalogueRow(store, name))) continue;
        const address = diskAddress(name);
        if (!(await repositories.exists(address))) continue;
        await repositories.withLocks([address], async () => {
          // Deleted meanwhile: then its ref has no business here.
          if (!(await store.has(entry.id))) return;
          const repository = this.#open(name);
          try {
            if (await copies.copyFrom(name, repository, source, tip))
              await writer.write(repository, [{ ref, to: tip }]);
          } finally {
            repository.publish();
          }
        });
      }
    }
  }

  /** One question to git however many wait: most of them wait for something that is not here. */
  async #withCommitHere(name: RepositoryName, asked: readonly EventId[]): Promise<WaitingEntry[]> {
    const waiting = await waitingPullRequests(this.parts.store, name, asked);
    if (waiting.length === 0) return [];
    const types = await this.#open(name).objectTypes(waiting.flatMap((entry) => tipOf(entry) ?? []));
    return waiting.filter((entry) => {
      const tip = tipOf(entry);
      return tip !== undefined && types.get(tip) === "commit";
    });
  }

  /**
   * Served ones that lost their ref though their commit is here get it back. Asked for again under the lock: what was
   * deleted meanwhile has no ref.
   */
  async restore(name: RepositoryName, tips: ReadonlyMap<EventId, Oid>): Promise<void> {
    const { store, repositories, writer } = this.parts;
    await repositories.withLocks([diskAddress(name)], async () => {
      const updates: RefUpdate[] = [];
      for (const [id, to] of tips) if (await store.has(id)) updates.push({ ref: pullRequestRef(id), to });
      const repository = this.#open(name);
      await writer.write(repository, updates);
      repository.publish();
    });
  }

  /** Their events are gone: so are their refs. */
  async drop(ids: readonly EventId[], name: RepositoryName): Promise<void> {
    const { repositories, writer } = this.parts;
    const address = diskAddress(name);
    if (!(await repositories.exists(address))) return;
    await repositories.withLocks([address], async () => {
      const repository = this.#open(name);
      const { refs } = await repository.refs();
      const gone = ids.map(pullRequestRef).filter((ref) => refs.has(ref));
      await writer.write(
        repository,
        gone.map((ref) => ({ ref, to: undefined })),
      );
      repository.publish();
    });
  }
}
