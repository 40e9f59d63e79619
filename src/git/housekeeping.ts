// Keeps a repository quick to clone (git-http.md, Serving, last point): packs joined geometrically under a multi-pack
// index with bitmap, a commit-graph, packed refs; now and then old garbage dropped. One step at a time; each may be
// cut short by the signal without harm.

import type { ObjectPlace } from "./objects.js";

const garbageGrace = "2.weeks.ago";
const wallClockMs = 60 * 60_000;

export async function housekeep(
  { git, directory }: ObjectPlace,
  options: { readonly cruft?: boolean; readonly signal?: AbortSignal },
  withRefsLocked: (packRefs: () => Promise<void>) => Promise<void>,
): Promise<boolean> {
  const call = { directory, limits: { wallClockMs }, ...(options.signal ? { signal: options.signal } : {}) };
  const repack: readonly [string, ...string[]] = options.cruft
    ? ["repack", "-d", "--cruft", `--cruft-expiration=${garbageGrace}`, "--write-midx", "--quiet"]
    : ["repack", "-d", "--geometric=2", "--write-midx", "--write-bitmap-index", "--quiet"];
  const steps: (readonly [string, ...string[]])[] = [repack, ["commit-graph", "write", "--reachable", "--no-progress"]];
  for (const step of steps) {
    options.signal?.throwIfAborted();
    await git.mustRun(step, call);
  }
  await withRefsLocked(async () => {
    await git.mustRun(["pack-refs", "--all"], call);
  });
  return true;
}
