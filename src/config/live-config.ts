// The configuration of a running server: what it is now, and what a reload changes.
// Rooms that follow a reloadable setting are given a function that reads it here, or are told by `onChange`.

import type { Config } from "./config.js";
import type { LoadedConfig, LoadResult } from "./load.js";
import type { Problem } from "./problem.js";
import { allSettings, type SettingName } from "./schema.js";

export type ReloadResult =
  | {
      readonly ok: true;
      readonly changed: readonly SettingName[];
      /** Written differently now, but fixed until the next start. */
      readonly needsRestart: readonly SettingName[];
      readonly warnings: readonly string[];
    }
  | { readonly ok: false; readonly problems: readonly Problem[] };

export interface LiveConfig {
  readonly current: Config;
  /** Reads everything anew. Faults change nothing. */
  reload(): ReloadResult;
  onChange(listener: (config: Config, changed: readonly SettingName[]) => void): () => void;
}

export function createLiveConfig(initial: LoadedConfig, load: () => LoadResult): LiveConfig {
  let current = initial.config;
  const listeners = new Set<(config: Config, changed: readonly SettingName[]) => void>();
  return {
    get current() {
      return current;
    },
    reload() {
      const loaded = load();
      if (!loaded.ok) return { ok: false, problems: loaded.problems };
      const differing = allSettings.filter(
        ({ property }) => JSON.stringify(current[property]) !== JSON.stringify(loaded.config[property]),
      );
      const changing = differing.filter((setting) => setting.reloadable);
      const taken = changing.map(({ property }) => [property, loaded.config[property]]);
      const changed = changing.map((setting) => setting.name);
      if (changed.length > 0) {
        current = { ...current, ...Object.fromEntries(taken) };
        for (const listener of listeners) listener(current, changed);
      }
      const needsRestart = differing.filter((setting) => !setting.reloadable).map((setting) => setting.name);
      return { ok: true, changed, needsRestart, warnings: loaded.warnings };
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** What is worked out from the settings: once for each version of them, however often it is asked for. */
export function memo<T>(current: () => Config, derive: (config: Config) => T): () => T {
  let from: Config | undefined;
  let value: T;
  return () => {
    const config = current();
    if (from !== config) {
      from = config;
      value = derive(config);
    }
    return value;
  };
}
