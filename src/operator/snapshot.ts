// `backup.begin`: everything this server holds, as it is at one moment, put beside the data for a backup to copy from.
// The moment lies between two commits of the store: what was acknowledged before it is in, and refs and events agree, because
// both are rows of the store.
//   1. no commit is under way: from now on no objects go, and the store's copy begins
//   2. commits go on; the copy is written
//   3. repositories are linked one after the other, with the refs that the copy has (git/snapshot.ts)
// The folders last as long as whoever asked holds the connection.

import { randomBytes } from "node:crypto";
import { rm, statfs } from "node:fs/promises";
import { resolve } from "node:path";
import { everyRow } from "../catalogue/repositories.js";
import type { RepositoriesSnapshot } from "../git/snapshot.js";
import { defaultReserveBytes, openLmdbStore, stopBeingView } from "../store/lmdb/open.js";
import { type AdminParts, type Caller, done, type Outcome, type Progress, refusal } from "./context.js";

export interface Snapshot {
  /** Folder of the store's copy. */
  readonly relay: string;
  readonly git: string;
  readonly repositories: number;
  /** How long no event could be stored. */
  readonly heldMs: number;
}

export async function beginSnapshot(
  parts: AdminParts,
  { via }: Caller,
  progress: Progress,
  signal: AbortSignal,
): Promise<Outcome<Snapshot>> {
  const { databaseBackend, relayDataPath } = parts.config();
  if (databaseBackend === "memory") return refusal("not-possible", "the memory backend keeps nothing to back up");
  // Over HTTP nobody would say when the folders may go.
  if (via !== "socket" && via !== "offline") return refusal("not-possible", "backups are taken by `holdfast backup`");
  const { bavail, bsize } = await statfs(relayDataPath);
  const neededBytes = parts.store.stats.bytesOnDisk + defaultReserveBytes;
  if (bavail * bsize < neededBytes) {
    const mebibytes = Math.ceil(neededBytes / 2 ** 20);
    return refusal("not-possible", `${relayDataPath} needs ${mebibytes} MiB free for a copy of the events`);
  }
  const repositories = await parts.repositories();
  // Packs that leave their lists meanwhile are still to be had.
  const release = await repositories.shared?.hold();
  const relay = resolve(relayDataPath, `snapshot-${randomBytes(6).toString("hex")}.part`);
  const taking: { staged?: RepositoriesSnapshot | undefined } = {};
  const drop = async (): Promise<void> => {
    await rm(relay, { recursive: true, force: true });
    if (taking.staged) await rm(taking.staged.folder, { recursive: true, force: true });
  };
  try {
    progress(0, undefined, "copying events");
    const heldMs = await parts.store.snapshot(relay, () => {
      taking.staged = repositories.beginSnapshot();
    });
    const { staged } = taking;
    if (!staged) {
      await drop();
      return refusal("not-possible", "another backup is being taken: wait for its end");
    }
    const copy = await openLmdbStore(relay, { readOnly: true });
    let total = 0;
    for await (const { status } of everyRow(copy)) if (status !== "soft") total++;
    const count = await staged
      .stageAll(copy, (linked) => progress(linked, total, "linking repositories"), signal)
      .finally(() => copy.close());
    // What is restored from a backup is a server of its own, with a history of its own.
    if (parts.store.isShared) await stopBeingView(relay);
    // Whoever asked may be gone by now: an abort that was has no listener.
    signal.throwIfAborted();
    signal.addEventListener("abort", () => void drop().catch(() => undefined), { once: true });
    return done({ relay, git: staged.folder, repositories: count, heldMs: Math.round(heldMs) });
  } catch (error) {
    await drop();
    throw error;
  } finally {
    if (taking.staged) repositories.endSnapshot();
    await release?.();
  }
}
