// Threat 6: packs and bodies made to cost more than they weigh. Each ends soon, within memory, and leaves nothing.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { after, before, describe, it } from "node:test";
import { deflateSync } from "node:zlib";
import { defaultConfig } from "../../src/config/testing/default-config.js";
import { GitServer, npub } from "../harness/git-server.js";
import { heldHere } from "../harness/held-memory.js";
import { until } from "../harness/server.js";

const pkt = (text: string): string => (Buffer.byteLength(text) + 4).toString(16).padStart(4, "0") + text;
/** Without its limit each would take minutes or never end; a busy machine takes seconds. */
const endsWithinMs = 60_000;
const zero = "0".repeat(40);
const types = { commit: 1, tree: 2, blob: 3 } as const;

interface PackObject {
  readonly type: keyof typeof types;
  readonly data: Buffer;
}

const oidOf = ({ type, data }: PackObject): string =>
  createHash("sha1").update(`${type} ${data.length}\0`).update(data).digest("hex");

function packOf(objects: readonly PackObject[]): Buffer {
  const header = Buffer.alloc(12);
  header.write("PACK");
  header.writeUInt32BE(2, 4);
  header.writeUInt32BE(objects.length, 8);
  const parts = [header];
  for (const { type, data } of objects) {
    const bytes: number[] = [];
    let size = data.length;
    let byte = (types[type] << 4) | (size & 15);
    size = Math.floor(size / 16);
    while (size > 0) {
      bytes.push(byte | 0x80);
      byte = size & 0x7f;
      size = Math.floor(size / 128);
    }
    bytes.push(byte);
    parts.push(Buffer.from(bytes), deflateSync(data, { level: 9 }));
  }
  const body = Buffer.concat(parts);
  return Buffer.concat([body, createHash("sha1").update(body).digest()]);
}

const tree = (entries: readonly [mode: string, name: string, oid: string][]): PackObject => ({
  type: "tree",
  data: Buffer.concat(
    entries.flatMap(([mode, name, oid]) => [Buffer.from(`${mode} ${name}\0`), Buffer.from(oid, "hex")]),
  ),
});
const commitOf = (treeOid: string): PackObject => ({
  type: "commit",
  data: Buffer.from(`tree ${treeOid}\nauthor A <a@b> 1700000000 +0000\ncommitter A <a@b> 1700000000 +0000\n\nx\n`),
});

