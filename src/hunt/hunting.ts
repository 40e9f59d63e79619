// The hunt for missing git data: follows what waits in purgatory, drives the core, runs its fetches, and tells the
// operator what it knows. purgatory.md "Hunting"; the rules are in core/, fetching in run-fetch.ts and look-up.ts.

import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { unixSeconds } from "../base/clock.js";
import { type RepositoryName, repositoryNamed } from "../catalogue/repositories.js";
import type { WaitingEntry } from "../catalogue/waiting.js";
import type { Logger } from "../config/logging.js";
import type { EventId } from "../nostr/event.js";
import type { Oid } from "../nostr/nip34.js";
import type { FeedEntry, Store, Transaction } from "../store/port.js";
import { HuntCore } from "./core/core.js";
import { originOf } from "./core/fetch-plan.js";
import type { CounterName, GaugeName, HuntConfig, HuntInput } from "./core/messages.js";
import { type EndedFetch, type FetchCommand, type FetchLeave, HuntDriver, type OtherCommand } from "./core-driver.js";
import {
  type AskedServer,
  announcedIn,
  type HuntedRepository,
  MissingTable,
  RecheckQueue,
  repositoriesToCheck,
} from "./missing.js";
import { type RunFetchParts, runFetch, targetOf } from "./run-fetch.js";
import { type Found, isNothing, PullRequestReader, wantsOf } from "./wants.js";

type Measured = Extract<OtherCommand, { readonly type: "count" | "gauge" }>;

interface HuntingParts extends RunFetchParts {
  readonly config: HuntConfig;
  readonly measure: (command: Measured) => void;
  readonly logger: Pick<Logger, "debug" | "info" | "warn">;
  /** What repair had found came, at least in part: it is worth another look. */
  readonly repaired: (name: RepositoryName) => void;
  readonly onFault: (error: unknown) => void;
}

export class Hunting {
  readonly #parts: HuntingParts;
  readonly #core: HuntCore;
  readonly #driver: HuntDriver;
  readonly #missing: MissingTable;
  readonly #rechecks: RecheckQueue;
  readonly #pullRequests = new PullRequestReader();
  readonly #stops: (() => void)[] = [];
  readonly #startedSeconds: number;
  #isRoundOver = false;
  #closed = false;
  #loading: Promise<void> = Promise.resolve();

