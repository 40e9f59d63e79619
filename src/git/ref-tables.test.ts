import assert from "node:assert/strict";
import { test } from "node:test";
import { keyOf } from "../admission/testing/world.js";
import { ManualClock } from "../base/testing/manual-clock.js";
import { changeRefs, type RefValue, removeRefs } from "../catalogue/refs.js";
import type { Oid, RefName } from "../nostr/nip34.js";
import { createMemoryStore } from "../store/memory/memory-store.js";
import { diskAddress, type RepositoryAddress } from "./address.js";
import { RefAlignment, refsAfter } from "./ref-tables.js";

async function refAlignment() {
  const clock = new ManualClock(0);
  const store = createMemoryStore({ clock });
  const faults: unknown[] = [];
  const failing = new Set<string>();
  const versions = new Map<string, number>();
  const it = new RefAlignment(store, clock);
  it.failed = (error) => void faults.push(error);
  const at = (identifier: string): RepositoryAddress => diskAddress({ owner: keyOf("ann"), identifier });
  const change = async (identifier: string): Promise<void> => {
    const version = await store.transact((tx) => changeRefs(tx, at(identifier), [], "refs/heads/main" as RefName));
    versions.set(identifier, version);
    it.add({
      address: at(identifier),
      alignedVersion: async () => versions.get(identifier),
      syncRefs: async () => {
        if (failing.has(identifier)) throw new Error("EMFILE");
      },
    });
  };
  const recorded = async (): Promise<Record<string, number>> => {
    const found: Record<string, number> = {};
    for await (const [key, version] of store.rows<number>("aligned")) found[key.slice(-1)] = version;
    return found;
  };
  return { it, at, clock, store, faults, failing, versions, change, recorded };
}

test("threat 51: one repository that cannot be synced keeps no other's version from being recorded, and is tried again", async () => {
  const { it, clock, recorded, faults, failing, change } = await refAlignment();
  failing.add("b");
  for (const name of ["a", "b", "c"]) await change(name);
  await it.flush();
  assert.deepEqual(await recorded(), { a: 1, c: 1 });
  assert.equal(faults.length, 1);
  failing.clear();
  clock.advance(2_000);
  await it.flush();
  assert.deepEqual(await recorded(), { a: 1, b: 1, c: 1 });
});

test("threat 51: what changed while an older version could not be synced is recorded with it", async () => {
  const { it, recorded, failing, change } = await refAlignment();
  failing.add("a");
  await change("a");
  await it.flush();
  await change("a");
  await it.flush();
  assert.deepEqual(await recorded(), {});
  failing.clear();
  await it.flush();
  assert.deepEqual(await recorded(), { a: 2 });
});

test("threat 51: versions that the store could not take are recorded later, by themselves", async (context) => {
  const { it, clock, store, recorded, change } = await refAlignment();
  await change("a");
  const failed = context.mock.method(store, "transact", () => Promise.reject(new Error("no space")));
  await it.flush();
  failed.mock.restore();
  clock.advance(2_000);
  // What the clock started runs before this.
  await it.flush();
  assert.deepEqual(await recorded(), { a: 1 });
});

test("files that cannot follow their rows, and repositories that are gone, are recorded as nothing", async () => {
  const { it, at, recorded, versions, change } = await refAlignment();
  await change("a");
  versions.delete("a");
  await change("b");
  it.forget(at("b").key);
  await it.flush();
  assert.deepEqual(await recorded(), {});
});

test("a repository that is removed while its files are synced, and made anew, is not taken for the old one", async () => {
  const { it, at, store, recorded } = await refAlignment();
  const head = "refs/heads/main" as RefName;
  await store.transact((tx) => changeRefs(tx, at("a"), [], head));
  it.add({
    address: at("a"),
    alignedVersion: async () => 1,
    syncRefs: async () => {
      await store.transact((tx) => removeRefs(tx, at("a")));
      it.forget(at("a").key);
      await store.transact((tx) => changeRefs(tx, at("a"), [], head));
    },
  });
  await it.flush();
  assert.deepEqual(await recorded(), {});
});

