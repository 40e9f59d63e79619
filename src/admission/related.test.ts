import assert from "node:assert/strict";
import { test } from "node:test";
import { bannedAuthorKey, type ListEntry, repositoryList } from "../catalogue/bans-and-lists.js";
import { changeRefs } from "../catalogue/refs.js";
import { waitingEntries, waitingKeys } from "../catalogue/waiting.js";
import { kinds, type Tag, type VerifiedEvent } from "../nostr/event.js";
import { npubOf } from "../nostr/nip19.js";
import type { Oid, RefName } from "../nostr/nip34.js";
import {
  addressOfRepository,
  announcement,
  client,
  elsewhere,
  keyOf,
  maintainers,
  makeEvent,
  nameOf,
  oid,
  outcome,
  startSeconds,
  state,
  sync,
  World,
} from "./testing/world.js";

const issue = (author: string, tags: readonly Tag[], content = ""): VerifiedEvent =>
  makeEvent(keyOf(author), kinds.issue, tags, startSeconds, content);
const a = (owner: string, identifier: string): Tag => ["a", addressOfRepository(owner, identifier)];

test("an event is related by a, A and q addresses of a hosted announcement, author and identifier together", async () => {
  const world = new World();
  await world.host("alice", "x");
  await world.host("bob", "y");
  for (const name of ["a", "A", "q"]) {
    assert.equal(outcome(await world.ask(issue("carol", [[name, addressOfRepository("alice", "x")]]))), "store", name);
  }
  for (const text of [
    addressOfRepository("alice", "y"),
    addressOfRepository("bob", "x"),
    `30618:${keyOf("alice")}:x`,
    "30617:alice:x",
  ]) {
    assert.equal(outcome(await world.ask(issue("carol", [["a", text]]))), "unrelated", text);
  }
  assert.equal(outcome(await world.ask(issue("carol", [["d", addressOfRepository("alice", "x")]]))), "unrelated");
});

test("relation is transitive by construction, by id in e, E and q", async () => {
  const world = new World();
  await world.host("alice", "x");
  let previous = issue("bob", [a("alice", "x")]);
  assert.equal(outcome(await world.send(previous)), "store");
  for (const name of ["e", "E", "q", "e"]) {
    const reply = makeEvent(keyOf("carol"), kinds.comment, [[name, previous.id]], startSeconds, name + previous.id);
    assert.equal(outcome(await world.send(reply)), "store");
    previous = reply;
  }
});

test("an event that a stored event points at is related: by id, by address, by address of a replaceable kind", async () => {
  const world = new World();
  await world.host("alice", "x");
  const note = makeEvent(keyOf("dan"), 1, [], startSeconds, "a note");
  const article = makeEvent(keyOf("dan"), 30_023, [["d", "art"]]);
  const list = makeEvent(keyOf("dan"), 10_018, []);
  for (const event of [note, article, list]) assert.equal(outcome(await world.ask(event)), "unrelated");
  const tags: Tag[] = [
    a("alice", "x"),
    ["q", note.id],
    ["a", `30023:${keyOf("dan")}:art`],
    ["a", `10018:${keyOf("dan")}:`],
  ];
  await world.send(issue("bob", tags));
  for (const event of [note, article, list]) assert.equal(outcome(await world.ask(event)), "store");
  assert.equal(outcome(await world.ask(makeEvent(keyOf("eve"), 30_023, [["d", "art"]]))), "unrelated");
});

test("deletions, profiles and grasp lists carry no relation", async () => {
  const world = new World();
  const list = makeEvent(keyOf("eve"), kinds.graspList, []);
  assert.equal(outcome(await world.send(list)), "store");
  assert.equal(outcome(await world.ask(makeEvent(keyOf("eve"), 1, [["e", list.id]]))), "unrelated");
  const spam = makeEvent(keyOf("eve"), 1, [], startSeconds, "spam");
  assert.equal(
    outcome(await world.send(makeEvent(keyOf("eve"), kinds.deletion, [["e", spam.id]], startSeconds - 1))),
    "store",
  );
  assert.equal(outcome(await world.ask(makeEvent(keyOf("mallory"), 1, [], startSeconds, "spam"))), "unrelated");
});

