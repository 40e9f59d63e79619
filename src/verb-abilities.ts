// What verbs can do on this machine. Each ability loads its rooms when a verb uses it: `holdfast status` must not wait
// for a whole server.

import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { systemClock } from "./base/clock.js";
import type { Abilities, BuildInfo, Terminal } from "./cli/abilities.js";
import type { Git } from "./git/run.js";

export function abilitiesOn(terminal: Terminal, environment: Abilities["environment"]): Abilities {
  const build = buildInfo();
  const cores = availableParallelism();
  const clock = systemClock;
  return {
    terminal,
    environment,
    clock,
    build,
    cores,
    async serve(loaded, load) {
      const { runServer } = await import("./run-until-signal.js");
      return await runServer({
        loaded,
        load,
        clock,
        start: async (parts) => {
          const { startServer } = await import("./server.js");
          return await startServer({ ...parts, clock, build, cores });
        },
        isHandledElsewhere: () => false,
        version: build.version,
      });
    },
    async openStore(config) {
      const { openStore } = await import("./store/open-store.js");
      return await openStore(config, clock);
    },
    async openOperator(config, store) {
      const { openOperator } = await import("./offline.js");
      return await openOperator(config, store, clock);
    },
    async createVerifier() {
      const { createVerifierPool } = await import("./nostr/verify/pool.js");
      return await createVerifierPool({ workers: Math.max(1, cores - 1) });
    },
    async openImport(config, store) {
      const { openImport } = await import("./offline.js");
      return await openImport(config, store, clock);
    },
    async startTemporary(folder) {
      const [{ startTemporary }, { startServer }] = await Promise.all([
        import("./bench/measure.js"),
        import("./server.js"),
      ]);
      return await startTemporary(folder, cores, (parts) => startServer({ ...parts, clock, cores }));
    },
    withGit,
    gitVersion,
  };
}

/** package.json stands two folders above the compiled file; the commit is noted when the program is built. */
function buildInfo(): BuildInfo {
  const read = (path: string): Record<string, unknown> => {
    try {
      return JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8")) as Record<string, unknown>;
    } catch {
      return {};
    }
  };
  return {
    version: String(read("../../package.json").version ?? "unknown"),
    commit: String(read("../build.json").commit ?? "unknown"),
  };
}

async function withGit<T>(work: (git: Git) => Promise<T>): Promise<T> {
  const [{ Launcher }, { Git }] = await Promise.all([import("./git/launcher.js"), import("./git/run.js")]);
  const launcher = new Launcher();
  try {
    return await work(await Git.find(launcher));
  } finally {
    await launcher.close();
  }
}

async function gitVersion(): ReturnType<Abilities["gitVersion"]> {
  const { GitTooOldError } = await import("./git/run.js");
  try {
    return { ok: true, version: await withGit(async ({ version }) => version) };
  } catch (error) {
    if (error instanceof GitTooOldError) return { ok: false, reason: error.message };
    throw error;
  }
}
