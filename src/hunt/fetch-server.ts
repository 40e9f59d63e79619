// One `fetch` command of the core, from the first look to the last object: look up what the server has, then ask for
// ids in the order FetchPlan gives, each group through a quarantine of its own. What came before a failure stays.

import type { Clock } from "../base/clock.js";
import { fetchFromRemote, type RemoteFetchLimits } from "../git/fetch-remote.js";
import type { GitRepository } from "../git/repository.js";
import type { Git } from "../git/run.js";
import type { Guard } from "../net/guard.js";
import type { CloneUrl } from "../net/url.js";
import type { Oid } from "../nostr/ids.js";
import type { FetchLimits } from "./core/config.js";
import { FetchPlan } from "./core/fetch-plan.js";
import type { FetchFailureCode, FetchResult } from "./core/messages.js";
import { type LookUp, lookUp } from "./look-up.js";
import type { PlainHosts } from "./plain-hosts.js";

export interface ServerFetchParts {
  readonly git: Git;
  readonly clock: Clock;
  readonly guard: Guard;
  readonly plainHosts: PlainHosts;
  readonly limits: FetchLimits;
  readonly maxRequests: number;
  readonly scratchRoot: string;
  /** Every git process that fetched, for the metrics. */
  readonly fetched: (bytes: number, seconds: number) => void;
}

export interface ServerFetch {
  readonly url: CloneUrl;
  readonly ids: readonly Oid[];
  readonly maxBytes: number;
  /** Known not to be enough. */
  readonly tooFewBytes: number;
  readonly repository: GitRepository;
  readonly trustRefs: boolean;
  readonly mayConnect: (host: string) => Promise<boolean>;
  readonly signal: AbortSignal;
}

export type ServerFetchResult = FetchResult & { readonly bytes: number };

/** Repositories here are SHA-1: a longer id is on no server for us. */
const sha1Digits = 40;

export async function fetchFromServer(parts: ServerFetchParts, fetch: ServerFetch): Promise<ServerFetchResult> {
  if (fetch.maxBytes <= fetch.tooFewBytes) return { arrived: [], refused: [], failure: "too-large", bytes: 0 };
  let connections = 1;
  const mayConnect = async (host: string): Promise<boolean> => {
    const granted = await fetch.mayConnect(host);
    if (granted) connections++;
    return granted;
  };
  const { limits } = parts;
  const found = await lookUp(fetch.url, {
    ...parts,
    totalMs: Math.min(60_000, limits.totalMs),
    idleMs: limits.slowForMs,
    maxRedirects: limits.maxRedirects,
    mayConnect,
    signal: fetch.signal,
  });
  if (!found.ok) return { arrived: [], refused: [], failure: found.code, bytes: 0 };
  const ids = fetch.ids.filter((id) => id.length === sha1Digits);
  // Nothing is there at all: asking for ids one by one would only spend connections.
  if (found.advertised.size === 0) return { arrived: [], refused: ids, bytes: 0 };
  const requests = parts.maxRequests - connections;
  const plan = new FetchPlan(ids, found.advertised, { requests, unadvertised: limits.maxUnadvertised });
  return await followPlan(parts, fetch, found, plan, mayConnect);
}

async function followPlan(
  parts: ServerFetchParts,
  fetch: ServerFetch,
  found: LookUp & { readonly ok: true },
  plan: FetchPlan,
  mayConnect: (host: string) => Promise<boolean>,
): Promise<ServerFetchResult> {
  let bytes = 0;
  let failure: FetchFailureCode | undefined;
  for (let ids = plan.next(); ids && failure === undefined; ids = failure === undefined ? plan.next() : undefined) {
    if (!(await mayConnect(found.url.hostname))) {
      plan.report("failed");
      break;
    }
    const limits: RemoteFetchLimits = { ...parts.limits, maxBytes: Math.max(0, fetch.maxBytes - bytes) };
    const startedMs = parts.clock.monotonicMs();
    const { repository, trustRefs, signal } = fetch;
    const result = await fetchFromRemote({ ...parts, repository, trustRefs, signal, url: found.url, ids, limits });
    bytes += result.bytes;
    parts.fetched(result.bytes, (parts.clock.monotonicMs() - startedMs) / 1_000);
    plan.report(result.outcome);
    if (result.outcome === "failed") failure = result.code === "aborted" ? "cancelled" : result.code;
  }
  const { arrived, refused } = plan;
  const tooFew = failure === "too-large" ? { tooFewBytes: fetch.maxBytes } : {};
  return { arrived, refused, bytes, ...tooFew, ...(failure === undefined ? {} : { failure }) };
}
