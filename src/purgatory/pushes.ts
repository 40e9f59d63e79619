// What a push means for the waiting room: who may push, what is written and released with its refs, and the clock of a
// state of which only a part has come (git-http.md, "Push" 3 to 7).

import { restarted } from "../admission/waiting-capacity.js";
import { unixSeconds } from "../base/clock.js";
import { counted } from "../base/text.js";
import { isRepositoryBlocked } from "../catalogue/bans-and-lists.js";
import { stateDecides } from "../catalogue/maintainers.js";
import {
  bookContributors,
  bookOwners,
  type CatalogueRow,
  catalogueRow,
  type RepositoryName,
  repositoryAddress,
  rowForData,
  type StateStamp,
  setCatalogueRow,
  takesStates,
} from "../catalogue/repositories.js";
import { isStillHere, putWaiting, startPartial, waitingAnnouncement, waitingEntry } from "../catalogue/waiting.js";
import { diskAddress, type RepositoryAddress } from "../git/address.js";
import { Overtaken, RefChanges } from "../git/change-refs.js";
import { nostrRefEventId } from "../git/decide-push.js";
import type {
  CandidateState,
  Followed,
  NostrRefEvent,
  PushAuthority,
  PushCommand,
  PushOutcome,
  PushSession,
  UnclaimedAllowance,
} from "../git/push-types.js";
import type { UnclaimedData } from "../git/quarantine.js";
import { addressText, compareNewestFirst, type EventId, type NostrEvent } from "../nostr/event.js";
import { formatOf, isOid, type Oid, pullRequestOf, type RefName } from "../nostr/nip34.js";
import { type Reader, SharedLogError, type Transaction } from "../store/port.js";
import type { Bell } from "./bell.js";
import type { PurgatoryContext, Released } from "./context.js";
import type { PartialClock } from "./partial-clock.js";
import type { Placeholders } from "./placeholders.js";
import { canDecide, decidingStates, formatOfState } from "./plan.js";
import { type KnownPullRequest, knownPullRequest } from "./pull-requests.js";
import { type Account, type ArchiveBudget, accountsOf, quotaLeft, quotaRemarks } from "./quotas.js";
import type { ReleaseDone, Releaser } from "./release.js";

const nostrIds = (refs: readonly { readonly ref: RefName }[]): EventId[] =>
  refs.flatMap(({ ref }) => nostrRefEventId(ref) ?? []);

export interface PushParts extends PurgatoryContext {
  readonly archiveBudget: ArchiveBudget;
  readonly placeholders: Placeholders;
  readonly releaser: Releaser;
  readonly partials: PartialClock;
  readonly bell: Bell;
}

export class PurgatoryPush implements PushSession {
  /** The repositories whose locks are held while it is written. */
  #concerned: readonly RepositoryName[] = [];
  #written: ReleaseDone | undefined;
  /** Why nothing was released with its refs. */
  #fault: unknown;
  #newlyAside: readonly EventId[] = [];

  constructor(
    private readonly parts: PushParts,
    private readonly address: RepositoryAddress,
    private readonly ip: string,
    readonly end: () => Promise<void>,
  ) {}

  async authority(commands: readonly PushCommand[]): Promise<PushAuthority> {
    const { address, ip } = this;
    const { store, live, clock, disks, placeholders } = this.parts;
    const { pushStrict, archiveReadOnly, diskPushMaxPercent } = live.current;
    const ids = nostrIds(commands);
    const pullRequests = new Map<EventId, KnownPullRequest>();
    for (const id of ids) {
      const known = await this.#known(id);
      if (known) pullRequests.set(id, known);
    }
    const unknown = ids.filter((id) => !pullRequests.has(id));
    const unclaimed = placeholders.allowance(ip, address, unknown, unixSeconds(clock));
    const isFull = disks.fullest >= diskPushMaxPercent / 100;
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
    const { store, contributorRules } = this.parts;
    if (this.address.area !== "prs") return undefined;
    if (!contributorRules) return "this server takes no contributors' pull requests";
    return (await isRepositoryBlocked(store, contributorRules.lists(), this.address))
      ? "pull requests of this key or name are not wanted here"
      : undefined;
  }