describe("bombs", () => {
  let server: GitServer;
  let url: string;
  before(async () => {
    server = await GitServer.start({
      live: {
        current: defaultConfig({
          gitFetchRequestMaxBytes: 4 << 20,
          gitIdleSecs: 0.4,
          pushMaxBytes: 8 << 20,
          pushMaxObjects: 1000,
        }),
      },
    });
    url = await server.create("bomb");
  });
  after(() => server.stop());

  /** The most memory any git process of ours had at once, sampled while the work runs. */
  async function peakGitBytes<T>(work: Promise<T>): Promise<[T, number]> {
    let peak = 0;
    let isDone = false;
    const helper = server.launcher.helperPid;
    const sample = async (): Promise<void> => {
      while (!isDone) {
        const text = await readFile(`/proc/${helper}/task/${helper}/children`, "utf8").catch(() => "");
        for (const pid of text.trim().split(" ")) {
          const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
          peak = Math.max(peak, Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024);
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    const sampling = sample();
    const result = await work;
    isDone = true;
    await sampling;
    return [result, peak];
  }

  async function pushPack(pack: Buffer, tip: string): Promise<string> {
    server.candidates = [];
    server.state({ "refs/heads/main": tip });
    const head = `${pkt(`${zero} ${tip} refs/heads/main\0report-status`)}0000`;
    const body = Buffer.concat([Buffer.from(head), pack]);
    return await (await fetch(`${url}/git-receive-pack`, { method: "POST", body })).text();
  }

  async function refusedWithoutTrace(pack: Buffer, tip: string, reason: RegExp): Promise<void> {
    const files = await server.filesOf("bomb");
    const before = heldHere();
    const begun = performance.now();
    const [text, peak] = await peakGitBytes(pushPack(pack, tip));
    assert.match(text, reason);
    assert.ok(performance.now() - begun < endsWithinMs, `took ${Math.round(performance.now() - begun)} ms`);
    assert.ok(peak < 512 << 20, `git took ${peak >> 20} MiB`);
    const grown = heldHere() - before;
    assert.ok(grown < 32 << 20, `the server holds ${grown >> 20} MiB more`);
    assert.deepEqual(await server.filesOf("bomb"), files);
    assert.equal(server.launcher.jobsInFlight, 0);
  }

  it("a blob of 120 MiB of zeros in a small pack is refused", async () => {
    const data = Buffer.alloc(120 << 20);
    const blob: PackObject = { type: "blob", data };
    const root = tree([["100644", "zeros", oidOf(blob)]]);
    const tip = commitOf(oidOf(root));
    await refusedWithoutTrace(
      packOf([blob, root, tip]),
      oidOf(tip),
      /unpack a file of 120 MiB is in the push, 100 MiB/,
    );
  });

  it("a tree of 10^10 paths in 12 objects is checked without walking them", async () => {
    const blob: PackObject = { type: "blob", data: Buffer.from("x") };
    let below = oidOf(blob);
    let mode = "100644";
    const objects: PackObject[] = [blob];
    for (let depth = 0; depth < 10; depth++) {
      const next = tree(Array.from({ length: 10 }, (_, i) => [mode, String(i), below]));
      objects.push(next);
      below = oidOf(next);
      mode = "40000";
    }
    const tip = commitOf(below);
    const begun = performance.now();
    const text = await pushPack(packOf([...objects, tip]), oidOf(tip));
    assert.match(text, /ok refs\/heads\/main/);
    assert.ok(performance.now() - begun < endsWithinMs);
  });

  it("objects with .git entries and .gitmodules tricks are refused", async () => {
    const blob: PackObject = {
      type: "blob",
      data: Buffer.from('[submodule "../../x"]\n\tpath = -x\n\turl = --upload-pack=x\n'),
    };
    for (const name of [".git", ".gitmodules", ".."]) {
      const root = tree([["100644", name, oidOf(blob)]]);
      const tip = commitOf(oidOf(root));
      await refusedWithoutTrace(packOf([blob, root, tip]), oidOf(tip), /unpack the objects were not accepted/);
    }
  });

  it("a header that promises too many objects is refused before git starts", async () => {
    const header = Buffer.from("5041434b0000000200ffffff", "hex");
    await refusedWithoutTrace(header, "1".repeat(40), /unpack the push has 16777215 objects, at most 1000/);
  });

  it("a cut, a garbled and a non-pack body are refused", async () => {
    const blob: PackObject = { type: "blob", data: Buffer.from("x") };
    const whole = packOf([blob]);
    const garbled = Buffer.from(whole);
    garbled[whole.length - 1] = (garbled.at(-1) ?? 0) ^ 1;
    for (const body of [whole.subarray(0, -5), garbled, Buffer.from("x".repeat(100))]) {
      await refusedWithoutTrace(body, oidOf(blob), /unpack (?!ok)/);
    }
  });

  it("a refused chunked body over the budget ends with the reason, and the connection with it", async () => {
    const files = await server.filesOf("bomb");
    server.candidates = [];
    const head = `${pkt(`${zero} ${"1".repeat(40)} refs/heads/x\0report-status`)}0000`;
    const block = Buffer.alloc(1 << 20);
    const text = await new Promise<string>((resolve, reject) => {
      let answer = "";
      let isOver = false;
      const request = httpRequest(`${url}/git-receive-pack`, { method: "POST" }, (response) => {
        response.on("data", (chunk: Buffer) => {
          answer += chunk.toString();
        });
        response.on("close", () => {
          isOver = true;
          resolve(answer);
        });
      });
      request.on("error", (error) => (isOver || answer !== "" ? resolve(answer) : reject(error)));
      request.write(head);
      const more = (): void => {
        while (!isOver && request.write(block));
        if (!isOver) request.once("drain", more);
      };
      more();
    });
    assert.match(text, /ng refs\/heads\/x no state by a maintainer/);
    assert.deepEqual(await server.filesOf("bomb"), files);
  });

  it("a body that stands still is cut off after the idle limit", async () => {
    const files = await server.filesOf("bomb");
    const blob: PackObject = { type: "blob", data: Buffer.from("x") };
    server.candidates = [];
    server.state({ "refs/heads/slow": oidOf(blob) });
    const head = `${pkt(`${zero} ${oidOf(blob)} refs/heads/slow\0report-status`)}0000`;
    const seen = server.operations.length;
    const begun = performance.now();
    await new Promise<void>((resolve) => {
      const path = `/${npub}/bomb.git/git-receive-pack`;
      const request = httpRequest({ port: new URL(url).port, path, method: "POST" }, (response) => {
        response.resume();
        response.on("close", resolve);
      });
      request.on("error", () => resolve());
      request.write(head);
      request.write(packOf([blob]).subarray(0, 20));
    });
    assert.ok(performance.now() - begun < endsWithinMs);
    assert.ok(await until(() => server.operations.length > seen, 120_000), "nothing was answered");
    assert.equal(server.launcher.jobsInFlight, 0);
    assert.deepEqual(await server.filesOf("bomb"), files);
  });
});
