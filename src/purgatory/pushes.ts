// What a push means for the waiting room: who may push, what is promised before the refs are written, what is
// released after, and the clock of a state of which only a part has come (git-http.md, "Push" 3 to 7).

import { restarted } from "../admission/waiting-capacity.js";
import { unixSeconds } from "../base/clock.js";
import { UseCounts } from "../base/keyed-lock.js";
import {
  type CatalogueRow,
  catalogueRow,
  type RepositoryName,
  repositoryAddress,
  repositoryKey,
  rowForData,
  type StateStamp,
  setCatalogueRow,
  takesStates,
} from "../catalogue/repositories.js";
import { bookContributors, bookOwners } from "../catalogue/used-bytes.js";
import { putWaiting, waitingAnnouncement, waitingEntry } from "../catalogue/waiting.js";
import type { RepositoryAddress } from "../git/address.js";
import { nostrRefEventId } from "../git/decide-push.js";
import type { PushAuthority, PushCommand, PushOutcome, PushSession } from "../git/push-types.js";
import type { UnclaimedData } from "../git/quarantine.js";
import type { RefUpdate } from "../git/repository-refs.js";
import { compareNewestFirst, type NostrEvent } from "../nostr/event.js";
import type { EventId, RefName } from "../nostr/ids.js";
import type { Transaction } from "../store/port.js";
import type { Bell } from "./bell.js";
import type { PurgatoryContext, Released } from "./context.js";
import { type Journal, type PushedUnder, type RefFsync, takeBack } from "./journal.js";
import { type PartialClock, startPartial } from "./partial-clock.js";
import type { Placeholders } from "./placeholders.js";
import { type KnownPullRequest, knownPullRequest } from "./pull-requests.js";
import { pushAuthority } from "./push-authority.js";
import { type Account, type ArchiveBudget, accountsOf, quotaLeft, quotaRemarks } from "./quotas.js";
import type { Releaser } from "./release.js";
import { isStillHere } from "./store-released.js";

/** One journal entry, so that it can be taken back. */
interface Promised {
  readonly key: string;
  readonly push: PushedUnder;
}

const nostrIds = (refs: readonly { readonly ref: RefName }[]): EventId[] =>
  refs.flatMap(({ ref }) => nostrRefEventId(ref) ?? []);

interface PushParts extends PurgatoryContext {
  readonly archiveBudget: ArchiveBudget;
  readonly journal: Journal;
  readonly refFsync: RefFsync;
  readonly placeholders: Placeholders;
  readonly releaser: Releaser;
  readonly partials: PartialClock;
  readonly bell: Bell;
}

export class Pushes {
  readonly #atWork = new UseCounts();

  constructor(private readonly parts: PushParts) {}

  begin(address: RepositoryAddress, ip: string): PurgatoryPush {
    return new PurgatoryPush(this.parts, address, ip, this.begins(address));
  }

  begins(name: RepositoryName): () => void {
    return this.#atWork.begin(repositoryKey(name));
  }

  isAtWork(name: RepositoryName): boolean {
    return this.#atWork.has(repositoryKey(name));
  }
}

export class PurgatoryPush implements PushSession {
  /** Promised, and neither released nor taken back. */
  readonly #promised: Promised[] = [];

  constructor(
    private readonly parts: PushParts,
    private readonly address: RepositoryAddress,
    private readonly ip: string,
    readonly end: () => void,
  ) {}