  constructor(parts: HuntingParts) {
    this.#parts = parts;
    const { clock, config, onFault } = parts;
    this.#core = new HuntCore(config);
    this.#driver = new HuntDriver({
      core: this.#core,
      clock,
      fetch: (command, leave) => this.#fetch(command, leave),
      obey: (command) => this.#obey(command),
      onFault,
    });
    const tell = (input: HuntInput): void => this.#driver.input(input);
    this.#missing = new MissingTable(tell, (job) => this.#core.dueMs(job), clock);
    this.#rechecks = new RecheckQueue((name) => this.#look(name), onFault, clock);
    this.#startedSeconds = unixSeconds(clock);
  }

  /** Begins to follow; what waited before the start is read in the background. */
  async open(): Promise<void> {
    const { store, purgatory, clock, logger } = this.#parts;
    for (const naughty of await restoreNaughty(store, unixSeconds(clock))) {
      this.#driver.input({ type: "naughty-restored", ...naughty });
    }
    purgatory.expireOnlyIf((entry) => this.#mayExpire(entry));
    this.#stops.push(
      purgatory.bell.listen(({ names, ids }) => {
        for (const name of names) this.#changed(name);
        for (const id of ids) for (const name of this.#missing.withItem(id)) this.#rechecks.add(name);
      }),
      store.onCommit(({ entries }) => this.#committed(entries)),
      this.#parts.repositories.onChange((address) => this.#missing.arrived(address)),
    );
    logger.info({}, "hunting for git data");
    this.#loading = this.#load().catch(this.#parts.onFault);
  }

  async #load(): Promise<void> {
    for await (const name of repositoriesToCheck(this.#parts.store)) {
      if (this.#closed) return;
      this.#rechecks.add(name);
    }
    await this.#rechecks.idle();
    this.#driver.input({ type: "start-round" });
  }

  /** Resolves when everything that changed so far has been looked at. */
  async caughtUp(): Promise<void> {
    await this.#loading;
    await this.#rechecks.idle();
  }

  /** Repair found this of a repository; replaces what it found before. */
  found(name: RepositoryName, found: Found): void {
    this.#missing.setFound(name, found);
    this.#rechecks.add(name);
  }

  /** Repositories and pull requests whose data is looked for. */
  get queueSize(): number {
    return this.#core.queueSize;
  }

  get fetchesInFlight(): number {
    return this.#driver.fetchesInFlight;
  }

  known(): HuntedRepository[] {
    return this.#missing.all();
  }

  knownOf(name: RepositoryName): HuntedRepository | undefined {
    return this.#missing.of(name);
  }

  /** An attempt goes on. */
  isAtWork(name: RepositoryName): boolean {
    const known = this.knownOf(name);
    return known !== undefined && known.nextAttempt === undefined;
  }

  /** Who was asked for its data since the start, and what came of it. */
  askedServers(name: RepositoryName): readonly AskedServer[] {
    return this.#missing.serversOf(name);
  }

  /** A relay serves an event that waits here: its server has the git data, by its own promise. */
  servedBy(event: EventId, relay: string): void {
    this.#driver.input({ type: "served", event, origin: originOf(relay) });
  }

  /** Its servers are asked again at once. False: nothing of it is missing. */
  askNow(name: RepositoryName): boolean {
    const jobs = this.#missing.jobsOf(name);
    for (const job of jobs) this.#driver.input({ type: "ask-now", job });
    return jobs.length > 0;
  }

  #changed(name: RepositoryName): void {
    this.#rechecks.add(name);
    // Its announcement may name servers, or maintainers, for others of the same identifier.
    for (const other of this.#missing.withIdentifier(name.identifier)) this.#rechecks.add(other);
  }

  #committed(entries: readonly FeedEntry[]): void {
    for (const identifier of announcedIn(entries)) {
      for (const name of this.#missing.withIdentifier(identifier)) this.#rechecks.add(name);
    }
  }

  async #look(name: RepositoryName): Promise<void> {
    const { store, repositories, purgatory, ledBy } = this.#parts;
    const { stillMissing, seen } = this.#missing.beginLook(name);
    const parts = { store, repositories, pullRequests: this.#pullRequests, stillMissing };
    const wants = await wantsOf(parts, name, this.#missing.foundIn(name));
    if (this.#closed) return;
    seen();
    for (const id of this.#missing.update(name, wants)) {
      for (const other of this.#missing.withItem(id)) this.#rechecks.add(other);
    }
    const inVain = this.#missing.takeSoughtInVain(name);
    if (inVain.size > 0) await purgatory.releasePartial(name, inVain, ledBy);
    // What it waits for came with a fetch for another, or a moment before it: nobody else would look at it again.
    if (wants.isReady) await purgatory.fetched(name, undefined, ledBy);
  }

  async #fetch(command: FetchCommand, leave: FetchLeave): Promise<EndedFetch> {
    const { store } = this.#parts;
    const name: RepositoryName | undefined =
      command.kind === "repository"
        ? repositoryNamed(command.job)
        : await targetOf(store, this.#missing.withItem(command.job));
    if (!name) return { result: { arrived: [], refused: [], failure: "cancelled" }, release: async () => undefined };
    const trustRefs = this.#missing.foundIn(name).missing.length === 0;
    const ended = await runFetch(this.#parts, command, leave, name, trustRefs);
    this.#missing.asked(name, command.url, ended.result);
    if (ended.result.arrived.length === 0) return ended;
    return {
      ...ended,
      release: async () => {
        await ended.release();
        this.#arrived(name, ended.result.arrived);
      },
    };
  }

  #arrived(name: RepositoryName, ids: readonly Oid[]): void {
    this.#missing.arrived(name);
    const found = this.#missing.foundIn(name);
    const came = new Set(ids);
    if (!isNothing(found)) {
      const missing = found.missing.filter((id) => !came.has(id));
      const pullRequests = found.pullRequests.filter(({ tip }) => !came.has(tip));
      this.found(name, { missing, pullRequests });
      this.#parts.repaired(name);
    }
    this.#changed(name);
  }

  #obey(command: OtherCommand): void {
    const { measure, logger, store, clock, onFault } = this.#parts;
    switch (command.type) {
      case "log":
        logger[command.level](command.fields, command.message);
        break;
      case "count":
      case "gauge":
        measure(command);
        break;
      case "naughty": {
        const { place, kind, forMs } = command;
        logger.warn({ place, kind }, "git host left alone");
        keepNaughty(store, place, kind, unixSeconds(clock) + Math.ceil(forMs / 1_000)).catch(onFault);
        break;
      }
      case "round-ended":
        this.#isRoundOver = true;
        break;
      case "looked-everywhere":
        this.#lookedEverywhere(command.job);
    }
  }

  /** What is still missing of a soft state is on no server that could be asked. */
  #lookedEverywhere(job: string): void {
    const name = this.#missing.lookedEverywhere(job);
    if (name) this.#rechecks.add(name);
  }

  #mayExpire(entry: WaitingEntry): boolean {
    // How long after a start nothing ends at all is the sweep's setting; here only that everything was hunted once.
    return this.#isRoundOver || entry.entered >= this.#startedSeconds;
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const stop of this.#stops) stop();
    // Until another hunt has looked for everything once.
    this.#parts.purgatory.expireOnlyIf(() => false);
    await this.#driver.close();
    await this.#rechecks.close();
    await this.#loading;
  }
}

/**
 * Table "naughty", git's part: hosts that are plainly broken, kept over restarts. Keys begin with `git:`; relays have
 * their own. Times are wall-clock seconds, because a restart forgets the monotonic clock.
 */
interface NaughtyRow {
  readonly kind: string;
  readonly until: number;
}

const naughtyPrefix = "git:";
// A host name has at most 253 bytes; a key may have 1,000.
const naughtyKey = (place: string): string => `${naughtyPrefix}${place.slice(0, 300)}`;

interface RestoredNaughty {
  readonly place: string;
  readonly kind: string;
  readonly remainingMs: number;
}

async function keepNaughty(store: Store, place: string, kind: string, until: number): Promise<void> {
  const note = async (tx: Transaction): Promise<void> =>
    tx.setRow<NaughtyRow>("naughty", naughtyKey(place), { kind, until });
  await store.transact(note, { mayWait: true });
}

/** What still holds; rows whose time is over are removed. */
async function restoreNaughty(store: Store, nowSeconds: number): Promise<RestoredNaughty[]> {
  const restored: RestoredNaughty[] = [];
  const over: string[] = [];
  for await (const [key, { kind, until }] of store.rows<NaughtyRow>("naughty", { prefix: naughtyPrefix })) {
    const remainingMs = (until - nowSeconds) * 1_000;
    if (remainingMs > 0) restored.push({ place: key.slice(naughtyPrefix.length), kind, remainingMs });
    else over.push(key);
  }
  if (over.length > 0) {
    await store.transact(async (tx) => {
      for (const key of over) tx.deleteRow("naughty", key);
    });
  }
  return restored;
}

/** The hunt's numbers (purgatory.md, "Metrics and logs"). Names of domains come from the core, which lets a hundred of them have a label of their own. */
export function createHuntMetrics(registry: Registry) {
  const registers = [registry];
  const counter = (name: string, help: string, labelNames: string[]) =>
    new Counter({ name, help, labelNames, registers });
  const gauge = (name: string, help: string, labelNames: string[]) => new Gauge({ name, help, labelNames, registers });
  const counters: Readonly<Record<CounterName, Counter>> = {
    purgatory_sync_attempts_total: counter("purgatory_sync_attempts_total", "Hunts by how they ended", ["result"]),
    purgatory_sync_oids_fetched_total: counter("purgatory_sync_oids_fetched_total", "Wanted objects that came", []),
    purgatory_domain_requests_total: counter("purgatory_domain_requests_total", "Connections to git hosts", [
      "domain",
      "result",
    ]),
  };
  const gauges: Readonly<Record<GaugeName, Gauge>> = {
    purgatory_sync_queue_size: gauge("purgatory_sync_queue_size", "Repositories and pull requests being hunted", []),
    purgatory_domain_in_flight: gauge("purgatory_domain_in_flight", "Fetches running at a git host", ["domain"]),
    purgatory_domain_queued: gauge("purgatory_domain_queued", "Hunts that wait for their turn at a git host", [
      "domain",
    ]),
  };
  const bytes = counter("ngit_git_fetch_bytes_total", "Bytes fetched from other git servers", []);
  const seconds = new Histogram({
    name: "ngit_git_fetch_seconds",
    help: "How long fetches from other git servers took",
    buckets: [0.05, 0.2, 1, 5, 20, 60, 300, 600],
    registers,
  });
  return {
    measure(command: Measured): void {
      if (command.type === "count") counters[command.metric].inc(command.labels, command.by);
      else gauges[command.metric].set(command.labels, command.value);
    },
    fetched(fetchedBytes: number, tookSeconds: number): void {
      bytes.inc(fetchedBytes);
      seconds.observe(tookSeconds);
    },
  };
}
