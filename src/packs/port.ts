// The contract of the pack store: where the machines of a cluster keep files that never change (packs, large files, snapshots
// of the view). Implementations: a shared directory (directory.ts) and S3 (s3.ts). One contract suite
// (testing/contract.ts) runs over both. The store knows nothing of git: which file is listed, retired or an orphan is
// decided from rows, above it.
//
// Promises every implementation keeps:
//  1. A name has the whole file or nothing: who looks while a put runs, or after it was cut short, does not see it.
//  2. When `put` resolves, the file survives a crash and every machine sees it.
//  3. `absent` is only said when the store itself answered that the name is not there. A mount that is gone, a bucket that
//     is gone and a store without its mark are `unreachable`: nobody may take a lost store for an empty one.
//  4. Nothing is locked and nothing is written under a condition. A name that is put again has the newer file.
//  5. Faults of this machine's own disk are the system's errors, not faults of the store.

import type { Brand } from "../base/brand.js";

/** Of several parts with `/` between them, safe on every file system and in every bucket. */
export type StoredName = Brand<string, "StoredName">;

const part = /^[A-Za-z0-9_=][A-Za-z0-9._=-]{0,199}$/;
const maxNameBytes = 900;

/** Undefined when the text is no name. A file's name has two parts or more; a folder's may have one. */
export function storedName(text: string, leastParts = 2): StoredName | undefined {
  const parts = text.split("/");
  const isName = text.length <= maxNameBytes && parts.length >= leastParts && parts.every((piece) => part.test(piece));
  return isName ? (text as StoredName) : undefined;
}

/** For names that the program makes of checked values: another one is a fault of the program. */
export function mustBeStoredName(text: string, leastParts?: number): StoredName {
  const name = storedName(text, leastParts);
  if (name === undefined) throw new RangeError(`${JSON.stringify(text)} is no name for the pack store`);
  return name;
}

export type PackStoreFault =
  /** The store answers, and has no such name. */
  | "absent"
  /** It does not answer, or what answers is not the store. It may come back by itself. */
  | "unreachable"
  | "full"
  /** It answers and does not let this machine in, or does not do what it is asked. The operator must mend it. */
  | "refused";

export class PackStoreError extends Error {
  override readonly name = "PackStoreError";

  constructor(
    readonly fault: PackStoreFault,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export const isAbsent = (error: unknown): boolean => error instanceof PackStoreError && error.fault === "absent";

/** What was moved, measured on the way. */
export interface Moved {
  readonly bytes: number;
  /** Lower-case hex. */
  readonly sha256: string;
}

export interface StoredFile {
  readonly name: StoredName;
  readonly bytes: number;
  /** When it was put, in the store's own time. */
  readonly putMs: number;
}

/** Whose store it is. */
export interface StoreMark {
  readonly cluster: string;
  /** Drawn when the cluster took the store; the database knows it too. */
  readonly token: string;
}

export interface PackStore {
  /** For sentences: `the directory /srv/packs`, `the bucket packs at https://s3.example.com`. */
  readonly words: string;
  /** Streams the file into the store. Answers what went, so that the caller can compare. */
  put(name: StoredName, file: string, signal?: AbortSignal): Promise<Moved>;
  /**
   * Streams into `file`, which must not be there yet, and syncs it. The caller compares the digest with the one it knows.
   * When it throws, `file` is gone.
   */
  fetch(name: StoredName, file: string, signal?: AbortSignal): Promise<Moved>;
  has(name: StoredName): Promise<boolean>;
  /** Every file below the folder (all of them: no folder), in no promised order; puts that run may be in it or not. */
  list(folder?: StoredName, signal?: AbortSignal): AsyncIterable<StoredFile>;
  /** Nothing to do when it is gone already. */
  remove(name: StoredName): Promise<void>;
  /** Removes what puts left that were cut short before that moment, in the store's own time. Answers how many. */
  removeUnfinished(beforeMs: number): Promise<number>;
  /** Undefined: nobody has taken this store yet. */
  mark(): Promise<StoreMark | undefined>;
  /** Takes the store. Before this, `put` is refused. */
  setMark(mark: StoreMark): Promise<void>;
  close(): Promise<void>;
}

export const markFile = "holdfast-cluster.json";

const markWord = /^[0-9a-f-]{36}$/;

export const markText = (mark: StoreMark): string => `${JSON.stringify(mark)}\n`;

/** Undefined when the text is no mark. */
export function readMark(text: string): StoreMark | undefined {
  try {
    const { cluster, token } = JSON.parse(text) as { cluster?: unknown; token?: unknown };
    const isMark =
      typeof cluster === "string" && markWord.test(cluster) && typeof token === "string" && markWord.test(token);
    return isMark ? { cluster, token } : undefined;
  } catch {
    return undefined;
  }
}

export const damagedMark = (words: string): PackStoreError =>
  new PackStoreError(
    "refused",
    `${markFile} in ${words} cannot be read: restore it from a backup of the store, or name another store`,
  );

export const unmarked = (words: string): PackStoreError =>
  new PackStoreError(
    "unreachable",
    `${words} has no ${markFile}: it is not mounted, was emptied, or is another one. Bring back the store with the cluster's files`,
  );
