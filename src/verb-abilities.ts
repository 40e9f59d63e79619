// What verbs can do on this machine. Each ability loads its rooms when a verb uses it: `holdfast status` must not wait
// for a whole server.

import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { systemClock } from "./base/clock.js";
import type { Abilities, BuildInfo, Terminal } from "./cli/abilities.js";

export function abilitiesOn(terminal: Terminal, environment: Abilities["environment"], umask = 0o022): Abilities {
  const build = buildInfo();
  const cores = availableParallelism();
  const clock = systemClock;
  return {
    terminal,
    environment,
    umask,
    clock,
    build,
    cores,
    async serve(loaded, load, { openPrivateData, greets }) {
      const { runServer } = await import("./run-until-signal.js");
      return await runServer({
        loaded,
        load,
        clock,
        start: async (parts) => {
          const all = { ...parts, clock, build, cores, openPrivateData };
          if (loaded.config.databaseBackend === "postgres") {
            const { startClusterServer } = await import("./start-cluster.js");
            return await startClusterServer(all);
          }
          const { startServer } = await import("./server.js");
          return await startServer(all);
        },
        version: build.version,
        ...(greets && {
          async listening(server) {
            const [{ greetingText, hasColour }, { publicUrls }, { dirname, resolve }] = await Promise.all([
              import("./cli/greeting.js"),
              import("./config/config.js"),
              import("node:path"),
            ]);
            const { config } = loaded;
            const { http, relay } = publicUrls(config);
            const folders = new Set([config.relayDataPath, config.gitDataPath].map((path) => dirname(resolve(path))));
            const data = config.databaseBackend === "memory" ? undefined : [...folders].join(", ");
            const login = (await server.loginLink?.()) ?? "holdfast admin link";
            const greeted = { version: build.version, page: http, relay, data, login };
            terminal.error(greetingText(greeted, hasColour(environment)));
          },
        }),
      });
    },
    async openOperator(config, store) {
      const { openOperator } = await import("./offline.js");
      return await openOperator(config, store, clock);
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
