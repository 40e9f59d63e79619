import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  addressOfRepository,
  announcement,
  client,
  keyOf,
  makeEvent,
  nameOf,
  outcome,
  startSeconds,
  state,
  World,
} from "../admission/testing/world.js";
import { newEntry } from "../admission/waiting-capacity.js";
import { kinds } from "../nostr/event.js";
import { NaiveStore } from "../store/testing/naive-store.js";
import { identifierKey, repositoryAddress, repositoryKey } from "./repositories.js";
import {
  bytesHeldBy,
  dueEntries,
  emptyTotals,
  placeholders,
  putPlaceholder,
  putWaiting,
  removePlaceholder,
  removeWaiting,
  type WaitingEntry,
  type WaitingPhase,
  waitingEntries,
  waitingKeys,
  waitingTotals,
} from "./waiting.js";

function entry(index: number): WaitingEntry {
  const owner = `o${index % 3}`;
  const identifier = ["x", "x:y", "x/y", "é".repeat(400)][index % 4] ?? "x";
  const event =
    index % 3 === 0
      ? announcement(owner, identifier, [["n", `${index}`]])
      : index % 3 === 1
        ? state(owner, identifier, [["refs/heads/main", `${index}`]])
        : makeEvent(keyOf(owner), kinds.issue, [
            ["a", addressOfRepository(owner, identifier)],
            ["e", keyOf("any")],
            ["n", `${index}`],
          ]);
  return newEntry({
    kind: index % 3 === 0 ? "announcement" : index % 3 === 1 ? "state" : "related",
    event,
    source: client(),
    nowSeconds: 1_000 + index,
    deadline: { phase: index % 2 === 0 ? "waiting" : "soft", expires: 2_000 + index },
    repositories: [addressOfRepository(owner, identifier)],
  });
}

test("whatever is written and removed, totals and indexes follow, and nothing is left behind at the end", async () => {
  const step = fc.record({ index: fc.integer({ min: 0, max: 11 }), remove: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const store = new NaiveStore();
      const model = new Map<number, WaitingEntry>();
      for (const { index, remove } of steps) {
        if (remove) {
          await removeWaiting(store, entry(index).id);
          model.delete(index);
        } else {
          await putWaiting(store, entry(index));
          model.set(index, entry(index));
        }
      }
      const live = [...model.values()];
      const totals = await waitingTotals(store);
      assert.equal(totals.entries, live.length);
      assert.equal(
        totals.bytes,
        live.reduce((sum, one) => sum + one.bytes, 0),
      );
      assert.equal(
        totals.waitingAnnouncements,
        live.filter((one) => one.kind === "announcement" && one.phase === "waiting").length,
      );
      for (const owner of ["o0", "o1", "o2"]) {
        const theirs = live.filter((one) => one.pubkey === keyOf(owner));
        assert.equal(
          await bytesHeldBy(store, keyOf(owner)),
          theirs.reduce((sum, one) => sum + one.bytes, 0),
        );
        const found = await waitingEntries(store, waitingKeys.author(keyOf(owner)), 100);
        assert.deepEqual(found.map(({ id }) => id).sort(), theirs.map(({ id }) => id).sort());
      }
      for (const one of live) await removeWaiting(store, one.id);
      assert.deepEqual(
        store.keys("purgatory").filter((key) => key !== waitingKeys.totals),
        [],
      );
      if (steps.some(({ remove }) => !remove)) assert.deepEqual(await waitingTotals(store), emptyTotals);
    }),
    { numRuns: 60 },
  );
});

async function whatIsDue(store: NaiveStore, phase: WaitingPhase, nowSeconds: number): Promise<number[]> {
  const found: number[] = [];
  for await (const { expires } of dueEntries(store, phase, nowSeconds)) found.push(expires);
  return found;
}

test("what is due comes earliest first", async () => {
  const store = new NaiveStore();
  for (const index of [4, 0, 2]) await putWaiting(store, entry(index));
  assert.deepEqual(await whatIsDue(store, "waiting", 2_002), [2_000, 2_002]);
});

test("an entry written again with another phase is found only under the new one", async () => {
  const store = new NaiveStore();
  const waiting = entry(0);
  await putWaiting(store, waiting);
  await putWaiting(store, { ...waiting, phase: "soft", expires: 9_000 });
  assert.deepEqual(await whatIsDue(store, "waiting", 99_999), []);
  assert.deepEqual(await whatIsDue(store, "soft", 99_999), [9_000]);
  assert.equal((await waitingTotals(store)).softAnnouncements, 1);
});

test("threats 3: no two identifiers share a key and none is the prefix of another's", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "binary", maxLength: 300 }),
      fc.string({ unit: "binary", maxLength: 300 }),
      (one, other) => {
        fc.pre(one !== other && one.isWellFormed() && other.isWellFormed());
        assert.notEqual(identifierKey(one), identifierKey(other));
        assert.ok(!`${identifierKey(other)}:`.startsWith(`${identifierKey(one)}:`));
        assert.ok(Buffer.byteLength(repositoryKey({ owner: keyOf("a"), identifier: one })) < 400);
      },
    ),
  );
  assert.equal(identifierKey("my-repo_1.x"), "my-repo_1.x");
});

test("placeholders of one event in several repositories are kept apart", async () => {
  const store = new NaiveStore();
  const id = state("a", "x").id;
  const address = (owner: string, area: "main" | "prs") => repositoryAddress({ ...nameOf(owner, "x"), area });
  const row = (owner: string, area: "main" | "prs") => ({
    id,
    repository: address(owner, area),
    ip: "192.0.2.1",
    bytes: 1,
    entered: 1,
    expires: 2,
  });
  for (const one of [row("a", "main"), row("a", "prs"), row("b", "main")]) putPlaceholder(store, one);
  assert.equal((await placeholders(store, id)).length, 3);
  removePlaceholder(store, row("a", "main"));
  assert.deepEqual(
    (await placeholders(store, id)).map(({ repository }) => repository),
    [address("b", "main"), address("a", "prs")],
  );
});

test("soft announcements, however many, do not hide that a key has its share waiting", async () => {
  const world = new World({
    config: { purgatoryMaxAnnouncementsPerKey: 5, purgatoryAnnouncementsPerHourPerIp: 1_000 },
  });
  for (let n = 0; n < 60; n++) {
    const entry = newEntry({
      kind: "announcement",
      event: announcement("alice", `a-soft-${n}`),
      source: client(),
      nowSeconds: startSeconds,
      deadline: { phase: "soft", expires: startSeconds + 1_000 },
      repositories: [],
    });
    await putWaiting(world.store, entry);
  }
  const outcomes: string[] = [];
  for (let n = 0; n < 6; n++) outcomes.push(outcome(await world.send(announcement("alice", `z-waiting-${n}`))));
  assert.deepEqual(outcomes, ["hold", "hold", "hold", "hold", "hold", "too-many-waiting"]);
});
