// The pack store as a directory on a shared file system. Files are copied aside, synced and renamed into place; nothing is
// locked. A mount that is gone leaves an empty directory behind, or none: so the mark is looked for before and after anything
// is written and before a missing file is believed to be missing, and the store's own directory is never made.

import { randomUUID } from "node:crypto";
import { createReadStream, type Dir } from "node:fs";
import { mkdir, open, opendir, readdir, readFile, rename, rm, rmdir, stat } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { ifPresent, isMissing, replaceFile, syncPath } from "../base/durable-files.js";
import {
  damagedMark,
  type Moved,
  markFile,
  markText,
  type PackStore,
  PackStoreError,
  type PackStoreFault,
  readMark,
  type StoredFile,
  type StoredName,
  type StoreMark,
  storedName,
  unmarked,
} from "./port.js";
import { chunkBytes, pourInto, reading, Tally } from "./pour.js";

/** Begins with a dot: no stored name does. */
const asideFolder = ".aside";
const placingTries = 5;

export class DirectoryPackStore implements PackStore {
  readonly words: string;

  constructor(private readonly root: string) {
    this.words = `the directory ${root}`;
  }

  async put(name: StoredName, file: string, signal?: AbortSignal): Promise<Moved> {
    await this.#mustBeMarked();
    const target = join(this.root, name);
    const aside = join(this.root, asideFolder, randomUUID());
    try {
      await this.#asking(this.#makeFolder(dirname(aside)));
      const moved = await this.#copyInto(aside, file, signal);
      await this.#asking(this.#place(aside, target));
      // If the store went away meanwhile, the file may lie in its empty place, where no other machine finds it.
      await this.#mustBeMarked();
      return moved;
    } catch (error) {
      await rm(aside, { force: true }).catch(() => undefined);
      throw error;
    }
  }

