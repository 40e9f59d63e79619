// The room for large files (LFS): what is here of them, the search for pointers, the hunt for what is missing, and their
// housekeeping; settings, metrics and log lines around them. Its routes are made by `routesOf`, when it is known who asks.

import { createHmac, randomBytes } from "node:crypto";
import { Counter, Gauge, type Registry } from "prom-client";
import type { GitAccess } from "../access/git-access.js";
import { repositoryAuthorization } from "../access/signed-request.js";
import { repeatedly, unixSeconds } from "../base/clock.js";
import { sharedAbort } from "../base/shared-abort.js";
import { allLargeFiles, changedScans, type LargeFileId, largeFiles, scans } from "../catalogue/large-files.js";
import { refsVersion } from "../catalogue/refs.js";
import { everyRow, isReleased, type RepositoryName } from "../catalogue/repositories.js";
import { publicUrls } from "../config/config.js";
import type { Context } from "../context.js";
import { diskAddress } from "../git/address.js";
import type { GitHost } from "../git/git-host.js";
import { reachOf } from "../net/address.js";
import { guardWith, systemResolver } from "../net/guard.js";
import type { SecretKey } from "../nostr/keys.js";
import type { Purgatory } from "../purgatory/purgatory.js";
import type { Commit, LedBy } from "../store/port.js";
import { UploadGate } from "./access.js";
import { largeFileFaults } from "./check.js";
import { unclaimedIn } from "./files.js";
import { Holdings } from "./holdings.js";
import { LfsHttp, type LfsOperation } from "./http.js";
import { type AskedForFiles, LargeFileHunter } from "./hunter.js";
import { Scanner } from "./scanner.js";

const choresEveryMs = 3_600_000;
const secondsPerDay = 86_400;

interface UsedRooms {
  readonly gitHost: Pick<GitHost, "repositories">;
  readonly purgatory: Purgatory;
  readonly serverSecret: SecretKey;
}

export class LargeFilesRoom {
  readonly holdings: Holdings;
  readonly #scanner: Scanner;
  /** Only the machine that leads asks other servers. */
  #hunter: LargeFileHunter | undefined;
  readonly #measure: LargeFileMetrics;
  readonly #closing = sharedAbort();
  #tidying: Promise<void> = Promise.resolve();

