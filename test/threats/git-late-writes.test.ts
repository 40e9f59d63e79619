// threats.md row 51: refs that are written late, by a release or by repair. What promises of version 0.1 may still write is in
// src/purgatory/adopt-refs.test.ts, retries of what could not be written are in src/git/ref-tables.test.ts.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { announcement, keyOf, makeEvent, nameOf, state } from "../../src/admission/testing/world.js";
import { readRefs } from "../../src/catalogue/refs.js";
import { removeWaiting } from "../../src/catalogue/waiting.js";
import type { RefChanges } from "../../src/git/change-refs.js";
import { Room } from "../../src/intake/testing/room.js";
import type { Oid, RefName } from "../../src/nostr/nip34.js";
import type { Transaction } from "../../src/store/port.js";

const main = "refs/heads/main" as RefName;

describe("threat 51: late writes", () => {
  let room: Room;
  let tip: Oid;
  const name = nameOf("alice", "late");
  before(async () => {
    room = await Room.open();
    await room.send(announcement("alice", "late", [], room.now));
    tip = await room.commit(name, "one");
    await room.send(state("alice", "late", [[main, tip]], room.now));
  });
  after(() => room.close());

  const refNames = async (): Promise<string[]> => [...(await room.repository(name).refs()).refs.keys()];
  const pullRequest = (subject: string) => {
    const tags = [
      ["a", `30617:${keyOf("alice")}:late`],
      ["c", tip],
      ["subject", subject],
    ];
    return makeEvent(keyOf("bob"), 1618, tags, room.now);
  };

  it("threat 51: a pull request that is deleted while its release is planned gets no ref, and no event is stored", async () => {
    const event = pullRequest("deleted in the last moment");
    await room.write(event);
    const { changeRefs } = room.repositories;
    let tried = 0;
    room.repositories.changeRefs = async <T>(
      changes: RefChanges,
      alongside: (tx: Transaction) => Promise<T>,
    ): Promise<T> => {
      if (tried++ === 0) await room.store.transact((tx) => removeWaiting(tx, event.id));
      return (await changeRefs.call(room.repositories, changes, alongside)) as T;
    };
    await room.purgatory.fetched(name, event.id);
    room.repositories.changeRefs = changeRefs;
    assert.equal(tried, 1, "planned again, there is nothing to do");
    assert.deepEqual(await refNames(), [main]);
    assert.equal(await room.isServed(event), false);
  });

  it("threat 51: repair gives a ref back to an event that is here, through the rows, and to no other", async () => {
    const event = pullRequest("lost its ref");
    await room.send(event);
    await room.repository(name).updateRefs([{ ref: `refs/nostr/${event.id}` as RefName, to: undefined }]);
    const deleted = pullRequest("deleted while repair looked");
    await room.purgatory.restorePullRequests(
      name,
      new Map([
        [event.id, tip],
        [deleted.id, tip],
      ]),
    );
    const names = await refNames();
    assert.ok(names.includes(`refs/nostr/${event.id}`));
    assert.ok(!names.includes(`refs/nostr/${deleted.id}`));
    assert.equal((await readRefs(room.store, name))?.refs.get(`refs/nostr/${event.id}` as RefName)?.oid, tip);
  });

  it("threat 51: a ref whose event was deleted just before a crash does not stay", async () => {
    const [kept, deleted] = [pullRequest("kept"), pullRequest("deleted, and the server was killed")];
    for (const event of [kept, deleted]) await room.send(event);
    await room.store.transact((tx) => tx.remove(deleted.id, "deletion"));
    assert.ok((await refNames()).includes(`refs/nostr/${deleted.id}`));
    assert.equal(await room.purgatory.dropOrphanedPullRequests(name), 1);
    const names = await refNames();
    assert.ok(names.includes(`refs/nostr/${kept.id}`));
    assert.ok(!names.includes(`refs/nostr/${deleted.id}`));
    assert.equal(await room.purgatory.dropOrphanedPullRequests(name), 0);
  });
});
