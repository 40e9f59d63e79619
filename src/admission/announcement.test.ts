import assert from "node:assert/strict";
import { test } from "node:test";
import { type ListEntry, repositoryList } from "../catalogue/bans-and-lists.js";
import { catalogueRow } from "../catalogue/repositories.js";
import { waitingAnnouncement } from "../catalogue/waiting.js";
import { kinds, type Tag } from "../nostr/event.js";
import { refusalText } from "../nostr/refusals.js";
import {
  announcement,
  client,
  cloneUrl,
  elsewhere,
  keyOf,
  makeEvent,
  nameOf,
  outcome,
  startSeconds,
  sync,
  World,
} from "./testing/world.js";
import { purgatoryMessage } from "./verdict.js";

const statusOf = async (world: World, owner: string, identifier = "x") =>
  (await catalogueRow(world.store, nameOf(owner, identifier)))?.status;
const later = (seconds: number): number => startSeconds + seconds;
const author = (name: string): ListEntry => ({ type: "author", pubkey: keyOf(name) });

test("a new repository waits, and its directory is to be made", async () => {
  const world = new World();
  const verdict = await world.send(announcement("alice", "x"));
  assert.ok(verdict.ok && verdict.action === "hold");
  assert.equal(verdict.message, purgatoryMessage);
  assert.deepEqual(verdict.repositories, [{ name: nameOf("alice", "x"), to: "create" }]);
  assert.equal(verdict.entry.kind, "announcement");
  assert.equal(verdict.entry.expires, startSeconds + 1_800);
  assert.equal(await statusOf(world, "alice"), "waiting");
  assert.deepEqual(world.store.ids(), []);
});

const npubUrl = cloneUrl("alice", "x");
const listingRows: { name: string; tags: Tag[]; accepted: boolean; lacks?: RegExp }[] = [
  {
    name: "plain",
    tags: [
      ["clone", npubUrl],
      ["relays", "wss://grasp.example"],
    ],
    accepted: true,
  },
  {
    name: "many values in one tag",
    tags: [
      ["clone", "https://o.example/x", npubUrl],
      ["relays", "wss://o.example", "wss://grasp.example/"],
    ],
    accepted: true,
  },
  {
    name: "several tags",
    tags: [
      ["clone", "https://o.example/x"],
      ["clone", npubUrl],
      ["relays", "wss://o.example"],
      ["relays", "ws://grasp.example:80"],
    ],
    accepted: true,
  },
  {
    name: "http, upper case, default port, doubled slash",
    tags: [
      ["clone", npubUrl.replace("https://grasp.example/", "http://GRASP.example:80//")],
      ["relays", "WS://GRASP.EXAMPLE:443//"],
    ],
    accepted: true,
  },
  { name: "no relays", tags: [["clone", npubUrl]], accepted: false, lacks: /relays tag lacks wss:\/\/grasp\.example/ },
  { name: "no clone", tags: [["relays", "wss://grasp.example"]], accepted: false, lacks: /clone tag lacks/ },
  { name: "neither", tags: [], accepted: false, lacks: /clone tag lacks .* and the relays tag lacks/ },
  {
    name: "our name as substring of another host",
    tags: [
      ["clone", npubUrl.replace("grasp.example", "grasp.example.evil")],
      ["relays", "wss://evil/grasp.example"],
    ],
    accepted: false,
  },
  {
    name: "our name as user",
    tags: [
      ["clone", npubUrl.replace("grasp.example", "grasp.example@evil")],
      ["relays", "wss://grasp.example"],
    ],
    accepted: false,
    lacks: /clone tag/,
  },
  {
    name: "another port",
    tags: [
      ["clone", npubUrl.replace("example/", "example:444/")],
      ["relays", "wss://grasp.example"],
    ],
    accepted: false,
  },
  {
    name: "relay below our base",
    tags: [
      ["clone", npubUrl],
      ["relays", "wss://grasp.example/other"],
    ],
    accepted: false,
    lacks: /relays/,
  },
  {
    name: "clone by ws and relay by https",
    tags: [
      ["clone", npubUrl.replace("https", "wss")],
      ["relays", "https://grasp.example"],
    ],
    accepted: false,
  },
  {
    name: "threats 5: control bytes in the URL",
    tags: [
      ["clone", npubUrl.replace("x.git", "\rx.git")],
      ["relays", "wss://grasp.example"],
    ],
    accepted: false,
  },
];
for (const { name, tags, accepted, lacks } of listingRows) {
  test(`listing this service: ${name}`, async () => {
    const world = new World();
    const verdict = await world.send(makeEvent(keyOf("alice"), kinds.announcement, [["d", "x"], ...tags]));
    assert.equal(outcome(verdict), accepted ? "hold" : "service-not-listed");
    if (lacks && !verdict.ok) assert.match(refusalText(verdict), lacks);
    if (!accepted) assert.deepEqual([world.store.keys("purgatory"), world.store.keys("catalogue")], [[], []]);
  });
}

