// The hunt's state machine: inputs and time in, commands out. No I/O, clock or randomness. purgatory.md "Hunting".
// Two paths: a due job tries every URL whose domain has capacity (main path, here); what is left waits at its domain
// and is served round-robin (domain queues, fetch-scheduler.ts). `step` lets every input run to rest.
// Bounds: a job for each waiting entry's repository at most (purgatory caps these), in each queue once, 20 URLs a job.

import { domainOf, selectPullRequestUrls, selectUrls } from "./fetch-plan.js";
import { FetchScheduler } from "./fetch-scheduler.js";
import { type CoreState, DueTimes, Evidence, HuntJob } from "./job.js";
import type { FetchId, FetchResult, HuntCommand, HuntConfig, HuntInput, JobKind, WaitingItem } from "./messages.js";

export class HuntCore {
  readonly #config: HuntConfig;
  readonly #state: CoreState;
  readonly #scheduler: FetchScheduler;
  /** Jobs whose attempt wants its next URL, in order. */
  readonly #ready: Readonly<Record<JobKind, Set<string>>> = { repository: new Set(), "pull-request": new Set() };
  /** Jobs that lack something hard. */
  readonly #queued = new Set<string>();
  readonly #evidence = new Evidence();
  /**
   * Jobs that lacked something at the server's start and were not hunted once since, and whether an attempt has ended;
   * until none is left nothing expires (purgatory.md).
   */
  #round: Map<string, boolean> | undefined;
  #wakeAtMs: number | undefined;
  #commands: HuntCommand[] = [];

  constructor(config: HuntConfig) {
    this.#config = config;
    const emit = (command: HuntCommand): void => void this.#commands.push(command);
    this.#state = { config, emit, jobs: new Map(), due: new DueTimes(), nowMs: 0 };
    this.#scheduler = new FetchScheduler(this.#state, (job) => this.#settle(job));
  }

  /** Repositories and pull requests in the queue. */
  get queueSize(): number {
    return this.#queued.size;
  }

  /** When that job's next attempt is due; undefined when none is, or one goes on. */
  dueMs(key: string): number | undefined {
    return this.#state.jobs.get(key)?.dueMs;
  }

  step(input: HuntInput, nowMs: number): readonly HuntCommand[] {
    this.#commands = [];
    const state = this.#state;
    state.nowMs = Math.max(state.nowMs, nowMs);
    this.#noticeStandstill();
    this.#accept(input);
    do {
      this.#fireDue();
      this.#pump();
    } while ((state.due.peek()?.atMs ?? Number.POSITIVE_INFINITY) <= state.nowMs);
    this.#endRound();
    this.#askToBeWoken();
    return this.#commands;
  }

  /** Nothing came though an alarm was due: the process was stopped or the machine slept, and no server failed meanwhile. */
  #noticeStandstill(): void {
    const forMs = this.#state.nowMs - (this.#wakeAtMs ?? this.#state.nowMs);
    if (forMs <= this.#config.stoodStillMs) return;
    this.#wakeAtMs = undefined;
    this.#log("warn", "stood still", { forMs: Math.round(forMs) });
    this.#scheduler.stoodStill(forMs);
  }

  #accept(input: HuntInput): void {
    const { nowMs } = this.#state;
    switch (input.type) {
      case "waiting":
        this.#put(this.#jobFor(input.repository, "repository"), input.item);
        break;
      case "removed":
        this.#evidence.left(input.id, input.repository);
        this.#change(input.repository, (job) => job.remove(input.id, nowMs));
        break;
      case "announcements": {
        const urls = selectUrls(input.announcements, this.#config.ours, this.#config);
        const job = this.#jobFor(input.repository, "repository");
        job.setUrls(urls, nowMs);
        this.#heed(job, job.itemIds);
        this.#settle(job);
        break;
      }
      case "pull-request":
        this.#putPullRequest(input);
        break;
      case "pull-request-removed":
        this.#removePullRequest(input.event);
        break;
      case "served":
        for (const key of this.#evidence.note(input.event, input.origin)) {
          this.#change(key, (job) => this.#heed(job, [input.event]));
        }
        break;
      case "arrived":
        this.#change(input.repository, (job) => job.take(input.ids, nowMs));
        break;
      case "ask-now":
        this.#change(input.job, (job) => job.askNow(nowMs));
        break;
      case "connection-wanted":
        this.#scheduler.wantConnection(input.fetch, domainOf(input.host));
        break;
      case "fetch-finished":
        this.#finish(input.fetch, input.result);
        break;
      case "naughty-restored":
        this.#scheduler.restoreNaughty(input.place, input.kind, input.remainingMs);
        break;
      case "start-round":
        this.#round = new Map([...this.#state.jobs].flatMap(([key, job]) => (job.lacksAnything ? [[key, false]] : [])));
        break;
      case "tick":
        // A timer may fire a little early: ask again rather than be forgotten.
        this.#wakeAtMs = undefined;
    }
  }

