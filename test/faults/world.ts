// The folders (small disks of their own where they can be mounted), the people and repositories, and the peer server
// that a run of rounds happens in. Made anew every so many rounds, so that looking through all of it stays quick.

import { spawnSync } from "node:child_process";
import { mkdirSync, statfsSync } from "node:fs";
import { join } from "node:path";
import type { Random } from "../../src/store/testing/random.js";
import { freePort } from "../harness/free-port.js";
import { Person, type SignedEvent } from "../harness/grasp-people.js";
import { type ChildServer, newFolder, removeFolder, startChild } from "../harness/server.js";
import { Hosted, Ledger } from "./ledger.js";
import { Source } from "./source.js";
import type { Place } from "./victim.js";

const roomyBytes = 2 ** 30;
const quickSync = {
  NGIT_SYNC_BATCH_WINDOW_MS: "20",
  NGIT_SYNC_STARTUP_JITTER_MS: "0",
  NGIT_SYNC_BASE_BACKOFF_SECS: "1",
  NGIT_SYNC_MAX_BACKOFF_SECS: "1",
  NGIT_SYNC_DISCONNECT_CHECK_INTERVAL_SECS: "1",
};

/** What every life of the victim has in common. */
export const usualSettings: Readonly<Record<string, string>> = {
  ...quickSync,
  NGIT_PARTIAL_STATE_GRACE_SECS: "1",
  NGIT_GIT_HUNT_SYNC_DELAY_MS: "50",
  NGIT_GIT_HUNT_BASE_BACKOFF_SECS: "1",
  NGIT_GIT_HUNT_MAX_BACKOFF_SECS: "1",
  NGIT_GIT_DOMAIN_RATE: "100000",
  NGIT_UNCLAIMED_PER_HOUR_PER_IP: "100000",
};

export type Volume = "git" | "relay";

export class World {
  readonly ledger = new Ledger();
  readonly sets: Hosted[] = [];
  readonly #mounted: string[] = [];
  #founded = 0;

  private constructor(
    readonly random: Random,
    readonly place: Place,
    readonly peer: ChildServer,
  ) {}

  static async make(random: Random): Promise<World> {
    const place = { folder: await newFolder(), port: await freePort() };
    const peer = await startChild({
      backend: "memory",
      settings: { ...quickSync, NGIT_GIT_HUNT_DIRECT_DELAY_MS: "600000" },
    });
    const world = new World(random, place, peer);
    for (const volume of ["git", "relay"] as const) world.#mount(volume);
    process.once("exit", world.#leave);
    return world;
  }

  /** Both data directories are small disks of their own. */
  get hasVolumes(): boolean {
    return this.#mounted.length === 2;
  }

  path(volume: Volume): string {
    return join(this.place.folder, volume);
  }

  #mount(volume: Volume): void {
    const path = this.path(volume);
    mkdirSync(path);
    const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${roomyBytes}`, "tmpfs", path]);
    if (status === 0) this.#mounted.push(path);
  }

  /** The disk is only that much larger than what is on it. */
  fill(volume: Volume, spareBytes: number): void {
    // The server goes on writing: a disk cannot be made smaller than what is on it by then.
    for (let tries = 20; ; tries--) {
      const { blocks, bfree, bsize } = statfsSync(this.path(volume));
      const problem = this.#resize(volume, (blocks - bfree) * bsize + spareBytes);
      if (problem === undefined) return;
      if (tries === 1) throw new Error(`remounting ${volume}: ${problem}`);
    }
  }

  giveRoom(volume: Volume): void {
    const problem = this.#resize(volume, roomyBytes);
    if (problem !== undefined) throw new Error(`remounting ${volume}: ${problem}`);
  }

  #resize(volume: Volume, bytes: number): string | undefined {
    const { status, stderr } = spawnSync("mount", ["-o", `remount,size=${bytes}`, this.path(volume)], {
      encoding: "utf8",
    });
    return status === 0 ? undefined : stderr;
  }

  /** A name for repositories that nobody has yet. */
  async found(owners: readonly [Person, ...Person[]], isSharedWithPeer = false): Promise<Hosted> {
    const identifier = `${isSharedWithPeer ? "shared" : "repo"}-${this.#founded++}`;
    const source = await Source.make(join(this.place.folder, "work", identifier), this.random);
    const set = new Hosted(identifier, owners, source);
    this.sets.push(set);
    if (isSharedWithPeer) this.shared = set;
    return set;
  }

  shared: Hosted | undefined;

  get origin(): string {
    return `http://127.0.0.1:${this.place.port}`;
  }

  url(owner: Person, set: Hosted, origin = this.origin): string {
    return `${origin}/${owner.npub}/${set.identifier}.git`;
  }

  directory(owner: Person, set: Hosted): string {
    return join(this.path("git"), owner.npub, `${set.identifier}.git`);
  }

  announcement(owner: Person, set: Hosted): SignedEvent {
    const origins = set === this.shared ? [this.origin, this.peer.origin] : [this.origin];
    const tags = [
      ["d", set.identifier],
      ["clone", ...origins.map((origin) => this.url(owner, set, origin))],
      ["relays", ...origins.map((origin) => origin.replace("http:", "ws:"))],
      ["maintainers", ...set.owners.map(({ pubkey }) => pubkey)],
    ];
    return owner.sign(30617, tags, "", set.nextSecond());
  }

  newPerson(): Person {
    return new Person();
  }

  /** Also when the harness itself is stopped. */
  readonly #leave = (): void => {
    this.peer.child.kill("SIGKILL");
    for (const path of this.#mounted) spawnSync("umount", ["--lazy", path]);
  };

  async end(): Promise<void> {
    process.off("exit", this.#leave);
    this.#leave();
    await this.peer.ended;
    await removeFolder(this.peer.folder);
    await removeFolder(this.place.folder);
  }
}
