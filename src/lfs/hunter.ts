// Looks for large files that released pointers name and that are not here (git-http.md, "Large files"): first in the other
// repositories of the same maintainers on this server, then at the other servers of the announcements, by the same API that
// this server answers. Never delays anything; what is not found is looked for again, at growing intervals, then hourly.
// Every address is checked by the outbound guard, redirects too; a file counts as found when its bytes have its hash.

import { perMinute, Rates } from "../base/budget/rates.js";
import { Turns } from "../base/budget/turns.js";
import type { Clock } from "../base/clock.js";
import { unixSeconds } from "../base/clock.js";
import { sharedAbort } from "../base/shared-abort.js";
import { holdersOf, type LargeFileRow, largeFiles } from "../catalogue/large-files.js";
import { releasedSiblings } from "../catalogue/maintainers.js";
import { catalogueRow, isReleased, type RepositoryName, repositoryKey } from "../catalogue/repositories.js";
import type { Config } from "../config/config.js";
import { diskAddress } from "../git/address.js";
import { domainOf, type HuntUrl, selectUrls } from "../hunt/core/fetch-plan.js";
import { authorizationFor, type OwnAuthorization } from "../hunt/look-up.js";
import { huntAnnouncements } from "../hunt/wants.js";
import { failureOf } from "../net/failure.js";
import type { Guard } from "../net/guard.js";
import type { ServiceName } from "../net/url.js";
import type { Purgatory } from "../purgatory/purgatory.js";
import type { LedBy } from "../store/port.js";
import { askForFiles, type ClientParts, fetchFile, type Offer } from "./client.js";
import { WrongContentError } from "./files.js";
import type { Holdings } from "./holdings.js";
import type { Pointer } from "./pointer.js";

export interface AskedForFiles {
  readonly url: string;
  readonly at: number;
  /** `ok` or our own code for what went wrong. */
  readonly answer: string;
  readonly found: number;
}

interface HunterParts {
  readonly purgatory: Purgatory;
  readonly holdings: Holdings;
  /** Where one machine hunts for all of a cluster. */
  readonly ledBy: LedBy | undefined;
  readonly clock: Clock;
  readonly guard: Guard;
  readonly ours: readonly ServiceName[];
  /** GRASP-08: our own header for a repository's root URL; absent on public servers. */
  readonly sign: ((root: string) => string) | undefined;
  readonly config: () => Config;
  readonly ended: (result: "complete" | "incomplete" | "failed", files: number, bytes: number) => void;
  readonly failed: (name: RepositoryName, error: unknown) => void;
}

interface Job {
  readonly name: RepositoryName;
  attempts: number;
  cancel: () => void;
}

/** 20 s, 40 s, 80 s, then 120 s; after some of these hourly. */
const firstRetryMs = 20_000;
const longestRetryMs = 120_000;
const quickAttempts = 10;
const hourMs = 3_600_000;
const firstLookMs = 500;
const filesAtOnce = 100;
const maxFilesAnAttempt = 1_000;
const maxAskedKept = 20;

export class LargeFileHunter {
  readonly #jobs = new Map<string, Job>();
  readonly #asked = new Map<string, readonly AskedForFiles[]>();
  readonly #turns = new Turns(() => ({ total: 4, perRepository: 1, perIp: 4, maxQueued: 100_000 }));
  readonly #rates: Rates;
  readonly #stop = sharedAbort();
  readonly #running = new Set<Promise<void>>();

  constructor(private readonly parts: HunterParts) {
    this.#rates = new Rates(() => perMinute(parts.config().gitDomainRate));
  }

  /** Something of it is missing. */
  want(name: RepositoryName): void {
    const key = repositoryKey(name);
    const job = this.#jobs.get(key);
    // What is new there is worth a quick look; one that is about to come looks for all of it.
    if (job && job.attempts <= 1) return;
    job?.cancel();
    this.#arm({ name, attempts: 0, cancel: () => undefined }, firstLookMs);
  }

  /** Servers that were asked for files of it, the newest first. */
  asked(name: RepositoryName): readonly AskedForFiles[] {
    return this.#asked.get(repositoryKey(name)) ?? [];
  }

  get queued(): number {
    return this.#jobs.size;
  }

