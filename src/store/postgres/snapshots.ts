// Snapshots of the view, and the trimming of the log. A machine whose view is lost, or older than the log's beginning, starts
// with a snapshot that another one made. The log keeps what the newest snapshot and the slowest machine that lives need.

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mustBeStoredName, type PackStore, type StoredName } from "../../packs/port.js";
import type { Applied } from "../engine/backend.js";

export interface Snapshot extends Applied {
  /** In the cluster's time. */
  readonly madeMs: number;
  /** SHA-256 of the file. */
  readonly digest: string;
}

type NamedSnapshot = Snapshot & { readonly name: StoredName };

const folder = mustBeStoredName("snapshots", 1);
const pattern = /^snapshots\/view-(\d{1,16})-(\d{1,16})-([0-9a-f-]{36})-([0-9a-f]{64})\.mdb$/;

export const snapshotName = ({ n, madeMs, token, digest }: Snapshot): StoredName =>
  mustBeStoredName(`${folder}/view-${n}-${Math.floor(madeMs)}-${token}-${digest}.mdb`);

export function snapshotOf(name: StoredName): NamedSnapshot | undefined {
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
export async function snapshotsIn(packs: PackStore): Promise<readonly NamedSnapshot[]> {
  const all: NamedSnapshot[] = [];
  for await (const { name } of packs.list(folder)) {
    const snapshot = snapshotOf(name);
    if (snapshot) all.push(snapshot);
  }
  return all.sort((a, b) => b.n - a.n);
}

export interface KnownSnapshot extends NamedSnapshot {
  /** The log has exactly that row, so a view can go on from it. */
  readonly isInLog: boolean;
}

/** A machine may be fetching the older one. */
const keptSnapshots = 2;

/**
 * Newest first. Which snapshots may go: those that fit the log beyond the newest two, and those the log has passed. A snapshot
 * of another history stays while the log has its number: after a failover an operator may go back. At least two stay. Pure.
 */
export function snapshotsToRemove<S extends Pick<KnownSnapshot, "n" | "isInLog">>(
  snapshots: readonly S[],
  oldest: number,
): readonly S[] {
  const fitting = snapshots.filter(({ isInLog }) => isInLog).slice(0, keptSnapshots);
  const passed = snapshots.filter(({ isInLog, n }) => !isInLog && n < oldest);
  const kept = new Set([...fitting, ...passed].slice(0, keptSnapshots));
  return snapshots.filter((one) => !kept.has(one) && (one.isInLog || one.n < oldest));
}

export interface TrimFacts {
  /** Numbers of the log's first and last row, and the bytes of all bodies. */
  readonly oldest: number;
  readonly newest: number;
  readonly logBytes: number;
  /** Of the newest snapshot that fits the log; undefined when there is none. */
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
