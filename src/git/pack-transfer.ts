// One pack between a folder of git's and the pack store that several machines share. Its files are named after the SHA-256 of
// the pack itself, below the repository's own folder, and are put in the order in which others may see them.

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { ifPresent } from "../base/durable-files.js";
import type { StoredPack, StoredPart } from "../catalogue/packs.js";
import { isAbsent, mustBeStoredName, type PackStore } from "../packs/port.js";
import type { RepositoryAddress } from "./address.js";
import { packParts } from "./repository-files.js";

/** The pack store answers and does not have it as it was put there. */
export class LostPackError extends Error {
  override readonly name = "LostPackError";

  constructor(
    readonly pack: string,
    readonly how: "absent" | "damaged",
  ) {
    super(`the pack store has ${pack} ${how === "absent" ? "no more" : "damaged"}`);
  }
}

export async function sha256Of(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file, { highWaterMark: 2 ** 18 })) hash.update(chunk as Buffer);
  return hash.digest("hex");
}

/** Puts a pack of that folder into the store; one that is there is put again, so that it counts as new. */
export async function putPack(
  store: PackStore,
  address: RepositoryAddress,
  folder: string,
  name: string,
  nowMs: number,
): Promise<StoredPack> {
  const stored = `${address.storeFolder}/${await sha256Of(join(folder, `${name}.pack`))}`;
  const parts: StoredPart[] = [];
  for (const suffix of packParts) {
    const file = join(folder, name + suffix);
    if ((await ifPresent(stat(file))) === undefined) continue;
    const { bytes, sha256 } = await store.put(mustBeStoredName(stored + suffix), file);
    if (suffix === ".pack" && !stored.endsWith(sha256))
      throw new Error(`${name} changed while it was put into the pack store`);
    parts.push({ suffix, bytes, sha256 });
  }
  return { name, stored, parts, putAt: nowMs };
}

const tries = 2;

/** Its files, checked, in a folder of our own. Throws LostPackError, or that the store cannot be asked. */
export async function fetchPack(store: PackStore, { name, stored, parts }: StoredPack, folder: string): Promise<void> {
  for (const { suffix, bytes, sha256 } of parts) {
    const file = join(folder, name + suffix);
    for (let round = 1; ; round++) {
      const moved = await store.fetch(mustBeStoredName(stored + suffix), file).catch((error: unknown) => {
        throw isAbsent(error) ? new LostPackError(name, "absent") : error;
      });
      if (moved.sha256 === sha256 && moved.bytes === bytes) break;
      await rm(file, { force: true });
      if (round === tries) throw new LostPackError(name, "damaged");
    }
  }
}
