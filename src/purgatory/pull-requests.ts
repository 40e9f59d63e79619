// Pull requests whose commit is here: their ref, `refs/nostr/<event id>`, is set in every repository they address when the
// event is about to be served, and taken away when the event is gone (purgatory.md, "Release" 3). What lies under `/prs/`
// is also placed in the repositories it is for, never the other way (grasp.md, GRASP-06).

import { prsIdentifier } from "../admission/service.js";
import {
  bookCopies,
  catalogueRow,
  isReleased,
  type RepositoryName,
  repositoryAddress,
  repositoryKey,
  repositoryNamed,
  underPrs,
} from "../catalogue/repositories.js";
import {
  isStillHere,
  placesOf,
  type WaitingEntry,
  waitingEntry,
  waitingEvent,
  waitingHints,
  waitingKeys,
  waitingTip,
} from "../catalogue/waiting.js";
import { diskAddress } from "../git/address.js";
import { Overtaken, RefChanges } from "../git/change-refs.js";
import { nostrRefEventId } from "../git/decide-push.js";
import { nothingPlaced, type Placed } from "../git/quarantine.js";
import type { GitRepository } from "../git/repository.js";
import type { ServiceName } from "../net/url.js";
import { addressText, type EventId, kinds, type NostrEvent, type Pubkey } from "../nostr/event.js";
import { type Oid, pullRequestOf, type RefName, repositoriesTagged } from "../nostr/nip34.js";
import type { Reader, Transaction } from "../store/port.js";
import type { PurgatoryContext } from "./context.js";
import type { PlanParts, RepositoryPlan } from "./plan.js";
import { accountsOf, quotaLeft } from "./quotas.js";

export interface PullRequestPlan {
  readonly entry: WaitingEntry;
  readonly ref: RefName;
  readonly tip: Oid;
  /** Repositories to set the ref in, each with the one from which the objects are copied when it lacks them. */
  readonly targets: readonly {
    readonly name: RepositoryName;
    readonly repository: GitRepository;
    readonly copyFrom?: GitRepository;
    /** What was copied: booked in the transaction that sets the ref. */
    readonly copiedBytes?: number;
  }[];
}

export interface KnownPullRequest {
  readonly event: NostrEvent;
  /**
   * Addresses of the repositories the pull request belongs to. The signer's own repository under `/prs/` is among them if the
   * event names it.
   */
  readonly repositories: readonly string[];
}

/** The event a `refs/nostr/<id>` is named after, stored or waiting. `services`: none while GRASP-06 is off. */
export async function knownPullRequest(
  reader: Reader,
  id: EventId,
  services: readonly ServiceName[],
): Promise<KnownPullRequest | undefined> {
  // In this order: a release between the two looks must not make a known event unknown.
  const entry = await waitingEntry(reader, id);
  const stored = await reader.event(id);
  const event = stored?.event ?? (entry && waitingEvent(entry));
  if (!event) return undefined;
  const pullRequest = pullRequestOf(event);
  const identifier = pullRequest && prsIdentifier(pullRequest, event.pubkey, services);
  const named = stored ? repositoriesTagged(event).map(addressText) : (entry?.repositories ?? []);
  if (identifier === undefined) return { event, repositories: named };
  return { event, repositories: [...named, repositoryAddress(underPrs({ owner: event.pubkey, identifier }))] };
}

const maxPullRequestsLookedAt = 500;

const pullRequestRef = (id: EventId): RefName => `refs/nostr/${id}` as RefName;

/**
 * What pull requests wait for in a repository: those asked for by id, then others up to a bound, for a flood of strangers'
 * must not hide the one that is pushed now. Told by their hints: a release looks at all of them, however few have come.
 */
export async function waitingTips(
  reader: Reader,
  name: RepositoryName,
  asked: readonly EventId[] = [],
): Promise<Map<EventId, Oid>> {
  const found = new Map<EventId, Oid>();
  const add = (entry: WaitingEntry | undefined): void => {
    const tip = entry?.releasable ? waitingTip(entry) : undefined;
    if (entry && tip) found.set(entry.id, tip);
  };
  for (const id of asked) {
    const entry = await waitingEntry(reader, id);
    const isHere =
      entry?.kind === "pull-request" && placesOf(entry).some((place) => repositoryKey(place) === repositoryKey(name));
    if (isHere) add(entry);
  }
  const prefix = waitingKeys.repositoryKind(name, "pull-request");
  for (const { id, tip } of await waitingHints(reader, prefix, maxPullRequestsLookedAt)) {
    if (tip) found.set(id, tip);
    else if (tip === undefined) add(await waitingEntry(reader, id));
  }
  return found;
}

