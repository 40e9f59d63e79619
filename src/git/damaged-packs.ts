// Packs whose bytes no longer are what was written (a disk that forgets; threats.md, Faults). A damaged pack is removed
// only when everything the refs reach is whole without it: until then it holds what can still be read. Repairs nothing
// else: bringing the objects back is the hunt's work.

import { link, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { syncPath } from "../base/durable-files.js";
import type { Oid } from "../nostr/ids.js";
import { missingObjects } from "./objects.js";
import type { QuarantineDirectory } from "./quarantine.js";
import { type Git, GitError } from "./run.js";

const packFolder = "objects/pack";

async function isDamaged(git: Git, directory: string, pack: string): Promise<boolean> {
  const result = await git.run(["verify-pack", join(directory, packFolder, `${pack}.idx`)], { directory });
  if (result.code === undefined) throw new GitError("verify-pack", result);
  return result.code !== 0;
}

/** `trial`: an empty object directory, to see what is whole without the damaged ones. True: no damaged pack is left. */
export async function dropDamagedPacks(trial: QuarantineDirectory, tips: readonly Oid[]): Promise<boolean> {
  const { git, repositoryDirectory: directory } = trial;
  const folder = join(directory, packFolder);
  const names = await readdir(folder);
  const damaged = new Set<string>();
  for (const name of names.filter((one) => one.endsWith(".idx"))) {
    const pack = name.slice(0, -".idx".length);
    if (await isDamaged(git, directory, pack)) damaged.add(pack);
  }
  if (damaged.size === 0) return true;
  const isOfDamaged = (name: string): boolean => damaged.has(name.replace(/\..*$/, ""));
  await mkdir(join(trial.directory, "pack"), { recursive: true });
  for (const name of names) {
    const isSound = name.startsWith("pack-") && !isOfDamaged(name);
    if (isSound) await link(join(folder, name), join(trial.directory, "pack", name));
  }
  const place = { git, directory, env: trial.aloneEnvironment };
  if ((await missingObjects(place, tips, { deep: true })).size > 0) return false;
  // The index over all packs names them too; then each one's index, without which git does not see a pack.
  const going = names.filter((name) => isOfDamaged(name) || name.startsWith("multi-pack-index"));
  const order = (name: string): number => (name.startsWith("multi") ? 0 : name.endsWith(".idx") ? 1 : 2);
  for (const name of going.sort((a, b) => order(a) - order(b))) await rm(join(folder, name), { force: true });
  await syncPath(folder);
  return true;
}
