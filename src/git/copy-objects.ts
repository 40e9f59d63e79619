// Copies objects from one repository into another's quarantine as one pack: pack-objects there, index-pack here.

import { pipeline } from "node:stream/promises";
import type { Oid } from "../nostr/ids.js";
import { type ObjectPlace, objectTypes } from "./objects.js";
import type { QuarantineDirectory } from "./quarantine.js";
import { checkedOid, GitError } from "./run.js";

export async function copyObjects(
  from: ObjectPlace,
  into: QuarantineDirectory,
  oids: readonly Oid[],
  alreadyThere: readonly Oid[],
): Promise<void> {
  // pack-objects dies of an unknown id, so only what both have may be excluded.
  const shared = [...(await objectTypes(from, alreadyThere)).keys()];
  const lines = [...oids.map(checkedOid), "--not", ...shared.map(checkedOid)];
  const packing = await from.git.start(["pack-objects", "--revs", "--stdout", "--delta-base-offset", "--quiet"], {
    directory: from.directory,
    stdin: true,
  });
  const indexing = await into.git.start(["index-pack", "--stdin", "--fix-thin"], {
    directory: into.repositoryDirectory,
    env: into.writingEnvironment,
    stdin: true,
  });
  packing.stdin?.end(`${lines.join("\n")}\n`);
  indexing.stdout.resume();
  if (indexing.stdin) await pipeline(packing.stdout, indexing.stdin).catch(() => undefined);
  const [packed, indexed] = await Promise.all([packing.exit, indexing.exit]);
  if (packed.code !== 0) throw new GitError("pack-objects", packed);
  if (indexed.code !== 0) throw new GitError("index-pack", indexed);
}