  #arm(job: Job, afterMs: number): void {
    if (this.#stop.signal.aborted) return;
    this.#jobs.set(repositoryKey(job.name), job);
    job.cancel = this.parts.clock.after(afterMs, () => this.#begin(job));
  }

  #begin(job: Job): void {
    const running = this.#run(job)
      .catch((error: unknown) => {
        if (!this.#stop.signal.aborted) this.parts.failed(job.name, error);
      })
      .then(() => void this.#running.delete(running));
    this.#running.add(running);
  }

  async #run(job: Job): Promise<void> {
    const key = repositoryKey(job.name);
    const release = await this.#turns.acquire({ ip: "our own", repository: key }, this.#stop.signal);
    let missing = 0;
    try {
      missing = release ? await this.#attempt(job.name) : 1;
    } finally {
      release?.();
      job.attempts += 1;
      const retryMs = Math.min(longestRetryMs, firstRetryMs * 2 ** (job.attempts - 1));
      if (this.#jobs.get(key) === job) {
        if (missing === 0 && release) this.#jobs.delete(key);
        else this.#arm(job, job.attempts <= quickAttempts ? retryMs : hourMs);
      }
    }
  }

  /** How many are still missing. */
  async #attempt(name: RepositoryName): Promise<number> {
    const { store, repositories } = this.parts.purgatory.context;
    const row = await catalogueRow(store, name);
    if (!isReleased(row) || !(await repositories.exists(diskAddress(name)))) return 0;
    const wanted = new Map<string, LargeFileRow & Pointer>();
    for await (const [oid, file] of largeFiles(store, name)) {
      if (file.isHere || !file.isNamed) continue;
      if (wanted.size === maxFilesAnAttempt) break;
      wanted.set(oid, { ...file, oid });
    }
    if (wanted.size === 0) return 0;
    const all = wanted.size;
    const bytesBefore = [...wanted.values()].reduce((sum, { size }) => sum + size, 0);
    await this.#fromSiblings(name, wanted);
    const config = this.parts.config();
    const announcements = row ? await huntAnnouncements(store, name, row) : [];
    const { sign } = this.parts;
    const clone = announcements.flatMap((announcement) => announcement.clone);
    for (const server of selectUrls(announcements, this.parts.ours, config)) {
      if (wanted.size === 0 || this.#stop.signal.aborted) break;
      await this.#fromServer(name, server, wanted, sign && authorizationFor(clone, sign));
    }
    const bytes = bytesBefore - [...wanted.values()].reduce((sum, { size }) => sum + size, 0);
    this.parts.ended(wanted.size === 0 ? "complete" : "incomplete", all - wanted.size, bytes);
    return wanted.size;
  }

  /** Never a stranger's: repositories of the same maintainers, and what contributors brought under `/prs/`. */
  async #fromSiblings(name: RepositoryName, wanted: Map<string, LargeFileRow & Pointer>): Promise<void> {
    const { store } = this.parts.purgatory.context;
    const siblings = new Set((await releasedSiblings(store, name)).map(repositoryKey));
    for (const [oid, file] of [...wanted]) {
      for (const holder of await holdersOf(store, file.oid, maxAskedKept)) {
        const isOurs =
          holder.area === "prs" ? holder.identifier === name.identifier : siblings.has(repositoryKey(holder));
        if (!isOurs || !(await this.#hasRoom(name, file))) continue;
        const of: RepositoryName =
          holder.area === "prs" ? holder : { owner: holder.owner, identifier: holder.identifier };
        if (!(await this.parts.holdings.copy(name, of, file, file.contributor, this.parts.ledBy))) continue;
        wanted.delete(oid);
        break;
      }
    }
  }

  async #hasRoom(name: RepositoryName, file: LargeFileRow): Promise<boolean> {
    return (await this.parts.purgatory.huntLeft(name, file.contributor)) >= file.size;
  }

  async #fromServer(
    name: RepositoryName,
    { url, domain }: HuntUrl,
    wanted: Map<string, LargeFileRow & Pointer>,
    authorization: OwnAuthorization | undefined,
  ): Promise<void> {
    const client = this.#client(authorization);
    const before = wanted.size;
    let answer = "ok";
    for (const page of pagesOf([...wanted.values()], filesAtOnce)) {
      const offers = await this.#mayAsk(domain, () => askForFiles(url, page, client));
      if (typeof offers === "string") {
        answer = offers;
        break;
      }
      for (const offer of offers) {
        const file = wanted.get(offer.oid);
        if (!file || !(await this.#hasRoom(name, file))) continue;
        const result = await this.#mayAsk(domainOf(new URL(offer.href).hostname), () =>
          this.#fetch(name, file, offer, client),
        );
        if (result === "ok") wanted.delete(offer.oid);
        else answer = result;
      }
    }
    this.#note(name, { url, at: unixSeconds(this.parts.clock), answer, found: before - wanted.size });
  }

  /** Each connection counts: a host is not asked more often than for git data. */
  async #mayAsk<T>(domain: string, ask: () => Promise<T>): Promise<T | "rate"> {
    const { clock } = this.parts;
    if (this.#rates.waitMs(domain, clock.monotonicMs()) > 0) return "rate";
    this.#rates.spend(domain, clock.monotonicMs(), 1);
    return await ask();
  }

  async #fetch(name: RepositoryName, file: LargeFileRow & Pointer, offer: Offer, client: ClientParts): Promise<string> {
    const { purgatory, holdings, ledBy } = this.parts;
    const done = purgatory.pushBegins(name);
    const take = (next: () => Promise<Buffer | undefined>) => holdings.take(name, file, next, file.contributor, ledBy);
    try {
      return await fetchFile(offer, file.size, client, (next) =>
        purgatory.context.repositories.whileUsed(diskAddress(name), () => take(next)),
      );
    } catch (error) {
      return error instanceof WrongContentError ? "bad-objects" : failureOf(error).code;
    } finally {
      done();
    }
  }

  #client(authorization: OwnAuthorization | undefined): ClientParts {
    const { clock, guard, config } = this.parts;
    return { clock, guard, config: config(), signal: this.#stop.signal, authorization };
  }

  #note(name: RepositoryName, asked: AskedForFiles): void {
    const key = repositoryKey(name);
    const others = (this.#asked.get(key) ?? []).filter(({ url }) => url !== asked.url);
    this.#asked.set(key, [asked, ...others].slice(0, maxAskedKept));
  }

  async close(): Promise<void> {
    this.#stop.abort();
    for (const { cancel } of this.#jobs.values()) cancel();
    await Promise.all(this.#running);
  }
}

function* pagesOf<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size);
}
