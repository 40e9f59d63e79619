// A push from its commands to its refs (git-http.md, Push 5 to 7; mechanisms.md, "Push without receive-pack"):
//   1. first decision, on the commands alone        4. under the locks: second decision, on the authority of that moment
//   2. the pack into quarantine, within budgets     5. packs into place, then refs and events in one transaction
//   3. what the refs need is all there              6. what follows, without the locks
// Whatever is refused leaves no object, ref, lock or directory. Speaks no HTTP: gets chunks, gives verdicts.

import type { Oid } from "../nostr/nip34.js";
import { mayBeStored } from "../store/port.js";
import { clashOf } from "./change-refs.js";
import {
  decidePush,
  isSamePlan,
  nostrRefEventId,
  packBudgetsFor,
  refuseAll,
  resultOf,
  settle,
  updatesOf,
} from "./decide-push.js";
import { type ObjectType, objectTypes, Walk } from "./objects.js";
import type {
  CandidateState,
  CommandVerdict,
  PushAuthority,
  PushCommand,
  PushDecision,
  PushOutcome,
  PushRequest,
  PushResult,
  PushSession,
  PushSessions,
} from "./push-types.js";
import { type Placed, type QuarantineDirectory, reachedBy, type UnclaimedData } from "./quarantine.js";
import { receivePack } from "./receive-pack.js";
import { emptyTables, type RefTable } from "./ref-tables.js";
import type { Repositories } from "./repositories.js";
import type { GitRepository } from "./repository.js";
import type { RefUpdate } from "./repository-refs.js";

const maxRounds = 3;
/** What git checks in less time than it takes to start the next one. */
const smallPackBytes = 2 ** 20;

export async function receivePush(
  repositories: Repositories,
  served: PushSessions,
  request: PushRequest,
): Promise<PushResult | "busy"> {
  const repository = repositories.open(request.address);
  const session = served.beginPush(request.address, request.ip);
  try {
    return await new Push(repositories, repository, session, request).run();
  } finally {
    await session.end();
  }
}

class Push {
  /** Commands whose objects are not good enough, found out after the pack came. */
  readonly #objectFaults = new Map<PushCommand, CommandVerdict>();
  /** Begun when all of a small pack was here, while git still checks it. */
  #walk: Walk | undefined;

  constructor(
    readonly repositories: Repositories,
    readonly repository: GitRepository,
    readonly session: PushSession,
    readonly request: PushRequest,
  ) {}

  async run(): Promise<PushResult | "busy"> {
    const { request } = this;
    const isHere = !request.createOnPush || (await this.repositories.exists(request.address));
    const table = isHere
      ? await this.repository.refs()
      : emptyTables[await this.repositories.formatFor(request.address)];
    const authority = await this.#authority();
    const decision = this.#decide(authority, table, () => undefined);
    if (!decision.moves) return resultOf(decision.verdicts);
    // Decided before a place is taken: what is refused holds none, and disturbs nobody's work.
    const leave = await request.turn(decision.candidate !== undefined);
    if (!leave) return "busy";
    try {
      return await this.repository.duringPush(() => this.#take(authority, decision));
    } finally {
      leave();
    }
  }

  async #take(authority: PushAuthority, decision: PushDecision): Promise<PushResult> {
    const { request } = this;
    if (!request.createOnPush) return await this.#receive(authority, decision);
    try {
      // Also when it was here a moment ago: it may have been removed as empty since.
      await this.repositories.create(request.address);
      return await this.#receive(authority, decision);
    } finally {
      await this.repositories.removeIfEmpty(request.address, 1);
    }
  }

