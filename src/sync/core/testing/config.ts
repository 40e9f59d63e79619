// Sync's numbers as a server has them whose operator sets nothing, with what a test or the simulator wants otherwise.

import { defaultConfig } from "../../../config/testing/default-config.js";
import { type SyncConfig, syncConstants } from "../config.js";

export const syncConfig = (given: Partial<SyncConfig>): SyncConfig => ({
  ...defaultConfig(),
  ...syncConstants,
  // The setting's default is 15 minutes. Peers release events up to half an hour after they were made: with less than
  // that, a relay that refuses `limit: 0` is shown in step while events of it are missing (property 8).
  syncLiveLookbackSecs: 3_600,
  ownServices: [],
  bootstrap: [],
  rules: "",
  ...given,
});