test("what is related to a waiting repository is held with it, at most a hundred", async () => {
  const world = new World({ config: { purgatoryMaxRelatedPerRepository: 3 } });
  await world.send(announcement("alice", "x"));
  for (let index = 0; index < 3; index++) {
    const verdict = await world.send(issue("bob", [a("alice", "x")], `${index}`));
    assert.ok(verdict.ok && verdict.action === "hold");
    assert.deepEqual(verdict.entry.repositories, [addressOfRepository("alice", "x")]);
  }
  assert.equal(outcome(await world.send(issue("bob", [a("alice", "x")], "4"))), "waiting-room-full");
  assert.equal(outcome(await world.send(issue("bob", [a("alice", "x")], "0"))), "known");
  const entries = await waitingEntries(world.store, waitingKeys.repositoryKind(nameOf("alice", "x"), "related"), 10);
  assert.equal(entries.length, 3);
});

test("a reply to a held issue is held with it; and one it quotes likewise", async () => {
  const world = new World();
  await world.send(announcement("alice", "x"));
  const quoted = makeEvent(keyOf("dan"), 1, [], startSeconds, "quoted");
  const held = issue("bob", [a("alice", "x"), ["q", quoted.id]]);
  await world.send(held);
  assert.equal(outcome(await world.send(makeEvent(keyOf("carol"), kinds.comment, [["E", held.id]]))), "hold");
  assert.equal(outcome(await world.send(quoted)), "hold");
});

test("a soft repository holds nothing", async () => {
  const world = new World();
  await world.send(announcement("alice", "x"));
  await world.setStatus(nameOf("alice", "x"), "soft");
  assert.equal(outcome(await world.send(issue("bob", [a("alice", "x")]))), "unrelated");
});

test("a leaving repository still counts; a deleted or blacklisted one does not", async () => {
  const world = new World();
  await world.host("alice", "x");
  await world.send(elsewhere("alice", "x", [], startSeconds + 1));
  assert.equal(outcome(await world.ask(issue("bob", [a("alice", "x")]))), "store");
  world.lists = { ...world.lists, repositoryBlacklist: repositoryList([{ type: "identifier", identifier: "x" }]) };
  assert.equal(outcome(await world.ask(issue("bob", [a("alice", "x")]))), "unrelated");
  const gone = new World();
  await gone.host("alice", "x");
  await gone.send(makeEvent(keyOf("alice"), kinds.deletion, [a("alice", "x")], startSeconds + 5));
  assert.equal(outcome(await gone.ask(issue("bob", [a("alice", "x")]))), "unrelated");
});

test("an event with ten thousand tags costs a bounded number of look-ups", async () => {
  const world = new World();
  const tags = Array.from({ length: 10_000 }, (_, index): Tag => ["e", oid(`${index}`).padEnd(64, "0")]);
  world.store.reads = 0;
  assert.equal(outcome(await world.ask(issue("eve", tags))), "unrelated");
  assert.ok(world.store.reads < 5_000, `${world.store.reads}`);
});

test("ephemeral kinds are relayed when related to what is served, never kept; AUTH events never", async () => {
  const world = new World();
  await world.host("alice", "x");
  await world.send(announcement("bob", "y"));
  const ephemeral = (tags: readonly Tag[]) => makeEvent(keyOf("carol"), 29_846, tags);
  assert.equal(outcome(await world.ask(ephemeral([a("alice", "x")]))), "relay");
  assert.equal(outcome(await world.ask(ephemeral([a("bob", "y")]))), "not-relayed");
  assert.equal(outcome(await world.ask(ephemeral([]))), "unrelated");
  assert.equal(outcome(await world.ask(makeEvent(keyOf("carol"), kinds.auth, [a("alice", "x")]))), "not-relayed");
  assert.equal(outcome(await world.ask(makeEvent(keyOf("admin"), 29_846, []))), "relay");
});

