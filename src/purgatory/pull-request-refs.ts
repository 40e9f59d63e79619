// The refs of pull requests, `refs/nostr/<event id>`: written when the commit is here and the event is about to be served,
// taken away when the event is gone (purgatory.md, "Release" 3). Which ones go where: pull-requests.ts.

import {
  catalogueRow,
  isReleased,
  type RepositoryName,
  repositoryKey,
  repositoryNamed,
} from "../catalogue/repositories.js";
import type { WaitingEntry } from "../catalogue/waiting.js";
import { diskAddress } from "../git/address.js";
import { Overtaken, RefChanges } from "../git/change-refs.js";
import { nostrRefEventId } from "../git/decide-push.js";
import type { GitRepository } from "../git/repository.js";
import type { EventId, Oid } from "../nostr/ids.js";
import type { PurgatoryContext } from "./context.js";
import type { PullRequestCopies } from "./copy-pull-requests.js";
import type { PlanParts, RepositoryPlan } from "./plan.js";
import { type PullRequestPlan, planPullRequest, pullRequestRef, tipOf, waitingPullRequests } from "./pull-requests.js";
import { isStillHere } from "./store-released.js";

/** Between so many refs others get their turn. */
const refsAtOnce = 500;

export class PullRequestRefs {
  constructor(private readonly parts: PurgatoryContext & { readonly copies: PullRequestCopies }) {}

  readonly #open = (name: RepositoryName): GitRepository => this.parts.repositories.open(diskAddress(name));

  /**
   * Those whose commit is here, with the repositories that get their ref, objects copied. Under the locks of all these
   * repositories. `asked`: looked at however many others wait there.
   */
  async place(
    names: readonly RepositoryName[],
    plans: readonly RepositoryPlan[],
    asked: readonly EventId[],
    planning: PlanParts,
  ): Promise<PullRequestPlan[]> {
    const { copies } = this.parts;
    const released = new Set(plans.filter((plan) => plan.governing).map((plan) => repositoryKey(plan.name)));
    const mine = new Set(names.map(repositoryKey));
    const placed = new Map<string, PullRequestPlan>();
    for (const name of names) {
      for (const entry of await this.#withCommitHere(name, asked)) {
        if (placed.has(entry.id)) continue;
        const willBeReleased = (other: RepositoryName): boolean => released.has(repositoryKey(other));
        const isMine = (other: RepositoryName): boolean => mine.has(repositoryKey(other));
        const plan = await planPullRequest(entry, planning, this.#open, isMine, willBeReleased);
        if (!plan) continue;
        const targets: PullRequestPlan["targets"][number][] = [];
        for (const target of plan.targets) {
          const { name: at, repository, copyFrom } = target;
          if (!copyFrom || (await copies.copyFrom(at, repository, copyFrom, plan.tip))) targets.push(target);
        }
        if (targets.length > 0) placed.set(entry.id, { ...plan, targets });
      }
    }
    return [...placed.values()];
  }

  /** Those that are served now get their ref in the other repositories they name, each under its own lock. */
  async spread(plans: readonly PullRequestPlan[]): Promise<void> {
    const { store, repositories, copies } = this.parts;
    for (const { entry, tip, targets } of plans) {
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
          if (await copies.copyFrom(name, repository, source, tip)) await copies.setRefs(repository, [[entry.id, tip]]);
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

  /** Served ones that lost their ref though their commit is here get it back; what was deleted meanwhile has no ref. */
  async restore(name: RepositoryName, tips: ReadonlyMap<EventId, Oid>): Promise<void> {
    const { repositories, copies } = this.parts;
    await repositories.withLocks([diskAddress(name)], () => copies.setRefs(this.#open(name), [...tips]));
  }

  /**
   * Refs of pull requests that are neither served nor waiting: a crash between a deletion and its refs left them. Answers
   * how many went.
   */
  async dropOrphans(name: RepositoryName): Promise<number> {
    const { store, repositories } = this.parts;
    const repository = this.#open(name);
    const orphans: EventId[] = [];
    let count = 0;
    for (const ref of (await repository.refs()).refs.keys()) {
      const id = nostrRefEventId(ref);
      if (id && !(await isStillHere(store, id))) orphans.push(id);
      if (++count % refsAtOnce === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    if (orphans.length === 0) return 0;
    const updates = orphans.map((id) => ({ ref: pullRequestRef(id), to: undefined }));
    await repositories.withLocks([diskAddress(name)], () =>
      repositories.changeRefs(new RefChanges().add(repository, updates), async (tx) => {
        for (const id of orphans) if (await isStillHere(tx, id)) throw new Overtaken("a pull request has come");
      }),
    );
    return orphans.length;
  }

  /** Their events are gone: so are their refs. */
  async drop(ids: readonly EventId[], name: RepositoryName): Promise<void> {
    const { repositories } = this.parts;
    const address = diskAddress(name);
    if (!(await repositories.exists(address))) return;
    await repositories.withLocks([address], async () => {
      const repository = this.#open(name);
      const { refs } = await repository.refs();
      const gone = ids.map(pullRequestRef).filter((ref) => refs.has(ref));
      if (gone.length > 0) await repository.updateRefs(gone.map((ref) => ({ ref, to: undefined })));
    });
  }
}
