// threats.md rows 29 and 30 against the started server: peers that misbehave in every way at once, announcements made to
// make us dial, and events of which only others say that they are gone. An honest peer is followed all the while.

import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { Person, type SignedEvent } from "../harness/grasp-people.js";
import { keyOf, sign, type TestKey } from "../harness/relay-events.js";
import { PlainRelay } from "../harness/sync-plain-relay.js";
import { habits, RogueRelay, type Say, tarPit } from "./relay-rogues.js";
import { eventually, mebibyte, nowSeconds, RelayWorld, someKeys } from "./relay-world.js";

const visitor = keyOf("visitor");
const spammer = keyOf("spammer");

const quick = {
  NGIT_SYNC_BASE_BACKOFF_SECS: "1",
  NGIT_SYNC_DISCONNECT_CHECK_INTERVAL_SECS: "1",
  NGIT_SYNC_HISTORY_SILENCE_SECS: "3",
  NGIT_SYNC_NEGENTROPY_SILENCE_SECS: "2",
  NGIT_SYNC_DIAL_TIMEOUT_SECS: "3",
};

const issueAbout = (key: TestKey, coordinate: string, content: string, at = nowSeconds() - 900) =>
  sign(key, { kind: 1621, created_at: at, tags: [["a", coordinate]], content });

/** A repository that an honest relay knows more about than we do. */
async function honestRepository(t: TestContext, world: RelayWorld, relay: PlainRelay) {
  t.after(() => relay.stop());
  const person = new Person();
  const coordinate = person.coordinate("honest");
  const history = Array.from({ length: 30 }, (_, index) => issueAbout(visitor, coordinate, `history ${index}`));
  relay.add(...history);
  await world.story.hosted(person, "honest", [["relays", relay.url]]);
  return {
    person,
    coordinate,
    /** Both what it has and what it gets now arrive here. */
    isFollowed: async () => {
      await eventually("the honest relay's history is here", async () => {
        return (await world.ids({ ids: history.map(({ id }) => id) })).length === history.length;
      });
      const news = issueAbout(visitor, coordinate, `news ${relay.events.length}`, nowSeconds());
      relay.publish(news);
      await eventually("its news is here", async () => (await world.ids({ ids: [news.id] })).length === 1);
    },
  };
}

