// What most stories of the hunt begin with: a house, a working clone, and git servers that have the data.

import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { HuntConfig } from "../../src/hunt/core/messages.js";
import { HuntGitServer, WorkingClone } from "./hunt-git-server.js";
import { type HouseWish, HuntHouse } from "./hunt-house.js";

export interface HuntWorld {
  readonly house: HuntHouse;
  readonly work: WorkingClone;
  /** The first of the servers, for stories with one. */
  readonly remote: HuntGitServer;
  readonly remotes: readonly HuntGitServer[];
  /** Starts the house again, which was shut. */
  readonly again: () => Promise<HuntHouse>;
}

/** All of it is gone when the test is over. */
export async function huntWorld(context: TestContext, wish: HouseWish = {}, servers = 1): Promise<HuntWorld> {
  const house = await HuntHouse.start(wish);
  let last = house;
  context.after(() => last.close());
  const work = await WorkingClone.make();
  context.after(() => work.remove());
  const remotes = await Promise.all(Array.from({ length: servers }, () => HuntGitServer.start()));
  context.after(() => Promise.all(remotes.map((remote) => remote.close())));
  const [remote] = remotes;
  assert.ok(remote);
  const again = async (): Promise<HuntHouse> => {
    last = await HuntHouse.start({ ...wish, from: last });
    return last;
  };
  return { house, work, remote, remotes, again };
}

/** Attempts follow each other at once, and no throttle holds them. */
export const impatient = (config: HuntConfig): HuntConfig => ({
  ...config,
  gitHuntSyncDelayMs: 10,
  gitHuntBaseBackoffSecs: 0.1,
  gitHuntMaxBackoffSecs: 0.1,
  gitDomainConcurrent: 5,
  gitDomainRate: 1_000,
});
