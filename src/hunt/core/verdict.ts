// What a fetch's result says about the server it was made at: working, broken in a lasting way, or nothing.
// Only two kinds of failure can make a git host naughty: no such name, and a bad certificate. "Not git" is a property
// of one path, and anybody could announce three wrong paths of a big forge.

import type { NaughtyPlaces } from "../../net/naughty.js";
import type { FetchResult, HuntCommand } from "./messages.js";
import type { HuntUrl } from "./select-urls.js";

/** Failures that a server can only cause by answering. */
const answered: ReadonlySet<string> = new Set([
  "not-git",
  "http-status",
  "fetch-failed",
  "bad-objects",
  "bad-response",
  "bad-redirect",
  "redirect-failed",
  "too-large",
]);

export function judgeResult(
  naughty: NaughtyPlaces,
  target: HuntUrl,
  { failure }: FetchResult,
  nowMs: number,
): HuntCommand[] {
  if (failure === undefined || answered.has(failure)) {
    naughty.worked(target.domain);
    naughty.worked(target.place);
  }
  if (failure === undefined || failure === "cancelled" || failure === "aborted") return [];
  const commands: HuntCommand[] = [
    { type: "log", level: "warn", message: "fetch failed", fields: { url: target.url, code: failure } },
  ];
  if (failure === "dns-temporary") naughty.dnsTrouble(target.domain, nowMs);
  if (failure !== "dns-missing" && failure !== "certificate") return commands;
  // A name is a host's; a certificate belongs to one port of it.
  const place = failure === "dns-missing" ? target.domain : target.place;
  const entry = naughty.failed(place, failure, failure === "dns-missing", nowMs);
  if (entry) commands.push({ type: "naughty", place, kind: failure, forMs: entry.untilMs - nowMs });
  return commands;
}
