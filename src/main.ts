// The entry point: what verbs can do in this process, and which rooms a server is made of.

import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { createInterface } from "node:readline";
import { systemClock } from "./base/clock.js";
import type { Abilities, BuildInfo, Terminal } from "./cli/abilities.js";
import { runCommandLine } from "./cli/run.js";
import { Launcher } from "./git/launcher.js";
import { Git, GitTooOldError } from "./git/run.js";
import { createVerifierPool } from "./nostr/verify/pool.js";
import { runServer } from "./process-life.js";
import { openStore } from "./wiring/open-store.js";
import { keepPrivate } from "./wiring/private-data.js";

const terminal: Terminal = {
  out: (text) =>
    new Promise((resolve) => {
      process.stdout.write(text, () => resolve());
    }),
  error: (text) => void process.stderr.write(text),
  showsProgress: process.stderr.isTTY === true,
  columns: process.stderr.columns ?? process.stdout.columns ?? 100,
  // A generator, so that reading begins when somebody listens: readline throws away what comes before that.
  async *lines() {
    yield* createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY });
  },
};

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
  const launcher = new Launcher();
  try {
    return await work(await Git.find(launcher));
  } finally {
    await launcher.close();
  }
}

async function gitVersion(): ReturnType<Abilities["gitVersion"]> {
  try {
    return { ok: true, version: await withGit(async ({ version }) => version) };
  } catch (error) {
    if (error instanceof GitTooOldError) return { ok: false, reason: error.message };
    throw error;
  }
}

keepPrivate();
const build = buildInfo();

// Rooms are loaded by the verb that needs them: `holdfast status` should not wait for a whole server.
const abilities: Abilities = {
  terminal,
  environment: process.env,
  clock: systemClock,
  build,
  cores: availableParallelism(),
  serve: (loaded, load) =>
    runServer({
      loaded,
      load,
      clock: systemClock,
      start: async (parts) => {
        const { startServer } = await import("./start.js");
        return await startServer({ ...parts, clock: systemClock, build, cores: availableParallelism() });
      },
      isHandledElsewhere: () => false,
      version: build.version,
    }),
  openStore: (config) => openStore(config, systemClock),
  openOperator: async (config, store) => {
    const { openOperator } = await import("./wiring/offline-operator.js");
    return await openOperator(config, store, systemClock);
  },
  createVerifier: () => createVerifierPool({ workers: Math.max(1, availableParallelism() - 1) }),
  openImport: async (config, store) => {
    const { openImport } = await import("./wiring/offline-import.js");
    return await openImport(config, store, systemClock);
  },
  startTemporary: async (folder) => {
    const { startTemporary } = await import("./wiring/temporary-server.js");
    return await startTemporary(folder, systemClock, availableParallelism());
  },
  withGit,
  gitVersion,
};

// A reader that closes the pipe early (`holdfast config show | head`) is not a fault.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));

process.exitCode = await runCommandLine(process.argv, abilities);
