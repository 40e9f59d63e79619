// threats.md row 25 against the started server: sockets that take nothing, say nothing, never finish, or are too many.

import assert from "node:assert/strict";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { WebSocket } from "ws";
import { growthDuring } from "../harness/held-memory.js";
import { ask } from "../harness/raw-http.js";
import { keyOf } from "../harness/relay-events.js";
import type { ChildServer } from "../harness/server.js";
import { eventually, mebibyte, RelayWorld } from "./relay-world.js";

const upgrade =
  "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

/** A socket by hand that says this and then only what the test says. */
function rawSocket(t: TestContext, world: RelayWorld, opening: string): Socket {
  const socket = connect(Number(world.server.domain.split(":")[1]), "127.0.0.1");
  t.after(() => socket.destroy());
  socket.on("error", () => undefined);
  socket.write(opening);
  return socket;
}

/** One masked text frame (mask 0). */
function frameOf(text: string): Buffer {
  const payload = Buffer.from(text);
  assert.ok(payload.length < 126);
  return Buffer.concat([Buffer.from([0x81, 0x80 | payload.length, 0, 0, 0, 0]), payload]);
}

/** Asks as an ordinary person would, and is not kept waiting. */
async function isServed(world: RelayWorld): Promise<void> {
  const started = performance.now();
  const client = await world.client();
  assert.equal((await client.ask("q", { limit: 3 })).end[0], "EOSE");
  assert.equal((await fetch(`${world.server.origin}/healthz`)).status, 200);
  await client.close();
  assert.ok(performance.now() - started < 60_000, "an honest client waits");
}

