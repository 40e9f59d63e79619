// Events that sync refused because what they refer to was not here yet are judged again when it is, whoever brought it
// (event-sync.md, "What happens to an event that arrives").

import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../src/base/clock.js";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import type { NostrEvent, VerifiedEvent } from "../../src/nostr/event.js";
import { createMemoryStore } from "../../src/store/memory/memory-store.js";
import type { Input } from "../../src/sync/core/messages.js";
import { syncConfig } from "../../src/sync/core/testing/config.js";
import { announcing, coordinate, Driver, event, only } from "../../src/sync/core/testing/driver.js";
import { untilDone } from "../../src/sync/engine.js";
import { OwnFeed, participantsOf } from "../../src/sync/own-server.js";
import { keyOf, sign } from "../harness/relay-events.js";

test("of history only announcements and roots are told, of what is new everything", async () => {
  const store = createMemoryStore({ clock: systemClock });
  const put = (kind: number, content: string): Promise<NostrEvent> => {
    const made = sign(keyOf("feed"), { kind, content });
    return store.transact(async (tx) => {
      await tx.put(made as VerifiedEvent);
      return made;
    });
  };
  await put(1111, "an old comment");
  const root = await put(1621, "an old issue");
  const stop = new AbortController();
  const told: Input[] = [];
  let enough: () => void = () => undefined;
  const heardTwo = new Promise<void>((resolve) => (enough = resolve));
  let replayed: () => void = () => undefined;
  const replayEnds = new Promise<void>((resolve) => (replayed = resolve));
  const heard = (input: Input): void => {
    if (told.push(input) === 2) enough();
  };
  const following = new OwnFeed(store, heard, replayed).follow(stop.signal);
  await replayEnds;
  const comment = await put(1111, "a new comment");
  await heardTwo;
  stop.abort();
  await following;
  assert.deepEqual(
    told.map((input) => input.type === "accepted" && input.event.id),
    [root.id, comment.id],
  );
  await store.close();
});

test("who wrote an issue, who answered and who is named in it take part, however long it is", async () => {
  const store = createMemoryStore({ clock: systemClock });
  const [owner, writer, other] = [keyOf("owner"), keyOf("writer"), keyOf("other")];
  const about = `30617:${owner.pubkey}:tool`;
  const named = keyOf("named").pubkey;
  const issue = sign(writer, {
    kind: 1621,
    content: "x".repeat(200_000),
    tags: [
      ["a", about],
      ["p", named],
    ],
  });
  const answer = sign(other, {
    kind: 1111,
    content: "",
    tags: [
      ["E", issue.id],
      ["e", issue.id],
    ],
  });
  const announcement = sign(owner, { kind: 30617, content: "", tags: [["d", "tool"]] });
  await store.transact(async (tx) => {
    for (const made of [announcement, issue, answer]) await tx.put(made as VerifiedEvent);
  });
  const { participants } = await participantsOf(store, about, syncConfig({}));
  assert.deepEqual(
    new Set(participants.map(({ pubkey, role }) => `${role} ${pubkey}`)),
    new Set([`maintainer ${owner.pubkey}`, `author ${writer.pubkey}`, `author ${other.pubkey}`, `named ${named}`]),
  );
  await store.close();
});

test("a reply that came before the comment it answers is judged again when a client brings the comment", () => {
  const driver = new Driver();
  const relay = "a.example";
  driver.makeLive(relay, announcing("ann", "tool", ["wss://a.example"]));
  const comment = event("comment", 1111, [["A", coordinate("ann", "tool")]]);
  const reply = event("reply", 1111, [["e", comment.id]]);
  const outcome = { type: "refused", code: "unrelated" } as const;
  driver.tell({ type: "verdict", relay, source: "live", layerFour: false, event: reply, outcome });
  const offered = only(driver.tell({ type: "accepted", event: comment }), "offerToIntake");
  assert.deepEqual(
    offered.map((offer) => offer.event.id),
    [reply.id],
  );
});

test("the end of a state is told with its address: an older one may be the newest now", async (context) => {
  const store = createMemoryStore({ clock: systemClock });
  context.after(() => store.close());
  const state = sign(keyOf("feed"), { kind: 30618, tags: [["d", "tool"]] });
  await store.transact((tx) => tx.put(state as VerifiedEvent));
  const stop = new AbortController();
  context.after(() => stop.abort());
  let replayed: () => void = () => undefined;
  const replayEnds = new Promise<void>((resolve) => (replayed = resolve));
  let heard: (input: Input) => void = () => undefined;
  const hearing = new Promise<Input>((resolve) => (heard = resolve));
  const following = new OwnFeed(store, (input) => heard(input), replayed).follow(stop.signal);
  await replayEnds;
  await store.transact((tx) => tx.remove(state.id, "ban"));
  const address = `30618:${state.pubkey}:tool`;
  assert.deepEqual(await hearing, { type: "removed", id: state.id, cause: "ban", address });
  stop.abort();
  await following;
});

test("a store that fails in passing does not end the following of the feed, and nothing is told twice", async (context) => {
  const clock = new ManualClock();
  const store = createMemoryStore({ clock });
  context.after(() => store.close());
  const events = ["one", "two", "three"].map((d) => sign(keyOf("feed"), { kind: 30617, tags: [["d", d]] }));
  for (const made of events) await store.transact((tx) => tx.put(made as VerifiedEvent));
  let looks = 0;
  const { row } = store;
  context.mock.method(store, "row", (...args: Parameters<typeof row>) => {
    looks += 1;
    if (looks === 2) throw new Error("in passing");
    return row.apply(store, args);
  });
  const stop = new AbortController();
  const told: Input[] = [];
  const faults: unknown[] = [];
  let failed: () => void = () => undefined;
  const failing = new Promise<void>((resolve) => (failed = resolve));
  let replayed: () => void = () => undefined;
  const replayEnds = new Promise<void>((resolve) => (replayed = resolve));
  const feed = new OwnFeed(store, (input) => void told.push(input), replayed);
  const fault = (error: unknown): void => {
    faults.push(error);
    failed();
  };
  const following = untilDone(() => feed.follow(stop.signal), clock, stop.signal, fault);
  await failing;
  assert.equal(told.length, 1);
  await new Promise((resolve) => setImmediate(resolve));
  clock.advance(5_000);
  await replayEnds;
  assert.equal(faults.length, 1);
  assert.deepEqual(
    told.map((input) => input.type === "accepted" && input.event.id),
    events.map((made) => made.id),
  );
  stop.abort();
  await following;
});
