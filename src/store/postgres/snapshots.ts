// Snapshots of the view, and the trimming of the log. A machine whose view is lost, or older than the log's beginning, starts
// with a snapshot that another one made. The log keeps what the newest snapshot and the slowest machine that lives need.

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { copyFile, mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { syncPath } from "../../base/durable-files.js";
import type { Applied } from "../engine/backend.js";

/** Where all machines of a cluster find snapshots. Names are ours and contain no separator. */
export interface SnapshotPlace {
  list(): Promise<readonly string[]>;
  /** The whole file or nothing appears under that name. */
  put(name: string, file: string): Promise<void>;
  fetch(name: string, file: string): Promise<void>;
  remove(name: string): Promise<void>;
}

/** A folder that all machines see. */
export class SnapshotFolder implements SnapshotPlace {
  constructor(private readonly folder: string) {}

  async list(): Promise<readonly string[]> {
    await mkdir(this.folder, { recursive: true });
    return (await readdir(this.folder)).filter((name) => snapshotOf(name) !== undefined);
  }

  async put(name: string, file: string): Promise<void> {
    await mkdir(this.folder, { recursive: true });
    const aside = join(this.folder, `${name}.part`);
    await copyFile(file, aside);
    await syncPath(aside);
    await rename(aside, join(this.folder, name));
    await syncPath(this.folder);
  }

  async fetch(name: string, file: string): Promise<void> {
    await copyFile(join(this.folder, name), file);
  }

  async remove(name: string): Promise<void> {
    await rm(join(this.folder, name), { force: true });
  }
}

export interface Snapshot extends Applied {
  /** In the cluster's time. */
  readonly madeMs: number;
  /** SHA-256 of the file. */
  readonly digest: string;
}

type NamedSnapshot = Snapshot & { readonly name: string };

const pattern = /^view-(\d{1,16})-(\d{1,16})-([0-9a-f-]{36})-([0-9a-f]{64})\.mdb$/;

export const snapshotName = ({ n, madeMs, token, digest }: Snapshot): string =>
  `view-${n}-${Math.floor(madeMs)}-${token}-${digest}.mdb`;

export function snapshotOf(name: string): NamedSnapshot | undefined {
  const [, n, madeMs, token, digest] = pattern.exec(name) ?? [];
  if (token === undefined || digest === undefined) return undefined;
  return { name, n: Number(n), madeMs: Number(madeMs), token, digest };
}

export async function digestOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}

/** Newest first. */
export async function snapshotsIn(place: SnapshotPlace): Promise<readonly NamedSnapshot[]> {
  const all = (await place.list()).flatMap((name) => snapshotOf(name) ?? []);
  return all.sort((a, b) => b.n - a.n);
}

export interface TrimFacts {
  /** Numbers of the log's first and last row, and the bytes of all bodies. */
  readonly oldest: number;
  readonly newest: number;
  readonly logBytes: number;
  /** Of the newest snapshot; undefined when there is none. */
  readonly snapshot: number | undefined;
  readonly snapshotAgeMs: number;
  readonly nodes: readonly { readonly applied: number; readonly silentMs: number }[];
}

export interface TrimLimits {
  readonly snapshotEveryMs: number;
  /** Beyond this the log keeps only what the newest snapshot lacks: slow machines begin with it. */
  readonly maxLogBytes: number;
}

const dayMs = 86_400_000;

/** Whether to make a snapshot first, and before which row the log may be forgotten. Pure. */
export function planTrim(
  facts: TrimFacts,
  limits: TrimLimits,
): { readonly makesSnapshot: boolean; readonly before: number } {
  const isLarge = facts.logBytes > limits.maxLogBytes / 2;
  const hasNew = facts.newest > (facts.snapshot ?? 0);
  const isDue = facts.snapshot === undefined || facts.snapshotAgeMs >= limits.snapshotEveryMs || isLarge;
  const makesSnapshot = hasNew && isDue;
  if (facts.snapshot === undefined) return { makesSnapshot, before: facts.oldest };
  const slowest = facts.nodes
    .filter(({ silentMs }) => silentMs < dayMs)
    .reduce((least, { applied }) => Math.min(least, applied), facts.snapshot);
  const before = facts.logBytes > limits.maxLogBytes ? facts.snapshot : slowest;
  return { makesSnapshot, before: Math.max(facts.oldest, Math.min(before, facts.snapshot)) };
}
