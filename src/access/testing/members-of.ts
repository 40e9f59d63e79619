// Members for tests: of a public service unless private settings are given; nobody is banned.

import type { Config } from "../../config/config.js";
import { defaultConfig } from "../../config/testing/default-config.js";
import type { Pubkey } from "../../nostr/event.js";
import { Members } from "../members.js";

export const membersOf = (
  config: () => Config = defaultConfig,
  { serverKey = "0".repeat(64) as Pubkey, banned = new Set<Pubkey>(), admins = new Set<Pubkey>() } = {},
): Members =>
  new Members({ inForce: config, serverKey, adminKeys: () => admins, isBanned: (pubkey) => banned.has(pubkey) });