test("of many refs only those are synced whose files were written, and all where nobody knows which", async () => {
  const { it, at, store, recorded, clock } = await refAlignment();
  const [one, two, three] = ["one", "two", "three"].map((name) => `refs/heads/${name}` as RefName) as [
    RefName,
    RefName,
    RefName,
  ];
  const synced: (readonly RefName[] | "all")[] = [];
  let during: () => void = () => undefined;
  let isFailing = false;
  let version: number | undefined = 0;
  const repository = {
    address: at("a"),
    alignedVersion: async () => {
      during();
      return version;
    },
    syncRefs: async (names: ReadonlySet<RefName> | undefined) => {
      if (isFailing) throw new Error("EMFILE");
      synced.push(names ? [...names] : "all");
    },
  };
  const written = async (...names: RefName[]): Promise<void> => {
    version = await store.transact((tx) => changeRefs(tx, at("a"), [], one));
    it.add(repository, new Set(names));
  };
  const flushed = async (): Promise<(readonly RefName[] | "all")[]> => {
    clock.advance(60_000);
    await it.flush();
    return synced.splice(0);
  };
  await written(one);
  assert.deepEqual(await flushed(), [[one]]);
  await written(one);
  await written(two);
  assert.deepEqual(await flushed(), [[one, two]], "several changes in one go");
  isFailing = true;
  await written(one);
  assert.deepEqual(await flushed(), []);
  isFailing = false;
  await written(two);
  assert.deepEqual(await flushed(), [[one, two]], "what could not be synced is not forgotten");
  await written(one);
  version = undefined;
  assert.deepEqual(await flushed(), [], "its files cannot follow yet");
  await written(three);
  assert.deepEqual(await flushed(), [[one, three]]);
  await written(one);
  during = () => it.add(repository, new Set([three]));
  await it.flush();
  during = () => undefined;
  assert.deepEqual(synced.splice(0), [[one, three]], "written between the look and the syncing: of the same version");
  await flushed();
  await written(one);
  it.add(repository);
  assert.deepEqual(await flushed(), ["all"]);
  assert.deepEqual(await recorded(), { a: version });
});

test("refs that come are put where git sorts them, by the bytes of their names; others keep their place", () => {
  const oid = (digit: string): RefValue => ({ oid: digit.repeat(40) as Oid, peeled: undefined });
  // U+FF5E comes before U+1F600 in bytes, and after it in JavaScript's order.
  const names = ["a", "a-b", "a/b", "b", "b/c", "z", "é", "\uff5e", "\u{1f600}"].map(
    (name) => `refs/heads/${name}` as RefName,
  );
  const tables = [new Map(names.map((name) => [name, oid("1")]))];
  for (const [index, name] of names.entries()) {
    const others = new Map(names.filter((one) => one !== name).map((one) => [one, oid("1")]));
    tables.push(refsAfter(others, new Map([[name, oid("1")]])));
    const [other = names[0] as RefName] = names.slice(index - 1);
    const gone = refsAfter(others, new Map([[other, undefined]]));
    assert.deepEqual(
      [...gone.keys()],
      [...others.keys()].filter((one) => one !== other),
    );
    tables.push(
      refsAfter(
        gone,
        new Map([
          [name, oid("1")],
          [other, oid("1")],
        ]),
      ),
    );
  }
  tables.push(refsAfter(new Map(), new Map([...names].reverse().map((name) => [name, oid("1")]))));
  for (const table of tables) assert.deepEqual([...table.keys()], names);
  const moved = refsAfter(new Map(tables[0]), new Map([[names[3] as RefName, oid("2")]]));
  assert.deepEqual([...moved.keys()], names);
  assert.deepEqual(moved.get(names[3] as RefName), oid("2"));
});
