// Sync's numbers as a server has them whose operator sets nothing, with what a test or the simulator wants otherwise.

import { defaultConfig } from "../../../config/testing/default-config.js";
import { type SyncConfig, syncConstants } from "../config.js";

export const syncConfig = (given: Partial<SyncConfig>): SyncConfig => ({
  ...defaultConfig(),
  ...syncConstants,
  ownServices: [],
  bootstrap: [],
  indexRelays: [],
  fallbackRelays: [],
  rules: "",
  ...given,
});
