import assert from "node:assert/strict";
import { test } from "node:test";
import { parseLsRefs, v2Command } from "../git/advertisement.js";
import { reasonIn } from "../git/fetch-remote.js";
import { encodePkt, flushPkt, readAllPkts } from "../git/pkt-line.js";
import { lsRefsQuestion, readAdvertisement, readLsRefs } from "./look-up.js";

const a = "a".repeat(40);
const b = "b".repeat(40);
const service = Buffer.concat([encodePkt("# service=git-upload-pack\n"), flushPkt]);
const message = (...lines: string[]): Buffer => Buffer.concat([...lines.map((line) => encodePkt(line)), flushPkt]);

test("our ls-refs question is one that our own server understands", () => {
  const pkts = [...readAllPkts(lsRefsQuestion("sha256"))];
  assert.equal(v2Command(pkts), "ls-refs");
  assert.equal(parseLsRefs(pkts)?.peel, true);
});

test("protocol 2 is told by its first line, with and without the service line", () => {
  for (const body of [Buffer.concat([service, message("version 2\n", "fetch\n")]), message("version 2\n", "fetch\n")]) {
    assert.deepEqual(readAdvertisement(body), { type: "ask-ls-refs", format: "sha1" });
  }
});

test("protocol 2 says how objects are named, and a server that says nothing means SHA-1", () => {
  const body = message("version 2\n", "fetch\n", "object-format=sha256\n");
  assert.deepEqual(readAdvertisement(body), { type: "ask-ls-refs", format: "sha256" });
});

test("protocols 0 and 1 bring their ids with them, peeled tags included", () => {
  const lines = [`${a} refs/heads/main\0side-band-64k\n`, `${b} refs/tags/v1^{}\n`];
  const ids = new Set([a, b]);
  const refs = new Map([["refs/heads/main", a]]);
  assert.deepEqual(readAdvertisement(Buffer.concat([service, message(...lines)])), { type: "refs", ids, refs });
  assert.deepEqual(readAdvertisement(Buffer.concat([service, message("version 1\n", ...lines)])), {
    type: "refs",
    ids,
    refs,
  });
});

test("an empty repository of protocol 0 advertises nothing", () => {
  const body = Buffer.concat([service, message(`${"0".repeat(40)} capabilities^{}\0side-band-64k\n`)]);
  assert.deepEqual(readAdvertisement(body), { type: "refs", ids: new Set(), refs: new Map() });
});

test("an answer to ls-refs is read with peeled and unborn lines", () => {
  const lines = [`${a} HEAD\n`, `${a} refs/tags/v1 peeled:${b}\n`, "unborn HEAD symref-target:refs/heads/x\n"];
  const refs = new Map([
    ["HEAD", a],
    ["refs/tags/v1", a],
  ]);
  assert.deepEqual(readLsRefs(message(...lines)), { ids: new Set([a, b]), refs });
});

for (const [what, body] of [
  ["a web page", Buffer.from("<html>")],
  ["nothing", Buffer.alloc(0)],
  ["a line cut off", message(`${a} refs/heads/main\n`).subarray(0, 20)],
  ["no object id", message("main refs/heads/main\n")],
] as const) {
  test(`${what} is no advertisement and no list of refs`, () => {
    assert.equal(readAdvertisement(body), undefined);
    assert.equal(readLsRefs(body), undefined);
  });
}

for (const [stderr, reason] of [
  [`fatal: remote error: upload-pack: not our ref ${a}`, "refused"],
  [`error: Server does not allow request for unadvertised object ${a}`, "refused"],
  ["error: RPC failed; curl 28 Operation too slow. Less than 1000 bytes/sec", "timeout"],
  ["fatal: fsck error in packed object", "bad-objects"],
  ["fatal: unable to access 'http://x/': Failed to connect", "fetch-failed"],
] as const) {
  test(`git's words "${stderr.slice(0, 40)}…" mean ${reason}`, () => assert.equal(reasonIn(stderr), reason));
}
