// Copies what some ids reach into a quarantine as one pack: pack-objects there, index-pack here. From one repository to
// another, and out of a quarantine that may hold more than its tips name.

import { pipeline } from "node:stream/promises";
import type { Oid } from "../nostr/ids.js";
import type { JobLimits } from "./launcher-job.js";
import { type ObjectPlace, objectTypes } from "./objects.js";
import { QuarantineDirectory } from "./quarantine.js";
import { checkedOid, GitError, toleratedFaults } from "./run.js";

export interface CopyOptions {
  /** Objects that nobody checked yet: git's strict check is made on the way, and a fault throws. */
  readonly strict?: boolean;
  readonly limits?: Partial<JobLimits>;
}

/** Deltas that are there are used as they are; none is looked for, that is housekeeping's work. */
const packArguments = ["--revs", "--stdout", "--delta-base-offset", "--window=0", "--quiet"] as const;

export async function copyObjects(
  from: ObjectPlace,
  into: QuarantineDirectory,
  oids: readonly Oid[],
  alreadyThere: readonly Oid[],
  { strict = false, limits = {} }: CopyOptions = {},
): Promise<void> {
  // pack-objects dies of an unknown id, so only what both have may be excluded.
  const shared = [...(await objectTypes(from, alreadyThere)).keys()];
  const lines = [...oids.map(checkedOid), "--not", ...shared.map(checkedOid)];
  const packing = await from.git.start(["pack-objects", ...packArguments], {
    directory: from.directory,
    env: from.env ?? {},
    limits,
    stdin: true,
  });
  const check = strict ? [`--strict=${toleratedFaults}`] : [];
  const indexing = await into.git.start(["index-pack", "--stdin", "--fix-thin", ...check], {
    directory: into.repositoryDirectory,
    env: into.writingEnvironment,
    limits,
    stdin: true,
  });
  packing.stdin?.end(`${lines.join("\n")}\n`);
  indexing.stdout.resume();
  if (indexing.stdin) await pipeline(packing.stdout, indexing.stdin).catch(() => undefined);
  const [packed, indexed] = await Promise.all([packing.exit, indexing.exit]);
  if (packed.code !== 0) throw new GitError("pack-objects", packed);
  if (indexed.code !== 0) throw new GitError("index-pack", indexed);
}

/** Another quarantine, with what these reach and the refs do not: bytes that no tip names stay behind. `here`: what the refs name. */
export async function reachedBy(
  quarantine: QuarantineDirectory,
  tips: readonly Oid[],
  here: readonly Oid[],
  { from = quarantine.place, ...options }: CopyOptions & { readonly from?: ObjectPlace } = {},
): Promise<QuarantineDirectory> {
  const { git, repositoryDirectory, clock } = quarantine;
  const reached = await QuarantineDirectory.make(git, repositoryDirectory, clock);
  try {
    await copyObjects(from, reached, tips, here, options);
    return reached;
  } catch (error) {
    await reached.drop();
    throw error;
  }
}