  async #receive(authority: PushAuthority, decision: PushDecision): Promise<PushResult> {
    const quarantine = await this.repository.quarantine();
    try {
      return await this.#withQuarantine(quarantine, authority, decision);
    } finally {
      await this.#walk?.end();
      await quarantine.drop();
    }
  }

  async #authority(): Promise<PushAuthority> {
    const { commands, readOnlyReason } = this.request;
    const authority = await this.session.authority(commands);
    return readOnlyReason === undefined ? authority : { ...authority, readOnlyReason };
  }

  #decide(
    authority: PushAuthority,
    { refs: current, format }: RefTable,
    completeness: (candidate: CandidateState) => boolean | undefined,
  ): PushDecision {
    const { commands, atomic, format: pushed } = this.request;
    const decision = decidePush({
      commands,
      atomic,
      authority,
      current,
      formats: { here: format, pushed },
      completeness,
    });
    const faults = this.#objectFaults;
    if (faults.size === 0) return decision;
    const verdicts = decision.verdicts.map((verdict) => (verdict.ok && faults.get(verdict.command)) || verdict);
    return settle(verdicts, decision.candidate, atomic, "another of its refs");
  }

  async #withQuarantine(
    quarantine: QuarantineDirectory,
    authority: PushAuthority,
    decision: PushDecision,
  ): Promise<PushResult> {
    const { request } = this;
    const moving = decision.verdicts.flatMap((verdict) =>
      verdict.ok && verdict.effect !== "none" ? [verdict.command] : [],
    );
    const tips = new Set(moving.flatMap(({ new: to }) => to ?? []));
    let types: ReadonlyMap<Oid, ObjectType> = new Map();
    const first = request.first.length > 0 ? request.first : await request.next();
    if (first && request.commands.some(({ new: to }) => to !== undefined)) {
      const budgets = packBudgetsFor(authority, decision, request.budgets);
      const next = async (): Promise<Buffer | undefined> => {
        const chunk = await request.next();
        if (!chunk && quarantine.packBytes <= smallPackBytes) this.#walk ??= new Walk(quarantine.place);
        return chunk;
      };
      const source = { first, next };
      const received = await receivePack(quarantine, source, budgets, tips, request);
      if (!received.ok) {
        const isWhy = received.code === "too-large" && budgets.why !== "";
        const reason = isWhy ? `${received.reason} (${budgets.why})` : received.reason;
        const verdicts = refuseAll(request.commands, { ...received, reason });
        return resultOf(verdicts, { unpack: reason });
      }
      types = received.types;
    }
    const { takenBack } = this.repository.context;
    let before = takenBack.count;
    const checkAgain = async (): Promise<void> => {
      // What was found in the repository may have been a push's that was refused meanwhile, or garbage that went.
      if (takenBack.count === before) return;
      before = takenBack.count;
      await this.repository.restAnew(quarantine);
      await this.#checkObjects(quarantine, moving, tips, types);
    };
    await this.#checkObjects(quarantine, moving, tips, types);
    const written = await this.session.locked(async () => {
      await checkAgain();
      return await this.#commit(quarantine, decision, checkAgain);
    });
    return "outcome" in written ? await this.#follow(written.outcome) : written;
  }

  async #checkObjects(
    quarantine: QuarantineDirectory,
    moving: readonly PushCommand[],
    tips: ReadonlySet<Oid>,
    arrived: ReadonlyMap<Oid, ObjectType>,
  ): Promise<void> {
    const others = [...tips].filter((oid) => !arrived.has(oid));
    const types = new Map([...arrived, ...(await objectTypes(quarantine.place, others))]);
    const options = { existing: new Set(types.keys()), walk: this.#walk };
    const missing = await quarantine.missingObjects([...tips], options);
    for (const command of moving) {
      const { new: to, ref } = command;
      if (to === undefined) continue;
      if (missing.has(to)) {
        const reason = `the push lacks objects that ${to.slice(0, 8)} needs: push from a complete clone`;
        this.#objectFaults.set(command, { command, ok: false, code: "missing-objects", reason });
      } else if (ref.startsWith("refs/heads/") && types.get(to) !== "commit") {
        const reason = `a branch must be a commit, ${to.slice(0, 8)} is none`;
        this.#objectFaults.set(command, { command, ok: false, code: "not-a-commit", reason });
      }
    }
  }

  /** Under the locks. A round that is overtaken by a changed authority is followed by one that obeys it. */
  async #commit(
    quarantine: QuarantineDirectory,
    first: PushDecision,
    checkAgain: () => Promise<void>,
  ): Promise<PushResult | Written> {
    const current = await this.repository.refs();
    let decision =
      this.#objectFaults.size === 0 ? first : this.#decide(await this.#authority(), current, () => undefined);
    for (let round = 0; round < maxRounds && decision.moves; round++) {
      const again = await this.#decideAgain(quarantine);
      const isSame = isSamePlan(decision, again);
      decision = again;
      if (!isSame) continue;
      const updates = updatesOf(decision);
      const clash = clashOf(await this.repository.refs(), updates);
      if (clash) {
        const reason = "the refs could not be written: try again";
        const fault = `git cannot keep ${clash[0]} beside ${clash[1]}`;
        return resultOf(refuseAll(this.request.commands, { ok: false, code: "internal", reason }), { fault });
      }
      const outcome = await this.#write(quarantine, decision, updates);
      if (outcome) return { outcome };
      if (this.request.createOnPush) await this.repositories.create(this.request.address);
      await checkAgain();
    }
    if (!decision.moves) return resultOf(decision.verdicts);
    const reason = "its states changed while it was written: try again";
    return resultOf(refuseAll(this.request.commands, { ok: false, code: "internal", reason }));
  }

  /** Objects first, then the transaction. If that is refused or fails, the objects go again. */
  async #write(
    quarantine: QuarantineDirectory,
    decision: PushDecision,
    updates: readonly RefUpdate[],
  ): Promise<PushOutcome | undefined> {
    const { address, ip } = this.request;
    const placeholders = await this.#keepAside(quarantine, decision);
    const placed = updates.length > 0 ? await this.#putIntoPlace(quarantine, updates) : undefined;
    const outcome = { address, decision, updates, placed, placeholders, packBytes: quarantine.packBytes, ip };
    const takeBack = async (mayBeWritten: boolean): Promise<void> => {
      // If it was written after all, its packs are listed, and fetched again before they are needed.
      await placed?.takeBack();
      if (placeholders.length > 0 && !mayBeWritten) await this.session.abandon();
    };
    try {
      if (await this.session.release(outcome)) return outcome;
    } catch (error) {
      await takeBack(mayBeStored(error));
      throw error;
    }
    await takeBack(false);
    return undefined;
  }

  /** Anyone may push a pull request's commit: what came with it and is not part of it stays in quarantine. */
  async #putIntoPlace(quarantine: QuarantineDirectory, updates: readonly RefUpdate[]): Promise<Placed> {
    if (!updates.every(({ ref }) => nostrRefEventId(ref))) return await this.repository.putIntoPlace(quarantine);
    const tips = updates.flatMap(({ to }) => to ?? []);
    const reached = await reachedBy(quarantine, tips, await this.repository.tips());
    try {
      return await this.repository.putIntoPlace(reached);
    } finally {
      await reached.drop();
    }
  }

  async #keepAside(quarantine: QuarantineDirectory, decision: PushDecision): Promise<readonly UnclaimedData[]> {
    const placeholders = await keepPlaceholders(this.repository, quarantine, decision);
    if (placeholders.length > 0) await this.session.keepAside(placeholders);
    return placeholders;
  }

  async #decideAgain(quarantine: QuarantineDirectory): Promise<PushDecision> {
    const authority = withRoomFor(quarantine.packBytes, await this.#authority());
    const table = await this.repository.refs();
    const complete = new Map<CandidateState, boolean>();
    // Whether a candidate is complete matters only for deletions under one that does not govern yet.
    if (this.request.commands.some(({ new: to }) => to === undefined)) {
      for (const candidate of authority.candidates) {
        if (candidate.governs || candidate.refs.size === 0) continue;
        const missing = await quarantine.missingObjects([...candidate.refs.values()]);
        complete.set(candidate, missing.size === 0);
      }
    }
    return this.#decide(authority, table, (candidate) => complete.get(candidate) ?? false);
  }

  async #follow(outcome: PushOutcome): Promise<PushResult> {
    const { verdicts } = outcome.decision;
    try {
      return resultOf(verdicts, await this.session.follow(outcome));
    } catch (fault) {
      // The refs are written: saying no now would be a lie. What is left is done later, at the next start at the latest.
      return resultOf(verdicts, { fault, messages: ["the refs are written; their events follow later"] });
    }
  }
}

