// What a machine's view begins with at start: what is on its disk if the log goes on from there, otherwise a snapshot of
// another machine's view, otherwise the log's beginning.

import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { removeAll } from "../../base/durable-files.js";
import { ClusterRefusal } from "../../cluster/check-database.js";
import type { Session } from "../../cluster/session.js";
import type { PackStore, StoredName } from "../../packs/port.js";
import type { Applied } from "../engine/backend.js";
import { forgetLocalRows, lookIntoFolder } from "../lmdb/open.js";
import type { ChangeLog } from "./change-log.js";
import { snapshotsIn } from "./snapshots.js";

export interface ViewFacts {
  readonly applied: Applied | undefined;
  readonly isEmpty: boolean;
  readonly isOfThisFormat: boolean;
  /** The log has exactly that row. */
  readonly isInLog: boolean;
}

/** Pure. `foreign`: what is there belongs to a server of its own. */
export function judgeView({ applied, isEmpty, isOfThisFormat, isInLog }: ViewFacts): "keep" | "renew" | "foreign" {
  if (!applied) return isEmpty ? "renew" : "foreign";
  return isInLog && isOfThisFormat ? "keep" : "renew";
}

interface LocalViewParts {
  readonly folder: string;
  readonly log: ChangeLog;
  readonly session: Session;
  readonly packs: PackStore | undefined;
  readonly tell: (sentence: string) => void;
}

/** After it the folder holds a view that the log goes on from, or nothing; answers the row a new view begins behind. */
export async function prepareView(parts: LocalViewParts): Promise<Applied> {
  const { folder, log, session, tell } = parts;
  const found = await lookIntoFolder(folder);
  const isInLog = found.applied !== undefined && (await log.tokenAt(session, found.applied.n)) === found.applied.token;
  const verdict = judgeView({ ...found, isInLog });
  if (verdict === "foreign") {
    throw new ClusterRefusal(
      "own-history",
      `${folder} holds the events of a server that is in no cluster: use an empty data directory`,
    );
  }
  const { oldest } = await log.ends(session);
  const begins = { n: 0, token: (await log.tokenAt(session, 0)) ?? "" };
  if (verdict === "keep") return begins;
  if (found.applied) tell(`the view at change ${found.applied.n} does not fit the shared log and is built anew`);
  await discardView(folder);
  if (await restoreSnapshot(parts)) return begins;
  if (oldest === 0) return begins;
  throw new ClusterRefusal(
    "no-snapshot",
    `the shared log begins at change ${oldest} and no snapshot fits it: start a machine that has its view, and wait until it has made one`,
  );
}

async function discardView(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const name of await readdir(folder)) {
    if (/^events-\d+\.mdb(-lock)?$/.test(name)) await rm(join(folder, name), { force: true });
  }
}

async function restoreSnapshot({ folder, log, session, packs, tell }: LocalViewParts): Promise<boolean> {
  if (!packs) return false;
  for (const snapshot of await snapshotsIn(packs)) {
    if ((await log.tokenAt(session, snapshot.n)) !== snapshot.token) continue;
    if (await fetchSnapshot(packs, snapshot, folder)) {
      tell(`the view begins with the snapshot at change ${snapshot.n}`);
      return true;
    }
    tell(`the snapshot ${snapshot.name} is damaged`);
  }
  return false;
}

async function fetchSnapshot(
  packs: PackStore,
  snapshot: { readonly name: StoredName; readonly digest: string },
  folder: string,
): Promise<boolean> {
  const aside = join(folder, "snapshot.part");
  await removeAll(aside);
  await mkdir(aside, { recursive: true });
  try {
    const file = join(aside, "events-1.mdb");
    const { sha256 } = await packs.fetch(snapshot.name, file);
    if (sha256 !== snapshot.digest) return false;
    await forgetLocalRows(aside);
    await rename(file, join(folder, "events-1.mdb"));
    return true;
  } finally {
    await removeAll(aside);
  }
}