test("protected events are taken only from their authenticated author", async () => {
  const world = new World();
  await world.host("alice", "x");
  const event = issue("bob", [a("alice", "x"), ["-"]]);
  assert.equal(outcome(await world.ask(event)), "auth-required");
  assert.equal(outcome(await world.ask(event, client("192.0.2.1", keyOf("carol")))), "not-allowed");
  assert.equal(outcome(await world.ask(event, sync)), "not-allowed");
  assert.equal(outcome(await world.ask(event, client("192.0.2.1", keyOf("bob")))), "store");
});

test("authors on the event blacklist and banned keys and events are refused before anything else", async () => {
  const bob: ListEntry = { type: "author", pubkey: keyOf("bob") };
  const world = new World({ lists: { eventBlacklist: repositoryList([bob]) } });
  await world.host("alice", "x");
  assert.equal(outcome(await world.ask(issue("bob", [a("alice", "x")]))), "author-blocked");
  assert.equal(outcome(await world.ask(announcement("bob", "x"))), "author-blocked");
  const banned = issue("carol", [a("alice", "x")]);
  world.store.setRow("bans", `event:${banned.id}`, { since: 1, reason: "" });
  world.store.setRow("bans", `key:${keyOf("dan")}`, { since: 1, reason: "" });
  assert.equal(outcome(await world.ask(banned)), "event-blocked");
  assert.equal(outcome(await world.ask(issue("dan", [a("alice", "x")]))), "author-blocked");
});

test("profiles of authors of accepted events are kept, those of people who wait wait, others are refused", async () => {
  const world = new World();
  await world.host("alice", "x");
  await world.send(announcement("bob", "y"));
  for (const kind of [kinds.profile, kinds.contacts, kinds.relayList]) {
    assert.equal(outcome(await world.ask(makeEvent(keyOf("alice"), kind, []))), "store");
    assert.equal(outcome(await world.ask(makeEvent(keyOf("bob"), kind, []))), "hold");
    assert.equal(outcome(await world.ask(makeEvent(keyOf("eve"), kind, []))), "unrelated");
  }
});

test("grasp lists: from clients always within limits, from sync for authors present; they open no door for profiles", async () => {
  const world = new World({ config: { graspListsPerHourPerIp: 2, maxGraspLists: 2 } });
  const list = (author: string) => makeEvent(keyOf(author), kinds.graspList, [["g", "wss://grasp.example"]]);
  assert.equal(outcome(await world.send(list("eve"), sync)), "unrelated");
  assert.equal(outcome(await world.send(list("eve"))), "store");
  assert.equal(outcome(await world.send(makeEvent(keyOf("eve"), kinds.profile, []))), "unrelated");
  assert.equal(outcome(await world.send(list("eve2"))), "store");
  assert.equal(outcome(await world.send(list("eve3"))), "rate-limited");
  assert.equal(outcome(await world.send(list("eve3"), client("192.0.2.9"))), "too-many");
  await world.host("alice", "x");
  assert.equal(outcome(await world.send(list("alice"), sync)), "store");
});

test("the server's and the admins' own events are admitted, without authority over repositories", async () => {
  const world = new World();
  await world.host("alice", "x");
  for (const name of ["server", "admin"]) {
    assert.equal(
      outcome(await world.ask(makeEvent(keyOf(name), 1, [], startSeconds, "hello"), { type: "own" })),
      "store",
    );
    assert.equal(outcome(await world.ask(state(name, "x"))), "not-a-maintainer");
    assert.equal(outcome(await world.ask(elsewhere(name, "x"))), "service-not-listed");
  }
});

const pullRequest = (author: string, tags: readonly Tag[], tip = oid("tip"), kind: number = kinds.pullRequest) =>
  makeEvent(keyOf(author), kind, [["c", tip], ["clone", "https://other.example/x.git"], ...tags]);

