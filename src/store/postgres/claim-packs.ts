// Whether a pack store is the one that all machines of the cluster share. The first machine leaves a mark in it, with a token
// that the database knows too: a store without it is not shared, and one with another is somebody else's.

import { randomUUID } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeDirectory } from "../../base/durable-files.js";
import { ClusterRefusal } from "../../cluster/check-database.js";
import { clusterLocks } from "../../cluster/locks.js";
import type { DatabasePlace, Session } from "../../cluster/session.js";
import { mustBeStoredName, type PackStore, PackStoreError, type StoreMark } from "../../packs/port.js";

export interface MarkFacts {
  readonly cluster: string;
  /** The token the database knows; undefined: no machine has marked a store yet. */
  readonly known: string | undefined;
  /** What lies in the store. */
  readonly mark: StoreMark | undefined;
  /** The store, for sentences. */
  readonly words: string;
}

/** Pure. `take`: it is nobody's. `adopt`: a machine ended between marking it and telling the database. */
export function judgeMark({ cluster, known, mark, words }: MarkFacts): "ours" | "take" | "adopt" | ClusterRefusal {
  if (mark && mark.cluster !== cluster) {
    return new ClusterRefusal(
      "pack-store-of-another",
      `${words} belongs to cluster ${mark.cluster}, the database to ${cluster}: set NGIT_PACK_STORE to this cluster's store, or to an empty one if it has none`,
    );
  }
  if (!mark) {
    if (known === undefined) return "take";
    return new ClusterRefusal(
      "pack-store-not-shared",
      `${words} is not the one the other machines use: it has no mark of the cluster. NGIT_PACK_STORE must lead every machine to the same files; is it mounted?`,
    );
  }
  if (known === undefined) return "adopt";
  if (known === mark.token) return "ours";
  return new ClusterRefusal(
    "pack-store-not-shared",
    `${words} carries another mark than the cluster's store: it is a store this cluster does not use, or an old copy. NGIT_PACK_STORE must lead every machine to the same files`,
  );
}

/** Marks a new store, and refuses one that is not the cluster's. */
export async function claimPackStore(
  session: Session,
  place: DatabasePlace,
  packs: PackStore,
  cluster: string,
): Promise<void> {
  const { schema } = place;
  const judged = async (): Promise<{ mark: StoreMark | undefined; verdict: ReturnType<typeof judgeMark> }> => {
    const mark = await packs.mark();
    const [row] = await session.rows(`SELECT packs FROM ${schema}.format`);
    return { mark, verdict: judgeMark({ cluster, known: row?.[0] ?? undefined, mark, words: packs.words }) };
  };
  try {
    const first = (await judged()).verdict;
    if (first instanceof ClusterRefusal) throw first;
    if (first === "ours") return;
    // Machines that start together must not mark two stores.
    await session.run(`BEGIN; SELECT pg_advisory_xact_lock(${clusterLocks(schema).schema})`);
    const { mark, verdict } = await judged();
    if (verdict instanceof ClusterRefusal) throw verdict;
    const token = mark?.token ?? randomUUID();
    if (verdict === "take") await packs.setMark({ cluster, token });
    await session.rows(`UPDATE ${schema}.format SET packs = $1`, [token]);
    await session.run("COMMIT");
  } catch (error) {
    await session.run("ROLLBACK").catch(() => undefined);
    throw refusalOf(error);
  }
}

/** Does once what serving needs, so that missing rights are told at the start and not by the first push. */
export async function tryPackStore(packs: PackStore, folder: string, node: string): Promise<void> {
  const name = mustBeStoredName(`trials/${node}`);
  const [file, back] = [join(folder, "pack-store-trial"), join(folder, "pack-store-trial.back")];
  try {
    await makeDirectory(folder);
    await Promise.all([rm(file, { force: true }), rm(back, { force: true })]);
    await writeFile(file, node);
    const put = await packs.put(name, file);
    const listed: string[] = [];
    for await (const found of packs.list(mustBeStoredName("trials", 1))) listed.push(found.name);
    const fetched = await packs.fetch(name, back);
    if (fetched.sha256 !== put.sha256 || !listed.includes(name)) {
      throw new PackStoreError("refused", `${packs.words} does not give back what is put into it`);
    }
    // Repositories whose names differ in case alone would have one folder.
    if (await packs.has(mustBeStoredName(`TRIALS/${node}`))) {
      throw new PackStoreError(
        "refused",
        `${packs.words} does not tell upper from lower case: use a file system that does`,
      );
    }
    await packs.remove(name);
  } catch (error) {
    throw refusalOf(error);
  } finally {
    await Promise.all([rm(file, { force: true }), rm(back, { force: true })]);
  }
}

function refusalOf(error: unknown): unknown {
  return error instanceof PackStoreError ? new ClusterRefusal("pack-store", error.message) : error;
}
