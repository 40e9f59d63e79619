// Taking events away because the operator said so: the event, what leans on it, and what git holds of it. Announcements
// are put aside, so that the repository can be restored while its data is kept.

import { applyChange } from "../admission/apply.js";
import type { RepositoryChange } from "../admission/verdict.js";
import { withdrawalOf } from "../admission/withdrawal.js";
import { unixSeconds } from "../base/clock.js";
import { repositoryList } from "../catalogue/bans-and-lists.js";
import { catalogueRow, type RepositoryName, repositoryKey, setCatalogueRow } from "../catalogue/repositories.js";
import { repositoriesTrusting, storedAuthority } from "../catalogue/trusting-repositories.js";
import type { WaitingEntry } from "../catalogue/waiting.js";
import { diskAddress } from "../git/address.js";
import type { RepositoryStore } from "../git/types.js";
import { addressOf } from "../nostr/address.js";
import type { VerifiedEvent } from "../nostr/event.js";
import { kinds } from "../nostr/kinds.js";
import { repositoriesTagged } from "../nostr/nip34.js";
import type { RefName } from "../nostr/ref-name.js";
import { removeRepository } from "../purgatory/remove-repository.js";
import type { RemovalCause, Transaction } from "../store/port.js";
import type { AdminParts } from "./parts.js";

/** An announcement the operator removed, while its repository's data is kept. */
export interface PutAside {
  readonly raw: string;
  readonly id: string;
  readonly at: number;
}

const asidePrefix = "unhosted:";
export const asideKey = (name: RepositoryName): string => `${asidePrefix}${repositoryKey(name)}`;

export interface Withdrawn {
  readonly events: readonly VerifiedEvent[];
  readonly repositories: readonly RepositoryChange[];
}

/** Removes stored and waiting events and writes everything that follows; git follows with `followInGit`. */
export async function withdraw(
  parts: AdminParts,
  tx: Transaction,
  going: { readonly stored: readonly VerifiedEvent[]; readonly waiting: readonly WaitingEntry[] },
  cause: RemovalCause,
): Promise<Withdrawn> {
  const now = unixSeconds(parts.clock);
  const blacklist = repositoryList(parts.rules.over(parts.config()).repositoryBlacklist);
  const end = await withdrawalOf(tx, going.stored, going.waiting, "expired", now, (name) => blacklist.has(name));
  for (const event of going.stored) {
    await tx.remove(event.id, cause);
    if (event.kind === kinds.announcement) putAside(tx, event, now);
    if (event.kind === kinds.state) await endGoverning(tx, event);
  }
  for (const change of end.changes) await applyChange(tx, change, now);
  return { events: going.stored, repositories: end.repositories };
}

function putAside(tx: Transaction, event: VerifiedEvent, at: number): void {
  const name = { owner: event.pubkey, identifier: addressOf(event)?.identifier ?? "" };
  tx.setRow<PutAside>("meta", asideKey(name), { raw: event.raw, id: event.id, at });
}

/** A state that is gone governs nothing; the mark stays (git-http.md, "Push" 3). */
async function endGoverning(tx: Transaction, state: VerifiedEvent): Promise<void> {
  const identifier = addressOf(state)?.identifier ?? "";
  const governed = await repositoriesTrusting(
    storedAuthority(tx),
    state.pubkey,
    identifier,
    maxGoverned,
    (row) => row.governing === state.id,
  );
  for (const { row } of governed) setCatalogueRow(tx, { ...row, governing: null, partial: null });
}

const maxGoverned = 100;

/** Directories of repositories that never had data go; so do the refs of pull requests. */
export async function followInGit(parts: AdminParts, { events, repositories: changes }: Withdrawn): Promise<void> {
  const removed = changes.filter(({ to }) => to === "remove");
  const pullRequests = events.filter(({ kind }) => kind === kinds.pullRequest || kind === kinds.pullRequestUpdate);
  if (removed.length === 0 && pullRequests.length === 0) return;
  const repositories = await parts.repositories();
  for (const { name } of removed) {
    if (await removeRepository(parts.store, repositories, name)) await parts.running?.repositoryGone(name);
  }
  for (const event of pullRequests) {
    for (const { pubkey: owner, identifier } of repositoriesTagged(event)) {
      const name = { owner, identifier };
      const address = diskAddress(name);
      if (!(await catalogueRow(parts.store, name)) || !(await repositories.exists(address))) continue;
      await repositories.open(address).updateRefs([{ ref: `refs/nostr/${event.id}` as RefName, to: undefined }]);
    }
    await dropContribution(repositories, event);
  }
}

/** What GRASP-06 holds of it; its bytes are unbooked by the next sweep. */
async function dropContribution(repositories: RepositoryStore, event: VerifiedEvent): Promise<void> {
  for (const identifier of new Set(repositoriesTagged(event).map((tagged) => tagged.identifier))) {
    const address = diskAddress({ owner: event.pubkey, identifier }, "prs");
    if (!(await repositories.exists(address))) continue;
    await repositories.open(address).updateRefs([{ ref: `refs/nostr/${event.id}` as RefName, to: undefined }]);
    await repositories.removeIfEmpty(address);
  }
}

/** Rows whose repository is gone for good, or came back by itself. */
export async function forgetOldAsides(tx: Transaction): Promise<void> {
  const old: string[] = [];
  for await (const [key] of tx.rows<PutAside>("meta", { prefix: asidePrefix })) {
    const row = await tx.row<{ status: string }>("catalogue", key.slice(asidePrefix.length));
    if (row?.status !== "deleted") old.push(key);
  }
  for (const key of old) tx.deleteRow("meta", key);
}
