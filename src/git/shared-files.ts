// Large files (LFS) in the pack store that several machines share: named by their SHA-256 alone, whichever repositories have
// them; rows say which do (catalogue/large-files.ts). A machine fetches one when somebody asks for it.

import { randomBytes } from "node:crypto";
import { rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Clock } from "../base/clock.js";
import { makeDirectory, syncPath } from "../base/durable-files.js";
import type { LargeFileId } from "../catalogue/large-files.js";
import { goingSince } from "../catalogue/packs.js";
import { isAbsent, mustBeStoredName, type PackStore, PackStoreError, type StoredName } from "../packs/port.js";
import type { TableReader } from "../store/port.js";
import { ObjectsUnavailableError } from "./run.js";

export const largeFilesFolder = "large";

export const storedFileName = (oid: LargeFileId): StoredName =>
  mustBeStoredName(`${largeFilesFolder}/${oid.slice(0, 2)}/${oid}`);

/** One that was put longer ago may be about to go as one that no row names. */
const nameWithinMs = 3_600_000;
const tries = 2;

export class SharedFiles {
  constructor(
    private readonly packs: PackStore,
    private readonly clock: Clock,
  ) {}

  /** Answers whether a row may name it, asked in the transaction that does. */
  async put(oid: LargeFileId, file: string): Promise<(reader: TableReader) => Promise<boolean>> {
    const putAt = this.clock.nowMs();
    await this.packs.put(storedFileName(oid), file).catch(unavailable);
    return async (reader) => this.clock.nowMs() - putAt < nameWithinMs && (await this.mayBeNamed(reader, oid));
  }

  /** It is not on its way out of the store. */
  async mayBeNamed(reader: TableReader, oid: LargeFileId): Promise<boolean> {
    return (await goingSince(reader, storedFileName(oid))) === undefined;
  }

  has(oid: LargeFileId): Promise<boolean> {
    return this.packs.has(storedFileName(oid)).catch(unavailable);
  }

  /** False: the store does not have it, or has it damaged. */
  async fetch(oid: LargeFileId, path: string): Promise<boolean> {
    const beside = join(dirname(path), `tmp_${randomBytes(8).toString("hex")}`);
    await makeDirectory(dirname(path));
    for (let round = 1; round <= tries; round++) {
      const moved = await this.packs.fetch(storedFileName(oid), beside).catch((error: unknown) => {
        if (isAbsent(error)) return undefined;
        return unavailable(error);
      });
      if (!moved) return false;
      if (moved.sha256 === oid) {
        await rename(beside, path);
        await syncPath(dirname(path));
        return true;
      }
      await rm(beside, { force: true });
    }
    return false;
  }
}

function unavailable(error: unknown): never {
  if (!(error instanceof PackStoreError)) throw error;
  throw new ObjectsUnavailableError("unreachable", "the pack store cannot be reached: try again later", error);
}
