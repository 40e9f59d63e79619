// threats.md rows 41 to 43: pushes that stop, refused ones that dribble or swell, clones that nobody reads, fetch requests
// that never end. One address attacks (127.0.0.2), the owner comes from another: the owner gets through while it lasts.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { type ClientRequest, request as httpRequest } from "node:http";
import { after, afterEach, before, describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import { defaultConfig } from "../../src/config/testing/default-config.js";
import type { Oid } from "../../src/nostr/nip34.js";
import { GitServer, headOf, hexId } from "../harness/git-server.js";
import { pkt } from "../harness/raw-http.js";
import { until } from "../harness/server.js";

const zero = "0".repeat(40);
const flush = Buffer.from("0000");
const hour = 3_600_000;
const packHead = Buffer.concat([Buffer.from("PACK"), Buffer.from([0, 0, 0, 2, 0, 0, 0, 9])]);

describe("threats 41 to 43: slow clients", { timeout: 900_000 }, () => {
  let server: GitServer;
  let url: string;
  let work: string;
  let first: Oid;
  let count = 0;
  const open: ClientRequest[] = [];
  const statuses: number[] = [];

  before(async () => {
    // Nobody is ended for standing still in this test: places and bytes alone must do.
    server = await GitServer.start({
      live: {
        current: defaultConfig({ gitFetchRequestMaxBytes: 4 << 20, gitIdleSecs: hour / 1_000, gitPackCacheBytes: 0 }),
      },
      uploadBodies: { inAll: 8 << 20, perAddress: 2 << 20 },
      crowdedMs: 200,
    });
  });
  after(() => server.stop());
  afterEach(() => {
    for (const one of open.splice(0)) one.destroy();
    statuses.length = 0;
  });

  const fresh = async (): Promise<void> => {
    const identifier = `slow${count++}`;
    url = await server.create(identifier);
    work = await server.workingCopy(identifier);
    first = await headOf(work);
    server.candidates = [];
    server.operations.length = 0;
  };

  /** A request by the attacker that is begun and not ended. */
  const begin = (service: string, headers: Record<string, string>, ...parts: Buffer[]): ClientRequest => {
    const request = httpRequest(`${url}/${service}`, {
      method: "POST",
      agent: false,
      localAddress: "127.0.0.2",
      headers,
    });
    request.on("response", (response) => {
      statuses.push(response.statusCode ?? 0);
      // Read by nobody.
      response.pause();
    });
    request.on("error", () => undefined);
    for (const part of parts) request.write(part);
    open.push(request);
    return request;
  };
  const command = (ref: string, to: string): Buffer =>
    Buffer.concat([pkt(`${zero} ${to} ${ref}\0report-status side-band-64k`), flush]);

  it("threat 41: forty pushes that stop after PACK do not keep the owner out", async () => {
    await fresh();
    server.state({ "refs/heads/main": first });
    for (let index = 0; index < 40; index++) begin("git-receive-pack", {}, command("refs/heads/main", first), packHead);
    assert.ok(await until(() => server.authorityAsked >= 40));
    const pushed = await server.git(work, "push", url, "main");
    assert.equal(pushed.code, 0, pushed.stderr);
  });

  it("threat 41: strangers' data never takes the places kept for pushes that a state asks for", async () => {
    await fresh();
    server.state({ "refs/heads/main": first });
    for (let index = 0; index < 40; index++) {
      const ref = `refs/nostr/${hexId()}`;
      begin("git-receive-pack", {}, command(ref, first), packHead);
    }
    const pushed = await server.git(work, "push", url, "main");
    assert.equal(pushed.code, 0, pushed.stderr);
  });

  it("threat 41: refused pushes that dribble hold no place, and are given up after a while", async () => {
    await fresh();
    const dribbling: NodeJS.Timeout[] = [];
    for (let index = 0; index < 40; index++) {
      const request = begin("git-receive-pack", {}, command("refs/heads/main", "1".repeat(40)), packHead);
      dribbling.push(setInterval(() => request.write("x"), 50));
    }
    try {
      assert.ok(await until(() => server.authorityAsked >= 40));
      server.state({ "refs/heads/main": first });
      const pushed = await server.git(work, "push", url, "main");
      assert.equal(pushed.code, 0, pushed.stderr);
      const refused = (): number => server.operations.filter(({ status }) => status === "refused").length;
      assert.ok(await until(() => refused() === 40), "none is drained for ever");
    } finally {
      for (const timer of dribbling) clearInterval(timer);
    }
  });

  it("threat 41: of a refused push nothing is inflated but its commands", async () => {
    await fresh();
    const bomb = gzipSync(Buffer.concat([command("refs/heads/main", first), packHead, Buffer.alloc(64 << 20)]), {
      level: 1,
    });
    const request = begin("git-receive-pack", { "Content-Encoding": "gzip" });
    request.end(bomb);
    assert.ok(await until(() => server.operations.some(({ operation }) => operation === "push")));
    const [push] = server.operations.filter(({ operation }) => operation === "push");
    assert.equal(push?.status, "refused");
    assert.ok((push?.bytesIn ?? 0) < 2 << 20, `${push?.bytesIn} bytes were inflated`);
    assert.ok(await until(() => statuses.length > 0), "and it is told why");
    assert.deepEqual(statuses, [200]);
  });

  it("threat 41: a refused body is read up to 64 MiB, so that its sender reads why, and no further", async () => {
    await fresh();
    const request = begin("git-receive-pack", {}, command("refs/heads/main", first), packHead);
    let written = 0;
    let isOver = false;
    request.on("close", () => {
      isOver = true;
    });
    const piece = Buffer.alloc(1 << 20);
    while (!isOver && written < 400 << 20) {
      written += piece.length;
      if (!request.write(piece))
        await Promise.race(["drain", "close"].map((event) => new Promise((go) => request.once(event, go))));
    }
    assert.ok(written < 200 << 20, `${written} bytes were taken`);
    assert.deepEqual(statuses, [200]);
  });

  it("threat 42: clones that nobody reads lose their places to who waits", async () => {
    await fresh();
    const tip = await server.commit(work, "large", randomBytes(24 << 20));
    server.state({ "refs/heads/main": tip });
    await server.mustGit(work, "push", "-q", url, "main");
    const wanted = (index: number): Buffer =>
      Buffer.concat([
        pkt("command=fetch"),
        pkt(`agent=slow/${index}`),
        Buffer.from("0001"),
        pkt(`want ${tip}\n`),
        pkt("done\n"),
        flush,
      ]);
    for (let index = 0; index < 4; index++) {
      begin("git-upload-pack", { "Git-Protocol": "version=2" }).end(wanted(index));
    }
    assert.ok(await until(() => statuses.length >= 2), "they are being answered");
    const folder = server.folderFor(`clone${count}`);
    const cloned = await server.git(server.folder, "clone", "-q", url, folder);
    assert.equal(cloned.code, 0, cloned.stderr);
  });

  it("threat 43: fetch requests that never end share few bytes an address, and leave room for others", async () => {
    await fresh();
    server.state({ "refs/heads/main": first });
    await server.mustGit(work, "push", "-q", url, "main");
    const piece = Buffer.concat(Array.from({ length: 1_000 }, () => pkt(`have ${"1".repeat(40)}\n`)));
    for (let index = 0; index < 100; index++) begin("git-upload-pack", {}, piece);
    assert.ok(await until(() => statuses.length >= 50), "most are turned away");
    assert.ok(statuses.every((status) => status === 503));
    const cloned = await server.git(server.folder, "clone", "-q", url, server.folderFor(`clone${count}`));
    assert.equal(cloned.code, 0, cloned.stderr);
  });

  it("threat 43: an address that sends megabytes to fetch again and again is not read for a while, and others are", async () => {
    await fresh();
    server.state({ "refs/heads/main": first });
    await server.mustGit(work, "push", "-q", url, "main");
    const piece = Buffer.alloc(1 << 20, pkt(`have ${"1".repeat(40)}\n`));
    const fetches = () => server.operations.filter(({ operation }) => operation === "fetch");
    for (let index = 0; index < 12; index++) {
      begin("git-upload-pack", {}, piece).end();
      assert.ok(await until(() => fetches().length > index));
    }
    const unread = fetches().filter(({ bytesIn }) => bytesIn === 0);
    assert.ok(unread.length > 0, "the last ones are turned away unread");
    const cloned = await server.git(server.folder, "clone", "-q", url, server.folderFor(`clone${count}`));
    assert.equal(cloned.code, 0, cloned.stderr);
  });
});
