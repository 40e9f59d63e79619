import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addressOfRepository,
  announcement,
  client,
  keyOf,
  makeEvent,
  nameOf,
  oid,
  state,
} from "../admission/testing/world.js";
import { newEntry } from "../admission/waiting-capacity.js";
import { putWaiting, type WaitingEntry, type WaitingHint, waitingKeys, waitingTip } from "../catalogue/waiting.js";
import { Room } from "../intake/testing/room.js";
import { NaiveStore } from "../store/testing/naive-store.js";
import { waitingTips } from "./pull-requests.js";

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

test("what pull requests wait for is told also by rows of earlier versions, and nothing by one that names no commit", async () => {
  const store = new NaiveStore();
  const name = nameOf("alice", "popular");
  const waiting = (commit: string): WaitingEntry => {
    const tags = [
      ["a", addressOfRepository("alice", "popular")],
      ["c", commit],
    ];
    return newEntry({
      kind: "pull-request",
      event: makeEvent(keyOf("bob"), 1618, tags),
      source: client(),
      nowSeconds: 1_000,
      deadline: { phase: "waiting", expires: 2_000 },
      repositories: [addressOfRepository("alice", "popular")],
    });
  };
  const [now, earlier] = [waiting(oid("now")), waiting(oid("earlier"))];
  for (const entry of [now, earlier, waiting("no commit at all")]) await putWaiting(store, entry);
  const keyOfHint = `${waitingKeys.repositoryKind(name, "pull-request")}${earlier.id}`;
  const { tip, ...hint } = (await store.row<WaitingHint>("purgatory", keyOfHint)) ?? assert.fail("it has a hint");
  assert.equal(tip, oid("earlier"));
  store.setRow("purgatory", keyOfHint, hint);
  const expected = new Map([now, earlier].map((entry) => [entry.id, waitingTip(entry)]));
  assert.deepEqual(await waitingTips(store, name), expected);
});