  constructor(
    private readonly context: Context,
    private readonly rooms: UsedRooms,
  ) {
    const { clock, registry, store } = context;
    this.#measure = createMetrics(registry, context);
    this.holdings = new Holdings(rooms.purgatory);
    this.#scanner = new Scanner({
      store,
      repositories: rooms.gitHost.repositories,
      clock,
      holdings: this.holdings,
      missing: (name) => this.#hunter?.want(name),
      failed: (name, error) => this.#failed(name, error),
    });
  }

  async open(): Promise<void> {
    await this.holdings.open();
    this.rooms.purgatory.placeholders.countWith(this.holdings);
    this.#scanner.open();
    if (this.context.store.isShared) this.#tidying = this.#followAbsence().catch(this.context.onFault);
  }

  /** What other machines removed while this one was away. */
  async #followAbsence(): Promise<void> {
    for await (const name of everyRow(this.context.store)) {
      if (this.#closing.signal.aborted) return;
      await this.holdings.removeAllUnrecorded(name);
    }
  }

  /** Searches what nobody has searched, hunts and keeps house, until it is closed: for the machine that leads. */
  async lead(ledBy?: LedBy): Promise<{ close(): Promise<void> }> {
    const { clock, onFault, store } = this.context;
    const stop = sharedAbort();
    const hunter = this.#newHunter(ledBy);
    this.#hunter = hunter;
    const chores = repeatedly(
      clock,
      () => choresEveryMs,
      () => this.#keepHouse(stop.signal),
      onFault,
    );
    const stopFollowing = store.onForeignCommit((commit) => this.#follow(commit));
    const catchingUp = this.#catchUp(stop.signal).catch(onFault);
    return {
      close: async () => {
        stop.abort();
        stopFollowing();
        this.#hunter = undefined;
        await chores.close();
        await hunter.close();
        await catchingUp;
      },
    };
  }

  #newHunter(ledBy: LedBy | undefined): LargeFileHunter {
    const { clock, live, services } = this.context;
    const { purgatory, serverSecret } = this.rooms;
    return new LargeFileHunter({
      purgatory,
      holdings: this.holdings,
      ledBy,
      clock,
      guard: guardWith({ resolve: systemResolver(clock), reach: reachOf(live.current) }),
      ours: services,
      sign: live.current.privateMode
        ? (root) => repositoryAuthorization(serverSecret, root, clock, randomBytes)
        : undefined,
      config: () => live.current,
      ended: (result, files, bytes) => this.#measure.hunted(result, files, bytes),
      failed: (name, error) => {
        this.#measure.hunted("failed", 0, 0);
        this.#failed(name, error);
      },
    });
  }

  #failed(name: RepositoryName, error: unknown): void {
    const { logger } = this.context;
    logger.warn({ err: error, repo: diskAddress(name).label }, "large files of a repository could not be looked for");
  }

  /** Another machine searched these: what they lack is looked for from here. */
  async #follow(commit: Commit): Promise<void> {
    for (const row of await changedScans(this.context.store, commit)) await this.#wantMissing(row);
  }

  /** What changed while no server ran, or before large files were known here; one repository after the other. */
  async #catchUp(signal: AbortSignal): Promise<void> {
    const { store } = this.context;
    const searched = new Map((await scans(store)).map((row) => [diskAddress(row).key, row.version]));
    for await (const row of everyRow(store)) {
      if (signal.aborted) return;
      const address = diskAddress(row);
      const version = await refsVersion(store, address);
      if (version > 0 && isReleased(row) && searched.get(address.key) !== version)
        await this.#scanner.caughtUp(address);
      else if (searched.has(address.key)) await this.#wantMissing(row);
    }
  }

  async #wantMissing(name: RepositoryName): Promise<void> {
    for await (const [, { isHere, isNamed }] of largeFiles(this.context.store, name)) {
      if (!isHere && isNamed) return this.#hunter?.want(name);
    }
  }

  /** Hourly: what is due for a search of everything; what nothing named for as long as unreachable objects are kept goes. */
  async #keepHouse(signal: AbortSignal): Promise<void> {
    const { store, live, clock } = this.context;
    const { repositories } = this.rooms.gitHost;
    const { gitCruftIntervalDays, gitCruftGraceDays } = live.current;
    const now = unixSeconds(clock);
    for (const scan of await scans(store)) {
      if (signal.aborted) return;
      const address = diskAddress(scan);
      let hasFiles = false;
      const over: LargeFileId[] = [];
      for await (const [oid, { isHere, isNamed, since }] of largeFiles(store, address)) {
        hasFiles = true;
        if (isHere && !isNamed && since + gitCruftGraceDays * secondsPerDay <= now) over.push(oid);
      }
      // A backup that is being taken has rows of them.
      if (!repositories.isBeingCopied) for (const oid of over) await this.holdings.remove(address, oid);
      if (hasFiles && scan.fullAt + gitCruftIntervalDays * secondsPerDay <= now)
        await this.#scanner.searchAgain(address);
    }
  }

  /** Servers that were asked for files of it. */
  asked(name: RepositoryName): readonly AskedForFiles[] {
    return this.#hunter?.asked(name) ?? [];
  }

  /** For `fsck`: reads every file. What is not whole is looked for again; what no row knows goes. */
  async check(name: RepositoryName): Promise<string[]> {
    const directory = this.holdings.directoryOf(name);
    const problems: string[] = [];
    for await (const { oid, fault } of largeFileFaults(this.context.store, directory, name)) {
      if (fault === "damaged") {
        // Where files are shared, one that was not asked for is not here.
        if (await this.holdings.isWhole(name, oid)) continue;
        problems.push(`large file ${oid} is damaged or lost: it is looked for on other servers`);
        await this.holdings.lost(name, oid);
        this.#hunter?.want(name);
      } else if (await this.holdings.removeUnrecorded(name, oid)) {
        problems.push(`large file ${oid} is not recorded: it was removed`);
      }
    }
    for (const oid of await unclaimedIn(directory)) await this.holdings.removeUnrecorded(name, oid, "unclaimed");
    return problems;
  }

  /** `isPrivate`: nothing is told to whoever is not known. */
  http(access: GitAccess, isPrivate: boolean): LfsHttp {
    const { live } = this.context;
    const { purgatory, serverSecret } = this.rooms;
    const gate = new UploadGate({
      purgatory,
      holdings: this.holdings,
      access,
      config: () => live.current,
      isPrivate,
    });
    return new LfsHttp({
      gate,
      holdings: this.holdings,
      scanner: this.#scanner,
      missing: (name) => this.#hunter?.want(name),
      // Good after a restart too, and known to nobody.
      ticketKey: createHmac("sha256", serverSecret.exportBytes()).update("large file tickets").digest(),
      publicUrl: () => publicUrls(live.current).http,
      observe: (operation) => this.#observe(operation),
    });
  }

  #observe(operation: LfsOperation): void {
    this.#measure.observe(operation);
    if (operation.fault !== undefined) {
      this.context.logger.error(
        { err: operation.fault, operation: operation.operation },
        "a request for a large file failed",
      );
    }
  }

  get queued(): number {
    return this.#hunter?.queued ?? 0;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#tidying;
    await this.#scanner.close();
  }
}

