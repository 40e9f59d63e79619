// threats.md rows 9, 17 and 19: too much of everything. Sizes are small unless THREATS_FULL=1.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { Person } from "../harness/grasp-people.js";
import { type Story, stateEvent } from "../harness/grasp-story.js";
import { type Answer, ask, pkt } from "../harness/raw-http.js";
import { type ChildServer, until } from "../harness/server.js";
import { beginWatched, huntAttempts, traceless, waitingIn } from "../harness/traceless.js";

const isFull = process.env.THREATS_FULL === "1";
const largeBytes = (isFull ? 64 : 2) << 20;
const main = "refs/heads/main";
const flush = Buffer.from("0000");
const delimiter = Buffer.from("0001");

describe("threats 9, 17 and 19", { timeout: 900_000 }, () => {
  let server: ChildServer;
  let story: Story;
  before(async () => {
    ({ server, story } = await beginWatched());
  });
  after(() => story.end());

  describe("threat 9: fetches", () => {
    let url: string;
    let tip: string;
    const alice = new Person();
    before(async () => {
      await server.change({ NGIT_GIT_PACK_CONCURRENT: "2", NGIT_GIT_PACK_QUEUE: "20" });
      const hosted = await story.hosted(alice, "biggest");
      ({ url } = hosted);
      writeFileSync(join(hosted.work.folder, "large"), randomBytes(largeBytes));
      await hosted.work.must("config", "core.compression", "0");
      tip = await hosted.work.commit("large");
      await story.state(alice, "biggest", { [main]: tip });
      await hosted.work.must("push", "-q", url, "main");
    });

    const fetchV2 = (lines: readonly (string | Buffer)[], headers: Record<string, string> = {}): Promise<Answer> => {
      const body = Buffer.concat([pkt("command=fetch"), delimiter, ...lines.map((line) => pkt(line)), flush]);
      return ask(`${url}/git-upload-pack`, {
        method: "POST",
        body,
        headers: { "Git-Protocol": "version=2", ...headers },
      });
    };

    it("threat 9: 100,000 want or have lines, costly filters and absurd depths are refused or limited, and start little", async () => {
      await traceless(server, async () => {
        const ids = Array.from({ length: 100_000 }, () => randomBytes(20).toString("hex"));
        for (const word of ["want", "have"]) {
          const lines = ids.map((id) => pkt(`${word} ${id}\n`));
          const zipped = gzipSync(Buffer.concat([pkt(`want ${tip}\n`), ...lines, flush, pkt("done\n")]), { level: 1 });
          const v0 = await ask(`${url}/git-upload-pack`, {
            method: "POST",
            body: zipped,
            headers: { "Content-Encoding": "gzip" },
          });
          assert.ok(
            v0.status === 413 || /ERR upload-pack: more than/.test(v0.text),
            `${word}: ${v0.status} ${v0.text.slice(0, 80)}`,
          );
        }
        // A million empty lines weigh a few kilobytes zipped: none is kept beyond those a request may have.
        const empty = gzipSync(Buffer.from("0004".repeat(1_000_000)), { level: 1 });
        const nothing = await ask(`${url}/git-upload-pack`, { body: empty, headers: { "Content-Encoding": "gzip" } });
        assert.match(nothing.text, /ERR upload-pack: more than/);
        const many = await fetchV2([`want ${tip}\n`, ...ids.slice(0, 70_000).map((id) => `have ${id}\n`), "done\n"]);
        assert.match(many.text, /ERR upload-pack: more than/);
        for (const filter of [
          `sparse:oid=${tip}`,
          "tree:5",
          "combine:blob:none+tree:9",
          "object:type=blob",
          "blob:limit=-1",
          `sparse:path=/etc/passwd`,
          "x".repeat(10_000),
        ]) {
          const { text } = await fetchV2([`want ${tip}\n`, `filter ${filter}\n`, "done\n"]);
          assert.doesNotMatch(text, /PACK/, filter.slice(0, 40));
        }
        for (const depth of [
          "deepen 1000000000",
          "deepen 2147483648",
          "deepen -1",
          "deepen-since 99999999999999",
          "deepen-not refs/heads/none",
          "deepen 0",
        ]) {
          const { status } = await fetchV2([`want ${tip}\n`, `${depth}\n`, "done\n"]);
          assert.ok(status === 200 || status === 400 || status === 500, `${depth}: ${status}`);
        }
        const garbage = await ask(`${url}/git-upload-pack`, { method: "POST", body: "ffff" });
        assert.equal(garbage.status, 400);
      });
    });

    it("threat 9: 50 clones of the biggest repository at once are limited, and small requests stay fast meanwhile", async (t) => {
      const small: number[] = [];
      let isOver = false;
      const timed = async (work: () => Promise<unknown>): Promise<void> => {
        const begun = performance.now();
        await work();
        small.push(performance.now() - begun);
      };
      const looking = async (): Promise<void> => {
        while (!isOver) {
          await timed(() => ask(`${url}/info/refs?service=git-upload-pack`));
          await timed(() => story.served({ kinds: [30617], limit: 1 }));
          await timed(() => ask(`${server.origin}/healthz`));
          // Whoever asks without a pause is one more attack.
          await pause(50);
        }
      };
      await traceless(
        server,
        async () => {
          const watching = looking();
          // Each asks in other words, so that none is answered with another's pack; each from an address of its own.
          const answers = await Promise.all(
            Array.from({ length: 50 }, (_, index) =>
              fetchV2([`want ${tip}\n`, `have ${randomBytes(20).toString("hex")}\n`, "done\n"], {
                "X-Forwarded-For": `203.0.113.${index + 1}`,
              }),
            ),
          );
          isOver = true;
          await watching;
          const served = answers.filter(({ status, body }) => status === 200 && body.length > largeBytes);
          const told = answers.filter(({ status, headers }) => status === 503 && headers["retry-after"] !== undefined);
          assert.equal(served.length + told.length, 50, answers.map(({ status }) => status).join(" "));
          assert.ok(served.length >= 20, `${served.length} were served`);
          assert.ok(told.length >= 1, "more than run and wait are told to come back");
        },
        // A megabyte waits for each client at most.
        { maxHeldBytes: 128 << 20 },
      );
      small.sort((a, b) => a - b);
      const [median = 0, worst = 0] = [small[small.length >> 1], small.at(-1)];
      t.diagnostic(`${small.length} small requests: median ${median.toFixed(1)} ms, worst ${worst.toFixed(0)} ms`);
      assert.ok(small.length >= 3 && median < 10_000, `median ${median} ms`);
    });
  });

  describe("threat 19: floods of the waiting room", () => {
    before(() =>
      server.change({
        NGIT_PURGATORY_MAX_ANNOUNCEMENTS_PER_KEY: "5",
        NGIT_PURGATORY_MAX_ANNOUNCEMENTS: "20",
        NGIT_PURGATORY_MAX_STATES_PER_REPOSITORY: "3",
        NGIT_PURGATORY_MAX_BYTES: "4MiB",
        NGIT_PR_AUTHOR_MAX_BYTES: "200kB",
        NGIT_PR_REPOSITORY_MAX_BYTES: "300kB",
      }),
    );

    it("threat 19: strangers' pull requests use their own quota and not the owner's", async () => {
      const [alice, eve] = [new Person(), new Person()];
      const { work, tip, url } = await story.hosted(alice, "quota");
      const parked: string[] = [];
      let refused = "";
      for (let turn = 0; turn < 6 && refused === ""; turn++) {
        await work.must("checkout", "-q", "--detach", tip);
        writeFileSync(join(work.folder, "data"), randomBytes(80_000));
        const data = await work.commit(`data ${turn}`);
        const event = eve.sign(1618, [
          ["a", alice.coordinate("quota")],
          ["c", data],
        ]);
        await story.accepted(event);
        const pushed = await work.git("push", url, `${data}:refs/nostr/${event.id}`);
        if (pushed.code === 0) parked.push(event.id);
        else refused = pushed.stderr;
      }
      assert.match(refused, /may not be larger|MiB at most|quota|pull request/i, refused);
      assert.ok(parked.length >= 1 && parked.length <= 3, `${parked.length} were taken`);
      await work.must("checkout", "-q", "main");
      writeFileSync(join(work.folder, "own"), randomBytes(400_000));
      const own = await work.commit("the owner's own");
      await story.state(alice, "quota", { [main]: own });
      await work.must("push", "-q", url, "main");
      assert.equal((await story.advertised(alice, "quota"))[main], own, "the owner's share is untouched");
    });

    it("threat 19: floods of announcements, large states and endless replacement meet caps, take nobody's place, and are gone when withdrawn", async () => {
      const honest = new Person();
      const { work, url } = await story.hosted(honest, "honest");
      const next = await work.commit("next");
      const waiting = await story.state(honest, "honest", { [main]: next });
      await traceless(
        server,
        async () => {
          const [eve, mallory] = [new Person(), new Person()];
          const answers: string[] = [];
          for (let turn = 0; turn < 8; turn++)
            answers.push((await story.publish(story.announcement(eve, `flood${turn}`))).message);
          assert.equal(answers.filter((message) => message.startsWith("purgatory:")).length, 5);
          assert.match(answers.at(-1) ?? "", /^(rate-limited|blocked):/);
          for (let turn = 0; turn < 30; turn++) await story.publish(story.announcement(eve, "flood0"));
          const others: string[] = [];
          const crowd: Person[] = [];
          for (let turn = 0; turn < 25; turn++) {
            crowd.push(new Person());
            others.push((await story.publish(story.announcement(crowd.at(-1) as Person, "one"))).message);
          }
          assert.match(others.at(-1) ?? "", /^(rate-limited|blocked):/, "all together have a bound");
          // States of nearly a megabyte each, of a repository the attacker owns.
          const owned = await story.publish(story.announcement(mallory, "heavy"));
          const heavy = (author: Person, index: number) =>
            author.sign(30618, [
              ["d", author === mallory ? "heavy" : "flood0"],
              [main, "5".repeat(40)],
              ["filler", `${index}`, "x".repeat(900_000)],
            ]);
          const taken: boolean[] = [];
          for (let turn = 0; turn < 8; turn++) {
            for (const author of owned.ok ? [eve, mallory] : [eve])
              taken.push((await story.publish(heavy(author, turn))).ok);
          }
          const counts = await waitingIn(server);
          const states = Number(counts['{kind="state",phase="waiting"}'] ?? 0);
          assert.ok(states <= 7, `${states} states wait: ${JSON.stringify(counts)}`);
          // Who waited before is still there.
          await work.must("push", "-q", url, "main");
          assert.ok(await story.isServed(waiting), "the flood took nobody's place");
          const withdraw = (author: Person, ...identifiers: string[]) => {
            const both = identifiers.flatMap((each) => [
              `30617:${author.pubkey}:${each}`,
              `30618:${author.pubkey}:${each}`,
            ]);
            return story.publish(
              author.sign(
                5,
                both.map((address) => ["a", address]),
              ),
            );
          };
          await withdraw(eve, "flood0", "flood1", "flood2", "flood3", "flood4");
          await withdraw(mallory, "heavy");
          for (const author of crowd) await withdraw(author, "one");
        },
        { mayWait: true, besides: new RegExp(`^git/${honest.npub}`) },
      );
    });
  });

  // The last: something of the owner's is hunted from then on.
  describe("threat 17: a crowd that lists an owner", () => {
    const crowd = isFull ? 1_000 : 20;

    it(`threat 17: ${crowd} keys that announce one identifier and list its owner get no copies beyond the cap, no say, and hold nothing up`, async () => {
      await server.change({
        NGIT_LOG_LEVEL: "debug",
        NGIT_GIT_HUNT_DIRECT_DELAY_MS: "0",
        NGIT_RELEASE_MAX_REPOSITORIES: "6",
      });
      const alice = new Person();
      const { work, url, tip } = await story.hosted(alice, "famous");
      const strangers = Array.from({ length: crowd }, () => new Person());
      const announced = strangers.map((stranger) =>
        story.publish(
          story.announcement(stranger, "famous", [
            ["clone", story.url(stranger, "famous"), `http://127.0.0.1:1/${stranger.npub}.git`],
            ["maintainers", alice.pubkey],
          ]),
        ),
      );
      for (const answer of await Promise.all(announced)) assert.ok(answer.ok, answer.message);
      const two = await work.commit("two");
      const state = await story.state(alice, "famous", { [main]: two });
      const begun = performance.now();
      await work.must("push", "-q", url, "main");
      const pushMs = performance.now() - begun;
      assert.ok(await story.isServed(state));
      assert.equal((await story.advertised(alice, "famous"))[main], two);
      const shown = await Promise.all(
        strangers.map(
          async (stranger) => (await ask(`${story.url(stranger, "famous")}/info/refs?service=git-upload-pack`)).text,
        ),
      );
      const copies = shown.filter((text) => text.includes(two)).length;
      assert.ok(copies <= 5, `${copies} copies, the cap is six with the owner's`);
      assert.ok(pushMs < 60_000, `the push took ${Math.round(pushMs)} ms`);
      // None of them decides in the owner's repository.
      const [stranger] = strangers;
      assert.ok(stranger);
      await traceless(
        server,
        async () => {
          await story.publish(stateEvent(stranger, "famous", { [main]: tip }));
          const pushed = await work.git("push", "--force", url, `${tip}:${main}`);
          assert.match(pushed.stderr, /remote rejected/);
          assert.equal((await story.advertised(alice, "famous"))[main], two);
        },
        { mayWait: true, besides: new RegExp(stranger.npub) },
      );
      const attempts = () => huntAttempts(server.log(), alice.coordinate("famous"));
      const before = attempts().length;
      await story.state(alice, "famous", { [main]: two, "refs/heads/lost": "3".repeat(40) });
      assert.ok(await until(() => attempts().length > before, 120_000), "what the owner lacks is hunted");
      assert.ok(
        attempts().every((urls) => urls === 0),
        "no URL of theirs is hunted for the owner",
      );
    });
  });
});
