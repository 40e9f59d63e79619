// All verbs, in the order of the help. A new verb is one file and one line here.

import type { Verb } from "./abilities.js";
import { admin } from "./verbs/admin.js";
import { backup } from "./verbs/backup.js";
import { ban, unban } from "./verbs/ban.js";
import { bench } from "./verbs/bench.js";
import { compact } from "./verbs/compact.js";
import { completion } from "./verbs/completion.js";
import { config } from "./verbs/config.js";
import { doctor } from "./verbs/doctor.js";
import { events } from "./verbs/events.js";
import { lists } from "./verbs/lists.js";
import { mirror } from "./verbs/mirror.js";
import { purgatory } from "./verbs/purgatory.js";
import { relays } from "./verbs/relays.js";
import { repos } from "./verbs/repos.js";
import { restore } from "./verbs/restore.js";
import { serve } from "./verbs/serve.js";
import { status } from "./verbs/status.js";
import { sync } from "./verbs/sync.js";
import { version } from "./verbs/version.js";
import { why } from "./verbs/why.js";

export const verbs: readonly Verb[] = [
  serve,
  config,
  doctor,
  status,
  repos,
  purgatory,
  relays,
  why,
  lists,
  ban,
  unban,
  admin,
  events,
  sync,
  mirror,
  backup,
  restore,
  compact,
  bench,
  completion,
  version,
];
