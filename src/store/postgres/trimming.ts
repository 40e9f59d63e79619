// Carries out what snapshots.ts plans: makes a snapshot of the view when one is due, and forgets what nobody needs of the log.

import { join } from "node:path";
import type { Clock } from "../../base/clock.js";
import { removeAll } from "../../base/durable-files.js";
import { type DatabasePlace, Session } from "../../cluster/session.js";
import type { PackStore } from "../../packs/port.js";
import type { EngineStore } from "../engine/engine.js";
import type { ChangeLog } from "./change-log.js";
import {
  digestOf,
  type KnownSnapshot,
  planTrim,
  snapshotName,
  snapshotsIn,
  snapshotsToRemove,
  type TrimFacts,
  type TrimLimits,
} from "./snapshots.js";

interface TrimParts {
  readonly place: DatabasePlace;
  /** The machine's own clock. */
  readonly own: Clock;
  /** The cluster's time. */
  readonly clock: Clock;
  readonly log: ChangeLog;
  readonly store: EngineStore;
  readonly folder: string;
  readonly packs: PackStore;
}

const usualLimits: TrimLimits = { snapshotEveryMs: 86_400_000, maxLogBytes: 4 * 2 ** 30 };
/** Answers how many changes were forgotten. */
export async function trimLog(parts: TrimParts, limits: Partial<TrimLimits>): Promise<number> {
  const wanted = { ...usualLimits, ...limits };
  const session = await Session.open(parts.place, { clock: parts.own, name: "holdfast trim" });
  try {
    if (planTrim(await factsOf(parts, session), wanted).makesSnapshot) await makeSnapshot(parts, session);
    return await parts.log.trim(session, planTrim(await factsOf(parts, session), wanted).before);
  } finally {
    await session.close();
  }
}

/** Newest first. After a failover there may be some of a history that is lost: no view can go on from them. */
async function snapshotsBeside({ log, packs }: TrimParts, session: Session): Promise<readonly KnownSnapshot[]> {
  const known: KnownSnapshot[] = [];
  for (const snapshot of await snapshotsIn(packs)) {
    known.push({ ...snapshot, isInLog: (await log.tokenAt(session, snapshot.n)) === snapshot.token });
  }
  return known;
}

async function factsOf(parts: TrimParts, session: Session): Promise<TrimFacts> {
  const { place, log, clock } = parts;
  const newest = (await snapshotsBeside(parts, session)).find(({ isInLog }) => isInLog);
  const nodes = await session.rows(
    `SELECT applied, extract(epoch FROM clock_timestamp() - seen) * 1000 FROM ${place.schema}.node`,
  );
  return {
    ...(await log.ends(session)),
    logBytes: await log.bytes(session),
    snapshot: newest?.n,
    snapshotAgeMs: newest ? clock.nowMs() - newest.madeMs : 0,
    nodes: nodes.map(([applied, silentMs]) => ({ applied: Number(applied), silentMs: Number(silentMs) })),
  };
}

async function makeSnapshot(parts: TrimParts, session: Session): Promise<void> {
  const { store, folder, packs, clock, log } = parts;
  const aside = join(folder, "snapshot-made.part");
  await removeAll(aside);
  try {
    let { applied } = store.backend;
    await store.snapshot(aside, () => {
      applied = store.backend.applied;
    });
    if (!applied) return;
    const file = join(aside, "events-1.mdb");
    await packs.put(snapshotName({ ...applied, madeMs: clock.nowMs(), digest: await digestOf(file) }), file);
    const { oldest } = await log.ends(session);
    for (const { name } of snapshotsToRemove(await snapshotsBeside(parts, session), oldest)) await packs.remove(name);
  } finally {
    await removeAll(aside);
  }
}
