// Joining packs that several machines share. The work is done aside, on links to the listed packs, so that the repository's
// directory keeps what is listed; what came of it is put into the pack store, and one transaction puts it into the place of what
// it replaces. Geometric joining loses no object, so packs that came meanwhile stay beside it. Dropping garbage does: then
// nothing of packs or refs may have changed since.

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.js";
import { removeAll, syncPath } from "../base/durable-files.js";
import { listedPacks, packList, replacePacks, type StoredPack, stillRests } from "../catalogue/packs.js";
import { refsVersion } from "../catalogue/refs.js";
import type { Store, TableReader } from "../store/port.js";
import type { RepositoryAddress } from "./address.js";
import { linkPack, retirePacks } from "./local-packs.js";
import type { RefTable } from "./ref-tables.js";
import { packedRefs, packsIn, repositoryConfigs } from "./repository-files.js";

export interface RepackParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly aside: (kind: string) => Promise<string>;
  readonly put: (address: RepositoryAddress, folder: string, name: string) => Promise<StoredPack>;
  readonly mayBeListed: (reader: TableReader, packs: readonly StoredPack[]) => Promise<boolean>;
  /** Nobody else changes the packs of its directory here meanwhile, and nobody takes the directory for what is listed. */
  readonly alone: (key: string, work: () => Promise<void>) => Promise<void>;
}

interface Home {
  readonly address: RepositoryAddress;
  readonly directory: string;
}

export async function repackShared(
  parts: RepackParts,
  home: Home,
  table: RefTable,
  run: (directory: string) => Promise<void>,
  dropsGarbage: boolean,
): Promise<void> {
  const { store } = parts;
  const { address, directory } = home;
  const list = await packList(store, address);
  const before = await listedPacks(store, address);
  if (!list || list.lost || before.length === 0) return;
  const aside = await parts.aside("repack");
  try {
    await stage(aside, directory, before, table);
    await run(aside);
    const folder = join(aside, "objects/pack");
    const left = new Set(await packsIn(folder));
    const gone = before.filter(({ name }) => !left.delete(name));
    if (gone.length === 0 && left.size === 0) return;
    const come: StoredPack[] = [];
    for (const name of left) come.push(await parts.put(address, folder, name));
    await parts.alone(address.key, async () => {
      const isWritten = await store.transact(async (tx) => {
        const now = await packList(tx, address);
        const basis = { made: list.made, version: list.version };
        if (!stillRests(basis, now) || !(await parts.mayBeListed(tx, come))) return false;
        const isAsSeen = now.version === list.version && (await refsVersion(tx, address)) === table.version;
        if (dropsGarbage && !isAsSeen) return false;
        replacePacks(tx, now, gone, come, parts.clock.nowMs());
        return true;
      });
      if (!isWritten) return;
      for (const { name } of come) await linkPack(folder, join(directory, "objects/pack"), name);
      await syncPath(join(directory, "objects/pack"));
      await retirePacks(
        directory,
        gone.map(({ name }) => name),
        parts.clock.nowMs(),
      );
    });
  } finally {
    await removeAll(aside);
  }
}

/** A repository of links: git reads its packs and refs, and knows nothing of the one they come from. */
async function stage(aside: string, directory: string, packs: readonly StoredPack[], table: RefTable): Promise<void> {
  for (const folder of ["objects/info", "objects/pack", "refs/heads", "refs/tags"]) {
    await mkdir(join(aside, folder), { recursive: true });
  }
  for (const { name } of packs) await linkPack(join(directory, "objects/pack"), join(aside, "objects/pack"), name);
  await writeFile(join(aside, "config"), repositoryConfigs[table.format]);
  await writeFile(join(aside, "packed-refs"), packedRefs(table.refs));
  await writeFile(join(aside, "HEAD"), `ref: ${table.head}\n`);
}
