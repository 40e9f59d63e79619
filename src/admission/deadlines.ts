// How long entries wait (purgatory.md, "Waiting room"). Pure arithmetic on seconds; sweeping is purgatory's.

import type { WaitingEntry, WaitingPhase } from "../catalogue/waiting.js";
import type { AdmissionCaps } from "./caps.js";

export interface Deadline {
  readonly phase: WaitingPhase;
  readonly expires: number;
}

/**
 * An announcement that came, was replaced, or whose clock restarts because an authorised state or a push arrived.
 * Endless replacement does not keep it alive: a day after the coordinate began to wait it goes soft.
 */
export function announcementDeadline(firstWaited: number, nowSeconds: number, caps: AdmissionCaps): Deadline {
  const last = firstWaited + caps.maxWaitSeconds;
  if (last <= nowSeconds) return { phase: "soft", expires: nowSeconds + caps.softSeconds };
  return { phase: "waiting", expires: Math.min(nowSeconds + caps.expirySeconds, last) };
}

/** The same entry with its clock restarted; a soft one is revived for a new day, because somebody asked for it. */
export function restarted(entry: WaitingEntry, nowSeconds: number, caps: AdmissionCaps): WaitingEntry {
  const firstWaited = entry.phase === "soft" ? nowSeconds : entry.firstWaited;
  return { ...entry, firstWaited, renewed: nowSeconds, ...announcementDeadline(firstWaited, nowSeconds, caps) };
}
