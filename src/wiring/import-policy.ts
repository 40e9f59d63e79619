// What `events import` asks of an event beyond a good signature: nothing, except that what stands for git data obeys this
// server's rules. An announcement that lists this service waits for its data and gets its repository at the next start;
// a state is not served before its refs are here. What is nothing to this server is the operator's own wish and stored.

import type { AdmissionPolicy } from "../admission/policy.js";
import type { Config } from "../config/config.js";
import { kinds } from "../nostr/kinds.js";
import type { RefusalCode } from "../nostr/refusals.js";
import { offlinePolicy } from "./offline-policy.js";

const standsForGit = new Set<number>([kinds.announcement, kinds.state, kinds.pullRequest, kinds.pullRequestUpdate]);

/** Refusals that only say: this concerns no repository here. */
const nothingToUs = new Set<RefusalCode>(["service-not-listed", "unrelated", "no-announcement", "not-a-maintainer"]);

export function importPolicy(config: Config): AdmissionPolicy {
  const server = offlinePolicy(config, { whole: true });
  return async (event, context) => {
    const verdict = server && standsForGit.has(event.kind) ? await server(event, context) : undefined;
    const isForeign = verdict && !verdict.ok && nothingToUs.has(verdict.code);
    return verdict && !isForeign ? verdict : { ok: true, action: "store", rule: "import" };
  };
}
