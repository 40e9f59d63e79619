// Schedules fetches over servers: which run where, which jobs wait at which domain, and which may start next. A domain
// is looked at again ("woken") when a fetch ends there, a job joins, or its rate window frees up. Blames a server for
// what lastingly fails there. purgatory.md "Hunting", Domain queue and Throttle. Decides nothing about when a job is
// due.

import { NaughtyList } from "../../net/health.js";
import { type Domain, Domains, isWaitedFor } from "./domains.js";
import type { HuntUrl } from "./fetch-plan.js";
import type { CoreState, HuntJob, RunningFetch } from "./job.js";
import type { FetchId, FetchResult, HuntCommand, JobKind } from "./messages.js";

type DenialReason = Extract<HuntCommand, { type: "connection-denied" }>["reason"];

export class FetchScheduler {
  readonly #state: CoreState;
  readonly #domains: Domains;
  readonly #naughty: NaughtyList<string>;
  readonly #fetches = new Map<FetchId, RunningFetch>();
  /** Domains whose queue may have something to start, in order. */
  readonly #waking = new Set<string>();
  /** Domains that lack only a free lane: set apart, or every finished fetch would look at all of them. */
  readonly #stalled: Readonly<Record<JobKind, Set<string>>> = { repository: new Set(), "pull-request": new Set() };
  readonly #onLeft: (job: HuntJob) => void;
  #lastFetch = 0;

  /** `onLeft`: a job has nothing more to try at a domain it waited at. */
  constructor(state: CoreState, onLeft: (job: HuntJob) => void) {
    this.#state = state;
    this.#onLeft = onLeft;
    this.#domains = new Domains(state.config, state.emit);
    this.#naughty = new NaughtyList(state.config, ["dns-missing", "certificate"], "dns-missing");
  }

