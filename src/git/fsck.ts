// What is wrong with a repository on disk: things planted in it (threats.md row 8), objects that are damaged or missing.
// Repairs two things: the config, which is ours and which the next git would obey, and packs that cannot be read and that
// nothing needs any more. Bringing objects back is the hunt's work.

import { link, lstat, mkdir, readdir, rm } from "node:fs/promises";
import { join, relative } from "node:path";
import { ifPresent, syncPath } from "../base/durable-files.js";
import type { ObjectFormat, Oid } from "../nostr/nip34.js";
import { missingObjects, type ObjectPlace } from "./objects.js";
import type { QuarantineDirectory } from "./quarantine.js";
import { identifierFile, largeFilesFolder, mendConfig, retiredFolder, unclaimedFolder } from "./repository-files.js";
import { type Git, GitError } from "./run.js";

const expectedEntries = new Set([
  "HEAD",
  "config",
  "objects",
  "refs",
  "packed-refs",
  "info",
  "description",
  "branches",
  identifierFile,
  unclaimedFolder,
  largeFilesFolder,
  retiredFolder,
]);

/** Nothing here writes them, and git would obey them: other objects, another history, programs to run on content. */
const plantedFiles = ["objects/info/alternates", "objects/info/http-alternates", "info/attributes", "info/grafts"];

export async function checkRepository({ git, directory }: ObjectPlace, format: ObjectFormat): Promise<string[]> {
  const problems: string[] = [];
  const names = await ifPresent(readdir(directory));
  if (!names) return ["the repository's directory is missing"];
  if (await mendConfig(directory, format))
    problems.push("config is not the one this server writes: it was written anew");
  if (((await ifPresent(readdir(join(directory, "hooks")))) ?? []).length > 0) problems.push("hooks are planted");
  for (const name of names) {
    if (name === "hooks" || expectedEntries.has(name) || name.startsWith("tmp_") || name.endsWith(".lock")) continue;
    problems.push(`${printable(name)} does not belong in a repository`);
  }
  for (const file of plantedFiles) {
    if (await ifPresent(lstat(join(directory, file)))) problems.push(`${file} is planted`);
  }
  for (const link of await symbolicLinks(directory)) {
    problems.push(`${printable(relative(directory, link))} is a symbolic link`);
  }
  const result = await git.run(["fsck", "--no-dangling", "--no-progress"], { directory });
  if (result.code !== 0) {
    const lines = (result.stdout.toString("utf8") + result.stderr)
      .split("\n")
      .filter((line) => !/^(?:hint:|$)/.test(line));
    problems.push(...lines.slice(0, 20).map(printable));
  }
  return problems;
}

const printable = (text: string): string => text.replace(/[^\x20-\x7e]/g, "?").slice(0, 300);

async function symbolicLinks(folder: string): Promise<string[]> {
  const found: string[] = [];
  for (const entry of (await ifPresent(readdir(folder, { withFileTypes: true }))) ?? []) {
    const path = join(folder, entry.name);
    if (entry.isSymbolicLink()) found.push(path);
    else if (entry.isDirectory()) found.push(...(await symbolicLinks(path)));
  }
  return found;
}

const packFolder = "objects/pack";

async function isDamaged(git: Git, directory: string, pack: string): Promise<boolean> {
  const result = await git.run(["verify-pack", join(directory, packFolder, `${pack}.idx`)], { directory });
  if (result.code === undefined) throw new GitError("verify-pack", result);
  return result.code !== 0;
}

/**
 * Removes packs whose bytes no longer are what was written (threats.md, Faults), if everything the refs reach is whole
 * without them: until then they hold what can still be read. `trial`: an empty object directory, to see what is whole
 * without the damaged packs. True: no damaged pack is left.
 */
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