interface LargeFileMetrics {
  observe(operation: LfsOperation): void;
  hunted(result: "complete" | "incomplete" | "failed", files: number, bytes: number): void;
}

function createMetrics(registry: Registry, { store }: Context): LargeFileMetrics {
  const registers = [registry];
  const requests = new Counter({
    name: "ngit_lfs_requests_total",
    help: "Requests for large files by outcome",
    labelNames: ["operation", "status"],
    registers,
  });
  const bytes = new Counter({
    name: "ngit_lfs_bytes_total",
    help: "Bytes of large files brought, fetched by clients, and fetched from other servers",
    labelNames: ["direction"],
    registers,
  });
  const hunts = new Counter({
    name: "ngit_lfs_hunts_total",
    help: "Looks for missing large files of a repository, by how they ended",
    labelNames: ["result"],
    registers,
  });
  const found = new Counter({
    name: "ngit_lfs_hunted_files_total",
    help: "Large files that were found elsewhere",
    registers,
  });
  new Gauge({
    name: "ngit_lfs_files",
    help: "Large files that are here, and that are named and missing",
    labelNames: ["state"],
    registers,
    async collect() {
      const { here, missing } = await allLargeFiles(store);
      this.set({ state: "here" }, here);
      this.set({ state: "missing" }, missing);
    },
  });
  new Gauge({
    name: "ngit_lfs_stored_bytes",
    help: "Bytes of large files that are here",
    registers,
    async collect() {
      this.set((await allLargeFiles(store)).hereBytes);
    },
  });
  for (const direction of ["in", "out", "hunted"]) bytes.inc({ direction }, 0);
  for (const result of ["complete", "incomplete", "failed"]) hunts.inc({ result }, 0);
  return {
    observe({ operation, status, bytesIn, bytesOut }) {
      requests.inc({ operation, status });
      if (operation === "upload") bytes.inc({ direction: "in" }, bytesIn);
      if (operation === "download") bytes.inc({ direction: "out" }, bytesOut);
    },
    hunted(result, files, hunted) {
      hunts.inc({ result });
      found.inc(files);
      bytes.inc({ direction: "hunted" }, hunted);
    },
  };
}
