// threats.md rows 10, 11, 12, 16 and 18: who may move which ref, at the moment it is moved, and whose data is whose.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import type { ClientRequest } from "node:http";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { startFront } from "../harness/front-server.js";
import { packOf } from "../harness/git-packs.js";
import { Person, type SignedEvent } from "../harness/grasp-people.js";
import { type Story, stateEvent, type WorkingCopy } from "../harness/grasp-story.js";
import { ask, pkt } from "../harness/raw-http.js";
import { type ChildServer, until } from "../harness/server.js";
import { beginWatched, filesBelow, huntAttempts, traceless } from "../harness/traceless.js";

const zero = "0".repeat(40);
const someId = (): string => randomBytes(32).toString("hex");
const nowSeconds = (): number => Math.floor(Date.now() / 1000);

const pullRequest = (author: Person, owner: Person, identifier: string, tip: string): SignedEvent =>
  author.sign(1618, [
    ["a", owner.coordinate(identifier)],
    ["c", tip],
  ]);

describe("threats 10, 11, 12, 16 and 18", { timeout: 900_000 }, () => {
  let server: ChildServer;
  let story: Story;
  before(async () => {
    ({ server, story } = await beginWatched({
      NGIT_UNCLAIMED_PER_HOUR_PER_IP: "6",
      NGIT_UNCLAIMED_MAX_BYTES: "100kB",
      NGIT_UNCLAIMED_TOTAL_MAX_BYTES: "300kB",
      NGIT_PARTIAL_STATE_GRACE_SECS: "1",
    }));
  });
  after(() => story.end());

  describe("refs/nostr/", () => {
    const alice = new Person();
    const [bob, eve] = [new Person(), new Person()];

    const from = (ip: string): string[] => ["-c", `http.extraHeader=X-Forwarded-For: ${ip}`];

    it("threat 10: a flood of pushes for random events meets budgets of number and size, and is gone with the sweep", async () => {
      const { work, url } = await story.hosted(alice, "flooded");
      const tip = await work.commit("parked");
      await traceless(
        server,
        async () => {
          const push = (ip: string, ...ids: string[]) =>
            work.git(...from(ip), "push", url, ...ids.map((id) => `${tip}:refs/nostr/${id}`));
          const left = (): string[] =>
            Object.keys(filesBelow(story.directory(alice, "flooded"))).filter((path) => /^unclaimed\/./.test(path));
          // Only for this flood: what waits in other stories must not end before a slow machine's next step.
          await server.change({ NGIT_PLACEHOLDER_EXPIRY_SECS: "4" });
          for (let turn = 0; turn < 6; turn++) {
            const pushed = await push("203.0.113.7", someId());
            assert.equal(pushed.code, 0, pushed.stderr);
            assert.ok(left().length > 0);
          }
          const seventh = await push("203.0.113.7", someId());
          assert.match(seventh.stderr, /too many pushes for unknown events from your address/);
          // All in one push is no way round it, and neither is another address of the same IPv6 network.
          const many = await push("203.0.113.8", ...Array.from({ length: 7 }, someId));
          assert.match(many.stderr, /too many pushes for unknown events/);
          const network: string[] = [];
          for (let host = 1; host <= 7; host++) network.push((await push(`2001:db8:1:2::${host}`, someId())).stderr);
          assert.match(network.at(-1) ?? "", /too many pushes for unknown events/, "a /64 is one visitor");
          await work.must("checkout", "-q", "--detach");
          writeFileSync(join(work.folder, "large"), randomBytes(200_000));
          const large = await work.commit("large");
          const tooLarge = await work.git(...from("203.0.113.9"), "push", url, `${large}:refs/nostr/${someId()}`);
          assert.match(tooLarge.stderr, /publish the event first/);
          await work.must("checkout", "-q", "main");
          assert.deepEqual(Object.keys(await story.advertised(alice, "flooded")), ["HEAD", "refs/heads/main"]);
          assert.ok(await until(() => left().length === 0, 120_000), left().join(" "));
          await server.change({});
        },
        { besides: /\/unclaimed\/$/ },
      );
      for (const pushed of ["HEAD", tip]) {
        const fetched = await (await story.workingCopy()).git("fetch", url, pushed);
        assert.equal(
          fetched.code === 0,
          pushed === "HEAD",
          "threat 18: what was parked is not served by id afterwards",
        );
      }
    });

    it("threat 10: a stranger may overwrite a placeholder, and the event's commit still decides; the ref of a known event is neither moved nor deleted", async () => {
      const { work, tip: base, url } = await story.hosted(alice, "claimed");
      const tip = await work.commit("change");
      const event = pullRequest(bob, alice, "claimed", tip);
      const ref = `refs/nostr/${event.id}`;
      await work.must(...from("203.0.113.10"), "push", "-q", url, `${tip}:${ref}`);
      const other = await work.commit("somebody else's");
      await work.must(...from("203.0.113.11"), "push", "-q", "--force", url, `${other}:${ref}`);
      await story.accepted(event);
      assert.equal((await story.advertised(alice, "claimed"))[ref], tip);
      await traceless(server, async () => {
        const moved = await work.git("push", "--force", url, `${other}:${ref}`);
        assert.match(moved.stderr, /the c tag of that event names/);
        const back = await work.git("push", "--force", url, `${base}:${ref}`);
        assert.match(back.stderr, /the c tag of that event names/);
        const deleted = await work.git("push", url, `:${ref}`);
        assert.match(deleted.stderr, /cannot be deleted by a push/);
        assert.equal((await story.advertised(alice, "claimed"))[ref], tip);
      });
      const fetched = await (await story.workingCopy()).git("fetch", url, other);
      assert.equal(fetched.code === 0 || /not our ref/.test(fetched.stderr), true);
    });

    it("threat 18: a pull request for the attacker's own repository parks nothing in another's", async () => {
      const { work, url } = await story.hosted(alice, "parking");
      await story.hosted(eve, "hers");
      const tip = await work.commit("parked");
      const event = pullRequest(eve, eve, "hers", tip);
      await story.accepted(event);
      await traceless(server, async () => {
        const pushed = await work.git("push", url, `${tip}:refs/nostr/${event.id}`);
        assert.match(pushed.stderr, /that event is for another repository/);
        const both = await work.git("push", url, `${tip}:refs/nostr/${event.id}`, `${tip}:refs/heads/x`);
        assert.match(both.stderr, /that event is for another repository/);
        const fetched = await (await story.workingCopy()).git("fetch", url, tip);
        assert.match(fetched.stderr, /not our ref/);
      });
    });
  });

  describe("states", () => {
    const [alice, bob, eve] = [new Person(), new Person(), new Person()];

    const main = "refs/heads/main";
    const refused = async (work: WorkingCopy, url: string, ...specs: string[]): Promise<void> => {
      const pushed = await work.git("push", "--force", url, ...specs);
      assert.notEqual(pushed.code, 0, pushed.stderr);
      assert.match(pushed.stderr, /remote rejected/);
    };

    it("threat 11: stale, future, ex-maintainer's, stranger's and deleted states move nothing", async () => {
      const { work, tip: one, url } = await story.hosted(alice, "rolled", [["maintainers", bob.pubkey]]);
      const [first] = await story.served({ kinds: [30618], authors: [alice.pubkey], "#d": ["rolled"] });
      const two = await work.commit("two");
      const byBob = await story.state(bob, "rolled", { [main]: two });
      await work.must("push", "-q", url, "main");
      assert.ok(await story.isServed(byBob));
      const unsaid = await work.commit("nobody said so");
      // She lists him too, and is filled from what he said.
      await story.announce(eve, "rolled", [["maintainers", bob.pubkey]]);
      const elsewhere = (await story.advertised(eve, "rolled"))[main];
      await story.announce(alice, "rolled");
      await traceless(
        server,
        async () => {
          const says = (who: Person, to: string, at?: number): SignedEvent =>
            who.sign(
              30618,
              [
                ["d", "rolled"],
                [main, to],
              ],
              "",
              at ?? nowSeconds() - 60,
            );
          assert.ok(first);
          await story.publish(first);
          await refused(work, url, `${one}:${main}`);
          const future = await story.publish(says(alice, one, nowSeconds() + 3_600));
          assert.match(future.message, /^invalid:/);
          const exMaintainer = await story.publish(says(bob, unsaid));
          // Eve still lists him: there, and only there, he decides.
          assert.ok(!exMaintainer.ok || exMaintainer.message.startsWith("purgatory:"), exMaintainer.message);
          const stranger = await story.publish(says(eve, unsaid));
          assert.ok(!stranger.ok || stranger.message.startsWith("purgatory:"), stranger.message);
          await refused(work, url, `${unsaid}:${main}`);
          const withdrawn = says(alice, unsaid);
          await story.accepted(withdrawn);
          await story.accepted(alice.sign(5, [["e", withdrawn.id]], "", nowSeconds()));
          await refused(work, url, `${unsaid}:${main}`);
          const replayed = await story.publish(withdrawn);
          assert.equal(replayed.ok && !replayed.message.startsWith("duplicate:"), false, replayed.message);
          assert.equal((await story.advertised(alice, "rolled"))[main], two);
          assert.equal((await story.advertised(eve, "rolled"))[main], elsewhere);
        },
        { mayWait: true },
      );
    });

    const changes: Readonly<Record<string, (identifier: string, state: SignedEvent, tip: string) => Promise<unknown>>> =
      {
        // Its objects are here: it governs at once, and the mark is above the one the push began under.
        replaced: (identifier, _state, tip) => story.state(alice, identifier, { [main]: tip, "refs/heads/side": tip }),
        deleted: (_identifier, state) => story.accepted(alice.sign(5, [["e", state.id]])),
        "its author's no more": (identifier) => story.announce(alice, identifier),
        "of a maintainer who leaves": (identifier) =>
          story.accepted(
            bob.sign(30617, [
              ["d", identifier],
              ["m", bob.pubkey, "1", "2"],
            ]),
          ),
      };
    for (const [index, [what, happens]] of Object.entries(changes).entries()) {
      it(`threat 11: a state that is ${what} during the push decides nothing: the authority at commit time does`, async () => {
        const identifier = `during${index}`;
        const { work, tip, url } = await story.hosted(alice, identifier, [["maintainers", bob.pubkey]]);
        const two = await work.commit("two");
        const pack = await packOf(work.folder, [two], [tip]);
        const author = what === "replaced" || what === "deleted" ? alice : bob;
        const state = await story.state(author, identifier, { [main]: two });
        const push = async (): Promise<void> => {
          const head = Buffer.concat([pkt(`${tip} ${two} ${main}\0report-status`), Buffer.from("0000")]);
          let open: ClientRequest | undefined;
          const answer = ask(`${url}/git-receive-pack`, {
            write: (request) => {
              open = request;
              request.write(Buffer.concat([head, pack.subarray(0, pack.length - 10)]));
            },
          });
          const isAtWork = (): boolean =>
            Object.keys(filesBelow(server.gitPath)).some((path) => path.includes("tmp_quarantine"));
          assert.ok(await until(isAtWork, 120_000), "the push had begun under the first state");
          await happens(identifier, state, tip);
          open?.end(pack.subarray(pack.length - 10));
          const { text } = await answer;
          assert.match(text, new RegExp(`ng ${main}`), text);
          assert.equal((await story.advertised(alice, identifier))[main], tip);
        };
        await traceless(server, push, { mayWait: true, besides: /refs\/heads\/side$/ });
      });
    }

    it("threat 16: a no-op push, an older candidate, a deletion under an unfinished state and a state without refs move and start nothing", async () => {
      const { work, tip: one, url } = await story.hosted(alice, "licence");
      const two = await work.commit("two");
      await work.must("branch", "side");
      const older = stateEvent(alice, "licence", { [main]: one, "refs/heads/side": one });
      const newer = await story.state(alice, "licence", { [main]: two, "refs/heads/side": two });
      await work.must("push", "-q", url, "main", "side");
      assert.ok(await story.isServed(newer));
      const before = await story.advertised(alice, "licence");
      await traceless(
        server,
        async () => {
          await story.publish(older);
          await refused(work, url, `${one}:${main}`, `${one}:refs/heads/side`);
          const waiting = await story.state(alice, "licence", { [main]: two, "refs/heads/far": "4".repeat(40) });
          await work.must("push", "-q", url, `${two}:${main}`);
          const raw = Buffer.concat([pkt(`${two} ${two} ${main}\0report-status`), Buffer.from("0000")]);
          assert.match(
            (await ask(`${url}/git-receive-pack`, { method: "POST", body: raw })).text,
            new RegExp(`ok ${main}`),
          );
          await refused(work, url, ":refs/heads/side");
          const empty = stateEvent(alice, "licence", {}, "ref: refs/heads/main");
          await story.publish(empty);
          await refused(work, url, ":refs/heads/side");
          await refused(work, url, `:${main}`);
          // Longer than the grace of a partial state: nothing had begun.
          const graceEnds = Date.now() + 2_000;
          assert.ok(await until(() => Date.now() > graceEnds));
          assert.equal(await story.isServed(waiting), false);
          assert.deepEqual(await story.advertised(alice, "licence"), before);
        },
        { mayWait: true },
      );
      assert.equal((await story.advertised(alice, "licence"))["refs/heads/side"], two);
      assert.notEqual(two, zero);
    });

    // The last: something of the owner's is hunted from then on.
    it("threat 12: a stranger's repository of a famous name gets no objects, no URLs and no release of it, and gives none", async () => {
      const trap = await startFront(undefined, (_request, _body, response) => {
        response.writeHead(404).end();
        return true;
      });
      await server.change({ NGIT_GIT_HUNT_DIRECT_DELAY_MS: "0", NGIT_LOG_LEVEL: "debug" });
      try {
        const { work, tip, url } = await story.hosted(alice, "famous");
        const secret = await work.commit("only in hers");
        await story.announce(eve, "famous", [
          ["clone", story.url(eve, "famous"), `http://127.0.0.1:${trap.port}/famous.git`],
          ["maintainers", alice.pubkey, bob.pubkey],
        ]);
        // Filled from the set she herself names; the other direction is what must not be.
        const byEve = await story.publish(stateEvent(eve, "famous", { [main]: secret }));
        assert.match(byEve.message, /^purgatory:/);
        const attempts = () => huntAttempts(server.log(), alice.coordinate("famous"));
        const before = attempts().length;
        const byAlice = await story.state(alice, "famous", { [main]: tip, "refs/heads/lost": "3".repeat(40) });
        assert.ok(await until(() => attempts().length > before, 120_000), "what the owner lacks is hunted");
        assert.ok(
          attempts().every((urls) => urls === 0),
          "the stranger's server is not asked for the owner's data",
        );
        await work.must("push", "-q", story.url(eve, "famous"), `${secret}:${main}`);
        assert.equal((await story.advertised(eve, "famous"))[main], secret, "she decides in her own");
        assert.equal((await story.advertised(alice, "famous"))[main], tip, "and nowhere else");
        assert.match((await (await story.workingCopy()).git("fetch", url, secret)).stderr, /not our ref/);
        assert.equal(await story.isServed(byAlice), false);
        const stranger = new Person();
        await story.announce(stranger, "famous");
        const mine = await story.publish(stateEvent(stranger, "famous", { [main]: tip }));
        assert.match(mine.message, /^purgatory:/, "the object is on this server, but not in that repository");
        assert.deepEqual(await story.advertised(stranger, "famous"), {});
      } finally {
        await trap.close();
      }
    });
  });
});
