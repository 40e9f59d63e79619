// threats.md row 6: packs and bodies that cost more than they weigh. Sizes are small unless THREATS_FULL=1.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { connect } from "node:net";
import { after, before, describe, it } from "node:test";
import { deflateSync, gzipSync } from "node:zlib";
import {
  commitOf,
  handMadePack,
  objectHeader,
  oidOf,
  type PackObject,
  packHeader,
  treeOf,
} from "../harness/git-packs.js";
import { Person } from "../harness/grasp-people.js";
import type { Story } from "../harness/grasp-story.js";
import { type Answer, ask, pkt } from "../harness/raw-http.js";
import type { ChildServer } from "../harness/server.js";
import { beginWatched, type Cost, traceless } from "../harness/traceless.js";

const isFull = process.env.THREATS_FULL === "1";
const megabyte = 2 ** 20;
const zeros = (isFull ? 500 : 40) * megabyte;
const largestObject = isFull ? 100 : 24;
const bodyBytes = (isFull ? 1024 : 80) * megabyte;
/** A limit's own time is seconds; git without one would take ten minutes. The rest is for a busy machine. */
const endsWithinMs = 60_000;
const zero = "0".repeat(40);

/** A number as deltas write it: seven bits a byte, lowest first. */
function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  do {
    bytes.push((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
    rest = Math.floor(rest / 128);
  } while (rest > 0);
  return Buffer.from(bytes);
}

/** Deltas that copy one base of zeros again and again: `copies` times 8 MiB each, in a few bytes. */
function deltaBomb(deltas: number, copies: number): Buffer {
  const base = Buffer.alloc(8 * megabyte);
  const baseOid = Buffer.from(oidOf({ type: "blob", data: base }), "hex");
  // Copy 0x700000 bytes from offset 0, and the rest after it.
  const copyAll = Buffer.from([0x80 | 0x40, 0x70, 0x80 | 0x04 | 0x40, 0x70, 0x10]);
  const parts = [objectHeader(3, base.length), deflateSync(base, { level: 9 })];
  for (let index = 0; index < deltas; index++) {
    const mark = Buffer.from(`#${index}`);
    const delta = Buffer.concat([
      varint(base.length),
      varint(copies * base.length + mark.length),
      ...Array<Buffer>(copies).fill(copyAll),
      Buffer.from([mark.length]),
      mark,
    ]);
    parts.push(objectHeader(7, delta.length), baseOid, deflateSync(delta));
  }
  const body = Buffer.concat([packHeader(deltas + 1), ...parts]);
  return Buffer.concat([body, createHash("sha1").update(body).digest()]);
}

describe("threat 6", { timeout: 900_000 }, () => {
  let server: ChildServer;
  let story: Story;
  let url: string;
  const alice = new Person();
  before(async () => {
    ({ server, story } = await beginWatched({
      NGIT_PUSH_MAX_BYTES: "32MiB",
      NGIT_MAX_OBJECT_BYTES: `${largestObject}MiB`,
      NGIT_GIT_IDLE_SECS: "30",
      NGIT_GIT_TOTAL_SECS: "120",
    }));
    ({ url } = await story.hosted(alice, "bombed"));
  });
  after(() => story.end());

  /** Anybody may push that far: nobody has to publish anything for refs/nostr/. */
  const push = (pack: Buffer, tip: string): Promise<Answer> => {
    const ref = `refs/nostr/${randomBytes(32).toString("hex")}`;
    const head = Buffer.concat([pkt(`${zero} ${tip} ${ref}\0report-status`), Buffer.from("0000")]);
    return ask(`${url}/git-receive-pack`, { method: "POST", body: Buffer.concat([head, pack]) });
  };

  async function isRefused(pack: Buffer, tip: string, reason: RegExp): Promise<void> {
    let spent: Cost | undefined;
    await traceless(server, async (cost) => {
      spent = cost;
      const begun = performance.now();
      const { text } = await push(pack, tip);
      assert.match(text, reason);
      assert.ok(
        performance.now() - begun < endsWithinMs * (isFull ? 3 : 1),
        `${Math.round(performance.now() - begun)} ms`,
      );
    });
    assert.ok(spent);
  }

  it(`threat 6: a pack bomb, ${zeros / megabyte} MiB of zeros in a small pack, is refused within memory and time`, async () => {
    const blob: PackObject = { type: "blob", data: Buffer.alloc(zeros) };
    const root = treeOf([["100644", "zeros", oidOf(blob)]]);
    const tip = commitOf(oidOf(root));
    await isRefused(
      handMadePack([blob, root, tip]),
      oidOf(tip),
      new RegExp(`unpack a file of \\d+ MiB is in the push, ${largestObject} MiB`),
    );
  });

  it("threat 6: a delta bomb, an object of gigabytes made of copies, is refused within memory and time", async () => {
    await isRefused(deltaBomb(1, 128), "1".repeat(40), /unpack (?!ok)/);
    await isRefused(deltaBomb(3, 16), "1".repeat(40), /unpack a file of 128 MiB/);
    if (isFull) await isRefused(deltaBomb(2_000, 30), "1".repeat(40), /unpack (?!ok)/);
  });

  it("threat 6: a tree bomb of 10^10 paths in 12 objects is not walked, and what is refused of it leaves nothing", async () => {
    const blob: PackObject = { type: "blob", data: Buffer.from("x") };
    let below = oidOf(blob);
    let mode = "100644";
    const objects: PackObject[] = [blob];
    for (let depth = 0; depth < 10; depth++) {
      const next = treeOf(Array.from({ length: 10 }, (_, index) => [mode, String(index), below] as const));
      objects.push(next);
      below = oidOf(next);
      mode = "40000";
    }
    const tip = commitOf(below);
    await traceless(server, async () => {
      const begun = performance.now();
      const head = Buffer.concat([pkt(`${zero} ${oidOf(tip)} refs/heads/bomb\0report-status`), Buffer.from("0000")]);
      const body = Buffer.concat([head, handMadePack([...objects, tip])]);
      const { text } = await ask(`${url}/git-receive-pack`, { method: "POST", body });
      assert.match(text, /ng refs\/heads\/bomb no state by a maintainer/);
      assert.ok(performance.now() - begun < endsWithinMs);
    });
    // And where it is allowed it is stored in the time of its twelve objects, and shown on the page in no more.
    await story.announce(alice, "grown");
    await story.state(alice, "grown", { "refs/heads/main": oidOf(tip) });
    const head = Buffer.concat([pkt(`${zero} ${oidOf(tip)} refs/heads/main\0report-status`), Buffer.from("0000")]);
    const begun = performance.now();
    const body = Buffer.concat([head, handMadePack([...objects, tip])]);
    const { text } = await ask(`${story.url(alice, "grown")}/git-receive-pack`, { method: "POST", body });
    assert.match(text, /ok refs\/heads\/main/);
    assert.equal(
      (await ask(`${server.origin}/${alice.npub}/grown.git`, { headers: { Accept: "text/html" } })).status,
      200,
    );
    assert.ok(performance.now() - begun < endsWithinMs);
  });

  it("threat 6: headers that lie about the number of objects cost nothing", async () => {
    await isRefused(packHeader(5_000_001), "1".repeat(40), /unpack the push has 5000001 objects/);
    await isRefused(packHeader(0xffffffff), "1".repeat(40), /unpack the push has 4294967295 objects/);
    await isRefused(packHeader(5_000_000), "1".repeat(40), /unpack (?!ok)/);
    await isRefused(
      Buffer.concat([packHeader(3), objectHeader(3, 2 ** 45), deflateSync("x")]),
      "1".repeat(40),
      /unpack (?!ok)/,
    );
  });

  it("threat 6: a zipped bomb as body of a push or a fetch ends at its limit", async () => {
    const bomb = gzipSync(Buffer.alloc(bodyBytes), { level: 9 });
    const headers = { "Content-Encoding": "gzip" };
    const tail = Buffer.concat([
      packHeader(1),
      objectHeader(3, 2 ** 30),
      deflateSync(Buffer.alloc(40 * megabyte), { level: 0 }),
    ]);
    const command = pkt(`${zero} ${"1".repeat(40)} refs/nostr/${"ab".repeat(32)}\0report-status`);
    await traceless(server, async () => {
      const begun = performance.now();
      const fetched = await ask(`${url}/git-upload-pack`, { method: "POST", body: bomb, headers });
      assert.equal(fetched.status, 413);
      const pushed = await ask(`${url}/git-receive-pack`, { method: "POST", body: bomb, headers });
      assert.ok(pushed.status === 400 || /unpack (?!ok)/.test(pushed.text), `${pushed.status}`);
      const body = gzipSync(Buffer.concat([command, Buffer.from("0000"), tail]));
      const packed = await ask(`${url}/git-receive-pack`, { method: "POST", body, headers });
      assert.match(packed.text, /unpack a push may have \d+ MiB at most|unpack the objects/);
      assert.ok(performance.now() - begun < 3 * endsWithinMs);
    });
  });

  it(`threat 6: a chunked body of ${bodyBytes / megabyte} MiB ends at its limit, with the reason where the client still reads`, async () => {
    const block = Buffer.alloc(megabyte);
    const flood = (service: string, head: Buffer): Promise<Answer | Error> =>
      ask(`${url}/${service}`, {
        write: (request) => {
          let sent = 0;
          request.write(head);
          const more = (): void => {
            if (request.destroyed) return;
            if (sent >= bodyBytes) return void request.end();
            sent += block.length;
            if (request.write(block)) setImmediate(more);
            else request.once("drain", more);
          };
          more();
        },
      }).catch((error: Error) => error);
    const command = Buffer.concat([pkt(`${zero} ${"1".repeat(40)} refs/heads/x\0report-status`), Buffer.from("0000")]);
    await traceless(server, async () => {
      const begun = performance.now();
      for (const [service, head] of [
        ["git-receive-pack", command],
        ["git-receive-pack", Buffer.from("0009hello")],
        ["git-upload-pack", Buffer.alloc(0)],
      ] as const) {
        const ended = await flood(service, head);
        if (ended instanceof Error) assert.match(String(ended), /ECONNRESET|EPIPE|hang up/);
        else
          assert.ok(
            ended.status >= 400 || /ng refs\/heads\/x|unpack (?!ok)/.test(ended.text),
            `${service}: ${ended.status}`,
          );
      }
      assert.ok(performance.now() - begun < 3 * endsWithinMs);
    });
  });

  it("threat 6: a body that stands still, and one that drips for ever, are cut off, and their git processes with them", async (t) => {
    await story.announce(alice, "slow");
    await server.change({ NGIT_GIT_IDLE_SECS: "1", NGIT_GIT_TOTAL_SECS: "3" });
    t.after(() => server.change({}));
    const blob: PackObject = { type: "blob", data: randomBytes(100_000) };
    await story.state(alice, "slow", { "refs/heads/main": oidOf(blob) });
    const command = Buffer.concat([pkt(`${zero} ${oidOf(blob)} refs/heads/main\0report-status`), Buffer.from("0000")]);
    const pack = handMadePack([blob]);
    const cases: readonly (readonly [what: string, service: string, first: Buffer, drips: boolean])[] = [
      ["a head that stands still", "git-receive-pack", command.subarray(0, 50), false],
      ["a pack that stands still", "git-receive-pack", Buffer.concat([command, pack.subarray(0, 500)]), false],
      ["a pack that drips", "git-receive-pack", Buffer.concat([command, pack.subarray(0, 500)]), true],
      ["a refused body that drips", "git-receive-pack", Buffer.from("0009hello"), true],
      ["a fetch that stands still", "git-upload-pack", Buffer.from("0032want "), false],
      ["a fetch that drips", "git-upload-pack", Buffer.from("0032want "), true],
    ];
    const { hostname, port } = new URL(server.origin);
    const untilCut = (service: string, first: Buffer, drips: boolean): Promise<number> =>
      new Promise((resolve) => {
        const begun = performance.now();
        let at = 500;
        const socket = connect(Number(port), hostname, () => {
          socket.write(
            `POST /${alice.npub}/slow.git/${service} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n`,
          );
          socket.write(first);
        });
        const dripping = setInterval(() => drips && socket.writable && socket.write(pack.subarray(at, ++at)), 100);
        socket.resume();
        socket.on("error", () => undefined);
        socket.on("close", () => {
          clearInterval(dripping);
          resolve(performance.now() - begun);
        });
      });
    await traceless(server, async () => {
      const cuts = await Promise.all(cases.map(([, service, first, drips]) => untilCut(service, first, drips)));
      for (const [index, ms] of cuts.entries())
        assert.ok(ms < endsWithinMs, `${cases[index]?.[0]}: ${Math.round(ms)} ms`);
    });
  });
});