  #accounts(isForPullRequests: boolean, events: readonly NostrEvent[]): Promise<readonly Account[]> {
    const { store, live, archiveBudget } = this.parts;
    const authors = isForPullRequests ? events.map(({ pubkey }) => pubkey) : undefined;
    return accountsOf(store, this.address, authors, live.current, archiveBudget);
  }

  /** What the pusher should know of the accounts this push was booked to. */
  async #remarks({ updates }: PushOutcome): Promise<string[]> {
    const ids = nostrIds(updates);
    const known = await Promise.all(ids.map((id) => this.#known(id)));
    const events = known.flatMap((one) => one?.event ?? []);
    return quotaRemarks(await this.#accounts(ids.length === updates.length, events));
  }

  async locked<T>(work: () => Promise<T>): Promise<T> {
    const { releaser, repositories } = this.parts;
    this.#concerned = await releaser.concerned(this.address);
    const others = this.#concerned.map((name) => diskAddress(name));
    return await repositories.withLocks([this.address, ...others], work);
  }

  async keepAside(kept: readonly UnclaimedData[]): Promise<void> {
    this.#newlyAside = await this.parts.placeholders.keptAside(this.address, this.ip, kept);
  }

  async release(outcome: PushOutcome): Promise<boolean> {
    const { address, parts } = this;
    const { decision, updates } = outcome;
    const push = {
      repository: parts.repositories.open(address),
      updates,
      placed: outcome.placed,
      candidate: updates.length > 0 ? decision.candidate : undefined,
      write: (tx: Transaction): Promise<void> => this.#write(tx, outcome),
    };
    try {
      const wish = { via: "push", partial: new Set<EventId>(), asked: nostrIds(updates), push } as const;
      this.#written = await parts.releaser.releaseLocked(this.#concerned, wish);
      return true;
    } catch (error) {
      if (error instanceof Overtaken) return false;
      if (error instanceof SharedLogError) throw error;
      this.#fault = error;
    }
    // Something of another repository may be broken: this one's refs are written all the same, what they release follows.
    try {
      const refs = new RefChanges().add(push.repository, updates).naming(outcome.placed ? [outcome.placed] : []);
      await parts.repositories.changeRefs(refs, push.write);
      parts.releaser.markUnfinished([address]);
      return true;
    } catch (error) {
      if (error instanceof Overtaken) return false;
      throw error;
    }
  }

  async abandon(): Promise<void> {
    await this.parts.placeholders.dropAside(this.address, this.#newlyAside);
    this.#newlyAside = [];
  }

  /** Rows of the push itself, in the transaction that writes its refs. */
  async #write(tx: Transaction, outcome: PushOutcome): Promise<void> {
    const { address } = this;
    const { clock, live } = this.parts;
    const { decision, updates } = outcome;
    const now = unixSeconds(clock);
    const state = updates.length > 0 ? decision.candidate : undefined;
    if (updates.length > 0) {
      const row = await rowForData(tx, address, now);
      if (!row || !takesStates(row) || row.status === "soft") throw new Overtaken("the repository takes no pushes now");
      if (state && !(await stateDecides(tx, address, state.id))) {
        throw new Overtaken("the state was deleted, or its author left");
      }
      for (const id of nostrIds(updates.filter(({ to }) => to !== undefined))) {
        if (!(await isStillHere(tx, id))) throw new Overtaken("a pull request was deleted");
      }
      const pushed = updates.find(({ to }) => to !== undefined)?.to;
      const format = address.area === "prs" ? undefined : (row.format ?? "sha1");
      if (pushed && format && formatOf(pushed) !== format) throw new Overtaken("the repository has another format now");
      if (state) await pushUnder(tx, row, state, now);
    }
    await this.#book(tx, outcome);
    const announcement = state && (await waitingAnnouncement(tx, address));
    const prolonged = announcement && restarted(announcement, now, live.current);
    // Its day is over: the sweep makes it soft, with all that belongs to that.
    if (prolonged?.phase === "waiting") await putWaiting(tx, prolonged);
  }

  async follow(outcome: PushOutcome): Promise<Followed> {
    const { address, parts } = this;
    const { decision, updates } = outcome;
    try {
      const released = await this.#follow(outcome);
      const aside = outcome.placeholders.map(({ eventId }) => eventId);
      const ids = [...parts.placeholders.tipsHeld(address, aside).keys()];
      const repository = repositoryAddress(address);
      parts.bell.ring({ names: [address], awaited: ids.map((id) => ({ id, repository })) });
      if (this.#fault !== undefined) {
        return { messages: ["the refs are written; their events follow later"], fault: this.#fault };
      }
      const state = updates.length > 0 ? decision.candidate?.id : undefined;
      return { messages: [...(await this.#linesFor(address, released, state)), ...(await this.#remarks(outcome))] };
    } catch (error) {
      parts.releaser.markUnfinished([address]);
      throw error;
    } finally {
      // Also when it could not be ended: of a state that was pushed only in part nothing else would come back to it.
      const state = updates.length > 0 ? decision.candidate?.id : undefined;
      const isReleased = this.#written?.released.some(({ id }) => id === state);
      if (state && !isReleased) await parts.partials.watch(address, state);
    }
  }

  async #follow(outcome: PushOutcome): Promise<readonly Released[]> {
    const { placeholders, releaser } = this.parts;
    if (this.#written) await releaser.follow(this.#written);
    const released = this.#written?.released ?? [];
    if (outcome.placeholders.length === 0) return released;
    await placeholders.makeRoom();
    // An event that came while its data was on its way found none.
    const claimed: EventId[] = [];
    for (const { eventId } of outcome.placeholders) {
      const known = await this.#known(eventId);
      if (!known) continue;
      await placeholders.claim(known);
      claimed.push(eventId);
    }
    if (claimed.length === 0) return released;
    return [...released, ...(await releaser.release([this.address], "push", { asked: claimed }))];
  }

  async #book(tx: Transaction, { address, updates, packBytes }: PushOutcome): Promise<void> {
    const row = await rowForData(tx, address, unixSeconds(this.parts.clock));
    if (!row) return;
    const booked = { ...row, counters: { ...row.counters, pushes: row.counters.pushes + 1 } };
    setCatalogueRow(tx, booked);
    const ids = nostrIds(updates);
    if (updates.length > ids.length) bookOwners(tx, booked, packBytes);
    else if (ids[0] !== undefined) {
      const known = await knownPullRequest(tx, ids[0], []);
      await bookContributors(tx, booked, known?.event.pubkey ?? row.owner, packBytes);
    }
  }

  async #linesFor(name: RepositoryName, released: readonly Released[], state: EventId | undefined): Promise<string[]> {
    const lines: string[] = [];
    if (released.some(({ kind }) => kind === "announcement")) lines.push("the repository is served from now on");
    if (released.some(({ kind }) => kind === "state")) lines.push("the state event is served from now on");
    if (released.some(({ kind }) => kind === "pull-request")) lines.push("the pull request is served from now on");
    const row = await catalogueRow(this.parts.store, name);
    const missing = row?.partial?.missingRefs.length ?? 0;
    if (missing > 0)
      lines.push(
        `${counted(missing, "ref of the state is", "refs of the state are")} still missing: push ${missing === 1 ? "it" : "them"} too`,
      );
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
): Promise<void> {
  const mark = { id, created_at };
  if (!row.mark || compareNewestFirst(mark, row.mark) < 0) setCatalogueRow(tx, { ...row, mark });
  if ((await waitingEntry(tx, id)) !== undefined) await startPartial(tx, row, id, now);
}

interface PushRules {
  readonly strict: boolean;
  readonly archiveReadOnly: boolean;
  readonly unclaimed: UnclaimedAllowance;
  /** Of events that are not known: what was pushed first. */
  readonly held: ReadonlyMap<EventId, Oid>;
  readonly quota: PushAuthority["quota"];
  /** Set when no push may be taken at all: the disk is nearly full, or the repository is not wanted. */
  readonly closedReason: string | undefined;
}

/** Why nothing may be brought there, whoever comes. */
export function readOnlyReason(
  row: CatalogueRow | undefined,
  rules: Pick<PushRules, "archiveReadOnly">,
): string | undefined {
  switch (row?.status) {
    case "leaving":
      return "this repository is leaving: its newest announcement does not list this server, so it is read-only here";
    case "archived":
    case "waiting":
      return rules.archiveReadOnly && (row.status === "archived" || row.archive)
        ? "this server only mirrors this repository: push to a server its announcement lists"
        : undefined;
    case "served":
      return undefined;
    default:
      return "this repository is not hosted here any more";
  }
}

function nostrRefEvent(name: RepositoryName, { event, repositories }: KnownPullRequest): NostrRefEvent {
  const pullRequest = pullRequestOf(event);
  if (!pullRequest) return { known: true, tip: undefined, addressesThisRepository: false };
  // An update may belong to a repository only by the pull request it updates.
  const addressed = [...repositories, ...pullRequest.repositories.map(addressText)];
  return {
    known: true,
    tip: isOid(pullRequest.tip) ? pullRequest.tip : undefined,
    addressesThisRepository: addressed.includes(repositoryAddress(name)),
  };
}

/**
 * Under `/prs/` (grasp.md, GRASP-06) no state decides: anyone may push to refs/nostr/<event id>; for an event that is known
 * its commit only, where its signer and its `clone` tag say; for another the first commit holds.
 */
export async function pushAuthority(
  reader: Reader,
  name: RepositoryName,
  pullRequests: Iterable<KnownPullRequest>,
  rules: PushRules,
): Promise<PushAuthority> {
  const nostrRefsOnly = name.area === "prs";
  const row = await catalogueRow(reader, name);
  const candidates: CandidateState[] = [];
  for (const state of nostrRefsOnly ? [] : await decidingStates(reader, name)) {
    if (!canDecide(state) || formatOfState(state) !== (row?.format ?? "sha1")) continue;
    const { id, created_at } = state.event;
    candidates.push({ id, created_at, refs: state.refs, governs: row?.governing === id });
  }
  const nostrEvents = new Map<EventId, NostrRefEvent>();
  for (const [id, heldAt] of nostrRefsOnly ? rules.held : []) nostrEvents.set(id, { known: false, heldAt });
  for (const known of pullRequests) nostrEvents.set(known.event.id, nostrRefEvent(name, known));
  const reason = rules.closedReason ?? (nostrRefsOnly ? undefined : readOnlyReason(row, rules));
  return {
    ...(reason === undefined ? {} : { readOnlyReason: reason }),
    ...(rules.quota === undefined ? {} : { quota: rules.quota }),
    ...(nostrRefsOnly && { nostrRefsOnly }),
    strict: rules.strict && !nostrRefsOnly,
    mark: row?.mark ?? undefined,
    candidates,
    nostrEvents,
    unclaimed: rules.unclaimed,
  };
}
