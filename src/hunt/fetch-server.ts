// One `fetch` command of the core, from the first look to the last object: look up what the server has, then ask for
// ids in the order FetchPlan gives, each group through a quarantine of its own. What came before a failure stays. What
// a server has is asked by our own requests: `info/refs`, then `ls-refs` where protocol 2 is spoken. Redirects are
// followed here and nowhere else, every hop through the outbound guard; git is handed the end of the chain. Every
// connection after the first is asked for. purgatory.md "Hunting", Fetch; threats.md row 4.

import type { Clock } from "../base/clock.js";
import {
  advertisementType,
  infoRefsSuffix,
  lsRefsQuestion,
  lsRefsTypes,
  type RemoteRefs,
  readAdvertisement,
  readLsRefs,
} from "../git/fetch-advertised.js";
import { fetchFromRemote, type RemoteFetchLimits } from "../git/fetch-remote.js";
import type { GitRepository } from "../git/repository.js";
import type { Git } from "../git/run.js";
import type { DialFailureCode } from "../net/failure.js";
import type { Guard, GuardedUrl } from "../net/guard.js";
import { followRedirects, type HttpOptions, httpRequest } from "../net/http.js";
import type { CloneUrl } from "../net/url.js";
import type { Oid } from "../nostr/nip34.js";
import { FetchPlan, spellingsToTry } from "./core/fetch-plan.js";
import type { FetchFailureCode, FetchResult, HuntConfig } from "./core/messages.js";

export interface ServerFetchParts {
  readonly git: Git;
  readonly clock: Clock;
  readonly guard: Guard;
  readonly plainHosts: PlainHosts;
  readonly config: HuntConfig;
  readonly scratchRoot: string;
  /** Every git process that fetched, for the metrics. */
  readonly fetched: (bytes: number, seconds: number) => void;
}

interface ServerFetch {
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
  const { config } = parts;
  const found = await lookUp(fetch.url, {
    ...parts,
    totalMs: Math.min(60_000, config.gitHuntTotalSecs * 1_000),
    idleMs: config.gitHuntSlowSecs * 1_000,
    maxRedirects: config.gitHuntMaxRedirects,
    mayConnect,
    signal: fetch.signal,
  });
  if (!found.ok) return { arrived: [], refused: [], failure: found.code, bytes: 0 };
  const ids = fetch.ids.filter((id) => id.length === sha1Digits);
  // Nothing is there at all: asking for ids one by one would only spend connections.
  if (found.advertised.size === 0) return { arrived: [], refused: ids, bytes: 0 };
  const requests = config.gitHuntMaxRequests - connections;
  const plan = new FetchPlan(ids, found.advertised, { requests, unadvertised: config.gitHuntMaxUnadvertised });
  return await followPlan(parts, fetch, found, plan, mayConnect);
}

