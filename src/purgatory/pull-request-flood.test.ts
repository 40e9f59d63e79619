import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOfRepository, announcement, keyOf, makeEvent, nameOf, oid, state } from "../admission/testing/world.js";
import { Room } from "../intake/testing/room.js";

test("however many pull requests wait for a repository, one whose commit is here is released when it comes", async (context) => {
  const room = await Room.open();
  context.after(() => room.close());
  const name = nameOf("alice", "popular");
  await room.send(announcement("alice", "popular", [], room.now));
  const tip = await room.commit(name, "one");
  await room.send(state("alice", "popular", [["refs/heads/main", tip]], room.now));
  const address = addressOfRepository("alice", "popular");
  const pullRequest = (author: string, commit: string, content: string) =>
    makeEvent(
      keyOf(author),
      1618,
      [
        ["a", address],
        ["c", commit],
      ],
      room.now,
      content,
    );
  let honest = pullRequest("bob", tip, "");
  for (let n = 0; !honest.id.startsWith("ff"); n++) honest = pullRequest("bob", tip, `try ${n}`);
  // Entries are looked at in the order of their ids: all of these come first.
  for (let n = 0; n < 520; n++) {
    const flood = pullRequest(`stranger ${n % 20}`, oid("nowhere"), `flood ${n}`);
    if (flood.id < honest.id) await room.write(flood);
  }
  assert.equal(await room.send(honest), true);
  assert.ok(await room.isServed(honest));
});