// They wait more than they work, each suite for a server of its own.
describe("threats 29 and 30", { timeout: 500_000, concurrency: 3 }, () => {
  test("threat 29: 10,000 relay URLs in one announcement, and a flood of announcements from fresh keys, make us dial only so many", async (t) => {
    const pit = await tarPit();
    t.after(() => pit.stop());
    const world = await RelayWorld.start(t, { ...quick, NGIT_SYNC_DIAL_TIMEOUT_SECS: "1" });
    const heldBefore = await world.heldBytes();
    const addresses = (net: number, count: number) =>
      Array.from({ length: count }, (_, at) => `ws://127.${net}.${at >> 8}.${at & 255}:${pit.port}`);
    const attacker = new Person();
    const list = ["relays", ...addresses(70, 10_000)];
    await world.story.announce(attacker, "many", [list]);
    const dialledOf = (net: number) => [...pit.dialled].filter((address) => address.startsWith(`127.${net}.`)).length;
    await eventually("some are dialled while it waits", () => dialledOf(70) >= 5);
    assert.equal(dialledOf(70), 5);
    const work = await world.story.workingCopy();
    const tip = await work.commit("one");
    await world.story.state(attacker, "many", { "refs/heads/main": tip });
    await work.must("push", "-q", world.story.url(attacker, "many"), "main");
    await eventually("twenty are dialled when it is served", () => dialledOf(70) >= 20);

    // A peer brings announcements of fresh keys, each with relays of its own.
    const fresh = someKeys(150, "fresh");
    const honestRelay = await PlainRelay.start({ negentropy: "notice" });
    const offered = addresses(71, 10_000);
    const floods = fresh.map((key, at) => {
      const person = { npub: "x" };
      const clone = `${world.server.origin}/${person.npub}/flood.git`;
      const relays = offered.slice(at * 5, at * 5 + 5);
      const tags = [
        ["d", "flood"],
        ["clone", clone],
        ["relays", world.url, ...relays],
      ];
      return sign(key, { kind: 30617, created_at: nowSeconds() - 100, tags });
    });
    honestRelay.add(...floods);
    const honest = await honestRepository(t, world, honestRelay);
    await honest.isFollowed();
    await eventually("the flood waits", async () => {
      const waiting = (await (await fetch(`${world.server.origin}/api/status`)).json()) as { waiting: number };
      return waiting.waiting >= fresh.length;
    });
    await eventually("some of the flood's relays are dialled", () => dialledOf(71) >= 150);
    await honest.isFollowed();
    assert.ok(dialledOf(71) <= 200, `${dialledOf(71)} of 750 relays of waiting announcements were dialled`);
    assert.equal(dialledOf(70), 20);
    assert.ok((await world.metric("ngit_sync_relays_tracked_total")) <= 225);
    assert.deepEqual(await world.ids({ authors: fresh.map(({ pubkey }) => pubkey) }), [], "none is served");
    await world.isUnharmed(heldBefore, 200 * mebibyte);
    // An honest person's announcement is taken as ever.
    await world.story.hosted(new Person(), "after-the-flood");
  });

  describe("peers and their words", { concurrency: 1 }, () => {
    const shared = RelayWorld.shared(quick);

    // The first: it looks at all that is followed.
    test("threat 29: peers with every misbehaviour at once are bounded, nothing false is stored, and the honest peer is followed", async (t) => {
      const world = shared();
      const heldBefore = await world.heldBytes();
      const filesBefore = await world.openFiles();
      const attacker = new Person();
      const bait = attacker.coordinate("bait");
      const known = issueAbout(spammer, bait, "known");
      const plain = ({ raw: _raw, ...event }: ReturnType<typeof sign>) => event;
      const other = issueAbout(spammer, bait, "other");
      const lies = [
        // Signed well, but not what was asked for: spam, and an issue of a repository that this relay is not listed for.
        plain(sign(spammer, { kind: 1, created_at: nowSeconds() - 50, content: "buy" })),
        plain(issueAbout(spammer, world.coordinate, "not asked here")),
        // What was asked for, but forged.
        { ...plain(other), content: "forged" },
        { ...plain(other), sig: known.sig },
        { ...plain(other), pubkey: visitor.pubkey },
        { ...plain(other), kind: 30617 },
        { id: other.id },
        null,
        "event",
      ];
      const rogues: RogueRelay[] = [];
      t.after(() => rogues.forEach((rogue) => void rogue.stop()));
      for (const [index, [name, habit]] of Object.entries(habits(lies, plain(known))).entries()) {
        rogues.push(await RogueRelay.start(name, `127.0.0.${index + 10}`, habit));
      }
      await world.story.hosted(attacker, "bait", [["relays", ...rogues.map(({ url }) => url)]]);
      await eventually("each was dialled", () => rogues.every(({ connections }) => connections > 0));
      const honest = await honestRepository(t, world, await PlainRelay.start({ negentropy: "notice" }));
      await honest.isFollowed();
      await eventually(
        "the one true event of the bait is here",
        async () => (await world.ids({ ids: [known.id] })).length === 1,
      );
      // Long enough for the deadlines of all of them to pass once.
      await eventually("slow ones were given up", async () => {
        const { relays } = (await (await fetch(`${world.server.origin}/api/sync`)).json()) as {
          relays: { state: string }[];
        };
        return relays.length > 10 && rogues.some(({ connections }) => connections >= 3);
      });
      await honest.isFollowed();
      assert.deepEqual(await world.ids({ authors: [spammer.pubkey] }), [known.id]);
      assert.deepEqual(await world.ids({ kinds: [1] }), []);
      for (const { name, mostOpen, connections } of rogues) {
        // One from us; the end of the one before may still be on its way to him.
        assert.ok(mostOpen <= 2, `${name}: ${mostOpen} connections at once`);
        assert.ok(connections < 30, `${name}: dialled ${connections} times`);
      }
      await world.isUnharmed(heldBefore, 250 * mebibyte);

      // The bait goes, and every trace of its relays with it.
      const gone = attacker.sign(5, [["a", bait]], "", nowSeconds());
      assert.equal((await world.publish(gone))[0], true);
      await eventually("all are hung up on", () => rogues.every(({ openConnections }) => openConnections === 0));
      await eventually(
        "only the honest one is followed",
        async () => (await world.metric("ngit_sync_relays_tracked_total")) === 1,
      );
      await eventually("their sockets are closed", async () => (await world.openFiles()) <= filesBefore + 8);
      await honest.isFollowed();
    });

    test("threat 29: one 300-byte identifier does not spoil the filters of others", async (t) => {
      const world = shared();
      const relay = await PlainRelay.start({ negentropy: "notice", maxValueChars: 255 });
      const attacker = new Person();
      for (const identifier of ["x".repeat(300), "é".repeat(150), `q"'\\${"z".repeat(290)}`]) {
        await world.story.hosted(attacker, identifier, [["relays", relay.url]]);
      }
      const honest = await honestRepository(t, world, relay);
      await honest.isFollowed();
      // In the same chunk as a long one that came later, too.
      await world.story.hosted(attacker, "y".repeat(400), [["relays", relay.url]]);
      await honest.isFollowed();
      assert.equal(relay.openConnections, 1);
    });
  });

  describe("peers and their events", { concurrency: 1 }, () => {
    const shared = RelayWorld.shared({
      ...quick,
      NGIT_SYNC_MAX_EVENTS_PER_REPOSITORY_PER_DAY: "600",
      NGIT_GIT_HUNT_SYNC_DELAY_MS: "100",
    });

    test("threat 29: an attacker's relay with millions of events about his own repository fills his budget and no more", async (t) => {
      const world = shared();
      const heldBefore = await world.heldBytes();
      const attacker = new Person();
      const bait = attacker.coordinate("bait");
      let made = 0;
      /** Whatever is asked about the repository, there is always a full page more. */
      const page = (say: Say, id: string, filter: { until?: number; limit?: number; since?: number }) => {
        const until = filter.until ?? nowSeconds() - 100;
        for (let at = 0; at < Math.min(filter.limit ?? 500, 500); at++) {
          const { raw: _raw, ...event } = issueAbout(spammer, bait, `${made++}`, until - at);
          say("EVENT", id, event);
        }
        say("EOSE", id);
      };
      const rogue = await RogueRelay.start("ten million", "127.0.0.9", {
        heard: (say, verb, id, rest) => {
          if (verb === "NEG-OPEN") say("NEG-ERR", id, "error: no");
          if (verb !== "REQ") return;
          const filter = rest.find((one) => JSON.stringify(one).includes(bait)) as object | undefined;
          if (filter && (filter as { limit?: number }).limit !== 0) page(say, id, filter);
          else say("EOSE", id);
        },
      });
      t.after(() => rogue.stop());
      await world.story.hosted(attacker, "bait", [["relays", rogue.url]]);
      await eventually("his budget is used up", () => world.server.log().includes("repository-budget-hit"));
      const honest = await honestRepository(t, world, await PlainRelay.start({ negentropy: "notice" }));
      await honest.isFollowed();
      const asked = rogue.requests.length;
      await honest.isFollowed();
      const stored = await world.count({ authors: [spammer.pubkey] });
      assert.equal(stored, 600);
      assert.ok(made < 10_000, `${made} were fetched`);
      assert.ok(rogue.requests.length - asked < 20, "he is not asked again and again");
      await world.isUnharmed(heldBefore, 150 * mebibyte);
    });

    test("threat 30: what sync could not complete in time, a vanish request for another relay and strangers' deletions ban nothing", async (t) => {
      const world = shared();
      const relay = await PlainRelay.start({ negentropy: "notice" });
      const contributor = new Person();
      const honest = await honestRepository(t, world, relay);
      await honest.isFollowed();
      await world.server.change({ NGIT_PURGATORY_EXPIRY_SECS: "1" });
      const work = await world.story.workingCopy();
      const tip = await work.commit("a contribution");
      const pull = contributor.sign(
        1618,
        [
          ["a", honest.coordinate],
          ["c", tip],
        ],
        "please",
        nowSeconds() - 60,
      );
      const later = await work.commit("another state");
      const state = honest.person.sign(
        30618,
        [
          ["d", "honest"],
          ["refs/heads/main", later],
          ["HEAD", "ref: refs/heads/main"],
        ],
        "",
        nowSeconds() - 50,
      );
      const asPlain = (event: SignedEvent) => ({ ...event, raw: JSON.stringify(event) }) as never;
      relay.publish(asPlain(pull));
      relay.publish(asPlain(state));
      await eventually("both have come and their time has passed", async () => {
        return (
          (await world.metric("ngit_purgatory_expired_total", { source: "sync" })) >= 2 ||
          (await world.metric("ngit_purgatory_entries", { phase: "soft" })) >= 2
        );
      });
      assert.deepEqual(await world.ids({ ids: [pull.id, state.id] }), []);
      // The data comes after all: by a client who sends the same events again and pushes.
      await world.server.change({});
      const url = world.story.url(honest.person, "honest");
      for (const [event, refspec] of [
        [pull, `${tip}:refs/nostr/${pull.id}`],
        [state, `${later}:refs/heads/main`],
      ] as const) {
        await world.taken(event);
        await work.must("push", "-q", "-f", url, refspec);
      }
      await eventually("both are served", async () => (await world.ids({ ids: [pull.id, state.id] })).length === 2);

      // Requests to vanish from another relay, and from all relays but by somebody else, by a client and by the peer.
      const about = (tags: string[][]) => contributor.sign(62, tags, "", nowSeconds());
      const elsewhere = about([["relay", "wss://relay.example.com"]]);
      const alike = about([
        ["relay", `${world.url}.example.com`],
        ["relay", "all_relays"],
      ]);
      for (const event of [elsewhere, alike]) assert.equal((await world.publish(event))[0], false);
      const stranger = new Person();
      await world.taken(stranger.sign(1621, [["a", honest.coordinate]], "a foothold", nowSeconds() - 40));
      const deletions = [
        stranger.sign(
          5,
          [
            ["e", pull.id],
            ["a", honest.coordinate],
          ],
          "",
          nowSeconds(),
        ),
        stranger.sign(
          5,
          [
            ["e", pull.id],
            ["e", state.id],
            ["p", contributor.pubkey],
          ],
          "",
          nowSeconds(),
        ),
        stranger.sign(
          5,
          [
            ["a", `30618:${honest.person.pubkey}:honest`],
            ["e", pull.id],
          ],
          "",
          nowSeconds(),
        ),
      ];
      for (const event of deletions) {
        await world.publish(event);
        relay.publish(asPlain(event));
      }
      const vanishing = stranger.sign(
        62,
        [
          ["relay", "ALL_RELAYS"],
          ["p", contributor.pubkey],
          ["e", pull.id],
        ],
        "",
        nowSeconds(),
      );
      await world.taken(vanishing);
      await honest.isFollowed();
      assert.equal((await world.ids({ ids: [pull.id, state.id] })).length, 2);
      assert.equal((await world.ids({ kinds: [30617], authors: [honest.person.pubkey] })).length, 1);
      assert.deepEqual(await world.ids({ authors: [stranger.pubkey], kinds: [1621] }), [], "his own are gone");
      // Nobody is banned: each of them may publish again.
      await world.taken(contributor.sign(1621, [["a", honest.coordinate]], "still here", nowSeconds()));
      await world.taken(stranger.sign(1621, [["a", honest.coordinate]], "back again", nowSeconds() + 1));
    });
  });
});