test("a pull request waits for its commit in the repositories its a tags name", async () => {
  const world = new World();
  await world.host("alice", "x");
  const verdict = await world.send(pullRequest("bob", [a("alice", "x"), a("eve", "x")]));
  assert.ok(verdict.ok && verdict.action === "hold");
  assert.deepEqual(verdict.entry.repositories, [addressOfRepository("alice", "x")]);
  assert.ok(verdict.entry.releasable);
  assert.equal(outcome(await world.send(pullRequest("bob", [a("eve", "x")]))), "unrelated");
  const update = await world.send(pullRequest("bob", [["E", verdict.entry.id]], oid("tip2"), kinds.pullRequestUpdate));
  assert.ok(update.ok && update.action === "hold");
  assert.deepEqual(update.entry.repositories, [addressOfRepository("alice", "x")]);
});

test("threats 1: a pull request whose tip is a refspec or an option waits and can never be released", async () => {
  const world = new World();
  await world.host("alice", "x");
  for (const tip of ["+refs/heads/x:refs/heads/main", "--upload-pack=x", "", "HEAD"]) {
    const verdict = await world.send(pullRequest("bob", [a("alice", "x")], tip));
    assert.ok(verdict.ok && verdict.action === "hold" && !verdict.entry.releasable, tip);
  }
});

test("threats 18: a pull request for one repository concerns no other it merely points at", async () => {
  const world = new World();
  await world.host("alice", "x");
  await world.host("eve", "mine");
  const famous = issue("bob", [a("alice", "x")]);
  await world.send(famous);
  const verdict = await world.send(
    pullRequest("eve", [a("eve", "mine"), ["e", famous.id], ["q", addressOfRepository("alice", "x")]]),
  );
  assert.ok(verdict.ok && verdict.action === "hold");
  assert.deepEqual(verdict.entry.repositories, [addressOfRepository("eve", "mine")]);
  const nowhere = pullRequest("eve", [a("eve", "unknown"), ["e", famous.id]]);
  assert.equal(outcome(await world.send(nowhere)), "unrelated");
});

test("GRASP-06: a pull request with its own /prs/ repository here is held; of others and when off it is refused", async () => {
  const prs = (signer: string, identifier: string): Tag => [
    "clone",
    `https://grasp.example/prs/${npubOf(keyOf(signer))}/${identifier}.git`,
  ];
  const event = pullRequest("bob", [a("alice", "x"), prs("bob", "x")]);
  assert.equal(outcome(await new World().ask(event)), "unrelated");
  const world = new World({ grasp06: true });
  const verdict = await world.send(event);
  assert.ok(verdict.ok && verdict.action === "hold" && verdict.rule === "grasp-06");
  assert.equal(verdict.entry.prsIdentifier, "x");
  assert.deepEqual(verdict.entry.repositories, [addressOfRepository("alice", "x")], "its own once that is hosted");
  assert.equal(outcome(await world.ask(pullRequest("eve", [a("alice", "x"), prs("bob", "x")]))), "unrelated");
  assert.equal(outcome(await world.ask(pullRequest("bob", [a("alice", "x"), prs("bob", "y")]))), "unrelated");
  world.lists = { ...world.lists, repositoryBlacklist: repositoryList([{ type: "author", pubkey: keyOf("alice") }]) };
  assert.equal(
    outcome(await world.ask(pullRequest("carol", [a("alice", "x"), prs("carol", "x")]))),
    "repository-blocked",
  );
});

test("GRASP-06: bans count for the signer and for every coordinate; identifiers no URL can carry are none", async () => {
  const world = new World({ grasp06: true });
  const prs = (signer: string, identifier: string): Tag => [
    "clone",
    `https://grasp.example/prs/${npubOf(keyOf(signer))}/${encodeURIComponent(identifier)}.git`,
  ];
  const ask = async (signer: string, owner: string, identifier: string, more: Tag[] = []): Promise<string> =>
    outcome(await world.ask(pullRequest(signer, [a(owner, identifier), prs(signer, identifier), ...more])));
  assert.equal(await ask("bob", "alice", "x"), "hold");
  world.store.setRow("bans", bannedAuthorKey(keyOf("eve")), { since: 1, reason: "spam" });
  assert.equal(await ask("eve", "alice", "x"), "author-blocked");
  assert.equal(await ask("bob", "eve", "x"), "repository-blocked");
  assert.equal(await ask("bob", "alice", "x", [a("eve", "x")]), "repository-blocked", "no way round by a second one");
  for (const identifier of ["", "a\nb", "\0", "y".repeat(5_000)]) {
    assert.equal(await ask("bob", "alice", identifier), "unrelated", identifier.slice(0, 10));
  }
});

