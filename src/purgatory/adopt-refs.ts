// For data written by version 0.1, where git's files were the truth about refs: at the first start each repository's refs
// are taken over from its files, once, before anything is served. Version 0.1 promised refs in table "journal" before git
// wrote them (refs:<owner>:<identifier>:<number>); promises that were left open are obeyed first, oldest first.

import { changeRefs, recordAligned, refsVersion } from "../catalogue/refs.js";
import {
  type CatalogueRow,
  catalogueRow,
  type RepositoryName,
  repositoryKey,
  setCatalogueRow,
} from "../catalogue/repositories.js";
import { endPartial, isStillHere } from "../catalogue/waiting.js";
import { diskAddress } from "../git/address.js";
import { RefChanges } from "../git/change-refs.js";
import { nostrRefEventId } from "../git/decide-push.js";
import type { GitRepository } from "../git/repository.js";
import type { RefUpdate } from "../git/repository-refs.js";
import type { EventId } from "../nostr/event.js";
import { isOid, type Oid, type RefName } from "../nostr/nip34.js";
import type { Transaction } from "../store/port.js";
import type { PurgatoryContext } from "./context.js";

interface PromisedRefs extends RepositoryName {
  readonly updates: readonly { readonly ref: RefName; readonly to: Oid | null }[];
  readonly head: RefName | null;
  /** Of a push, whose packs followed the promise: what goes back when they never came. */
  readonly push?: {
    readonly state?: EventId;
    readonly markBefore?: CatalogueRow["mark"];
    readonly startedClock?: boolean;
  };
}

type Adopting = Pick<PurgatoryContext, "store" | "repositories" | "clock"> & {
  readonly observer?: PurgatoryContext["observer"];
};

const doneKey = "refs:adopted";
const tellEveryMs = 10_000;
const refsAtOnce = 5_000;

/** False: git could not work with that repository. */
type Attempt = (work: () => Promise<void>) => Promise<boolean>;

/** Answers the repositories for which promises were obeyed: what governs there has the last word. */
export async function adoptRefs(parts: Adopting, attempt: Attempt): Promise<ReadonlySet<string>> {
  const { store } = parts;
  if ((await store.row("meta", doneKey)) !== undefined) return new Set();
  await adoptFiles(parts, attempt);
  const obeyed = await obeyPromises(parts, attempt);
  if (obeyed.isComplete) await store.transact(async (tx) => tx.setRow("meta", doneKey, true));
  return obeyed.names;
}

async function adoptFiles({ store, repositories, clock, observer }: Adopting, attempt: Attempt): Promise<void> {
  type Read = Awaited<ReturnType<GitRepository["peeledFiles"]>>;
  let batch: { readonly repository: GitRepository; readonly read: Read }[] = [];
  let count = 0;
  let toldMs = clock.monotonicMs();
  const write = async (): Promise<void> => {
    const written = batch;
    batch = [];
    if (written.length === 0) return;
    await store.transact(async (tx) => {
      for (const { repository, read } of written) {
        const refs = [...read.refs].map(([ref, value]) => ({ ref, value }));
        await recordAligned(tx, repository.address, await changeRefs(tx, repository.address, refs, read.head));
      }
    });
  };
  for await (const { address } of repositories.list()) {
    if (!address) continue;
    const repository = repositories.open(address);
    // After a crash in the middle of it only the rest is done.
    if ((await refsVersion(store, repository.address)) > 0 || !(await repositories.exists(repository.address)))
      continue;
    let read: Read | undefined;
    const peel = async (): Promise<void> => {
      read = await repository.peeledFiles();
    };
    // Where git does not work, the files alone tell the refs, though not what annotated tags point at. A repository without
    // rows would be taken for an empty one.
    if (!(await attempt(peel))) await attempt(peel);
    batch.push({ repository, read: read ?? (await repository.refsOnDisk()) });
    if (batch.reduce((sum, { read }) => sum + read.refs.size + 10, 0) >= refsAtOnce) await write();
    count += 1;
    if (clock.monotonicMs() - toldMs < tellEveryMs) continue;
    toldMs = clock.monotonicMs();
    observer?.progress?.(`${count} repositories' refs taken over from their files so far`);
  }
  await write();
}

async function obeyPromises(
  { store, repositories }: Adopting,
  attempt: Attempt,
): Promise<{ readonly isComplete: boolean; readonly names: ReadonlySet<string> }> {
  const left: (PromisedRefs & { readonly key: string })[] = [];
  for await (const [key, row] of store.rows<PromisedRefs>("journal", { prefix: "refs:" })) left.push({ ...row, key });
  left.sort((a, b) => numberAtEnd(a.key) - numberAtEnd(b.key));
  const names = new Set<string>();
  let isComplete = true;
  for (const promised of left) {
    const address = diskAddress(promised);
    if (promised.area !== "prs") names.add(repositoryKey({ owner: promised.owner, identifier: promised.identifier }));
    if (!(await repositories.exists(address))) {
      await store.transact(async (tx) => tx.deleteRow("journal", promised.key));
      continue;
    }
    const isObeyed = await attempt(() => obey({ store, repositories }, promised, repositories.open(address)));
    isComplete &&= isObeyed;
  }
  return { isComplete, names };
}

const numberAtEnd = (key: string): number => Number(key.slice(key.lastIndexOf(":") + 1));

async function obey(
  { store, repositories }: Pick<Adopting, "store" | "repositories">,
  promised: PromisedRefs & { readonly key: string },
  repository: GitRepository,
): Promise<void> {
  const wanted = promised.updates.flatMap(({ to }) => (isOid(to) ? [to] : []));
  const missing = await repository.missingObjects(wanted);
  // The packs of a push followed its promise, its refs followed the packs: nothing of it was written yet.
  if (promised.push && missing.size > 0) {
    await store.transact(async (tx) => {
      tx.deleteRow("journal", promised.key);
      await takeBack(tx, promised, promised.push ?? {});
    });
    return;
  }
  // Of others the objects were synced before; if some are gone all the same, the hunt brings them back.
  const updates: RefUpdate[] = [];
  for (const { ref, to } of promised.updates) {
    const id = nostrRefEventId(ref);
    // Its event was deleted since: its ref does not come back.
    const isGone = to !== null && (missing.has(to) || (id && !(await isStillHere(store, id))));
    if (!isGone) updates.push({ ref, to: to ?? undefined });
  }
  const changes = new RefChanges().add(repository, updates, promised.head ?? undefined);
  await repositories.changeRefs(changes, async (tx) => tx.deleteRow("journal", promised.key));
  await repository.syncRefs();
}

/** The refs of a push were not written: everything is as it was before its promise. */
async function takeBack(
  tx: Transaction,
  name: RepositoryName,
  { state, ...before }: NonNullable<PromisedRefs["push"]>,
): Promise<void> {
  if (state === undefined) return;
  const row = await catalogueRow(tx, name);
  if (before.markBefore !== undefined && row?.mark?.id === state)
    setCatalogueRow(tx, { ...row, mark: before.markBefore });
  if (before.startedClock) endPartial(tx, name, state);
}
