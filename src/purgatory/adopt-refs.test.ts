// Data of version 0.1: refs are taken over from git's files, and promises that were left open are obeyed.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { announcement, keyOf, makeEvent, nameOf, oid, state } from "../admission/testing/world.js";
import { readRefs, removeRefs } from "../catalogue/refs.js";
import { catalogueRow, type RepositoryName, repositoryKey, setCatalogueRow } from "../catalogue/repositories.js";
import { partialPush, startPartial } from "../catalogue/waiting.js";
import { diskAddress } from "../git/address.js";
import { Git, GitError } from "../git/run.js";
import { Room } from "../intake/testing/room.js";
import type { Oid, RefName } from "../nostr/nip34.js";
import { adoptRefs } from "./adopt-refs.js";

const main = "refs/heads/main" as RefName;
const side = "refs/heads/side" as RefName;

describe("data of version 0.1", () => {
  let room: Room;
  let number = 0;
  before(async () => {
    room = await Room.open();
  });
  after(() => room.close());

  const refsOf = async (name: RepositoryName): Promise<Record<string, string>> =>
    Object.fromEntries([...(await room.repository(name).refs()).refs].map(([ref, { oid: at }]) => [ref, at]));

  /** As version 0.1 promised it. */
  const promise = (name: RepositoryName, updates: readonly { ref: RefName; to: Oid | null }[], more: object = {}) =>
    room.store.transact(async (tx) =>
      tx.setRow("journal", `refs:${repositoryKey(name)}:${number++}`, {
        ...{ owner: name.owner, identifier: name.identifier, area: "main", updates, head: null },
        ...more,
      }),
    );

  /** The rows that version 0.1 did not have go; the next start finds files and journal. */
  async function startAgain(...names: readonly RepositoryName[]): Promise<void> {
    await room.store.transact(async (tx) => {
      tx.deleteRow("meta", "refs:adopted");
      for (const name of names) await removeRefs(tx, name);
    });
    await room.reopen();
    await room.purgatory.resume();
    for await (const [key] of room.store.rows("journal", { prefix: "refs:" })) assert.fail(`${key} is left`);
  }

  async function hosted(owner: string, identifier: string): Promise<{ name: RepositoryName; tip: Oid }> {
    const name = nameOf(owner, identifier);
    await room.send(announcement(owner, identifier, [], room.now));
    const tip = await room.commit(name, "one");
    await room.send(state(owner, identifier, [[main, tip]], room.now));
    assert.deepEqual(await refsOf(name), { [main]: tip });
    return { name, tip };
  }

  it("refs, what annotated tags point at and HEAD come from the files, once", async () => {
    const { name, tip } = await hosted("ada", "adopted");
    const { directory } = room.repository(name);
    const text = `object ${tip}\ntype commit\ntag v1\ntagger a <a@x> 1700000000 +0000\n\nv1\n`;
    const tag = (await room.git.mustRun(["mktag"], { directory, input: text })).toString().trim() as Oid;
    await room.send(
      state(
        "ada",
        "adopted",
        [
          [main, tip],
          ["refs/tags/v1", tag],
        ],
        room.now + 1,
      ),
    );
    const before = await readRefs(room.store, name);
    assert.equal(before?.refs.get("refs/tags/v1" as RefName)?.peeled, tip);
    await startAgain(name);
    const { version, ...adopted } = (await readRefs(room.store, name)) ?? {};
    assert.equal(version, 1);
    assert.deepEqual(adopted, { head: main, refs: before?.refs });
    // From now on the rows decide.
    await room.git.mustRun(["update-ref", "refs/heads/planted", tip], { directory });
    await room.reopen();
    await room.purgatory.resume();
    assert.deepEqual(Object.keys(await refsOf(name)), [main, "refs/tags/v1"]);
  });

  it("a repository that git cannot work with keeps its refs all the same", async (context) => {
    const { name, tip } = await hosted("zoe", "unreadable");
    const { directory } = room.repository(name);
    const text = `object ${tip}\ntype commit\ntag v1\ntagger a <a@x> 1700000000 +0000\n\nv1\n`;
    const tag = (await room.git.mustRun(["mktag"], { directory, input: text })).toString().trim() as Oid;
    await room.git.mustRun(["update-ref", "refs/tags/v1", tag], { directory });
    const { mustRun } = Git.prototype;
    context.mock.method(Git.prototype, "mustRun", function (this: Git, ...args: Parameters<typeof mustRun>) {
      const exit = { code: 128, signal: undefined, timedOut: false, stderr: "planted" };
      return args[0][0] === "cat-file" && args[1]?.directory === directory
        ? Promise.reject(new GitError("cat-file", exit))
        : mustRun.apply(this, args);
    });
    await room.store.transact(async (tx) => {
      tx.deleteRow("meta", "refs:adopted");
      await removeRefs(tx, name);
    });
    await room.reopen();
    const isDone = (work: () => Promise<void>): Promise<boolean> =>
      work().then(
        () => true,
        () => false,
      );
    await adoptRefs(room, isDone);
    assert.deepEqual(await refsOf(name), { [main]: tip, "refs/tags/v1": tag });
  });

  it("a promise that was left open is obeyed", async () => {
    const { name, tip } = await hosted("pia", "promised");
    const next = await room.commit(name, "two");
    const waiting = state(
      "pia",
      "promised",
      [
        [main, next],
        [side, oid("far")],
      ],
      room.now + 1,
    );
    await room.send(waiting);
    const mark = { id: waiting.id, created_at: waiting.created_at };
    await room.store.transact(async (tx) => {
      const row = await catalogueRow(tx, name);
      if (row) setCatalogueRow(tx, { ...row, mark });
    });
    await promise(name, [{ ref: main, to: next }], { push: { state: waiting.id } });
    await startAgain(name);
    assert.deepEqual(await refsOf(name), { [main]: next });
    assert.equal((await room.repository(name).refsOnDisk()).refs.get(main)?.oid, next);
    assert.notEqual(next, tip);
  });

  it("an old promise that outlived a newer one does not bring back what the state that governs has not", async () => {
    const { name, tip } = await hosted("alice", "outlived");
    await promise(name, [{ ref: side, to: tip }]);
    await startAgain(name);
    assert.deepEqual(await refsOf(name), { [main]: tip });
  });

  it("a push that was promised, and whose packs never came, moves nothing, not even to what is here", async () => {
    const name = nameOf("paul", "cut");
    await room.send(announcement("paul", "cut", [], room.now));
    const [one, two] = [await room.commit(name, "one"), await room.commit(name, "two")];
    const first: [string, string][] = [
      [main, one],
      [side, one],
    ];
    await room.send(state("paul", "cut", first, room.now));
    const before = await catalogueRow(room.store, name);
    const updates = [
      { ref: main, to: oid("in quarantine") as Oid },
      { ref: side, to: two },
    ];
    const waiting = state(
      "paul",
      "cut",
      updates.map(({ ref, to }) => [ref, to]),
      room.now + 1,
    );
    await room.send(waiting);
    await room.store.transact(async (tx) => {
      const row = await catalogueRow(tx, name);
      if (row) setCatalogueRow(tx, { ...row, mark: { id: waiting.id, created_at: waiting.created_at } });
      await startPartial(tx, name, waiting.id, room.now);
    });
    await promise(name, updates, { push: { state: waiting.id, startedClock: true, markBefore: before?.mark } });
    await startAgain(name);
    assert.deepEqual(await refsOf(name), { [main]: one, [side]: one });
    assert.deepEqual((await catalogueRow(room.store, name))?.mark, before?.mark, "it decided nothing");
    assert.equal(await partialPush(room.store, name, waiting.id), undefined);
  });

  it("threat 51: the ref of a pull request that was deleted does not come back", async () => {
    const { name, tip } = await hosted("alice", "late");
    const pullRequest = (subject: string) => {
      const tags = [
        ["a", `30617:${keyOf("alice")}:late`],
        ["c", tip],
        ["subject", subject],
      ];
      return makeEvent(keyOf("bob"), 1618, tags, room.now);
    };
    const [here, gone] = [pullRequest("here"), pullRequest("deleted since")];
    await room.send(here);
    for (const { id } of [here, gone]) await promise(name, [{ ref: `refs/nostr/${id}` as RefName, to: tip }]);
    await startAgain(name);
    assert.deepEqual(await refsOf(name), { [main]: tip, [`refs/nostr/${here.id}`]: tip });
  });

  it("a promise for a repository that is gone is forgotten", async () => {
    const { name, tip } = await hosted("alice", "gone");
    await promise(name, [{ ref: side, to: tip }]);
    await room.repositories.delete(diskAddress(name));
    await startAgain(name);
  });
});
