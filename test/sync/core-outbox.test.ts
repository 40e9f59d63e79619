// Participants' own relays (GRASP-03), decision by decision: who takes part, where they write, who is asked what and when.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { NostrEvent, Pubkey } from "../../src/nostr/event.js";
import type { Participant } from "../../src/sync/core/messages.js";
import { mostActive, namedIn, Participants } from "../../src/sync/core/participants.js";
import { RelayLists, writeRelaysOf } from "../../src/sync/core/relay-lists.js";
import { syncConfig } from "../../src/sync/core/testing/config.js";
import {
  announcing,
  bootstrap,
  type CommandOf,
  coordinate,
  Driver,
  event,
  issue,
  key,
  only,
  subscribed,
} from "../../src/sync/core/testing/driver.js";
import type { Repo } from "../../src/sync/core/wanted.js";

const minute = 60_000;
const hour = 60 * minute;

const participant = (name: string, role: Participant["role"] = "author", activeSeconds = 1): Participant => ({
  pubkey: key(name),
  role,
  activeSeconds,
});

const listBy = (name: string, urls: readonly (string | readonly string[])[], created_at = 1_600_000_000): NostrEvent =>
  event(
    `list of ${name} ${created_at}`,
    10002,
    urls.map((url) => (typeof url === "string" ? ["r", url] : ["r", ...url])),
    { pubkey: key(name), created_at },
  );

describe("who takes part", () => {
  it("maintainers come first, then whoever wrote last, those who are only named at the end; each once", () => {
    const found = [
      participant("named", "named", 0),
      participant("old", "author", 5),
      participant("new", "author", 9),
      participant("boss", "maintainer", 0),
      participant("boss", "author", 7),
      participant("old", "named", 0),
    ];
    assert.deepEqual(
      mostActive(found, 3).map(({ pubkey, role, activeSeconds }) => [pubkey, role, activeSeconds]),
      [
        [key("boss"), "maintainer", 7],
        [key("new"), "author", 9],
        [key("old"), "author", 5],
      ],
    );
  });

  it("a root names twenty keys at most, and only keys", () => {
    const tags = [
      ["p", "no key"],
      ["P", key("one")],
      ["p", key("one")],
      ...Array.from({ length: 40 }, (_, n) => ["p", key(`k${n}`)]),
    ];
    assert.equal(namedIn({ tags }, 20).length, 20);
    assert.equal(namedIn({ tags }, 20)[0], key("one"));
  });

  it("sixty-four are followed: a newcomer takes the place of the least active, a mere name takes nobody's", () => {
    const repo = { ix: 1 } as unknown as Repo;
    const people = new Participants(syncConfig({}));
    people.follow(repo);
    for (let n = 0; n < 64; n++) assert.ok(people.note(repo, participant(`p${n}`, "author", 100 + n)));
    assert.equal(people.note(repo, participant("name", "named", 0)), false);
    assert.equal(people.note(repo, participant("older", "author", 99)), false);
    assert.equal(people.note(repo, participant("newer", "author", 200)), true);
    assert.equal(people.takesPart(key("p0")), false);
    assert.equal(people.of(repo).length, 64);
    people.drop(repo);
    assert.equal(people.authorCount, 0);
  });
});