test("an announcement kept by maintainer exception can be talked about", async () => {
  const world = new World();
  await world.host("alice", "x", [maintainers("bob")]);
  await world.send(elsewhere("bob", "x"));
  assert.equal(outcome(await world.ask(issue("carol", [a("bob", "x")]))), "store");
  assert.equal(outcome(await world.ask(pullRequest("carol", [a("bob", "x")]))), "unrelated");
});

test("CI, package and label events are taken where they refer to something hosted, and are kept as their range says", async () => {
  const world = new World();
  await world.host("alice", "x");
  const proposed = oid("proposed");
  const pullRequest = makeEvent(keyOf("bob"), kinds.pullRequest, [a("alice", "x"), ["c", proposed]]);
  await world.store.put(pullRequest);
  const all = [1624, 1985, 9840, 9841, 9842, 9843, 9844, 19_843, 19_844, 29_846, 30_624, 39_842, 39_844];
  const expected = (kind: number): string => (kind === 29_846 ? "relay" : "store");
  const event = (kind: number, tags: readonly Tag[]): VerifiedEvent =>
    makeEvent(keyOf("ci"), kind, [["d", "run"], ...tags], startSeconds, String(tags));
  for (const kind of all) {
    assert.equal(outcome(await world.ask(event(kind, [a("alice", "x")]))), expected(kind), `${kind} by a`);
    assert.equal(outcome(await world.ask(event(kind, [["E", pullRequest.id]]))), expected(kind), `${kind} by E`);
    assert.equal(outcome(await world.ask(event(kind, [["a", `30617:${keyOf("eve")}:x`]]))), "unrelated", `${kind}`);
    assert.equal(outcome(await world.ask(event(kind, [["c", oid("unknown")]]))), "unrelated", `${kind} by another c`);
  }
  const isOfCommit = (kind: number): boolean => ![1624, 1985, 30_624].includes(kind);
  for (const kind of all) {
    const verdict = outcome(await world.ask(event(kind, [["c", proposed]])));
    assert.equal(verdict, isOfCommit(kind) ? expected(kind) : "unrelated", `${kind} by c`);
  }
  // So is what is said of a branch's or tag's commit, also when the branch has moved on; not of a pull request's ref.
  const moving = (ref: string, value?: string) =>
    changeRefs(
      world.store,
      nameOf("alice", "x"),
      [{ ref: ref as RefName, value: value === undefined ? undefined : { oid: value as Oid, peeled: undefined } }],
      "refs/heads/main" as RefName,
    );
  for (const text of ["first", "second"]) await moving("refs/heads/main", oid(text));
  await moving(`refs/nostr/${"1".repeat(64)}`, oid("anybody's"));
  for (const [text, isOurs] of [
    ["first", true],
    ["second", true],
    ["anybody's", false],
  ] as const)
    for (const kind of all) {
      const verdict = outcome(await world.ask(event(kind, [["c", oid(text)]])));
      assert.equal(verdict, isOurs && isOfCommit(kind) ? expected(kind) : "unrelated", `${kind} by c of ${text}`);
    }
  // A job result may come before what it quotes, and names it by address; later versions replace earlier ones.
  const job = event(9841, [["q", `39842:${keyOf("ci")}:run`]]);
  assert.equal(outcome(await world.send(job)), "unrelated");
  await world.send(event(39_842, [a("alice", "x")]));
  assert.equal(outcome(await world.send(job)), "store");
  const older = world.store.ids().length;
  await world.send(makeEvent(keyOf("ci"), 39_842, [["d", "run"], a("alice", "x")], startSeconds + 1));
  assert.equal(world.store.ids().length, older, "one marker a run");
});