test("a clone path that is not the repository's is accepted, and the answer says where it is", async () => {
  const tags: Tag[] = [
    ["d", "x"],
    ["clone", "https://grasp.example/alice/x.git"],
    ["relays", "wss://grasp.example"],
  ];
  const verdict = await new World().send(makeEvent(keyOf("alice"), kinds.announcement, tags));
  assert.ok(verdict.ok && verdict.action === "hold");
  assert.ok(verdict.message.startsWith("purgatory:"));
  assert.ok(verdict.message.endsWith(cloneUrl("alice", "x")));
});

test("threats 3: odd identifiers have places of their own", async () => {
  const world = new World({ config: { purgatoryMaxAnnouncementsPerKey: 100 } });
  const odd = [
    "..",
    ".",
    "../../etc/passwd",
    "a/b",
    "a:b",
    "a",
    "a:",
    "%2F",
    "x.git",
    "X",
    "x",
    "\u00e9",
    "e\u0301",
    "x".repeat(300),
    "\u202ex",
    " ",
  ];
  for (const identifier of odd) {
    const verdict = await world.send(announcement("alice", identifier));
    assert.equal(outcome(verdict), "hold", identifier);
    assert.ok(verdict.ok && !verdict.message?.includes("another path"), identifier);
    const row = await catalogueRow(world.store, nameOf("alice", identifier));
    assert.equal(row?.identifier, identifier);
    assert.equal((await waitingAnnouncement(world.store, nameOf("alice", identifier)))?.identifier, identifier);
  }
  assert.equal(world.store.keys("purgatory").filter((key) => key.startsWith("e:")).length, odd.length);
});

test("an identifier must be there and must not contain NUL", async () => {
  const world = new World();
  assert.equal(outcome(await world.send(makeEvent(keyOf("alice"), kinds.announcement, []))), "bad-announcement");
  assert.equal(outcome(await world.send(announcement("alice", ""))), "bad-announcement");
  assert.equal(outcome(await world.send(announcement("alice", "a\0b"))), "bad-announcement");
});

test("a newer version of a served announcement is served at once", async () => {
  const world = new World();
  await world.host("alice", "x");
  const verdict = await world.send(announcement("alice", "x", [["name", "new"]], later(5)));
  assert.equal(outcome(verdict), "store");
  assert.equal(await statusOf(world, "alice"), "served");
  const older = await world.send(announcement("alice", "x", [["name", "old"]], later(-5)));
  assert.equal(outcome(older), "known");
  assert.ok(older.ok && older.action === "known" && older.message === "duplicate: a newer version is stored");
});

