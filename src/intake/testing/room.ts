// A waiting room for tests: the memory store, real repositories, the real policy, a clock that is driven.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { client, startSeconds, World } from "../../admission/testing/world.js";
import { applyVerdict, type Source, type Verdict } from "../../admission/verdict.js";
import { unixSeconds } from "../../base/clock.js";
import { ManualClock } from "../../base/testing/manual-clock.js";
import type { RepositoryName } from "../../catalogue/repositories.js";
import { defaultConfig } from "../../config/testing/default-config.js";
import { diskAddress, type RepositoryAddress } from "../../git/address.js";
import { Launcher } from "../../git/launcher.js";
import type { Followed, PushAuthority, PushCommand, PushOutcome, PushSession } from "../../git/push-types.js";
import { Repositories } from "../../git/repositories.js";
import type { GitRepository } from "../../git/repository.js";
import { Git } from "../../git/run.js";
import type { VerifiedEvent } from "../../nostr/event.js";
import type { Oid } from "../../nostr/nip34.js";
import type { PurgatoryConfig, PurgatoryObserver, Released } from "../../purgatory/context.js";
import { Purgatory } from "../../purgatory/purgatory.js";
import { createMemoryStore } from "../../store/memory/memory-store.js";
import type { Store } from "../../store/port.js";
import { CarryOut } from "../carry-out.js";
import { Sweep } from "../sweep.js";

export class Room {
  readonly released: Released[] = [];
  placeholdersExpired = 0;
  expired: PurgatoryObserver["expired"] = () => undefined;
  readonly live: { current: PurgatoryConfig } = { current: defaultConfig({ purgatoryStartGraceSecs: 0 }) };
  readonly #policy = new World().policy;

  carryOut!: CarryOut;
  #sweep!: Sweep;

  private constructor(
    readonly clock: ManualClock,
    readonly store: Store,
    readonly folder: string,
    readonly launcher: Launcher,
    readonly git: Git,
    public repositories: Repositories,
    public purgatory: Purgatory,
  ) {}

  static async open(): Promise<Room> {
    const folder = await mkdtemp(join(tmpdir(), "purgatory-test-"));
    const launcher = new Launcher();
    const git = await Git.find(launcher);
    const clock = new ManualClock(startSeconds * 1000);
    const store = createMemoryStore({ clock });
    const repositories = new Repositories({ gitDataPath: folder, git, clock, store });
    const room = new Room(clock, store, folder, launcher, git, repositories, undefined as unknown as Purgatory);
    room.restart();
    await room.purgatory.resume();
    await room.purgatory.startClocks();
    return room;
  }

  get config(): PurgatoryConfig {
    return this.live.current;
  }

  set config(config: PurgatoryConfig) {
    this.live.current = config;
  }

  /** As after a crash: a new waiting room on the same store and disk. */
  restart(): void {
    this.purgatory = new Purgatory({
      store: this.store,
      repositories: this.repositories,
      clock: this.clock,
      live: this.live,
      disks: { fullest: 0 },
      observer: {
        released: (item) => void this.released.push(item),
        expired: (entry, expiry) => this.expired(entry, expiry),
        placeholdersExpired: (count) => {
          this.placeholdersExpired += count;
        },
        problem: () => undefined,
        failed: (_what, error) => {
          throw error;
        },
      },
    });
    this.carryOut = new CarryOut(this.purgatory);
    this.#sweep = new Sweep(this.carryOut);
  }

  /** As after an upgrade: nothing of the refs is in memory. */
  async reopen(): Promise<void> {
    await this.repositories.alignment.flush();
    const { folder, git, clock, store } = this;
    this.repositories = new Repositories({ gitDataPath: folder, git, clock, store });
    this.restart();
  }

  sweep(): Promise<void> {
    return this.#sweep.run();
  }

  async close(): Promise<void> {
    await this.purgatory.close();
    await this.launcher.close();
    await this.store.close();
    await rm(this.folder, { recursive: true, force: true });
  }

  get now(): number {
    return unixSeconds(this.clock);
  }

  /** Only writes the verdict; git has not followed. */
  write(event: VerifiedEvent, source: Source = client()): Promise<Verdict> {
    return this.store.transact(async (tx) => {
      const verdict = await this.#policy(event, { reader: tx, source, nowSeconds: this.now });
      await applyVerdict(tx, event, verdict, this.now);
      return verdict;
    });
  }

  async send(event: VerifiedEvent, source: Source = client()): Promise<boolean> {
    return this.carryOut.follow(event, await this.write(event, source));
  }

  /** As the git server asks for it. */
  lookUp(name: RepositoryName) {
    const { npub, identifier, area } = diskAddress(name);
    return this.purgatory.lookUp(npub, identifier, area);
  }

  // A push in pieces, as the git server tells it.

  async #push<T>(address: RepositoryAddress, ip: string, work: (push: PushSession) => Promise<T>): Promise<T> {
    const push = this.purgatory.beginPush(address, ip);
    try {
      return await work(push);
    } finally {
      await push.end();
    }
  }

  authority(address: RepositoryAddress, commands: readonly PushCommand[], ip: string): Promise<PushAuthority> {
    return this.#push(address, ip, (push) => push.authority(commands));
  }

  keptAside({ address, ip, placeholders }: Pick<PushOutcome, "address" | "ip" | "placeholders">): Promise<void> {
    return this.#push(address, ip, (push) => push.keepAside(placeholders));
  }

  /** Its objects are in place: it is written, with what it releases. Undefined: what it was decided by is gone. */
  async pushed(given: Pick<PushOutcome, "address"> & Partial<PushOutcome>): Promise<Followed | undefined> {
    const decision = { verdicts: [], candidate: undefined, moves: true };
    const outcome: PushOutcome = { decision, updates: [], placeholders: [], packBytes: 0, ip: "192.0.2.1", ...given };
    return await this.#push(outcome.address, outcome.ip, async (push) => {
      const isWritten = await push.locked(() => push.release(outcome));
      return isWritten ? await push.follow(outcome) : undefined;
    });
  }

  repository(name: RepositoryName): GitRepository {
    return this.repositories.open(diskAddress(name));
  }

  /** A commit of its own in a repository's objects, as a hunt or a push leaves it before the release. */
  async commit(name: RepositoryName, text: string): Promise<Oid> {
    const { directory } = this.repository(name);
    const tree = (await this.git.mustRun(["hash-object", "-w", "-t", "tree", "--stdin"], { directory }))
      .toString()
      .trim();
    const env = { GIT_AUTHOR_DATE: "1700000000 +0000", GIT_COMMITTER_DATE: "1700000000 +0000" };
    return (await this.git.mustRun(["commit-tree", "-m", text, tree], { directory, env })).toString().trim() as Oid;
  }

  async isServed(event: VerifiedEvent): Promise<boolean> {
    return this.store.has(event.id);
  }

  async advance(seconds: number): Promise<void> {
    this.clock.advance(seconds * 1000);
    await this.sweep();
  }
}
