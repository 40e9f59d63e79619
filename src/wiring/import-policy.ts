// What `events import` asks of an event: this server's rules, without the bounds that protect it from strangers. What is
// nothing to this server is the operator's own wish and stored all the same. An announcement that lists this service and
// states of it wait for their data, as if a client had sent them.

import type { AdmissionPolicy } from "../admission/verdict.js";
import { isEphemeral } from "../nostr/event.js";
import type { RefusalCode } from "../nostr/refusals.js";

/** Refusals that only say: this concerns no repository here. */
const nothingToUs = new Set<RefusalCode>(["service-not-listed", "unrelated", "no-announcement", "not-a-maintainer"]);

/** `forImports`: the same rules with the operator's bounds. */
export function storingImports(everyones: AdmissionPolicy, forImports: AdmissionPolicy): AdmissionPolicy {
  return async (event, context) => {
    if (context.source.type !== "import") return everyones(event, context);
    const verdict = await forImports(event, context);
    const isWished = !verdict.ok && nothingToUs.has(verdict.code) && !isEphemeral(event.kind);
    return isWished ? { ok: true, action: "store", rule: "import" } : verdict;
  };
}