test("a newer version of a waiting one takes its place, an older never, the same changes nothing", async () => {
  const world = new World();
  const first = announcement("alice", "x");
  await world.send(first);
  world.now += 100;
  assert.equal(outcome(await world.send(first)), "known");
  assert.equal((await waitingAnnouncement(world.store, nameOf("alice", "x")))?.expires, startSeconds + 1_800);
  assert.equal(outcome(await world.send(announcement("alice", "x", [], later(-1)))), "known");
  const second = announcement("alice", "x", [], later(1));
  assert.equal(outcome(await world.send(second)), "hold");
  const entry = await waitingAnnouncement(world.store, nameOf("alice", "x"));
  assert.equal(entry?.id, second.id);
  assert.equal(entry?.expires, startSeconds + 100 + 1_800);
  assert.equal(entry?.firstWaited, startSeconds);
  assert.equal(world.store.keys("purgatory").filter((key) => key.startsWith("e:")).length, 1);
});

test("threats 19: endless replacement does not keep a repository waiting beyond a day", async () => {
  const world = new World();
  await world.send(announcement("alice", "x"));
  for (let seconds = 1_200; seconds < 86_400; seconds += 1_200) {
    world.now = later(seconds);
    assert.equal(outcome(await world.send(announcement("alice", "x", [], world.now))), "hold");
  }
  assert.equal((await waitingAnnouncement(world.store, nameOf("alice", "x")))?.expires, later(86_400));
  world.now = later(86_400);
  const verdict = await world.send(announcement("alice", "x", [], world.now));
  assert.ok(verdict.ok && verdict.action === "hold" && verdict.entry.phase === "soft");
  assert.deepEqual(verdict.repositories, [{ name: nameOf("alice", "x"), to: "remove" }]);
  assert.equal(await statusOf(world, "alice"), "soft");
});

test("threats 19: a key has fifty repositories waiting, not more, and the refusal says what to do", async () => {
  const world = new World({ config: { purgatoryAnnouncementsPerHourPerIp: 1_000 } });
  for (let index = 0; index < 50; index++) await world.send(announcement("alice", `r${index}`));
  const verdict = await world.send(announcement("alice", "one-more"));
  assert.equal(outcome(verdict), "too-many-waiting");
  assert.equal(outcome(await world.send(announcement("alice", "r0", [], later(1)))), "hold");
  assert.equal(outcome(await world.send(announcement("bob", "r0"))), "hold");
});

test("threats 19: an address starts a hundred new repositories an hour, whatever keys it uses", async () => {
  const world = new World();
  for (let index = 0; index < 100; index++) {
    assert.equal(outcome(await world.send(announcement(`k${index}`, "x"), client(`2001:db8:1:2::${index}`))), "hold");
  }
  const next = announcement("k100", "x");
  assert.equal(outcome(await world.send(next, client("2001:db8:1:2:ffff::1"))), "rate-limited");
  assert.equal(outcome(await world.ask(next, client("2001:db8:1:3::1"))), "hold");
  assert.equal(outcome(await world.ask(next, sync)), "hold");
  world.now += 3_601;
  assert.equal(outcome(await world.send(next, client("2001:db8:1:2::5"))), "hold");
});

test("threats 19: the number of waiting repositories is bounded in all", async () => {
  const world = new World({ config: { purgatoryMaxAnnouncements: 3 } });
  for (const name of ["a", "b", "c"]) await world.send(announcement(name, "x"));
  assert.equal(outcome(await world.send(announcement("d", "x"))), "waiting-room-full");
});

test("a soft announcement is revived by a client that sends it again, not by sync", async () => {
  const world = new World();
  const event = announcement("alice", "x");
  const first = await world.send(event);
  assert.ok(first.ok && first.action === "hold");
  const { putWaiting } = await import("../catalogue/waiting.js");
  await putWaiting(world.store, { ...first.entry, phase: "soft", expires: later(90_000) });
  await world.setStatus(nameOf("alice", "x"), "soft");
  world.now = later(4_000);
  assert.equal(outcome(await world.send(event, sync)), "known");
  const verdict = await world.send(event);
  assert.ok(verdict.ok && verdict.action === "hold" && !verdict.isNew);
  assert.deepEqual(verdict.repositories, [{ name: nameOf("alice", "x"), to: "create" }]);
  assert.equal(verdict.entry.phase, "waiting");
  assert.equal(await statusOf(world, "alice"), "waiting");
});

