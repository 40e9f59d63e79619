import assert from "node:assert/strict";
import { test } from "node:test";
import { keyOf } from "../admission/testing/world.js";
import { ManualClock } from "../base/testing/manual-clock.js";
import { diskAddress, type RepositoryAddress } from "../git/address.js";
import type { GitRepository } from "../git/repository.js";
import { RefFsync } from "./journal.js";

function refFsync() {
  const clock = new ManualClock(0);
  const gone: string[] = [];
  const faults: unknown[] = [];
  const failing = new Set<string>();
  const store = { isFailing: false };
  const repositories = {
    exists: async () => true,
    open: ({ identifier }: RepositoryAddress): GitRepository =>
      ({
        syncRefs: async () => {
          if (failing.has(identifier)) throw new Error("EMFILE");
        },
      }) as unknown as GitRepository,
  };
  const journal = {
    kept: async (keys: readonly string[]) => {
      if (store.isFailing) throw new Error("no space");
      gone.push(...keys);
    },
  };
  const it = new RefFsync(repositories, journal, clock, (error) => void faults.push(error));
  const at = (identifier: string): RepositoryAddress => diskAddress({ owner: keyOf("ann"), identifier });
  return { it, at, clock, gone, faults, failing, store };
}

test("threat 51: one repository that cannot be synced keeps no other's promises from being kept, and is tried again", async () => {
  const { it, at, clock, gone, faults, failing } = refFsync();
  failing.add("b");
  for (const name of ["a", "b", "c"]) it.add(at(name), name);
  await it.flush();
  assert.deepEqual(gone, ["a", "c"]);
  assert.equal(faults.length, 1);
  failing.clear();
  clock.advance(2_000);
  await it.flush();
  assert.deepEqual(gone, ["a", "c", "b"]);
});

test("threat 51: a newer promise is not forgotten before the older one of the same repository", async () => {
  const { it, at, gone, failing } = refFsync();
  failing.add("a");
  it.add(at("a"), "old");
  await it.flush();
  it.add(at("a"), "new");
  await it.flush();
  assert.deepEqual(gone, []);
  failing.clear();
  await it.flush();
  assert.deepEqual(gone, ["old", "new"]);
});

test("threat 51: promises that the store could not forget are forgotten later, by themselves", async () => {
  const { it, at, clock, gone, store } = refFsync();
  store.isFailing = true;
  it.add(at("a"), "a");
  await it.flush();
  store.isFailing = false;
  clock.advance(2_000);
  // What the clock started runs before this.
  await it.flush();
  assert.deepEqual(gone, ["a"]);
});
