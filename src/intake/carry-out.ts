// What follows from a decision, whoever made it: an event that was judged, an operator, the end of a wait, a review of the
// archive. This is the only place where a decision becomes rows, refs and notices:
//   1. `applyVerdict` and `withdraw`, in the transaction of the decision: events and rows
//   2. `follow` and `followWithdrawal`, after its commit: directories, then refs (each under its repository's
//      lock), then releases
//   3. the bell rings: sync and the hunt look again
// Decides nothing itself: admission did.

import {
  applyChange,
  type Change,
  needsNoGit,
  type RepositoryChange,
  type Verdict,
  type Withdrawn,
} from "../admission/verdict.js";
import { type Withdrawal, withdrawalOf } from "../admission/withdrawal.js";
import type { MaintainerSet } from "../catalogue/maintainer-set.js";
import { repositoriesTrusting, storedAuthority } from "../catalogue/maintainers.js";
import {
  catalogueRow,
  type RepositoryName,
  repositoryNamed,
  takesStates,
  underPrs,
} from "../catalogue/repositories.js";
import { contributorOf, placesOf, type WaitingEntry } from "../catalogue/waiting.js";
import { diskAddress } from "../git/address.js";
import { addressOf, type EventId, kinds, type VerifiedEvent } from "../nostr/event.js";
import type { Notice } from "../purgatory/bell.js";
import type { Purgatory } from "../purgatory/purgatory.js";
import { removeRepository } from "../purgatory/resume.js";
import type { RemovalCause, Transaction } from "../store/port.js";

type Accepted = Verdict & { readonly ok: true };

/** What goes, and why the store says it went. Undefined: the store has removed the events itself. */
export interface Going {
  readonly stored: readonly VerifiedEvent[];
  readonly waiting: readonly WaitingEntry[];
  readonly cause: RemovalCause | undefined;
}

const unheldIds = (changes: readonly Change[]): EventId[] =>
  changes.flatMap((change) => (change.type === "unhold" ? [change.id] : []));

/** Stored and waiting events go, and everything that leaned on them. */
export async function withdraw(
  tx: Transaction,
  { stored, waiting, cause }: Going,
  nowSeconds: number,
  isBlocked: (name: RepositoryName) => boolean = () => false,
): Promise<Withdrawal> {
  const withdrawal = await withdrawalOf(tx, stored, waiting, "expired", nowSeconds, isBlocked);
  if (cause) for (const event of stored) await tx.remove(event.id, cause);
  for (const change of withdrawal.changes) await applyChange(tx, change, nowSeconds);
  return withdrawal;
}

export class CarryOut {
  constructor(readonly purgatory: Purgatory) {}

  /** After a verdict was written: git follows. Answers whether the event is served now. */
  async follow(event: VerifiedEvent, verdict: Verdict, reviewed?: Notice["reviewed"]): Promise<boolean> {
    if (!verdict.ok || (needsNoGit(event, verdict) && !reviewed)) return false;
    const concerned = concernedBy(event, verdict);
    try {
      return await this.#inGit(event, verdict, concerned);
    } finally {
      const changes = verdict.changes ?? [];
      const held = changes.flatMap((change) => (change.type === "hold" ? [change.entry] : []));
      const changed = (verdict.repositories ?? []).map(({ name }) => name);
      const names = [...changed, ...concerned, ...held.flatMap(placesOf)];
      this.purgatory.bell.ring({ names, ids: unheldIds(changes), changes, ...(reviewed && { reviewed }) });
    }
  }

  /** After `withdraw` was committed. `ended`: what waited and does no more. */
  async followWithdrawal(withdrawal: Withdrawal, ended: readonly WaitingEntry[] = []): Promise<void> {
    const { changes, repositories, withdrawn, concerned } = withdrawal;
    try {
      await this.changeDirectories(repositories);
      await this.#dropRefs(withdrawn);
      if (concerned.length > 0) await this.purgatory.releaser.release(concerned, "present");
      for (const name of ended.flatMap(placesOf)) await this.purgatory.contributors.tidy(name);
    } finally {
      const names = [...repositories.map(({ name }) => name), ...concerned, ...ended.flatMap(placesOf)];
      const ids = new Set([...unheldIds(changes), ...ended.map(({ id }) => id)]);
      if (names.length + ids.size + changes.length > 0) this.purgatory.bell.ring({ names, ids: [...ids], changes });
    }
  }

