// How far outbound connections may go, by settings: one answer for sync and hunt (threats.md row 4).

import type { Config } from "../config/config.js";
import type { Reach } from "../net/address.js";

export const reachOf = (config: Config): Reach =>
  config.allowPrivateAddresses ? "private" : config.test ? "loopback" : "public";