  /** Makes a folder and those above it, but never the directory of the store itself. */
  async #makeFolder(path: string): Promise<void> {
    let folder = this.root;
    for (const name of relative(this.root, path)
      .split(sep)
      .filter((part) => part !== "")) {
      const parent = folder;
      folder = join(parent, name);
      if (await madeNow(folder)) await syncPath(parent);
    }
  }

  /** The last file's removal takes the folder away: it may go between its making and the renaming. */
  async #place(aside: string, target: string): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await this.#makeFolder(dirname(target));
        await rename(aside, target);
        await syncPath(dirname(target));
        return;
      } catch (error) {
        if (!isMissing(error) || tries === placingTries) throw error;
      }
    }
  }

  async #copyInto(aside: string, file: string, signal: AbortSignal | undefined): Promise<Moved> {
    const source = await open(file, "r");
    try {
      const target = await this.#asking(open(aside, "wx", 0o640));
      try {
        const tally = new Tally();
        const chunks = source.createReadStream({ highWaterMark: chunkBytes, autoClose: false });
        for await (const chunk of tally.pass(chunks, signal)) await this.#asking(target.writeFile(chunk));
        await this.#asking(target.sync());
        return tally.moved();
      } finally {
        await target.close();
      }
    } finally {
      await source.close();
    }
  }

  fetch(name: StoredName, file: string, signal?: AbortSignal): Promise<Moved> {
    const source = (): AsyncIterable<Buffer> => createReadStream(join(this.root, name), { highWaterMark: chunkBytes });
    return pourInto(file, async () => reading(source(), (error) => this.#faultOf(error, name)), signal);
  }

  async has(name: StoredName): Promise<boolean> {
    try {
      return (await this.#asking(stat(join(this.root, name)), name)).isFile();
    } catch (error) {
      if (error instanceof PackStoreError && error.fault === "absent") return false;
      throw error;
    }
  }

  async *list(folder?: StoredName, signal?: AbortSignal): AsyncGenerator<StoredFile> {
    await this.#mustBeMarked();
    yield* this.#below(folder === undefined ? this.root : join(this.root, folder), signal);
  }

  async *#below(folder: string, signal: AbortSignal | undefined): AsyncGenerator<StoredFile> {
    signal?.throwIfAborted();
    const entries: Dir | undefined = await this.#asking(ifPresent(opendir(folder)));
    if (!entries) return;
    for await (const entry of entries) {
      const path = join(folder, entry.name);
      if (entry.name === asideFolder) continue;
      if (entry.isDirectory()) yield* this.#below(path, signal);
      const name = entry.isFile() ? storedName(relative(this.root, path).split(sep).join("/")) : undefined;
      // Removed since it was listed: it is in no list any more.
      const found = name && (await this.#asking(ifPresent(stat(path))));
      if (name && found) yield { name, bytes: found.size, putMs: found.mtimeMs };
    }
  }

  async remove(name: StoredName): Promise<void> {
    await this.#mustBeMarked();
    const path = join(this.root, name);
    await this.#asking(rm(path, { force: true }));
    // Folders of repositories that are gone go too; one that is not empty stays.
    for (let folder = dirname(path); folder !== this.root; folder = dirname(folder)) {
      const isGone = await rmdir(folder).then(
        () => true,
        () => false,
      );
      if (!isGone) return;
    }
  }

  async removeUnfinished(beforeMs: number): Promise<number> {
    await this.#mustBeMarked();
    const folder = join(this.root, asideFolder);
    let removed = 0;
    for (const name of (await this.#asking(ifPresent(readdir(folder)))) ?? []) {
      const found = await this.#asking(ifPresent(stat(join(folder, name))));
      if (!found || found.mtimeMs >= beforeMs) continue;
      await this.#asking(rm(join(folder, name), { force: true }));
      removed++;
    }
    return removed;
  }

  async mark(): Promise<StoreMark | undefined> {
    const text = await this.#asking(ifPresent(readFile(join(this.root, markFile), "utf8")));
    if (text === undefined) {
      await this.#asking(stat(this.root));
      return undefined;
    }
    const mark = readMark(text);
    if (!mark) throw damagedMark(this.words);
    return mark;
  }

  async setMark(mark: StoreMark): Promise<void> {
    await this.#asking(replaceFile(join(this.root, markFile), markText(mark)));
  }

  async close(): Promise<void> {}

  async #mustBeMarked(): Promise<void> {
    const found = await this.#asking(ifPresent(stat(join(this.root, markFile))));
    if (!found) throw unmarked(this.words);
  }

  async #asking<T>(work: Promise<T>, name?: StoredName): Promise<T> {
    try {
      return await work;
    } catch (error) {
      throw await this.#faultOf(error, name);
    }
  }

  /** With a name, a missing file is `absent` if the store is there. */
  async #faultOf(error: unknown, name: StoredName | undefined): Promise<unknown> {
    if (error instanceof PackStoreError || (error instanceof Error && error.name === "AbortError")) return error;
    if (name !== undefined && isMissing(error)) {
      const lost = await this.#mustBeMarked().catch((fault: unknown) => fault);
      return lost ?? new PackStoreError("absent", `${this.words} has no ${name}`, { cause: error });
    }
    const code = (error as NodeJS.ErrnoException).code ?? "";
    const fault = faultOfCode(code);
    return new PackStoreError(fault, `${this.words} ${faultWords[fault]} (${code})`, { cause: error });
  }
}

/** Makes a folder. False: the folder was there already. */
async function madeNow(folder: string): Promise<boolean> {
  try {
    await mkdir(folder);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

const faultWords: Readonly<Record<PackStoreFault, string>> = {
  absent: "has no such file",
  unreachable: "does not answer: look at its mount",
  full: "is full: make room in it",
  refused: "does not let this server in: look at its owner and mode",
};

/** Pure. What is not known counts as something that may pass. */
export function faultOfCode(code: string): PackStoreFault {
  if (["ENOSPC", "EDQUOT", "EFBIG"].includes(code)) return "full";
  if (["EACCES", "EPERM", "EROFS", "ENOTDIR", "EISDIR", "ENAMETOOLONG"].includes(code)) return "refused";
  return "unreachable";
}