test("an announcement that dropped us is served, its repository is leaving, and returns with a newer one", async () => {
  const world = new World();
  await world.host("alice", "x");
  const left = elsewhere("alice", "x", [], later(1));
  const verdict = await world.send(left);
  assert.equal(outcome(verdict), "leave");
  assert.ok(verdict.ok && verdict.repositories?.[0]?.to === "leave");
  assert.deepEqual(world.store.ids(), [left.id]);
  assert.equal(await statusOf(world, "alice"), "leaving");
  const back = await world.send(announcement("alice", "x", [], later(2)));
  assert.equal(outcome(back), "store");
  assert.ok(back.ok && back.repositories?.[0]?.to === "return");
  assert.equal(await statusOf(world, "alice"), "served");
});

test("a waiting repository whose owner drops us is gone, and a replayed older announcement does not bring it back", async () => {
  const world = new World();
  const first = announcement("alice", "x");
  await world.send(first);
  const verdict = await world.send(elsewhere("alice", "x", [], later(5)));
  assert.equal(outcome(verdict), "lapse");
  assert.ok(verdict.ok && verdict.repositories?.[0]?.to === "remove");
  assert.deepEqual([await statusOf(world, "alice"), world.store.ids()], [undefined, []]);
  assert.deepEqual(
    world.store.keys("purgatory").filter((key) => key !== "c:all"),
    [],
  );
  assert.deepEqual(world.store.keys("catalogue"), []);
  assert.equal(outcome(await world.send(first)), "known");
  assert.equal(outcome(await world.send(announcement("alice", "x", [], later(6)))), "hold");
});

test("a blacklisted repository is refused, by key, by identifier and by both", async () => {
  const entries: ListEntry[] = [
    author("alice"),
    { type: "identifier", identifier: "x" },
    { type: "repository", pubkey: keyOf("alice"), identifier: "x" },
  ];
  for (const entry of entries) {
    const world = new World({ lists: { repositoryBlacklist: repositoryList([entry]) }, archive: { all: true } });
    assert.equal(outcome(await world.send(announcement("alice", "x"))), "repository-blocked");
    assert.equal(outcome(await world.send(announcement("bob", "y"))), "hold");
  }
});

test("with a whitelist only what matches is hosted, and lists can be swapped at run time", async () => {
  const world = new World({ lists: { repositoryWhitelist: repositoryList([author("alice")]) } });
  assert.equal(outcome(await world.send(announcement("bob", "x"))), "not-whitelisted");
  assert.equal(outcome(await world.send(announcement("alice", "x"))), "hold");
  world.lists = { ...world.lists, repositoryWhitelist: repositoryList([]) };
  assert.equal(outcome(await world.send(announcement("bob", "x"))), "hold");
});

test("archiving: everything, a whitelist, or what is on named services; only the matched URLs are hunted", async () => {
  const event = elsewhere("bob", "x", [["clone", "https://mirror.example:8443/x.git", "ssh://mirror.example/x"]]);
  const all = await new World({ archive: { all: true } }).send(event);
  assert.ok(all.ok && all.action === "hold" && all.rule === "archive");
  const listed = new World({ archive: { whitelist: repositoryList([author("bob")]) } });
  assert.equal(outcome(await listed.send(event)), "hold");
  assert.equal(outcome(await listed.send(elsewhere("carol", "x"))), "service-not-listed");
  const byHost = new World({ archive: { serviceHosts: new Set(["mirror.example"]) } });
  assert.equal(outcome(await byHost.send(event)), "hold");
  const row = await catalogueRow(byHost.store, nameOf("bob", "x"));
  assert.deepEqual(row?.archive?.cloneUrls, ["https://mirror.example:8443/x.git"]);
  await byHost.release(nameOf("bob", "x"), "archived");
  assert.equal(outcome(await byHost.send(elsewhere("bob", "x", [], later(1)))), "leave");
});