async function followPlan(
  parts: ServerFetchParts,
  fetch: ServerFetch,
  found: LookUp & { readonly ok: true },
  plan: FetchPlan,
  mayConnect: (host: string) => Promise<boolean>,
): Promise<ServerFetchResult> {
  const { config } = parts;
  let bytes = 0;
  let failure: FetchFailureCode | undefined;
  for (let ids = plan.next(); ids && failure === undefined; ids = failure === undefined ? plan.next() : undefined) {
    if (!(await mayConnect(found.url.hostname))) {
      plan.report("failed");
      break;
    }
    const limits: RemoteFetchLimits = {
      totalMs: config.gitHuntTotalSecs * 1_000,
      minBytesPerSecond: config.gitHuntMinBytesPerSecond,
      slowForMs: config.gitHuntSlowSecs * 1_000,
      maxObjects: config.gitHuntMaxObjects,
      gitMemoryBytes: config.gitMemoryBytes,
      maxBytes: Math.max(0, fetch.maxBytes - bytes),
    };
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

interface LookUpParts {
  readonly clock: Clock;
  readonly guard: Guard;
  readonly plainHosts: PlainHosts;
  readonly totalMs: number;
  readonly idleMs: number;
  readonly maxRedirects: number;
  /** Leave for one more connection to that host. */
  readonly mayConnect: (host: string) => Promise<boolean>;
  readonly signal: AbortSignal;
}

type LookUp =
  | {
      readonly ok: true;
      readonly url: GuardedUrl;
      readonly advertised: ReadonlySet<Oid>;
      readonly refs: RemoteRefs["refs"];
    }
  | { readonly ok: false; readonly code: FetchFailureCode };

const maxAnswerBytes = 16 * 2 ** 20;
const agent = "git/2.40 (holdfast)";

const failed = (code: FetchFailureCode): LookUp => ({ ok: false, code });

/** https first, also where an announcement wrote http; plain hosts are remembered, so that this costs them one look. */
export async function lookUp(cloneUrl: CloneUrl, parts: LookUpParts): Promise<LookUp> {
  const { host } = new URL(cloneUrl);
  const isPlain = parts.plainHosts.has(host);
  const spellings = isPlain ? [cloneUrl] : spellingsToTry(cloneUrl);
  let last = failed("bad-url");
  for (const [index, spelling] of spellings.entries()) {
    if (index > 0 && !(await parts.mayConnect(new URL(spelling).hostname))) return failed("cancelled");
    last = await askOne(spelling, parts);
    const isLast = index === spellings.length - 1;
    if (last.ok && index > 0) parts.plainHosts.add(host);
    if (last.ok || isLast || !mayBePlain(last.code)) return last;
  }
  return last;
}

/** What a host says that does not speak https at that port. A name that does not exist has no other spelling. */
const mayBePlain = (code: FetchFailureCode): boolean =>
  ["tls", "refused", "reset", "timeout", "certificate", "bad-response", "not-git", "http-status"].includes(code);

async function askOne(spelling: CloneUrl, parts: LookUpParts): Promise<LookUp> {
  // Counted at the guard: a redirect to a name that does not exist must not be blamed on the host that sent it.
  let hops = 0;
  const answer = await followRedirects(`${spelling}${infoRefsSuffix}`, {
    guard: (url) => {
      hops++;
      return parts.guard(url);
    },
    maxRedirects: parts.maxRedirects,
    request: (url) =>
      httpRequest(url, { ...httpOptions(parts), headers: { "git-protocol": "version=2", "user-agent": agent } }),
    mayConnect: (url) => parts.mayConnect(url.hostname),
  });
  const blame = (code: FetchFailureCode): LookUp => failed(hops > 1 ? "redirect-failed" : code);
  if (!answer.ok) return blame(parts.signal.aborted ? "cancelled" : answer.code);
  if (answer.status !== 200) return blame(codeOfStatus(answer.status));
  if (!isType(answer.headers["content-type"], advertisementType)) return blame("not-git");
  const advertisement = readAdvertisement(answer.body);
  if (!advertisement || !answer.url.href.endsWith(infoRefsSuffix)) return blame("not-git");
  // What redirects led to is checked again under its own name: git dials it next.
  const base = await parts.guard(answer.url.href.slice(0, -infoRefsSuffix.length));
  if (!base.ok) return blame(base.code);
  const found = ({ ids, refs }: RemoteRefs): LookUp => ({ ok: true, url: base.url, advertised: ids, refs });
  if (advertisement.type === "refs") return found(advertisement);
  if (!(await parts.mayConnect(base.url.hostname))) return failed("cancelled");
  const listed = await askLsRefs(base.url, parts);
  return "code" in listed ? blame(listed.code) : found(listed);
}

async function askLsRefs(
  base: GuardedUrl,
  parts: LookUpParts,
): Promise<RemoteRefs | { readonly code: FetchFailureCode }> {
  const target = await parts.guard(`${base.href}/git-upload-pack`);
  if (!target.ok) return { code: target.code };
  const headers = {
    "git-protocol": "version=2",
    "content-type": lsRefsTypes.request,
    accept: lsRefsTypes.answer,
    "user-agent": agent,
  };
  const answer = await httpRequest(target.url, { ...httpOptions(parts), headers, body: lsRefsQuestion() });
  if (!answer.ok) return { code: parts.signal.aborted ? "cancelled" : answer.code };
  if (answer.status !== 200) return { code: codeOfStatus(answer.status) };
  const listed = isType(answer.headers["content-type"], lsRefsTypes.answer) ? readLsRefs(answer.body) : undefined;
  return listed ?? { code: "not-git" };
}

const httpOptions = ({ clock, totalMs, idleMs, signal }: LookUpParts): HttpOptions => ({
  clock,
  totalMs,
  idleMs,
  maxBodyBytes: maxAnswerBytes,
  signal,
});

const isType = (value: string | undefined, type: string): boolean => value?.split(";")[0]?.trim() === type;

/** Busy, closed or broken says nothing of what is there; 404 and the like say that it is no repository. */
const codeOfStatus = (status: number): DialFailureCode | "not-git" =>
  [401, 403, 408, 429].includes(status) || status >= 500 ? "http-status" : "not-git";

const rememberMs = 3_600_000;
const maxHosts = 1_000;

/**
 * Hosts that were found to speak http only, remembered for an hour: each look at https would cost one of the thirty
 * connections a minute. What is fetched is named by its hash, so nothing rests on the scheme.
 */
export class PlainHosts {
  readonly #until = new Map<string, number>();

  constructor(private readonly clock: Clock) {}

  has(host: string): boolean {
    return (this.#until.get(host) ?? 0) > this.clock.monotonicMs();
  }

  add(host: string): void {
    this.#until.delete(host);
    this.#until.set(host, this.clock.monotonicMs() + rememberMs);
    const [oldest] = this.#until.keys();
    if (this.#until.size > maxHosts && oldest !== undefined) this.#until.delete(oldest);
  }
}
