// The hunt's state machine: inputs and time in, commands out. No I/O, clock or randomness. purgatory.md "Hunting".
// Two paths: a due job tries every URL whose domain has capacity (main path, here); what is left waits at its domain
// and is served round-robin (domain queues, servers.ts). `step` lets every input run to rest.
// Bounds: a job for each waiting entry's repository at most (purgatory caps these), in each queue once, 20 URLs a job.

import type { HuntConfig } from "./config.js";
import { DueTimes } from "./due-times.js";
import { Evidence } from "./evidence.js";
import { FirstRound } from "./first-round.js";
import { HuntJob } from "./job.js";
import type { FetchId, FetchResult, HuntCommand, HuntInput, JobKind, WaitingItem } from "./messages.js";
import type { Scene } from "./scene.js";
import { domainOf, selectPullRequestUrls, selectUrls } from "./select-urls.js";
import { Servers } from "./servers.js";

export class HuntCore {
  readonly #config: HuntConfig;
  readonly #scene: Scene;
  readonly #servers: Servers;
  /** Jobs whose attempt wants its next URL, in order. */
  readonly #ready: Readonly<Record<JobKind, Set<string>>> = { repository: new Set(), "pull-request": new Set() };
  /** Jobs that lack something hard. */
  readonly #queued = new Set<string>();
  readonly #evidence = new Evidence();
  #round: FirstRound | undefined;
  #wakeAtMs: number | undefined;
  #commands: HuntCommand[] = [];

  constructor(config: HuntConfig) {
    this.#config = config;
    const emit = (command: HuntCommand): void => void this.#commands.push(command);
    this.#scene = { config, emit, jobs: new Map(), due: new DueTimes(), nowMs: 0 };
    this.#servers = new Servers(this.#scene, (job) => this.#settle(job));
  }

  /** Repositories and pull requests in the queue. */
  get queueSize(): number {
    return this.#queued.size;
  }

  /** When that job's next attempt is due; undefined when none is, or one goes on. */
  dueMs(key: string): number | undefined {
    return this.#scene.jobs.get(key)?.dueMs;
  }

  step(input: HuntInput, nowMs: number): readonly HuntCommand[] {
    this.#commands = [];
    const scene = this.#scene;
    scene.nowMs = Math.max(scene.nowMs, nowMs);
    this.#accept(input);
    do {
      this.#fireDue();
      this.#pump();
    } while ((scene.due.peek()?.atMs ?? Number.POSITIVE_INFINITY) <= scene.nowMs);
    this.#endRound();
    this.#askToBeWoken();
    return this.#commands;
  }

  #accept(input: HuntInput): void {
    const { nowMs } = this.#scene;
    switch (input.type) {
      case "waiting":
        this.#put(this.#jobFor(input.repository, "repository"), input.item);
        break;
      case "removed":
        this.#evidence.left(input.id, input.repository);
        this.#change(input.repository, (job) => job.remove(input.id, nowMs));
        break;
      case "announcements": {
        const urls = selectUrls(input.announcements, this.#config.ours, this.#config.urls);
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
        this.#servers.wantConnection(input.fetch, domainOf(input.host));
        break;
      case "fetch-finished":
        this.#finish(input.fetch, input.result);
        break;
      case "naughty-restored":
        this.#servers.restoreNaughty(input.place, input.kind, input.remainingMs);
        break;
      case "start-round":
        this.#round = new FirstRound([...this.#scene.jobs].flatMap(([key, job]) => (job.lacksAnything ? [key] : [])));
        break;
      case "tick":
        // A timer may fire a little early: ask again rather than be forgotten.
        this.#wakeAtMs = undefined;
    }
  }

  #jobFor(key: string, kind: JobKind): HuntJob {
    const { jobs } = this.#scene;
    const known = jobs.get(key);
    if (known) return known;
    const job = new HuntJob(key, kind, this.#config);
    jobs.set(key, job);
    return job;
  }

  #put(job: HuntJob, item: WaitingItem): void {
    const { nowMs } = this.#scene;
    if (job.put(item, nowMs)) {
      this.#servers.forgetTried(job);
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
    const atMs = this.#scene.nowMs + this.#config.syncDelayMs;
    if (isDue) this.#scene.due.add(atMs, { type: "promised", key: job.key });
  }

  #putPullRequest({ event, tip, clone, source, soft }: Extract<HuntInput, { type: "pull-request" }>): void {
    const urls = selectPullRequestUrls(clone, this.#config.ours, this.#config.urls);
    if (urls.length === 0) {
      this.#removePullRequest(event);
      return;
    }
    const job = this.#jobFor(event, "pull-request");
    job.setUrls(urls, this.#scene.nowMs);
    this.#put(job, { id: event, kind: "pull-request", source, ids: [tip], soft });
  }

  #removePullRequest(event: string): void {
    this.#evidence.left(event, event);
    this.#change(event, (job) => {
      job.urls = [];
      job.remove(event, this.#scene.nowMs);
    });
  }