  async authority(commands: readonly PushCommand[]): Promise<PushAuthority> {
    const { address, ip } = this;
    const { store, config, clock, diskShareUsed, placeholders } = this.parts;
    const { pushStrict, archiveReadOnly, diskPushMaxPercent } = config();
    const ids = nostrIds(commands);
    const pullRequests = new Map<EventId, KnownPullRequest>();
    for (const id of ids) {
      const known = await this.#known(id);
      if (known) pullRequests.set(id, known);
    }
    const unknown = ids.filter((id) => !pullRequests.has(id));
    const unclaimed = placeholders.allowance(ip, address, unknown, unixSeconds(clock));
    const isFull = (await diskShareUsed()) >= diskPushMaxPercent / 100;
    const closedReason = isFull
      ? "the server's disk is nearly full, it takes no pushes now: try again later"
      : undefined;
    const events = [...pullRequests.values()].map(({ event }) => event);
    return pushAuthority(store, address, pullRequests.values(), {
      strict: pushStrict,
      archiveReadOnly,
      unclaimed,
      held: placeholders.tipsHeld(address, unknown),
      quota: quotaLeft(await this.#accounts(ids.length === commands.length, events)),
      closedReason: closedReason ?? (await this.#unwantedReason()),
    });
  }

  #known(id: EventId): Promise<KnownPullRequest | undefined> {
    return knownPullRequest(this.parts.store, id, this.parts.contributorRules?.services ?? []);
  }

  async #unwantedReason(): Promise<string | undefined> {
    const { contributorRules } = this.parts;
    if (this.address.area !== "prs") return undefined;
    if (!contributorRules) return "this server takes no contributors' pull requests";
    return (await contributorRules.isBlocked(this.address))
      ? "pull requests of this key or name are not wanted here"
      : undefined;
  }

