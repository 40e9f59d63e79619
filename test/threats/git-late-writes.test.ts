// threats.md row 51: refs that are written late, by a promise of an earlier life or by repair. The promises themselves and
// their retries are in src/purgatory/journal.test.ts.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { announcement, keyOf, makeEvent, nameOf, state } from "../../src/admission/testing/world.js";
import { diskAddress } from "../../src/git/address.js";
import { Room } from "../../src/intake/testing/room.js";
import type { EventId, Oid, RefName } from "../../src/nostr/ids.js";

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
  const promise = (id: EventId): Promise<boolean> =>
    room.journal({
      address: diskAddress(name),
      candidate: undefined,
      updates: [{ ref: `refs/nostr/${id}` as RefName, to: tip }],
    });
  const pullRequest = (subject: string) => {
    const tags = [
      ["a", `30617:${keyOf("alice")}:late`],
      ["c", tip],
      ["subject", subject],
    ];
    return makeEvent(keyOf("bob"), 1618, tags, room.now);
  };

  it("threat 51: the ref of a pull request that was deleted does not come back at the next start", async () => {
    const here = pullRequest("here");
    await room.send(here);
    const gone = pullRequest("deleted since");
    assert.ok(await promise(here.id));
    assert.ok(await promise(gone.id));
    room.restart();
    await room.purgatory.resume();
    assert.deepEqual(await refNames(), [main, `refs/nostr/${here.id}`]);
  });

  it("threat 51: repair gives a ref back to an event that is here, through the journal, and to no other", async () => {
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
    const journaled: string[] = [];
    for await (const [, row] of room.store.rows<{ updates: { ref: string }[] }>("journal", { prefix: "refs:" })) {
      journaled.push(...row.updates.map(({ ref }) => ref));
    }
    assert.ok(journaled.includes(`refs/nostr/${event.id}`));
  });
});