  #change(key: string, change: (job: HuntJob) => void): void {
    const job = this.#scene.jobs.get(key);
    if (!job) return;
    change(job);
    this.#settle(job);
  }

  /** Brings everything that depends on a job's needs in line with them. */
  #settle(job: HuntJob): void {
    const { due, jobs } = this.#scene;
    this.#count(job);
    if (!job.lacksAnything) {
      if (job.attempt) this.#endAttempt(job);
      job.rest();
      job.promised.clear();
      this.#servers.leaveQueues(job);
      this.#servers.cancelAll(job);
    }
    if (job.dueMs !== undefined && !job.attempt && job.scheduledMs !== job.dueMs) {
      job.scheduledMs = job.dueMs;
      due.add(job.dueMs, { type: "job", key: job.key });
    }
    const isQuiet = !job.attempt && job.running.size === 0 && job.queuedAt.size === 0;
    if (isQuiet && job.isLooking) {
      job.isLooking = false;
      if (job.lacksAnything) this.#scene.emit({ type: "looked-everywhere", kind: job.kind, job: job.key });
    }
    this.#round?.settle(job.key, job.lacksAnything, isQuiet);
    if (job.isEmpty && job.urls.length === 0) jobs.delete(job.key);
  }

  #count(job: HuntJob): void {
    const before = this.#queued.size;
    if (job.isQueued) this.#queued.add(job.key);
    else this.#queued.delete(job.key);
    const value = this.#queued.size;
    if (value !== before) this.#scene.emit({ type: "gauge", metric: "purgatory_sync_queue_size", labels: {}, value });
  }

  #fireDue(): void {
    const { due, nowMs } = this.#scene;
    for (let moment = due.peek(); moment && moment.atMs <= nowMs; moment = due.peek()) {
      due.pop();
      const { value } = moment;
      if (value.type === "job") this.#beginIfDue(value.key);
      else if (value.type === "promised") this.#change(value.key, (job) => this.#servers.joinPromised(job));
      else if (value.type === "domain") this.#servers.rateWindowFreed(value.name);
      else {
        const job = this.#servers.becameSlow(value.fetch);
        if (job) this.#goOnWith(job);
      }
    }
  }

  #beginIfDue(key: string): void {
    const job = this.#scene.jobs.get(key);
    if (!job || job.attempt || job.dueMs === undefined || job.dueMs > this.#scene.nowMs) return;
    job.scheduledMs = undefined;
    job.beginAttempt();
    this.#ready[job.kind].add(key);
    this.#log("debug", "attempt started", { job: key, attempt: job.attempts + 1, urls: job.urls.length });
  }

  #goOnWith(job: HuntJob): void {
    if (job.attempt) this.#ready[job.kind].add(job.key);
    this.#servers.wakeQueuesOf(job);
  }

  /** Queues and due jobs take turns: neither may use up the places of the other. */
  #pump(): void {
    for (let started = true; started; ) {
      const fromQueue = this.#servers.serveOne();
      const repository = this.#advanceOne("repository");
      const pullRequest = this.#advanceOne("pull-request");
      started = fromQueue || repository || pullRequest;
    }
  }

  #advanceOne(kind: JobKind): boolean {
    const ready = this.#ready[kind];
    for (const key of ready) {
      if (!this.#servers.lanes.hasRoom(kind)) return false;
      ready.delete(key);
      const job = this.#scene.jobs.get(key);
      if (job && this.#advance(job)) return true;
    }
    return false;
  }

  /** Main path: the next URL whose domain has capacity and nobody waiting; never waits for one that has not. */
  #advance(job: HuntJob): boolean {
    const { attempt } = job;
    // While a fetch is young the job waits for it; its end, or its thirtieth second, makes the job ready again.
    if (!attempt || job.isBusy) return false;
    const { free, throttled } = this.#servers.look(job, attempt);
    if (free) {
      attempt.add(free.url);
      this.#servers.start(job, free, "main");
      return true;
    }
    this.#servers.join(job, throttled, attempt);
    this.#endAttempt(job);
    this.#settle(job);
    // Those that joined a queue whose others cannot start now are served by the next turn of the pump.
    return throttled.size > 0;
  }

  #endAttempt(job: HuntJob): void {
    const { nowMs, emit } = this.#scene;
    job.endAttempt(nowMs);
    this.#ready[job.kind].delete(job.key);
    this.#round?.attempted(job.key);
    const result = job.lacksAnything ? "incomplete" : "complete";
    emit({ type: "count", metric: "purgatory_sync_attempts_total", labels: { result }, by: 1 });
    if (job.dueMs !== undefined) {
      this.#log("debug", "back-off", { job: job.key, attempts: job.attempts, inMs: job.dueMs - nowMs });
    }
  }

  #finish(id: FetchId, result: FetchResult): void {
    const { emit, nowMs } = this.#scene;
    const fetch = this.#servers.finish(id, result);
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
    if (!this.#round?.isOver) return;
    this.#round = undefined;
    this.#scene.emit({ type: "round-ended" });
  }

  #askToBeWoken(): void {
    const atMs = this.#scene.due.peek()?.atMs;
    if (atMs === undefined || atMs === this.#wakeAtMs) return;
    this.#wakeAtMs = atMs;
    this.#scene.emit({ type: "wake-at", atMs });
  }

  #log(level: "debug" | "info", message: string, fields: Readonly<Record<string, string | number>>): void {
    this.#scene.emit({ type: "log", level, message, fields });
  }
}