  #jobFor(key: string, kind: JobKind): HuntJob {
    const { jobs } = this.#state;
    const known = jobs.get(key);
    if (known) return known;
    const job = new HuntJob(key, kind, this.#config);
    jobs.set(key, job);
    return job;
  }

  #put(job: HuntJob, item: WaitingItem): void {
    const { nowMs } = this.#state;
    if (job.put(item, nowMs)) {
      this.#scheduler.forgetTried(job);
      this.#log("debug", "queued", { job: job.key, inMs: (job.dueMs ?? nowMs) - nowMs });
    }
    this.#evidence.waits(item.id, job.key);
    this.#heed(job, [item.id]);
    this.#settle(job);
  }

  /** Servers that serve an event have its data: they are asked soon, whatever the attempts of the job do. */
  #heed(job: HuntJob, ids: Iterable<string>): void {
    let isDue = false;
    for (const id of ids) {
      const origins = this.#evidence.of(id);
      if (origins && job.promise(id, origins)) isDue = true;
    }
    const atMs = this.#state.nowMs + this.#config.gitHuntSyncDelayMs;
    if (isDue) this.#state.due.add(atMs, { type: "promised", key: job.key });
  }

  #putPullRequest({ event, tip, clone, source, soft }: Extract<HuntInput, { type: "pull-request" }>): void {
    const urls = selectPullRequestUrls(clone, this.#config.ours, this.#config);
    if (urls.length === 0) {
      this.#removePullRequest(event);
      return;
    }
    const job = this.#jobFor(event, "pull-request");
    job.setUrls(urls, this.#state.nowMs);
    this.#put(job, { id: event, kind: "pull-request", source, ids: [tip], soft });
  }

  #removePullRequest(event: string): void {
    this.#evidence.left(event, event);
    this.#change(event, (job) => {
      job.urls = [];
      job.remove(event, this.#state.nowMs);
    });
  }

  #change(key: string, change: (job: HuntJob) => void): void {
    const job = this.#state.jobs.get(key);
    if (!job) return;
    change(job);
    this.#settle(job);
  }

  /** Brings everything that depends on a job's needs in line with them. */
  #settle(job: HuntJob): void {
    const { due, jobs } = this.#state;
    this.#count(job);
    if (!job.lacksAnything) {
      if (job.attempt) this.#endAttempt(job);
      job.rest();
      job.promised.clear();
      this.#scheduler.leaveQueues(job);
      this.#scheduler.cancelAll(job);
    }
    if (job.dueMs !== undefined && !job.attempt && job.scheduledMs !== job.dueMs) {
      job.scheduledMs = job.dueMs;
      due.add(job.dueMs, { type: "job", key: job.key });
    }
    const isQuiet = !job.attempt && job.running.size === 0 && job.queuedAt.size === 0;
    if (isQuiet && job.isLooking) {
      job.isLooking = false;
      if (job.lacksAnything) this.#state.emit({ type: "looked-everywhere", kind: job.kind, job: job.key });
    }
    if (!job.lacksAnything || (isQuiet && this.#round?.get(job.key))) this.#round?.delete(job.key);
    if (job.isEmpty && job.urls.length === 0) jobs.delete(job.key);
  }

  #count(job: HuntJob): void {
    const before = this.#queued.size;
    if (job.isQueued) this.#queued.add(job.key);
    else this.#queued.delete(job.key);
    const value = this.#queued.size;
    if (value !== before) this.#state.emit({ type: "gauge", metric: "purgatory_sync_queue_size", labels: {}, value });
  }

  #fireDue(): void {
    const { due, nowMs } = this.#state;
    for (let moment = due.peek(); moment && moment.atMs <= nowMs; moment = due.peek()) {
      due.pop();
      const { value } = moment;
      if (value.type === "job") this.#beginIfDue(value.key);
      else if (value.type === "promised") this.#change(value.key, (job) => this.#scheduler.joinPromised(job));
      else if (value.type === "domain") this.#scheduler.rateWindowFreed(value.name);
      else {
        const job = this.#scheduler.becameSlow(value.fetch);
        if (job) this.#goOnWith(job);
      }
    }
  }

  #beginIfDue(key: string): void {
    const job = this.#state.jobs.get(key);
    if (!job || job.attempt || job.dueMs === undefined || job.dueMs > this.#state.nowMs) return;
    job.scheduledMs = undefined;
    job.beginAttempt();
    this.#ready[job.kind].add(key);
    this.#log("debug", "attempt started", { job: key, attempt: job.attempts + 1, urls: job.urls.length });
  }

  #goOnWith(job: HuntJob): void {
    if (job.attempt) this.#ready[job.kind].add(job.key);
    this.#scheduler.wakeQueuesOf(job);
  }

  /** Queues and due jobs take turns: neither may use up the places of the other. */
  #pump(): void {
    for (let started = true; started; ) {
      const fromQueue = this.#scheduler.serveOne();
      const repository = this.#advanceOne("repository");
      const pullRequest = this.#advanceOne("pull-request");
      started = fromQueue || repository || pullRequest;
    }
  }

  #advanceOne(kind: JobKind): boolean {
    const ready = this.#ready[kind];
    for (const key of ready) {
      if (!this.#scheduler.hasLane(kind)) return false;
      ready.delete(key);
      const job = this.#state.jobs.get(key);
      if (job && this.#advance(job)) return true;
    }
    return false;
  }

  /** Main path: the next URL whose domain has capacity and nobody waiting; never waits for one that has not. */
  #advance(job: HuntJob): boolean {
    const { attempt } = job;
    // While a fetch is young the job waits for it; its end, or its thirtieth second, makes the job ready again.
    if (!attempt || job.isBusy) return false;
    const { free, throttled } = this.#scheduler.look(job, attempt);
    if (free) {
      attempt.add(free.url);
      this.#scheduler.start(job, free, "main");
      return true;
    }
    this.#scheduler.join(job, throttled, attempt);
    this.#endAttempt(job);
    this.#settle(job);
    // Those that joined a queue whose others cannot start now are served by the next turn of the pump.
    return throttled.size > 0;
  }

  #endAttempt(job: HuntJob): void {
    const { nowMs, emit } = this.#state;
    job.endAttempt(nowMs);
    this.#ready[job.kind].delete(job.key);
    if (this.#round?.has(job.key)) this.#round.set(job.key, true);
    const result = job.lacksAnything ? "incomplete" : "complete";
    emit({ type: "count", metric: "purgatory_sync_attempts_total", labels: { result }, by: 1 });
    if (job.dueMs !== undefined) {
      this.#log("debug", "back-off", { job: job.key, attempts: job.attempts, inMs: job.dueMs - nowMs });
    }
  }

  #finish(id: FetchId, result: FetchResult): void {
    const { emit, nowMs } = this.#state;
    const fetch = this.#scheduler.finish(id, result);
    if (!fetch) return;
    const { job, target } = fetch;
    job.noteRefused(target.url, result.refused);
    if (result.tooFewBytes !== undefined) job.noteTooLarge(fetch, result.tooFewBytes);
    const lacked = job.lacksAnything;
    const by = job.take(result.arrived, nowMs);
    if (by > 0) emit({ type: "count", metric: "purgatory_sync_oids_fetched_total", labels: {}, by });
    if (lacked && !job.lacksAnything) this.#log("info", "repository complete", { job: job.key, url: target.url });
    if (fetch.promised) job.endPromised(nowMs);
    this.#goOnWith(job);
    this.#settle(job);
  }

  #endRound(): void {
    if (this.#round?.size !== 0) return;
    this.#round = undefined;
    this.#state.emit({ type: "round-ended" });
  }

  #askToBeWoken(): void {
    const atMs = this.#state.due.peek()?.atMs;
    if (atMs === undefined || atMs === this.#wakeAtMs) return;
    this.#wakeAtMs = atMs;
    this.#state.emit({ type: "wake-at", atMs });
  }

  #log(level: "debug" | "info" | "warn", message: string, fields: Readonly<Record<string, string | number>>): void {
    this.#state.emit({ type: "log", level, message, fields });
  }
}