/**
 * `isMine`: repositories whose locks are held; others it names are not looked at. `willBeReleased`: those that this very
 * release makes served. A pull request waits for a served repository, or for its commit under `/prs/`.
 */
async function planPullRequest(
  entry: WaitingEntry,
  { reader, missingOf }: Pick<PlanParts, "reader" | "missingOf">,
  open: (name: RepositoryName) => GitRepository,
  isMine: (name: RepositoryName) => boolean,
  willBeReleased: (name: RepositoryName) => boolean,
): Promise<PullRequestPlan | undefined> {
  const tip = waitingTip(entry);
  if (!tip) return undefined;
  const addressed: { name: RepositoryName; repository: GitRepository; has: boolean }[] = [];
  for (const name of placesOf(entry).filter(isMine)) {
    const isUnderPrs = name.area === "prs";
    if (!(isUnderPrs || isReleased(await catalogueRow(reader, name)) || willBeReleased(name))) continue;
    const repository = open(name);
    const has = (await missingOf(repository, [tip])).size === 0;
    // Nothing is ever copied to `/prs/`.
    if (has || !isUnderPrs) addressed.push({ name, repository, has });
  }
  const source = addressed.find(({ has }) => has)?.repository;
  if (!source) return undefined;
  const types = await source.objectTypes([tip]);
  if (types.get(tip) !== "commit") return undefined;
  const targets = addressed.map(({ name, repository, has }) => ({
    name,
    repository,
    ...(has ? {} : { copyFrom: source }),
  }));
  return { entry, ref: pullRequestRef(entry.id), tip, targets };
}

/** Between so many refs others get their turn. */
const refsAtOnce = 500;

const maxServedLookedAt = 10_000;
const maxRounds = 3;

export class PullRequestRefs {
  constructor(private readonly parts: PurgatoryContext) {}

  readonly #open = (name: RepositoryName): GitRepository => this.parts.repositories.open(diskAddress(name));

