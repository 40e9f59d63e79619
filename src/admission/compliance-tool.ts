// Events of the public compliance tool, and their repositories, are kept for 2 h (purgatory.md, "Waiting room").

import { type NostrEvent, tagValues } from "../nostr/event.js";

export const complianceTag = "grasp-audit-test-event";

export const isOfComplianceTool = (event: NostrEvent): boolean => tagValues(event, "t").includes(complianceTag);
