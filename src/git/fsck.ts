// What is wrong with a repository on disk: things planted in it (threats.md row 8), objects that are damaged or missing.
// Looks and tells. Repairs nothing but the config, which is ours and which the next git would obey.

import { lstat, readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { ifPresent, replaceFile } from "../base/durable-files.js";
import type { ObjectPlace } from "./objects.js";
import { identifierFile, repositoryConfig, unclaimedFolder } from "./repository-files.js";

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
]);

/** Nothing here writes them, and git would obey them: other objects, another history, programs to run on content. */
const plantedFiles = ["objects/info/alternates", "objects/info/http-alternates", "info/attributes", "info/grafts"];

export async function checkRepository({ git, directory }: ObjectPlace): Promise<string[]> {
  const problems: string[] = [];
  const names = await ifPresent(readdir(directory));
  if (!names) return ["the repository's directory is missing"];
  if ((await ifPresent(readFile(join(directory, "config"), "utf8"))) !== repositoryConfig) {
    problems.push("config is not the one this server writes: it was written anew");
    await replaceFile(join(directory, "config"), repositoryConfig);
  }
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
