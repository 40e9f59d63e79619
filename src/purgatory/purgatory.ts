// The waiting room as one thing: what main builds, what intake and the git server call.
// Owns no rule: admission decides who may wait, release.ts what is released, intake/sweep.ts what ends.

import { restarted } from "../admission/waiting-capacity.js";
import { hourlyCounter } from "../base/budget/rates.js";
import { unixSeconds } from "../base/clock.js";
import { UseCounts } from "../base/keyed-lock.js";
import {
  catalogueRow,
  type RepositoryArea,
  type RepositoryName,
  repositoryKey,
  setCatalogueRow,
  underPrs,
  withStatus,
} from "../catalogue/repositories.js";
import { putWaiting, type WaitingEntry, waitingAnnouncement } from "../catalogue/waiting.js";
import { diskAddress, type Npub, type RepositoryAddress } from "../git/address.js";
import { Overtaken } from "../git/change-refs.js";
import type { FoundRepository } from "../git/http-types.js";
import type { PushSession } from "../git/push-types.js";
import type { EventId, Pubkey } from "../nostr/event.js";
import { parseNpub } from "../nostr/nip19.js";
import type { Oid } from "../nostr/nip34.js";
import type { LedBy } from "../store/port.js";
import { Bell } from "./bell.js";
import type { PurgatoryContext, Released } from "./context.js";
import { Contributors } from "./contributors.js";
import { followForeign } from "./follow-foreign.js";
import { PartialClock } from "./partial-clock.js";
import { Placeholders } from "./placeholders.js";
import { knownPullRequest, PullRequestRefs } from "./pull-requests.js";
import { PurgatoryPush, type PushParts } from "./pushes.js";
import { ArchiveBudget, accountsOf, quotaLeft } from "./quotas.js";
import { Releaser } from "./release.js";
import { resume } from "./resume.js";

export class Purgatory {
  readonly placeholders: Placeholders;
  /** For the hunt, which fills mirrors. */
  readonly archiveBudget: ArchiveBudget;
  readonly context: PurgatoryContext;
  readonly bell = new Bell();
  /** What follows from a decision uses these (intake/carry-out.ts). */
  readonly releaser: Releaser;
  readonly pullRequests: PullRequestRefs;
  readonly contributors: Contributors;
  /** A push or fetch for it is running, or its release is not done: nothing of it is taken away. */
  readonly isBusy: (name: RepositoryName) => boolean;
  readonly #partials: PartialClock;
  readonly #pushParts: PushParts;
  /** Repositories to which pushes and fetches bring data. */
  readonly #atWork = new UseCounts();
  #mayExpire: (entry: WaitingEntry) => boolean = () => true;

  constructor(context: PurgatoryContext) {
    const { store, repositories, clock, live, observer } = context;
    this.context = context;
    repositories.alignment.failed = (error) => observer.refsBehind?.(error);
    const archiveBudget = new ArchiveBudget(store, clock, () => live.current.archiveMaxBytes);
    const placeholders = new Placeholders(context, hourlyCounter(), (name) => this.contributors.tidy(name));
    const pullRequests = new PullRequestRefs(context);
    const released = (items: readonly Released[]): void => {
      for (const item of items) observer.released(item);
      this.bell.ring({ ids: items.map(({ id }) => id) });
    };
    const madeAnew = (name: RepositoryName): Promise<void> => placeholders.madeAnew(name);
    const releaser = new Releaser({ ...context, pullRequests, archiveBudget, released, madeAnew });
    const partials = new PartialClock({
      store,
      clock,
      graceSeconds: () => live.current.partialStateGraceSecs,
      isOver: (name, ledBy) => releaser.release([name], "partial", { ledBy }),
      failed: (error) => observer.failed("releasing a partial state", error),
    });
    const isBusy = (name: RepositoryName): boolean =>
      this.#atWork.has(repositoryKey(name)) || releaser.isUnfinished(name);
    const contributors = new Contributors({ ...context, isBusy, pullRequests });
    this.placeholders = placeholders;
    this.archiveBudget = archiveBudget;
    this.releaser = releaser;
    this.#partials = partials;
    this.#pushParts = { ...context, archiveBudget, placeholders, releaser, partials, bell: this.bell };
    this.isBusy = isBusy;
    this.contributors = contributors;
    this.pullRequests = pullRequests;
    const followers = { placeholders, partials, releaser, archiveBudget, bell: this.bell };
    store.onForeignCommit((commit) => followForeign(store, commit, followers));
  }

  /** After a start nothing that waited before it expires until it was hunted once: the hunt says when that is. */
  expireOnlyIf(mayExpire: (entry: WaitingEntry) => boolean): void {
    this.#mayExpire = mayExpire;
  }

  mayExpire(entry: WaitingEntry): boolean {
    return this.#mayExpire(entry);
  }

  /** Ends what a crash interrupted: git's refs, repositories that should be on disk, releases that had begun. */
  async resume(): Promise<void> {
    await resume({
      ...this.context,
      placeholders: this.placeholders,
      releaser: this.releaser,
      contributors: this.context.contributorRules && this.contributors,
      claim: (id) => this.claim(id),
    });
  }