  /**
   * Whether one more fetch may run over all domains. A slow fetch makes room for a fresh one, up to the total: a handful
   * of servers that drip bytes must not stop the hunt for everybody else.
   */
  hasLane(kind: JobKind): boolean {
    const { fresh, total } = this.#state.config.lanes[kind];
    const running = [...this.#fetches.values()].filter(({ job }) => job.kind === kind);
    return running.length < total && running.filter(({ slow }) => !slow).length < fresh;
  }

  /** The first URL that can be asked at once, and else the domains where the untried ones would have to wait. */
  look(job: HuntJob, tried: ReadonlySet<string>): { readonly free?: HuntUrl; readonly throttled: ReadonlySet<string> } {
    const throttled = new Set<string>();
    for (const target of job.urls) {
      if (tried.has(target.url) || !this.#isCandidate(job, target)) continue;
      const domain = this.#domain(target.domain);
      // Who waits there comes first.
      if (!isWaitedFor(domain) && this.#hasRoom(domain)) return { free: target, throttled };
      throttled.add(domain.name);
    }
    return { throttled };
  }

  join(job: HuntJob, names: Iterable<string>, tried: Iterable<string>): void {
    for (const name of names) {
      const domain = this.#domain(name);
      domain.queue.join(job.kind, job.key, tried);
      job.queuedAt.add(name);
      this.wake(name);
      this.#domains.report(domain);
    }
  }

  /** What is promised waits at its domains like the rest of an attempt, for those URLs alone. */
  joinPromised(job: HuntJob): void {
    const others = job.urls.flatMap(({ url }) => (job.promised.has(url) ? [] : [url]));
    for (const { url, domain: name } of job.urls) {
      if (!job.promised.has(url)) continue;
      this.join(job, [name], others);
      this.#domain(name).queue.tryAgain(job.kind, job.key, url);
    }
  }

  leaveQueues(job: HuntJob): void {
    for (const name of job.queuedAt) {
      const domain = this.#domain(name);
      domain.queue.leave(job.kind, job.key);
      this.#domains.report(domain);
    }
    job.queuedAt.clear();
  }

  forgetTried(job: HuntJob): void {
    for (const name of job.queuedAt) this.#domain(name).queue.forgetTried(job.kind, job.key);
    this.wakeQueuesOf(job);
  }

  wakeQueuesOf(job: HuntJob): void {
    for (const name of job.queuedAt) this.wake(name);
  }

  wake(name: string): void {
    this.#waking.add(name);
  }

  rateWindowFreed(name: string): void {
    this.#domain(name).wakeAtMs = undefined;
    this.wake(name);
  }

  /** Starts at most one waiting job's fetch, at the domain that has waited longest for its turn. */
  serveOne(): boolean {
    for (const kind of ["repository", "pull-request"] as const) {
      if (this.hasLane(kind) && this.#serveFirstOf(this.#stalled[kind])) return true;
    }
    return this.#serveFirstOf(this.#waking);
  }

  start(job: HuntJob, target: HuntUrl, path: "main" | "domain"): void {
    const { nowMs, due, config, emit } = this.#state;
    const domain = this.#domain(target.domain);
    const id = ++this.#lastFetch;
    const at = domain.name;
    const ids = job.idsFor(target.url);
    const promised = job.promised.delete(target.url) && path === "domain";
    const fetch: RunningFetch = {
      id,
      job,
      target,
      ids,
      at,
      wants: undefined,
      connections: 1,
      slow: false,
      cancelled: false,
      promised,
    };
    domain.throttle.start(nowMs);
    this.#fetches.set(id, fetch);
    job.running.set(id, fetch);
    due.add(nowMs + config.gitHuntOverlapSecs * 1_000, { type: "slow", fetch: id });
    this.#domains.report(domain);
    const { kind, key } = job;
    const { url } = target;
    const maxBytes = kind === "repository" ? config.gitHuntMaxBytes : config.gitHuntPrMaxBytes;
    const tooFewBytes = job.tooFewBytesFor(url, ids);
    emit({ type: "fetch", fetch: id, kind, job: key, url, ids, maxBytes, tooFewBytes, path });
  }

  /** Answers the job whose next URL may start now, if the fetch still runs. */
  becameSlow(id: FetchId): HuntJob | undefined {
    const fetch = this.#fetches.get(id);
    if (!fetch) return undefined;
    fetch.slow = true;
    return fetch.job;
  }

  wantConnection(id: FetchId, name: string): void {
    const { nowMs, config, emit } = this.#state;
    const deny = (reason: DenialReason): void => emit({ type: "connection-denied", fetch: id, reason });
    const fetch = this.#fetches.get(id);
    if (!fetch) deny("unknown-fetch");
    else if (fetch.connections >= config.gitHuntMaxRequests) deny("budget");
    else if (this.#naughty.isNaughty(name, nowMs)) deny("naughty");
    else if (fetch.wants === undefined) {
      fetch.wants = name;
      if (fetch.at === name) this.#domain(name).connecting.push(id);
      else {
        // Its last connection is closed: to keep that place while waiting for another could lock two domains forever.
        this.#giveUpPlace(fetch);
        this.#domain(name).entering.push(id);
      }
      this.wake(name);
    }
  }

  /** Frees the place it held and judges its server. Answers the fetch, if it was running. */
  finish(id: FetchId, result: FetchResult): RunningFetch | undefined {
    const { emit, nowMs } = this.#state;
    const fetch = this.#fetches.get(id);
    if (!fetch) return undefined;
    this.#fetches.delete(id);
    fetch.job.running.delete(id);
    this.#giveUpPlace(fetch);
    this.#stopWaiting(fetch);
    const labels = { domain: this.#domain(fetch.target.domain).label, result: result.failure ?? "ok" };
    emit({ type: "count", metric: "purgatory_domain_requests_total", labels, by: fetch.connections });
    for (const command of blameServer(this.#naughty, fetch.target, result, nowMs)) emit(command);
    return fetch;
  }

  cancelAll(job: HuntJob): void {
    for (const fetch of job.running.values()) {
      if (fetch.cancelled) continue;
      fetch.cancelled = true;
      this.#state.emit({ type: "cancel", fetch: fetch.id });
    }
  }

  restoreNaughty(place: string, kind: string, remainingMs: number): void {
    const { nowMs } = this.#state;
    this.#naughty.restore({ place, kind, untilMs: nowMs + remainingMs }, nowMs);
  }

  stoodStill(forMs: number): void {
    this.#naughty.stoodStill(forMs);
  }

  #serveFirstOf(names: Set<string>): boolean {
    for (const name of names) {
      names.delete(name);
      const domain = this.#domain(name);
      if (this.#serve(domain)) {
        this.wake(name);
        return true;
      }
      if (!this.#hasRoom(domain)) continue;
      for (const kind of ["repository", "pull-request"] as const) {
        if (!this.hasLane(kind) && domain.queue.waiting(kind) > 0) this.#stalled[kind].add(name);
      }
    }
    return false;
  }

  /** Connections of fetches that are here first; then redirected ones and the queue take turns. */
  #serve(domain: Domain): boolean {
    const { nowMs } = this.#state;
    while (domain.connecting.length > 0 && domain.throttle.hasRate(nowMs)) {
      domain.throttle.connect(nowMs);
      this.#grant(domain.connecting.shift());
    }
    if (!this.#hasRoom(domain)) {
      this.#wakeWhenRateFrees(domain);
      return false;
    }
    if (domain.isTurnOfEntering && this.#enterFirst(domain)) return true;
    domain.isTurnOfEntering = true;
    return this.#startNextInLine(domain) || this.#enterFirst(domain);
  }

  #enterFirst(domain: Domain): boolean {
    const id = domain.entering.shift();
    const fetch = id === undefined ? undefined : this.#fetches.get(id);
    if (!fetch) return false;
    domain.throttle.start(this.#state.nowMs);
    domain.isTurnOfEntering = false;
    fetch.at = domain.name;
    this.#domains.report(domain);
    this.#grant(id);
    return true;
  }

  #startNextInLine(domain: Domain): boolean {
    const { jobs } = this.#state;
    const pick = (key: string, tried: ReadonlySet<string>): string | undefined => {
      const job = jobs.get(key);
      if (job?.isBusy) return "not-now";
      const isNext = (target: HuntUrl) => target.domain === domain.name && !tried.has(target.url);
      const next = job?.urls.find((target) => isNext(target) && this.#isCandidate(job, target))?.url;
      // What began before the promise was known may end without what was promised.
      return next ?? (job?.urls.some((target) => isNext(target) && job.isFetching(target.url)) ? "not-now" : undefined);
    };
    const left: string[] = [];
    const next = domain.queue.next(
      (kind) => this.hasLane(kind),
      pick,
      (key) => left.push(key),
    );
    this.#domains.report(domain);
    for (const job of left.flatMap((key) => jobs.get(key) ?? [])) {
      job.queuedAt.delete(domain.name);
      this.#onLeft(job);
    }
    const job = next && jobs.get(next.key);
    const target = job?.urls.find((candidate) => candidate.url === next?.url);
    if (job && target) this.start(job, target, "domain");
    return target !== undefined;
  }

  #grant(id: FetchId | undefined): void {
    const fetch = id === undefined ? undefined : this.#fetches.get(id);
    if (!fetch) return;
    fetch.wants = undefined;
    fetch.connections++;
    this.#state.emit({ type: "connection-granted", fetch: fetch.id });
  }

  #giveUpPlace(fetch: RunningFetch): void {
    if (fetch.at === undefined) return;
    const domain = this.#domain(fetch.at);
    fetch.at = undefined;
    domain.throttle.finish();
    this.wake(domain.name);
    this.#domains.report(domain);
  }

  #stopWaiting(fetch: RunningFetch): void {
    if (fetch.wants === undefined) return;
    const { connecting, entering } = this.#domain(fetch.wants);
    for (const line of [connecting, entering]) {
      const position = line.indexOf(fetch.id);
      if (position >= 0) line.splice(position, 1);
    }
    this.wake(fetch.wants);
    fetch.wants = undefined;
  }

  #wakeWhenRateFrees(domain: Domain): void {
    const freesAtMs = domain.throttle.rateFreesAtMs(this.#state.nowMs);
    if (freesAtMs === undefined || !isWaitedFor(domain) || domain.wakeAtMs === freesAtMs) return;
    domain.wakeAtMs = freesAtMs;
    this.#state.due.add(freesAtMs, { type: "domain", name: domain.name });
  }

  #isCandidate(job: HuntJob, target: HuntUrl): boolean {
    const isNaughty = [target.domain, target.place].some((place) => this.#naughty.isNaughty(place, this.#state.nowMs));
    return !isNaughty && !job.isFetching(target.url);
  }

  /** For one more fetch, when those that are here need nothing. */
  #hasRoom(domain: Domain): boolean {
    return domain.connecting.length === 0 && domain.throttle.hasCapacity(this.#state.nowMs);
  }

  #domain(name: string): Domain {
    return this.#domains.get(name, this.#state.nowMs);
  }
}

/** Failures that a server can only cause by answering. */
const answered: ReadonlySet<string> = new Set([
  "not-git",
  "other-format",
  "http-status",
  "fetch-failed",
  "bad-objects",
  "bad-response",
  "bad-redirect",
  "redirect-failed",
  "too-large",
]);

/**
 * What a fetch's result says about the server it was made at: working, broken in a lasting way, or nothing. Only two
 * kinds of failure can make a git host naughty: no such name, and a bad certificate. "Not git" is a property of one
 * path, and anybody could announce three wrong paths of a big forge.
 */
function blameServer(
  naughty: NaughtyList<string>,
  { url, domain, place }: HuntUrl,
  { failure }: FetchResult,
  nowMs: number,
): HuntCommand[] {
  if (failure === "cancelled" || failure === "aborted") return [];
  // A name is a host's; a certificate belongs to one port of it.
  const isOfName = failure === "dns-missing" || failure === "dns-temporary";
  const isOfPlace = failure !== undefined && !isOfName && !answered.has(failure);
  if (!isOfName) naughty.worked(domain);
  if (!isOfPlace) naughty.worked(place);
  if (failure === undefined) return [];
  const commands: HuntCommand[] = [
    { type: "log", level: "warn", message: "fetch failed", fields: { url, code: failure } },
  ];
  const ban = isOfName || isOfPlace ? naughty.failed(isOfName ? domain : place, domain, failure, nowMs) : undefined;
  if (ban) commands.push({ type: "naughty", place: ban.place, kind: ban.kind, forMs: ban.untilMs - nowMs });
  return commands;
}
