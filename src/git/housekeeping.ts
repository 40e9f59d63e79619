// Keeps a repository quick to clone (git-http.md, Serving, last point): packs joined geometrically under a multi-pack
// index with bitmap, a commit-graph, packed refs; now and then old garbage dropped. Each step is worth something by
// itself, so that work which gives way to a push loses only the step it was in. When to do it is housekeeping-due.ts.

import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { ifPresent } from "../base/durable-files.js";
import type { ObjectPlace } from "./objects.js";
import { sweepPacks } from "./repository-files.js";
import { GitError, type GitResult } from "./run.js";
import type { HousekeepingOptions, HousekeepingOutcome, PackFacts } from "./types.js";

const defaultGraceDays = 14;
/** Enough to see that they should be packed. */
const maxLooseRefsCounted = 1_000;

const wallClockMs = 60 * 60_000;
const memoryBytes = 2 * 2 ** 30;
/** Behind whatever serves somebody. */
const niceness = 10;
/** One core at most, and a small part of the memory: nobody waits for it. */
const modest = { "pack.threads": "1", "pack.windowMemory": "64m", "pack.deltaCacheSize": "64m" };

type Arguments = readonly [string, ...string[]];

const repackArguments = ({ cruft, graceDays = defaultGraceDays }: HousekeepingOptions): Arguments =>
  cruft
    ? [
        "repack",
        "-d",
        "-n",
        "--cruft",
        `--cruft-expiration=${graceDays}.days.ago`,
        "--no-write-bitmap-index",
        "--quiet",
      ]
    : ["repack", "-d", "-n", "--geometric=2", "--quiet"];

export async function housekeep(
  { git, directory }: ObjectPlace,
  options: HousekeepingOptions & { readonly signal: AbortSignal },
  withRefsLocked: (packRefs: () => Promise<void>) => Promise<void>,
): Promise<HousekeepingOutcome> {
  const { signal } = options;
  const call = { directory, settings: modest, limits: { wallClockMs, memoryBytes, niceness }, signal };
  const step = async (args: Arguments): Promise<void> => {
    signal.throwIfAborted();
    const result: GitResult = await git.run(args, call);
    signal.throwIfAborted();
    if (result.code !== 0) throw new GitError(args[0], result);
  };
  try {
    await step(repackArguments(options));
    if ((await packFactsOf(directory)).packs > 0) await step(["multi-pack-index", "write", "--bitmap"]);
    await step(["commit-graph", "write", "--reachable", "--no-progress"]);
    await withRefsLocked(() => step(["pack-refs", "--all"]));
    return "done";
  } catch (error) {
    // What a killed git leaves would lie there until the next start.
    // Beside a push nothing is swept: its packs may be on their way into place.
    if (!options.insists) await sweepPacks(directory);
    if (signal.aborted) return "interrupted";
    throw error;
  }
}

export async function packFactsOf(directory: string): Promise<PackFacts> {
  const folder = join(directory, "objects/pack");
  const names = ((await ifPresent(readdir(folder))) ?? []).filter((name) => !/^\.?tmp[-_]/.test(name));
  const present = new Set(names);
  const packs = names.filter((name) => name.endsWith(".idx")).map((name) => name.slice(0, -".idx".length));
  let bytes = 0;
  for (const name of names) bytes += (await ifPresent(stat(join(folder, name))))?.size ?? 0;
  const garbage = packs.filter((pack) => present.has(`${pack}.mtimes`)).length;
  return {
    packs: packs.length - garbage,
    bytes,
    hasBitmap: present.has("multi-pack-index") && names.some((name) => /^multi-pack-index-.*\.bitmap$/.test(name)),
    hasGarbagePack: garbage > 0,
    looseRefs: await looseRefsBelow(join(directory, "refs"), maxLooseRefsCounted),
  };
}

async function looseRefsBelow(folder: string, max: number): Promise<number> {
  let count = 0;
  for (const entry of (await ifPresent(readdir(folder, { withFileTypes: true }))) ?? []) {
    if (count >= max) break;
    count += entry.isDirectory() ? await looseRefsBelow(join(folder, entry.name), max - count) : 1;
  }
  return count;
}