  /** The clocks of what waits run on the machine that leads, until they are closed. */
  async startClocks(ledBy?: LedBy): Promise<{ close(): Promise<void> }> {
    await this.#partials.open(ledBy);
    return { close: () => this.#partials.close() };
  }

  /** Data that was pushed before its event was known joins the repository. */
  async claim(id: EventId): Promise<void> {
    const { store, contributorRules } = this.context;
    const known = await knownPullRequest(store, id, contributorRules?.services ?? []);
    if (known) await this.placeholders.claim(known);
  }

  /**
   * Which repositories the git server answers for: announced ones if the catalogue knows them, under `/prs/` every
   * well-formed path.
   */
  async lookUp(npub: Npub, identifier: string, area: RepositoryArea): Promise<FoundRepository | undefined> {
    const owner = parseNpub(npub);
    if (!owner) return undefined;
    const name = { owner, identifier };
    if (area === "main") {
      const row = await catalogueRow(this.context.store, name);
      return row && row.status !== "soft" && row.status !== "deleted" ? { address: diskAddress(name) } : undefined;
    }
    // No announcement has an empty identifier: there is nothing such a pull request could be for.
    return this.context.contributorRules && identifier !== ""
      ? { address: diskAddress(underPrs(name)), createOnPush: true }
      : undefined;
  }

  /**
   * A push or a fetch for it is at work until the returned function is called: nothing of it expires meanwhile. What was left
   * under `/prs/` without data goes then: whoever came upon it before let it be.
   */
  pushBegins(name: RepositoryName): () => Promise<void> {
    const end = this.#atWork.begin(repositoryKey(name));
    return async () => {
      end();
      if (name.area !== "prs") return;
      // What was brought is written: it must not look as if it were not.
      const failed = (error: unknown): void => this.context.observer.failed("removing an empty repository", error);
      await this.contributors.tidy(name).catch(failed);
    };
  }

  beginPush(address: RepositoryAddress, ip: string): PushSession {
    return new PurgatoryPush(this.#pushParts, address, ip, this.pushBegins(address));
  }

  /** After a hunt brought objects into a repository, or found its refs adrift. */
  async fetched(name: RepositoryName, pullRequest?: EventId, ledBy: LedBy = {}): Promise<readonly Released[]> {
    const asked = pullRequest === undefined ? [] : [pullRequest];
    const released = await this.releaser.release([name], "hunt", { asked, ledBy });
    // Refs whose objects were lost are here again for git too.
    const repository = this.context.repositories.open(diskAddress(name));
    if (repository.isStuck) await repository.mendFiles();
    return released;
  }

  /** Served pull requests whose commit is there and whose ref is not. */
  restorePullRequests(name: RepositoryName, tips: ReadonlyMap<EventId, Oid>): Promise<void> {
    return this.pullRequests.restore(name, tips);
  }

  /** A round that is overtaken by a pull request that comes is followed by the next one. */
  async dropOrphanedPullRequests(name: RepositoryName): Promise<number> {
    return await this.pullRequests.dropOrphans(name).catch((error: unknown) => {
      if (error instanceof Overtaken) return 0;
      throw error;
    });
  }

  /** How much more a hunt may bring into a repository; `author`: of the pull request it hunts for. */
  async huntLeft(name: RepositoryName, author: Pubkey | undefined): Promise<number> {
    const { store, live, disks } = this.context;
    if (disks.fullest >= live.current.diskPushMaxPercent / 100) return 0;
    const authors = author === undefined ? undefined : [author];
    const left = quotaLeft(await accountsOf(store, name, authors, live.current, this.archiveBudget));
    return left.isUsedUp ? 0 : left.maxBytes;
  }

  /** These soft states of it may be released with what is here: the rest is on no server that could be asked. */
  releasePartial(name: RepositoryName, partial: ReadonlySet<EventId>, ledBy: LedBy = {}): Promise<readonly Released[]> {
    return this.releaser.release([name], "partial", { partial, ledBy });
  }

  /** A hunt found data for a repository whose announcement had gone soft: it waits again, on disk. */
  async revive(name: RepositoryName, ledBy?: LedBy): Promise<void> {
    const { store, repositories, clock, live } = this.context;
    const now = unixSeconds(clock);
    await store.transact(async (tx) => {
      const row = await catalogueRow(tx, name);
      const entry = await waitingAnnouncement(tx, name);
      if (row?.status !== "soft" || !entry) return;
      await putWaiting(tx, restarted(entry, now, live.current));
      setCatalogueRow(tx, withStatus(row, "waiting", now));
    }, ledBy);
    await repositories.create(diskAddress(name));
  }

  /** Releases that could not be ended are tried again. */
  releaseUnfinished(ledBy?: LedBy): Promise<void> {
    const { observer } = this.context;
    return this.releaser.releaseUnfinished((error) => observer.failed("ending a release", error), ledBy);
  }

  async close(): Promise<void> {
    await this.#partials.close();
    await this.context.repositories.alignment.flush();
  }
}