describe("relay lists", () => {
  const keysIn = (tags: readonly (readonly string[])[]): string[] =>
    writeRelaysOf({ tags }, ["us.example"], 4).map(({ key: name }) => name);

  it("only what is written to counts, the first four, each once, without ourselves and what is no address", () => {
    const tags = [
      ["r", "wss://read.example", "read"],
      ["r", "wss://us.example/"],
      ["r", "no address"],
      ["r", "https://web.example"],
      ["r", "ws://one.example", "write"],
      ["r", "wss://one.example/", "write"],
      ["r", "wss://two.example"],
      ["x", "wss://other.example"],
      ["r", "wss://user:password@three.example"],
      ["r", "wss://three.example/"],
      ["r", "wss://four.example"],
      ["r", "wss://five.example"],
    ];
    assert.deepEqual(keysIn(tags), ["one.example", "two.example", "three.example", "four.example"]);
  });

  it("a list that names ten thousand relays is read like one of a hundred", () => {
    const tags = Array.from({ length: 10_000 }, (_, n) => ["r", `wss://far${n}.example`, "read"]);
    assert.deepEqual(keysIn([...tags, ["r", "wss://late.example"]]), []);
  });

  it("one that was found is good for a day, none for six hours, and for five minutes where nobody answered", () => {
    const lists = new RelayLists(syncConfig({}));
    const ann = key("ann");
    assert.ok(lists.isDue(ann, 0));
    lists.begin(ann, [1, 2], false, 0);
    assert.equal(lists.isDue(ann, 0), false);
    assert.equal(lists.heard(ann, 1, true), false);
    assert.equal(lists.heard(ann, 2, true), true);
    assert.equal(lists.end(ann, 0), "none");
    assert.deepEqual([lists.isDue(ann, 6 * hour - 1), lists.isDue(ann, 6 * hour)], [false, true]);

    lists.begin(ann, [1], false, 0);
    lists.heard(ann, 1, false);
    lists.end(ann, 0);
    assert.deepEqual([lists.isDue(ann, 5 * minute - 1), lists.isDue(ann, 5 * minute)], [false, true]);

    lists.begin(ann, [1], false, 0);
    assert.ok(lists.learn(listBy("ann", ["wss://own.example"]), 24 * hour));
    lists.heard(ann, 1, true);
    assert.equal(lists.end(ann, 0), "found");
    assert.deepEqual([lists.isDue(ann, 24 * hour - 1), lists.isDue(ann, 24 * hour)], [false, true]);
  });

  it("the newest list counts, whoever brings an older one later", () => {
    const lists = new RelayLists(syncConfig({}));
    assert.ok(lists.learn(listBy("ann", ["wss://new.example"], 20), 1));
    assert.equal(lists.learn(listBy("ann", ["wss://old.example"], 10), 1), false);
    assert.deepEqual(
      lists.relaysOf(key("ann"))?.relays.map(({ key: name }) => name),
      ["new.example"],
    );
  });
});

const home = "home.example";
const repo = announcing("ann", "tool", [`wss://${home}`]);

interface Scene {
  readonly participants?: readonly Participant[];
  readonly config?: ConstructorParameters<typeof Driver>[0];
  readonly announcement?: NostrEvent;
}

/** The repository's relay is live, its participants are known and their lists have been asked for. */
function scene({ participants = [participant("ann", "maintainer"), participant("bob")], ...wish }: Scene = {}): Driver {
  const driver = new Driver({ syncDisableNegentropy: true, ...wish.config });
  driver.makeLive(home, wish.announcement ?? repo);
  for (const { coordinate: name } of only(driver.said, "lookUpParticipants"))
    driver.tell({ type: "participants", coordinate: name, participants, lists: [] });
  answer(driver, home, 5000);
  return driver;
}

/** Moves time, and answers what the relay is asked meanwhile before it would be taken for silent. */
function answer(driver: Driver, relay: string, ms: number): void {
  for (let left = ms; left > 0; left -= 10_000) {
    const from = driver.said.length;
    driver.advance(Math.min(left, 10_000));
    driver.settle(relay, from);
  }
}

/** A list that intake has judged. */
const judged = (driver: Driver, list: NostrEvent, outcome: object): void =>
  void driver.tell({
    type: "verdict",
    relay: home,
    source: "rotating",
    layerFour: true,
    event: list,
    outcome,
  } as never);

const dialled = (driver: Driver): string[] => only(driver.said, "connect").map(({ relay }) => relay);

const historyAt = (driver: Driver, relay: string, from = 0): CommandOf<"subscribe">[] =>
  subscribed(driver.said.slice(from), "h").filter((command) => command.relay === relay);

function connectOwn(driver: Driver, relay = "own.example"): number {
  const from = driver.said.length;
  driver.connect(relay);
  driver.settle(relay, from);
  return from;
}

