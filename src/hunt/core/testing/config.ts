// The hunt's numbers as a server has them whose operator sets nothing, with what a test wants otherwise.

import { defaultConfig } from "../../../config/testing/default-config.js";
import { type HuntConfig, huntConstants } from "../messages.js";

export const huntConfig = (given: Partial<HuntConfig> = {}): HuntConfig => ({
  ...defaultConfig(),
  ...huntConstants,
  ours: [],
  ...given,
});
