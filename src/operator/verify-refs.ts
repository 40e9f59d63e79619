// A repository's branches and tags beside those of one other git server. Asked by our own requests, never by git:
// each hop through the outbound guard, a minute and 16 MiB at most (hunt/fetch-server.ts).

import type { RefTable } from "../git/types.js";
import { selectUrls } from "../hunt/core/fetch-plan.js";
import { lookUp, PlainHosts } from "../hunt/fetch-server.js";
import { guardWith } from "../net/guard.js";
import { systemResolver } from "../net/resolve.js";
import type { CloneUrl, ServiceName } from "../net/url.js";
import type { AdminParts } from "./parts.js";
import type { ComparedRef, GitCopy } from "./verified.js";

const maxMs = 60_000;
const idleMs = 30_000;
const maxRedirects = 3;
const maxRequests = 12;
const maxTold = 20;

/** What an announcement lists, in order, without ourselves; http and https only. */
export const gitServersOf = (clone: readonly string[], ours: readonly ServiceName[], max: number): CloneUrl[] =>
  selectUrls([{ isOwners: true, clone }], ours, {
    perAnnouncement: max,
    perHost: max,
    perRepository: max,
    perPullRequest: 0,
  }).map(({ url }) => url);

export async function verifyGitServer(
  { clock, reach }: AdminParts,
  url: CloneUrl,
  here: RefTable["refs"],
  signal: AbortSignal,
): Promise<GitCopy> {
  let requests = 1;
  const found = await lookUp(url, {
    clock,
    guard: guardWith({ resolve: systemResolver(clock), reach: reach() }),
    plainHosts: new PlainHosts(clock),
    totalMs: maxMs,
    idleMs,
    maxRedirects,
    mayConnect: async () => ++requests <= maxRequests,
    signal,
  });
  if (!found.ok) {
    return { url, standing: "not compared", refs: 0, differing: 0, differences: [], reason: found.code };
  }
  const there = new Map([...found.refs].filter(([ref]) => isStates(ref)));
  const differences = refsThatDiffer(new Map([...here].map(([ref, { oid }]) => [ref, oid])), there);
  return {
    url,
    standing: differences.length === 0 ? "same" : "differs",
    refs: there.size,
    differing: differences.length,
    differences: differences.slice(0, maxTold),
    reason: null,
  };
}

/** Pull requests' and other refs are no state's to decide: servers need not agree on them. */
const isStates = (ref: string): boolean => ref.startsWith("refs/heads/") || ref.startsWith("refs/tags/");

export function refsThatDiffer(here: ReadonlyMap<string, string>, there: ReadonlyMap<string, string>): ComparedRef[] {
  const names = [...new Set([...here.keys(), ...there.keys()])].filter(isStates).sort();
  return names.flatMap((ref) => {
    const compared = { ref, here: here.get(ref) ?? null, there: there.get(ref) ?? null };
    return compared.here === compared.there ? [] : [compared];
  });
}