  /** A repository whose data was kept is served again: what waited for it is released, and sync and hunt hear of it. */
  async followReturn(name: RepositoryName): Promise<void> {
    const { releaser, pullRequests, bell, context } = this.purgatory;
    const { owner, identifier } = name;
    const max = context.live.current.releaseMaxRepositories;
    const reads = ({ read }: MaintainerSet): boolean => read.has(owner);
    // Its announcement counts again in the sets of others too.
    const reading = await repositoriesTrusting(
      storedAuthority(context.store),
      owner,
      identifier,
      max,
      takesStates,
      reads,
    );
    const names = [name, ...reading.map((one) => ({ owner: one.owner, identifier }))];
    try {
      await releaser.release(names, "present");
      await pullRequests.copyInto(name);
    } finally {
      bell.ring({ names });
    }
  }

  async changeDirectories(changes: readonly RepositoryChange[]): Promise<void> {
    const { repositories } = this.purgatory.context;
    for (const { name, to } of changes) {
      if (to === "create" || to === "return") await repositories.create(diskAddress(name));
      if (to !== "remove") continue;
      if (await removeRepository(repositories, name)) await this.purgatory.placeholders.repositoryGone(name);
    }
  }

  async #inGit(event: VerifiedEvent, verdict: Accepted, names: readonly RepositoryName[]): Promise<boolean> {
    const { purgatory } = this;
    const { repositories, store } = purgatory.context;
    await this.changeDirectories(verdict.repositories ?? []);
    if (verdict.action === "store" || verdict.action === "leave") await this.#dropRefs(verdict.withdrawn ?? []);
    if (verdict.action === "known" && event.kind === kinds.announcement) await this.#ensureOnDisk(event);
    if (names.length === 0) return false;
    const release = async (): Promise<boolean> => {
      if (verdict.action === "hold" && verdict.entry.kind === "pull-request") await purgatory.claim(event.id);
      const released = await purgatory.releaser.release(names, "present", { asked: [event.id] });
      // A push, the hunt or another machine may have released it a moment earlier.
      return released.some(({ id }) => id === event.id) || (verdict.action === "hold" && (await store.has(event.id)));
    };
    const contributor = verdict.action === "hold" ? contributorOf(verdict.entry) : undefined;
    const isServed = contributor
      ? // Between claim and release its data hangs on nothing.
        await repositories.whileUsed(diskAddress(contributor), release)
      : await release();
    if (contributor) await purgatory.contributors.tidy(contributor);
    for (const { name, to } of verdict.repositories ?? [])
      if (to === "return") await purgatory.pullRequests.copyInto(name);
    return isServed;
  }

  /** Refs of pull requests whose events are gone. */
  async #dropRefs(withdrawn: readonly Withdrawn[]): Promise<void> {
    const { pullRequests, contributors } = this.purgatory;
    for (const { id, kind, author, repositories } of withdrawn) {
      if (kind !== kinds.pullRequest && kind !== kinds.pullRequestUpdate) continue;
      for (const name of repositories.flatMap((text) => repositoryNamed(text) ?? [])) {
        const own = underPrs({ owner: author, identifier: name.identifier });
        await pullRequests.drop([id], name);
        await pullRequests.drop([id], own);
        await contributors.tidy(own);
      }
    }
  }

  /** The first time git may have failed after the event was written; whoever sends it again may rely on the OK. */
  async #ensureOnDisk(event: VerifiedEvent): Promise<void> {
    const name = { owner: event.pubkey, identifier: addressOf(event)?.identifier ?? "" };
    const row = await catalogueRow(this.purgatory.context.store, name);
    if (row?.status === "waiting") await this.purgatory.context.repositories.create(diskAddress(name));
  }
}

/** Repositories in which something may be released now. An announcement may add a maintainer whose state is here already. */
function concernedBy(event: VerifiedEvent, verdict: Accepted): RepositoryName[] {
  const inSets = [...(verdict.concerned ?? [])];
  if (verdict.action === "hold" && event.kind !== kinds.announcement) return [...placesOf(verdict.entry), ...inSets];
  const isCounting = verdict.action === "hold" || verdict.action === "store";
  if (!isCounting || event.kind !== kinds.announcement) return inSets;
  return [{ owner: event.pubkey, identifier: addressOf(event)?.identifier ?? "" }, ...inSets];
}