describe("outboxes", () => {
  it("lists are asked for at the repository's relays and the index relays, in one request for all", () => {
    const driver = scene({ config: { indexRelays: [bootstrap("wss://index.example")] } });
    assert.ok(dialled(driver).includes("index.example"));
    const from = driver.said.length;
    driver.connect("index.example");
    assert.deepEqual(
      historyAt(driver, "index.example", from).map(({ filters }) => filters),
      [[{ kinds: [10002], authors: [key("ann"), key("bob")], limit: 500 }]],
    );
    assert.ok(historyAt(driver, home).some(({ filters: [filter] }) => filter?.kinds?.[0] === 10002));
    driver.settle("index.example", from);
    driver.advance(2 * minute);
    assert.ok(
      only(driver.said, "disconnect").some(({ relay }) => relay === "index.example"),
      "nothing more is wanted of it",
    );
  });

  it("a participant's own relay is asked what that participant said about the repository and its roots, and of himself", () => {
    const driver = scene();
    driver.tell({ type: "accepted", event: issue("bug", "ann", "tool") });
    answer(driver, home, 5000);
    judged(driver, listBy("bob", ["wss://own.example"]), { type: "stored" });
    driver.advance(5000);
    assert.ok(dialled(driver).includes("own.example"));
    const from = connectOwn(driver);
    const asked = historyAt(driver, "own.example", from).map(({ filters: [filter] }) => filter!);
    assert.ok(asked.every(({ authors }) => JSON.stringify(authors) === JSON.stringify([key("bob")])));
    const bug = issue("bug", "ann", "tool").id;
    assert.deepEqual(
      asked.map(({ tags, kinds, since }) => [tags && [...tags][0], kinds, since]),
      [
        [["a", [coordinate("ann", "tool")]], undefined, undefined],
        [["A", [coordinate("ann", "tool")]], undefined, undefined],
        [["q", [coordinate("ann", "tool"), bug]], undefined, undefined],
        [["e", [bug]], undefined, undefined],
        [["E", [bug]], undefined, undefined],
        [undefined, [0, 10002, 10317], undefined],
      ],
    );
    const live = subscribed(driver.said.slice(from), "l").flatMap(({ filters }) => filters);
    assert.deepEqual(
      live.map(({ tags, limit }) => [[...(tags?.keys() ?? [])][0], limit]),
      ["a", "A", "e", "E", "q"].map((tag) => [tag, 0]),
    );
    assert.equal(driver.relay("own.example")?.inStep, true);
  });

  it("is asked again after 55 min for what is newer than an hour before the last pass; what failed after 5 min", () => {
    const driver = scene();
    judged(driver, listBy("bob", ["wss://own.example"]), { type: "stored" });
    driver.advance(5000);
    connectOwn(driver);
    let from = driver.said.length;
    answer(driver, "own.example", 54 * minute);
    assert.deepEqual(historyAt(driver, "own.example", from), []);
    from = driver.said.length;
    while (historyAt(driver, "own.example", from).length === 0) driver.advance(1000);
    const [first] = historyAt(driver, "own.example", from);
    const beganSeconds = Math.floor(driver.wallMs / 1000);
    assert.ok((first?.filters[0]?.since ?? 0) <= beganSeconds - 3600);
    driver.from("own.example", "subscriptionClosed", { subscription: first!.subscription, message: "error: no" });
    driver.settle("own.example", from);
    from = driver.said.length;
    answer(driver, "own.example", 4 * minute);
    assert.deepEqual(historyAt(driver, "own.example", from), []);
    answer(driver, "own.example", 2 * minute);
    const again = historyAt(driver, "own.example", from);
    assert.ok(again.length > 0);
    assert.equal(again[0]?.filters[0]?.since, first?.filters[0]?.since, "from where the failed one began");
    from = driver.said.length;
    answer(driver, "own.example", 56 * minute);
    const later = historyAt(driver, "own.example", from)[0]?.filters[0]?.since ?? 0;
    assert.ok(later > (first?.filters[0]?.since ?? 0), "a success moves it on");
  });

  it("after a long break the pass looks back to the last that succeeded, and does not begin anew", () => {
    const driver = scene();
    judged(driver, listBy("bob", ["wss://own.example"]), { type: "stored" });
    driver.advance(5000);
    connectOwn(driver);
    driver.advance(10 * minute);
    driver.from("own.example", "closed", {});
    driver.advance(3 * hour);
    driver.tell({ type: "reconnect", relay: "own.example" });
    const from = connectOwn(driver);
    const asked = historyAt(driver, "own.example", from).map(({ filters: [filter] }) => filter);
    assert.ok(asked.length > 0);
    assert.ok(asked.every((filter) => filter?.since !== undefined));
  });

  it("a list counts when its signature was checked, whether its author is admitted or not, and not otherwise", () => {
    for (const [outcome, isBelieved] of [
      [{ type: "stored" }, true],
      [{ type: "duplicate" }, true],
      [{ type: "refused", code: "unrelated" }, true],
      [{ type: "refused", code: "bad-signature" }, false],
      [{ type: "refused", code: "author-blocked" }, false],
      [{ type: "refused", code: "disk-full" }, false],
      [{ type: "superseded" }, false],
    ] as const) {
      const driver = scene();
      judged(driver, listBy("bob", ["wss://own.example"]), outcome);
      driver.advance(5000);
      assert.equal(dialled(driver).includes("own.example"), isBelieved, JSON.stringify(outcome));
    }
  });

  it("the repository's own relays are not asked twice, strangers' lists not at all", () => {
    const driver = scene();
    judged(driver, listBy("bob", [`wss://${home}`]), { type: "stored" });
    judged(driver, listBy("stranger", ["wss://strange.example"]), { type: "stored" });
    driver.advance(5000);
    assert.deepEqual(dialled(driver), [home]);
    assert.equal(driver.relay(home)?.outboxRepositories, 0);
  });

  it("a relay that never answers where the lists are goes with the repository that listed it", () => {
    const driver = new Driver({ syncDisableNegentropy: true });
    driver.makeLive(home, repo);
    const [asked] = only(driver.said, "lookUpParticipants");
    const participants = [participant("ann", "maintainer")];
    driver.tell({ type: "participants", coordinate: asked!.coordinate, participants, lists: [] });
    driver.advance(5000);
    assert.ok(historyAt(driver, home).some(({ filters: [filter] }) => filter?.kinds?.[0] === 10002));
    // The look for lists is put off until the next connection.
    driver.tell({ type: "closed", relay: home, link: driver.link(home) });
    driver.tell({ type: "accepted", event: repo, hosted: false });
    driver.advance(2 * minute);
    assert.equal(driver.relay(home), undefined);
  });

  it("private repositories, and those that only wait, take no part", () => {
    const secret = { ...repo, tags: [...repo.tags, ["private", "true"]] };
    assert.deepEqual(only(scene({ announcement: secret }).said, "lookUpParticipants"), []);
    const driver = new Driver();
    driver.tell({ type: "waiting", event: repo });
    driver.advance(5000);
    assert.deepEqual(only(driver.said, "lookUpParticipants"), []);
  });

  it("whoever writes something that is accepted takes part from then on", () => {
    const driver = scene();
    const carol = event("from carol", 1111, [["A", coordinate("ann", "tool")]], { pubkey: key("carol") });
    driver.tell({ type: "accepted", event: carol });
    const from = driver.said.length;
    driver.advance(5000);
    assert.deepEqual(historyAt(driver, home, from)[0]?.filters[0]?.authors, [key("carol")]);
    assert.equal(driver.snapshot().outbox.participants, 3);
  });

  it("caps: 32 relays a repository, 200 in all, 50 live; what finds no place is counted", () => {
    const people = Array.from({ length: 64 }, (_, n) => participant(`p${n}`, "author", 1000 - n));
    const driver = scene({ participants: people });
    for (const [n, { pubkey }] of people.entries()) {
      const urls = [0, 1, 2, 3, 4].map((at) => `wss://o${n}-${at}.example`);
      judged(driver, { ...listBy(`p${n}`, urls), pubkey: pubkey as Pubkey }, { type: "stored" });
    }
    driver.advance(5000);
    const { outbox } = driver.snapshot();
    assert.equal(outbox.relays, 32);
    const own = dialled(driver).filter((relay) => relay !== home);
    assert.ok(
      own.every((relay) => Number(/^o(\d+)-/.exec(relay)?.[1]) < 8),
      "those of the most active",
    );
    assert.ok(
      own.every((relay) => !relay.includes("-4.")),
      "the first four of each list",
    );
    for (let n = 0; n < 10; n++) {
      const other = announcing("ann", `tool-${n}`, [`wss://${home}`]);
      driver.tell({
        type: "accepted",
        event: { ...other, id: `${n}`.padEnd(64, "0") as NostrEvent["id"] },
        hosted: true,
      });
      answer(driver, home, 5000);
      const mine = people.slice(0, 8).map((_, at) => participant(`q${n}-${at}`));
      driver.tell({ type: "participants", coordinate: coordinate("ann", `tool-${n}`), participants: mine, lists: [] });
      answer(driver, home, 5000);
      for (let at = 0; at < 8; at++)
        judged(
          driver,
          listBy(
            `q${n}-${at}`,
            [0, 1, 2, 3].map((place) => `wss://x${n}-${at}-${place}.example`),
          ),
          { type: "stored" },
        );
      driver.advance(5000);
    }
    const all = driver.snapshot().outbox;
    assert.deepEqual([all.relays, all.live], [200, 50]);
    assert.ok(all.unplaced > 0);
  });

  it("an announcement that is replaced at full speed has its participants looked up twice a minute", () => {
    const driver = scene();
    const from = driver.said.length;
    const replacements = 120;
    for (let at = 1; at <= replacements; at++) {
      driver.tell({ type: "accepted", event: { ...repo, created_at: repo.created_at + at }, hosted: true });
      const before = driver.said.length;
      driver.advance(500);
      for (const { coordinate: name } of only(driver.said.slice(before), "lookUpParticipants"))
        driver.tell({
          type: "participants",
          coordinate: name,
          participants: [participant("ann", "maintainer")],
          lists: [],
        });
    }
    assert.equal(only(driver.said.slice(from), "lookUpParticipants").length, 2);
    // The last word is looked at too, without anything else happening.
    driver.advance(minute);
    assert.equal(only(driver.said.slice(from), "lookUpParticipants").length, 3);
  });

  it("switched off and on again while it runs", () => {
    const driver = scene();
    judged(driver, listBy("bob", ["wss://own.example"]), { type: "stored" });
    driver.advance(5000);
    connectOwn(driver);
    Object.assign(driver.config, { syncPlusEnabled: false });
    driver.advance(3 * minute);
    assert.deepEqual(driver.snapshot().outbox.relays, 0);
    assert.ok(only(driver.said, "disconnect").some(({ relay }) => relay === "own.example"));
    const from = driver.said.length;
    Object.assign(driver.config, { syncPlusEnabled: true });
    driver.advance(2 * minute);
    assert.equal(only(driver.said.slice(from), "lookUpParticipants").length, 1);
  });

  it("single events are looked for at their signer's own relays, as soon as it is known which those are", () => {
    const driver = scene();
    const wanted = event("a pull request", 1618, []);
    driver.tell({ type: "wantIds", ids: [wanted.id], coordinate: coordinate("dan", "x"), signer: key("dan") });
    driver.tell({ type: "accepted", event: listBy("dan", ["wss://dans.example"]) });
    driver.advance(5000);
    const from = driver.said.length;
    driver.connect("dans.example");
    assert.deepEqual(
      historyAt(driver, "dans.example", from).map(({ filters }) => filters),
      [[{ ids: [wanted.id] }]],
    );
  });
});