/** Two pushes for one event may each have been small enough when they began. */
function withRoomFor(packBytes: number, authority: PushAuthority): PushAuthority {
  const { unclaimed } = authority;
  if (!unclaimed.ok || packBytes <= unclaimed.maxBytes) return authority;
  const reason = "too much was pushed for that event meanwhile: publish the event first";
  return { ...authority, unclaimed: { ok: false, reason } };
}

interface Written {
  readonly outcome: PushOutcome;
}

async function keepPlaceholders(
  repository: GitRepository,
  quarantine: QuarantineDirectory,
  { verdicts }: PushDecision,
): Promise<UnclaimedData[]> {
  const wanted = verdicts.flatMap(({ command, ...verdict }) => {
    const id = nostrRefEventId(command.ref);
    return verdict.ok && verdict.effect === "placeholder" && id && command.new ? [{ id, tip: command.new }] : [];
  });
  if (wanted.length === 0) return [];
  const before = new Set((await repository.unclaimed()).map(({ eventId }) => eventId));
  try {
    const kept: UnclaimedData[] = [];
    for (const { id, tip } of wanted) kept.push(await repository.keepUnclaimed(quarantine, id, tip));
    return kept;
  } catch (error) {
    // A full disk in the middle of it: nobody would know of what is there.
    for (const { id } of wanted) if (!before.has(id)) await repository.dropUnclaimed(id);
    throw error;
  }
}
