// What is worked out from the settings: once for each version of them, however often it is asked for.

import type { Config } from "../config/config.js";

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
