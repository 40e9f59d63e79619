// Settings from an environment alone, read again from it at a reload.

import { createLiveConfig, type LiveConfig, loadConfig } from "../../src/config/load.js";

export function liveConfigOf(environment: Readonly<Record<string, string>>): LiveConfig {
  const surroundings = { logIsTerminal: false, cores: 2 };
  const load = () => loadConfig({ flags: {}, environment, configPath: undefined, readFile: () => "", surroundings });
  const loaded = load();
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return createLiveConfig(loaded, load);
}