describe("threat 25", { timeout: 500_000 }, () => {
  const shared = RelayWorld.shared();

  test("threat 25: whoever goes away in the middle of a request, with or without a word, does not end the server", async (t) => {
    const world = shared();
    await world.taken(world.issue(keyOf("author"), "x".repeat(900 * 1024)).event);
    const filesBefore = await world.openFiles();
    const repository = `/${world.owner.npub}/target.git`;
    const post = (path: string, headers: string, body = "{") =>
      `POST ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\nContent-Length: 5000\r\n\r\n${body}`;
    const openings = [
      post("/", "Content-Type: application/nostr+json+rpc"),
      post("/", "Content-Type: application/nostr+json+rpc\r\nAuthorization: Nostr e30="),
      post("/api/purgatory", "Authorization: Nostr e30="),
      post("/api/status", "Authorization: Nostr e30="),
      post("/admin/login?token=x", "X: y"),
      post(`${repository}/git-upload-pack`, "Content-Type: application/x-git-upload-pack-request", "0011command=ls"),
      post(`${repository}/git-receive-pack`, "Content-Type: application/x-git-receive-pack-request", "00a0"),
      post(`${repository}/git-receive-pack`, "Content-Encoding: gzip", "\x1f\x8b"),
      post("/nothing", "X: y"),
      `GET ${repository}/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: x\r\n\r\n`,
      "GET /?q=target HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\n\r\n".repeat(50),
      "GET /status HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\n\r\n".repeat(20),
      `GET ${repository} HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\n\r\n`.repeat(20),
      "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(20),
      upgrade,
      upgrade.slice(0, -4),
      `${upgrade}${String(frameOf('["REQ","all",{"limit":5000}]'))}`,
    ];
    for (const opening of openings) {
      for (const leave of ["resetAndDestroy", "destroy", "end"] as const) {
        for (const moment of ["connect", "ready", "drain"] as const) {
          const socket = rawSocket(t, world, "");
          await once(socket, "connect");
          const written = new Promise<void>((resolve) => socket.write(opening, "latin1", () => resolve()));
          if (moment !== "connect") await written;
          // After a whole other request the server has surely begun with this one.
          if (moment === "drain") await fetch(`${world.server.origin}/healthz`);
          socket[leave]();
          socket.resume();
        }
      }
    }
    await isServed(world);
    await eventually("no socket is left", async () => (await world.openFiles()) <= filesBefore + 5);
    await world.isUnharmed(await world.heldBytes(), 10 * mebibyte);
  });

  test("threat 25: slow readers hold little, half-open and unfinished ones are ended, others are served meanwhile", async (t) => {
    const world = shared();
    await world.server.change({ NGIT_SEND_STALL_SECS: "3", NGIT_PING_INTERVAL_SECS: "5" });
    t.after(() => world.server.change({}));
    const author = keyOf("author");
    for (let at = 0; at < 100; at++) await world.taken(world.issue(author, `${at} `.padEnd(200 * 1024, "x")).event);
    const heldBefore = await world.heldBytes();
    const filesBefore = await world.openFiles();
    const ended = new Map<string, Promise<unknown>>();
    const watched = (name: string, socket: Socket) => {
      ended.set(`${name} ${ended.size}`, once(socket, "close"));
      return socket;
    };
    // Handshakes and requests that never end, one byte at a time or none at all.
    const drip = watched("dripping handshake", rawSocket(t, world, "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websoc"));
    drip.resume();
    const drops = setInterval(() => drip.write("k"), 500);
    t.after(() => clearInterval(drops));
    const openings = [
      "",
      "G",
      "GET / HTTP/1.1\r\n",
      `${upgrade.slice(0, -2)}X: `,
      // A body that was promised and never comes, to everything that reads one.
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/nostr+json+rpc\r\nContent-Length: 500\r\n\r\n{",
      "POST /api/purgatory HTTP/1.1\r\nHost: x\r\nAuthorization: Nostr e30=\r\nContent-Length: 500\r\n\r\n{",
      "GET /api/repos HTTP/1.1\r\nHost: x\r\nAuthorization: Nostr e30=\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
    ];
    for (const opening of openings) {
      for (let copy = 0; copy < 20; copy++) {
        const socket = watched(JSON.stringify(opening.slice(0, 60)), rawSocket(t, world, opening));
        socket.resume();
      }
    }
    // Twenty who ask for 20 MiB each and read nothing; ten who never answer a ping.
    const [, growth] = await growthDuring(world.server.child, async () => {
      for (let reader = 0; reader < 30; reader++) {
        const socket = rawSocket(t, world, upgrade);
        await once(socket, "data");
        if (reader < 20) {
          socket.pause();
          socket.write(frameOf('["REQ","all",{"limit":5000}]'));
        } else watched("half-open", socket).resume();
      }
      for (let round = 0; round < 10; round++) await isServed(world);
    });
    const grown = growth.heldBytes;
    if (process.env.TRACELESS_FIGURES) process.stderr.write(`slow readers: ${Math.round(grown / mebibyte)} MiB\n`);
    assert.ok(grown < 100 * mebibyte, `20 slow readers who are owed 400 MiB cost ${Math.round(grown / mebibyte)} MiB`);
    const open = new Set(ended.keys());
    for (const [name, end] of ended) void end.then(() => open.delete(name));
    let served = 0;
    await eventually("the server ends them all", async () => {
      // Somebody is served for every ten that were ended, and not as often as the test looks.
      for (; served * 10 < ended.size - open.size; served++) await isServed(world);
      return open.size === 0;
    }).catch((error: Error) => assert.fail(`${error.message}: ${[...open].join(", ")}`));
    await eventually("no connection is left", async () => (await world.connections()) === 1);
    await eventually("no socket is left", async () => (await world.openFiles()) <= filesBefore + 5);
    await world.isUnharmed(heldBefore, 64 * mebibyte);
  });

  for (const { name, settings, asked, opened } of [
    {
      name: "threat 25: 800 sockets from one address: with the default limits 200 are let in",
      settings: {},
      asked: 800,
      opened: 199,
    },
    {
      name: "threat 25: 1,000 sockets from one address: with raised limits all are, and cost little",
      settings: { NGIT_MAX_CONNECTIONS_PER_IP: "1500" },
      asked: 1_000,
      opened: 1_000,
    },
  ]) {
    test(name, async (t) => {
      const world = shared();
      await world.server.change(settings);
      t.after(() => world.server.change({}));
      const heldBefore = await world.heldBytes();
      const filesBefore = await world.openFiles();
      const sockets: WebSocket[] = [];
      t.after(() => {
        for (const socket of sockets) socket.terminate();
      });
      let refused = 0;
      const tryOne = () =>
        new Promise<void>((resolve, reject) => {
          const socket = new WebSocket(world.url);
          socket.on("open", () => {
            sockets.push(socket);
            // Each listens to everything new about the repository.
            socket.send(JSON.stringify(["REQ", "live", { "#a": [world.coordinate], limit: 0 }]));
            resolve();
          });
          socket.on("unexpected-response", (request, response) => {
            if (response.statusCode === 429) refused++;
            request.destroy();
            resolve();
          });
          socket.on("error", reject);
        });
      for (let tried = 0; tried < asked; tried += 100) await Promise.all(Array.from({ length: 100 }, tryOne));
      assert.deepEqual({ opened: sockets.length, refused }, { opened, refused: asked - opened });
      // Another address is not affected by what this one does.
      const other = new WebSocket(world.url, { headers: { "X-Forwarded-For": "192.0.2.9" } });
      await once(other, "open");
      const answer = once(other, "message");
      other.send(JSON.stringify(["REQ", "q", { limit: 1 }]));
      assert.match(String((await answer)[0]), /^\["E/);
      other.terminate();
      let heard = 0;
      for (const socket of sockets) {
        socket.on("message", (data) => {
          if (String(data).startsWith('["EVENT"')) heard++;
        });
      }
      await world.taken(world.issue(keyOf("author"), "to all of them").event);
      await eventually("all hear it", () => heard === opened);
      await world.isUnharmed(heldBefore, 50 * mebibyte);
      for (const [at, socket] of sockets.entries()) at % 2 ? socket.terminate() : socket.close();
      await eventually("no connection is left", async () => (await world.connections()) === 1);
      await eventually("no socket is left", async () => (await world.openFiles()) <= filesBefore + 5);
      // No lasting ban: the address is let in again at once.
      const again = await world.client();
      assert.equal((await again.ask("q", { limit: 1 })).end[0], "EOSE");
    });
  }

  // The last: little is left of the repository.
  test("threat 25: asking for a damaged repository costs its own answers, not the server, also after a restart", async () => {
    const world = shared();
    const asks = async ({ origin, log }: ChildServer) => {
      const repository = `${origin}/${world.owner.npub}/target.git`;
      const pages = [
        repository,
        `${origin}/badge/${world.owner.npub}/target.svg`,
        `${repository}/info/refs?service=git-upload-pack`,
      ];
      for (const page of pages) {
        // On a connection of its own: a kept one may be closed in the moment it is used again.
        const { status } = await ask(page, { headers: { accept: "text/html" } }).catch((error: Error) =>
          assert.fail(`${page}: ${String(error)}; ${log().slice(-2_000)}`),
        );
        assert.ok([200, 404, 500, 503].includes(status), `${page}: ${status}`);
      }
      assert.equal((await ask(`${origin}/healthz`)).status, 200);
    };
    const directory = world.story.directory(world.owner, "target");
    for (const part of ["objects", "HEAD", "refs", "config", ""]) {
      // Housekeeping may be writing there.
      await rm(join(directory, part), { recursive: true, force: true, maxRetries: 10 });
      await asks(world.server);
    }
    assert.equal(world.server.child.exitCode, null, world.server.log().slice(-2_000));
    await world.server.stop();
    await world.startAgain();
    await asks(world.server);
    assert.equal(world.server.child.exitCode, null, world.server.log().slice(-2_000));
  });
});
