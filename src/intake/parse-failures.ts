// A line for scripts about each announcement or state that cannot be read (purgatory.md, "Metrics and logs"). Fields are
// our own words and hexadecimal ids: nothing a stranger chose is in it.

import type { Logger } from "../config/logging.js";
import type { RefusalCode } from "../nostr/refusals.js";
import type { IntakeObserver } from "./intake.js";

const unreadable = new Set<RefusalCode>(["bad-announcement", "bad-state"]);

export const notingParseFailures = (observer: IntakeObserver, logger: Pick<Logger, "info">): IntakeObserver => ({
  ...observer,
  decided(event, source, answer) {
    observer.decided(event, source, answer);
    if (answer.ok || !unreadable.has(answer.code)) return;
    const { id, kind } = event;
    const text = `[PARSE_FAIL] id=${id} kind=${kind} source=${source.type} reason=${answer.code}`;
    logger.info({ id, kind }, text);
  },
});
