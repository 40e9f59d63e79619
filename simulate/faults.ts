// Faults that were once here, each in the smallest world in which it shows, and the properties of which one must notice
// it. Faults that no relay and no reader of the status could see (speed, memory at start, the histogram of lag, ids that
// a failed job took along) have tests of their own and are not in this table.

import type { Manners } from "./model-relay.js";
import type { Hardships } from "./scenario.js";

export interface Fault {
  readonly was: string;
  readonly mistake: string;
  readonly properties: readonly number[];
  readonly hardships?: Partial<Hardships>;
  readonly manners?: Partial<Manners>;
  readonly hours?: number;
}

const hour = 3_600_000;
const honest: Partial<Manners> = { lies: [], negentropy: "yes", requestsPerMinute: 100_000 };

export const faults: readonly Fault[] = [
  {
    was: "rules of ours asked for full syncs",
    mistake: "rules-taken-for-trouble",
    properties: [7],
    hardships: { waitingPerOwner: 0 },
  },
  {
    was: "a full disk asked for full syncs",
    mistake: "trouble-without-patience",
    properties: [7],
    hardships: { diskFullMs: hour },
  },
  {
    was: "a busy relay was asked by ever smaller times",
    mistake: "halved-without-end",
    properties: [7],
    manners: { ...honest, negentropy: "busy" },
  },
  {
    was: "too many values were taken for too many requests",
    mistake: "values-taken-for-requests",
    properties: [4, 8],
    manners: { ...honest, maxValues: 3 },
  },
  {
    was: "a standstill was not noticed",
    mistake: "standstill-unnoticed",
    properties: [1, 8],
    hardships: { standstills: 3 },
    manners: honest,
  },
  {
    was: "rotation was forgotten",
    mistake: "no-rotation",
    properties: [1, 8],
    hardships: { fewFilters: true },
    manners: honest,
  },
  {
    was: "a relay that recovered was shown as dead",
    mistake: "once-dead-always-dead",
    properties: [8],
    hardships: { breaks: true },
  },
  {
    was: "a relay that refuses history was in step",
    mistake: "connected-is-in-step",
    properties: [8],
    manners: { ...honest, refusesHistory: true },
  },
  {
    was: "layer 4 never ran where links break",
    mistake: "layer-four-of-old-links",
    properties: [9],
    hardships: { breaks: true },
    manners: honest,
  },
  {
    was: "layer 4 never ran where the server restarts",
    mistake: "layer-four-of-old-links",
    properties: [9],
    hardships: { nightlyRestarts: true },
    manners: honest,
  },
  {
    was: "dead names kept their places",
    mistake: "places-for-ever",
    properties: [1, 5, 8],
    hardships: { deadNames: 40 },
  },
  {
    was: "a flood froze the owner's states",
    mistake: "no-room-for-states",
    properties: [1, 8],
    hardships: { flood: 100 },
    manners: honest,
  },
  {
    was: "a due round woke the core without end",
    mistake: "woken-every-millisecond",
    properties: [10],
    hardships: { fewFilters: true },
  },
  {
    was: "patience was taken for a failure",
    mistake: "patience-taken-for-failure",
    properties: [4, 8],
    manners: { ...honest, requestsPerMinute: 5, rateLimitBy: "notice" },
  },
  {
    was: "promised ids were given up",
    mistake: "promises-forgotten",
    properties: [1, 8],
    manners: { ...honest, withholds: 0.5 },
  },
  { was: "verdicts that got lost left offers", mistake: "lost-verdicts", properties: [6], manners: honest },
  {
    was: "an author welcome again was not asked for",
    mistake: "deaf-to-lists",
    properties: [1, 8],
    hardships: { bans: true },
    manners: honest,
  },
  { was: "states that a peer released late were missed", mistake: "no-look-back", properties: [1, 8], manners: honest },
];
