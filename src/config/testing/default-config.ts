// The configuration of a server whose operator sets nothing, for tests, benchmarks and simulations: every default comes
// from the settings themselves, so no room and no test keeps a second table of them.
//
//   const config = defaultConfig({ maxLimit: 10 });          // single settings changed
//   new Room({ limits: () => config })                       // a room takes Pick<Config, "maxLimit" | …>
//
// Two settings depend on the machine: here a log is not a terminal and there are two cores.

import type { Config } from "../config.js";
import { loadConfig } from "../load.js";

let loaded: Config | undefined;

export function defaultConfig(overrides: Partial<Config> = {}): Config {
  loaded ??= loadDefaults();
  return { ...loaded, ...overrides };
}

function loadDefaults(): Config {
  const surroundings = { logIsTerminal: false, cores: 2 };
  const result = loadConfig({
    flags: {},
    environment: {},
    configPath: undefined,
    readFile: () => "",
    surroundings,
  });
  if (!result.ok) throw new Error(`the defaults are not a valid configuration: ${JSON.stringify(result.problems)}`);
  return result.config;
}