  /**
   * Those whose commit is here, with the repositories that get their ref, objects copied. Under the locks of all these
   * repositories. `asked`: looked at however many others wait there. `copies`: objects that were copied for them.
   */
  async place(
    names: readonly RepositoryName[],
    plans: readonly RepositoryPlan[],
    asked: readonly EventId[],
    planning: PlanParts,
    copies: Placed[],
  ): Promise<PullRequestPlan[]> {
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
          const copied = copyFrom && (await this.#copyFrom(at, repository, copyFrom, plan.tip));
          if (copied) copies.push(copied);
          if (!copyFrom) targets.push(target);
          else if (copied) targets.push({ ...target, copiedBytes: copied.bytes });
        }
        if (targets.length > 0) placed.set(entry.id, { ...plan, targets });
      }
    }
    return [...placed.values()];
  }

  /** Those that are served now get their ref in the other repositories they name, each under its own lock. */
  async spread(plans: readonly PullRequestPlan[]): Promise<void> {
    const { store, repositories } = this.parts;
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
          await this.#placeCopy(name, source, entry.id, tip);
        });
      }
    }
  }

  /** One question to git however many wait: most of them wait for something that is not here. */
  async #withCommitHere(name: RepositoryName, asked: readonly EventId[]): Promise<WaitingEntry[]> {
    const { store } = this.parts;
    const tips = await waitingTips(store, name, asked);
    if (tips.size === 0) return [];
    const types = await this.#open(name).objectTypes([...tips.values()]);
    const here: WaitingEntry[] = [];
    for (const [id, tip] of tips) {
      const entry = types.get(tip) === "commit" ? await waitingEntry(store, id) : undefined;
      if (entry) here.push(entry);
    }
    return here;
  }

  /** Served ones that lost their ref though their commit is here get it back; what was deleted meanwhile has no ref. */
  async restore(name: RepositoryName, tips: ReadonlyMap<EventId, Oid>): Promise<void> {
    const { repositories } = this.parts;
    const repository = this.#open(name);
    await repositories.withLocks([repository.address], async () => {
      const basis = await repositories.basisOf([repository.address]);
      const missing = await repository.missingObjects([...tips.values()]);
      const here = [...tips].filter(([, tip]) => !missing.has(tip));
      await this.#setRefs(repository, here, () => new RefChanges(basis));
    });
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

  /** Under both locks: the commit and all it reaches, from the one to the other (git-http.md, "Budgets"). Undefined: it cannot be. */
  async #copyFrom(
    name: RepositoryName,
    repository: GitRepository,
    source: GitRepository,
    tip: Oid,
  ): Promise<Placed | undefined> {
    const { store, live, observer } = this.parts;
    if ((await repository.missingObjects([tip])).size === 0) return nothingPlaced;
    if (quotaLeft(await accountsOf(store, name, [], live.current)).isUsedUp) {
      observer.problem(name, "its share for pull requests is full: one was not copied into it");
      return undefined;
    }
    return await repository.copyObjectsFrom(source, [tip]);
  }

  /** Under the locks of both: the commit, then its ref. If the event is gone when the ref is written, so is the copy. */
  async #placeCopy(name: RepositoryName, source: GitRepository, id: EventId, tip: Oid): Promise<void> {
    const repository = this.#open(name);
    const basis = await this.parts.repositories.basisOf([repository.address]);
    const copied = await this.#copyFrom(name, repository, source, tip);
    if (!copied) return;
    let isSet = false;
    try {
      const changes = (): RefChanges => new RefChanges(basis).naming([copied]);
      isSet = await this.#setRefs(repository, [[id, tip]], changes, (tx) => bookCopies(tx, name, copied.bytes));
    } finally {
      if (!isSet) await copied.takeBack();
    }
  }

  /**
   * Under the repository's lock, commits in place. Only events that are served in that very transaction get their ref. False:
   * none is, or others were quicker too often.
   */
  async #setRefs(
    repository: GitRepository,
    tips: readonly (readonly [EventId, Oid])[],
    changes: () => RefChanges,
    alongside: (tx: Transaction) => Promise<void> = async () => undefined,
  ): Promise<boolean> {
    const { store, repositories } = this.parts;
    let [rounds, last] = [0, tips.length];
    for (;;) {
      const served: (readonly [EventId, Oid])[] = [];
      for (const [id, tip] of tips) if (await store.has(id)) served.push([id, tip]);
      rounds = served.length < last ? 0 : rounds + 1;
      last = served.length;
      if (served.length === 0 || rounds > maxRounds) return false;
      const updates = served.map(([id, to]) => ({ ref: pullRequestRef(id), to }));
      try {
        await repositories.changeRefs(changes().add(repository, updates), async (tx) => {
          for (const [id] of served) if (!(await tx.has(id))) throw new Overtaken("a pull request was deleted");
          await alongside(tx);
        });
        return true;
      } catch (error) {
        // One more is gone, or another machine changed the refs or packs.
        if (!(error instanceof Overtaken)) throw error;
      }
    }
  }

  /** Served pull requests for this repository that lie under `/prs/` and have no ref in it get one: never the other way. */
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
        if (tip && (await store.has(id))) await this.#placeCopy(name, source, id, tip);
      });
    }
  }

  async #lacking(name: RepositoryName): Promise<{ readonly id: EventId; readonly author: Pubkey }[]> {
    const { store, repositories } = this.parts;
    const { refs } = await repositories.open(diskAddress(name)).refs();
    const filter = {
      kinds: [kinds.pullRequest, kinds.pullRequestUpdate],
      tags: new Map([["a", [repositoryAddress(name)]]]),
    };
    const lacking: { readonly id: EventId; readonly author: Pubkey }[] = [];
    for await (const page of store.query([filter], { limit: maxServedLookedAt })) {
      for (const { id, event } of page) {
        if (!refs.has(pullRequestRef(id))) lacking.push({ id, author: event.pubkey });
      }
    }
    return lacking;
  }
}