  #accounts(isForPullRequests: boolean, events: readonly NostrEvent[]): Promise<readonly Account[]> {
    const { store, config, archiveBudget } = this.parts;
    const authors = isForPullRequests ? events.map(({ pubkey }) => pubkey) : undefined;
    return accountsOf(store, this.address, authors, config(), archiveBudget);
  }

  /** What the pusher should know of the accounts this push was booked to. */
  async #remarks({ updates }: PushOutcome): Promise<string[]> {
    const ids = nostrIds(updates);
    const known = await Promise.all(ids.map((id) => this.#known(id)));
    const events = known.flatMap((one) => one?.event ?? []);
    return quotaRemarks(await this.#accounts(ids.length === updates.length, events));
  }

  /** The wanted values, the mark and a partial state's clock are on disk before the refs. */
  async promise(candidate: StateStamp | undefined, wanted: readonly RefUpdate[]): Promise<boolean> {
    const { address } = this;
    const { owner, identifier, area } = address;
    const now = unixSeconds(this.parts.clock);
    const updates = wanted.map(({ ref, to }) => ({ ref, to: to ?? null }));
    const promised = await this.parts.store.transact(async (tx): Promise<Promised | undefined> => {
      const row = await rowForData(tx, address, now);
      if (!row || !takesStates(row) || row.status === "soft") return undefined;
      if (candidate && !(await isStillHere(tx, candidate.id))) return undefined;
      setCatalogueRow(tx, row);
      const push = candidate ? await pushUnder(tx, row, candidate, now) : {};
      const key = this.parts.journal.promise(tx, { owner, identifier, area, updates, head: null, push });
      return { key, push };
    });
    if (promised) this.#promised.push(promised);
    return promised !== undefined;
  }

  /** The next start must not write the refs. Git may have written some: that is made good. */
  async abandon(): Promise<void> {
    const { address } = this;
    const { journal, refFsync, releaser } = this.parts;
    for (const { key, push } of this.#promised.splice(0)) {
      releaser.markUnfinished([address]);
      const back = (tx: Transaction): Promise<void> => takeBack(tx, address, push);
      // A store that cannot write now: the promise is taken back as soon as it can.
      await journal.kept([key], back).catch(() => refFsync.add(address, key, back));
    }
  }

  keepAside(kept: readonly UnclaimedData[]): Promise<void> {
    return this.parts.placeholders.keptAside(this.address, this.ip, kept);
  }

  async release(outcome: PushOutcome): Promise<string[]> {
    const { address, parts } = this;
    let lines: string[];
    try {
      lines = await this.#release(outcome);
    } catch (error) {
      parts.releaser.markUnfinished([address]);
      throw error;
    } finally {
      // Also when it could not be ended: of a state that was pushed only in part nothing else would come back to it.
      const { decision, updates } = outcome;
      if (decision.candidate && updates.length > 0) await parts.partials.watch(address, decision.candidate.id);
    }
    const ids = [
      ...parts.placeholders
        .tipsHeld(
          address,
          outcome.placeholders.map(({ eventId }) => eventId),
        )
        .keys(),
    ];
    const repository = repositoryAddress({ owner: address.owner, identifier: address.identifier });
    parts.bell.ring({ names: [address], awaited: ids.map((id) => ({ id, repository })) });
    return lines;
  }

  async #release(outcome: PushOutcome): Promise<string[]> {
    const { address, decision, updates } = outcome;
    const { store, clock, config, refFsync, placeholders, releaser } = this.parts;
    const name: RepositoryName = { owner: address.owner, identifier: address.identifier };
    for (const { key } of this.#promised.splice(0)) refFsync.add(address, key);
    if (outcome.placeholders.length > 0) await placeholders.makeRoom();
    const state = updates.length > 0 ? decision.candidate : undefined;
    await store.transact(async (tx) => {
      await this.#book(tx, outcome);
      const announcement = state && (await waitingAnnouncement(tx, name));
      const prolonged = announcement && restarted(announcement, unixSeconds(clock), config());
      // Its day is over: the sweep makes it soft, with all that belongs to that.
      if (prolonged?.phase === "waiting") await putWaiting(tx, prolonged);
    });
    // An event that came while its data was on its way found none.
    for (const { eventId } of outcome.placeholders) {
      const known = await this.#known(eventId);
      if (known) await placeholders.claim(known);
    }
    const asked = [...nostrIds(updates), ...outcome.placeholders.map(({ eventId }) => eventId)];
    const released = await releaser.release([address], "push", undefined, asked);
    return [...(await this.#linesFor(address, released, state?.id)), ...(await this.#remarks(outcome))];
  }

  async #book(tx: Transaction, { address, updates, packBytes }: PushOutcome): Promise<void> {
    const row = await rowForData(tx, address, unixSeconds(this.parts.clock));
    if (!row) return;
    const counted = { ...row, counters: { ...row.counters, pushes: row.counters.pushes + 1 } };
    setCatalogueRow(tx, counted);
    const ids = nostrIds(updates);
    if (updates.length > ids.length) bookOwners(tx, counted, packBytes);
    else if (ids[0] !== undefined) {
      const known = await knownPullRequest(tx, ids[0], []);
      await bookContributors(tx, counted, known?.event.pubkey ?? row.owner, packBytes);
    }
  }

  async #linesFor(name: RepositoryName, released: readonly Released[], state: EventId | undefined): Promise<string[]> {
    const lines: string[] = [];
    if (released.some(({ kind }) => kind === "announcement")) lines.push("the repository is served from now on");
    if (released.some(({ kind }) => kind === "state")) lines.push("the state event is served from now on");
    if (released.some(({ kind }) => kind === "pull-request")) lines.push("the pull request is served from now on");
    const row = await catalogueRow(this.parts.store, name);
    const missing = row?.partial?.missingRefs.length ?? 0;
    if (missing > 0) lines.push(`${missing} refs of the state are still missing: push them too`);
    else if (state && (await waitingEntry(this.parts.store, state))) {
      lines.push("other refs of the state are still missing: push them too");
    }
    return lines;
  }
}

/** The mark rises to the state a push was decided by; the first push under one that waits starts its clock. */
async function pushUnder(
  tx: Transaction,
  row: CatalogueRow,
  { id, created_at }: StateStamp,
  now: number,
): Promise<PushedUnder> {
  const mark = { id, created_at };
  const rises = !row.mark || compareNewestFirst(mark, row.mark) < 0;
  if (rises) setCatalogueRow(tx, { ...row, mark });
  const startedClock = (await waitingEntry(tx, id)) !== undefined && (await startPartial(tx, row, id, now));
  return { state: id, startedClock, ...(rises ? { markBefore: row.mark } : {}) };
}
