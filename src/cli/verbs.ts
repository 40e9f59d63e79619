// All verbs, in the order of the help. A verb is loaded when it is called or when all are listed: `holdfast version`
// must not wait for the rooms of a backup. A new verb is one file and one line here.

import type { Verb } from "./abilities.js";

export const verbs: Readonly<Record<string, () => Promise<Verb>>> = {
  serve: async () => (await import("./verbs/serve.js")).serve,
  config: async () => (await import("./verbs/config.js")).config,
  doctor: async () => (await import("./verbs/doctor.js")).doctor,
  status: async () => (await import("./verbs/status.js")).status,
  repos: async () => (await import("./verbs/repos.js")).repos,
  purgatory: async () => (await import("./verbs/purgatory.js")).purgatory,
  relays: async () => (await import("./verbs/relays.js")).relays,
  why: async () => (await import("./verbs/why.js")).why,
  lists: async () => (await import("./verbs/lists.js")).lists,
  ban: async () => (await import("./verbs/ban.js")).ban,
  unban: async () => (await import("./verbs/ban.js")).unban,
  admin: async () => (await import("./verbs/admin.js")).admin,
  events: async () => (await import("./verbs/events.js")).events,
  sync: async () => (await import("./verbs/sync.js")).sync,
  mirror: async () => (await import("./verbs/mirror.js")).mirror,
  backup: async () => (await import("./verbs/backup.js")).backup,
  restore: async () => (await import("./verbs/restore.js")).restore,
  compact: async () => (await import("./verbs/compact.js")).compact,
  bench: async () => (await import("./verbs/bench.js")).bench,
  completion: async () => (await import("./verbs/completion.js")).completion,
  version: async () => (await import("./verbs/version.js")).version,
};
