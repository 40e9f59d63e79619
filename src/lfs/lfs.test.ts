import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { LargeFileId, LargeFileRow } from "../catalogue/large-files.js";
import type { Pubkey } from "../nostr/event.js";
import { decideUpload, parseBatch, type UploadFacts } from "./batch.js";
import { readOffers } from "./client.js";
import { pointerIn } from "./pointer.js";
import { rangeOf } from "./serve.js";
import { Tickets } from "./tickets.js";

const oid = "a".repeat(64) as LargeFileId;
const version = "version https://git-lfs.github.com/spec/v1";

describe("a pointer", () => {
  const good = `${version}\noid sha256:${oid}\nsize 12\n`;
  for (const [what, text, expected] of [
    ["as git-lfs writes it", good, { oid, size: 12 }],
    ["without its last newline", good.trimEnd(), { oid, size: 12 }],
    ["with an extension", good.replace("oid", `ext-0-foo sha256:${oid}\noid`), { oid, size: 12 }],
    ["of an earlier name of the format", good.replace("git-lfs", "hawser"), { oid, size: 12 }],
    ["of another format", good.replace("v1", "v9"), undefined],
    ["with another hash", good.replace("sha256", "md5"), undefined],
    ["with a short hash", good.replace(oid, oid.slice(1)), undefined],
    ["with a path as hash", good.replace(oid, `../${oid.slice(3)}`), undefined],
    ["with a negative size", good.replace("12", "-1"), undefined],
    ["with a size no file has", good.replace("12", "9".repeat(40)), undefined],
    ["that says something twice", `${good}size 13\n`, undefined],
    ["of a kilobyte", good + "x ".repeat(500), undefined],
    ["that is an ordinary file", "version 1 of the text\n", undefined],
  ] as const) {
    it(`${what} is ${expected ? "read" : "none"}`, () => assert.deepEqual(pointerIn(Buffer.from(text)), expected));
  }
});

describe("an upload", () => {
  const file = { oid, size: 100 };
  const row = (more: Partial<LargeFileRow>): LargeFileRow => ({
    size: 100,
    isHere: false,
    isNamed: false,
    since: 0,
    ...more,
  });
  const facts: UploadFacts = {
    file,
    row: undefined,
    unclaimedBytes: undefined,
    isOwners: false,
    quota: { leftBytes: 1_000, reason: "full" },
    strangersBytes: 200,
  };
  for (const [what, more, expected] of [
    ["of a file that is here", { row: row({ isHere: true }) }, "here"],
    ["by a maintainer", { isOwners: true }, "upload owners"],
    ["by a maintainer over the quota", { isOwners: true, quota: { leftBytes: 99, reason: "full" } }, "refused 413"],
    ["by a maintainer of what a stranger brought", { isOwners: true, unclaimedBytes: 10 }, "claim"],
    [
      "by a maintainer who says that it is smaller than it is",
      { isOwners: true, unclaimedBytes: 10_000 },
      "refused 413",
    ],
    ["of what a released pointer names, by anybody", { row: row({ isNamed: true }) }, "upload owners"],
    [
      "of a named file over the quota",
      { row: row({ isNamed: true }), quota: { leftBytes: 1, reason: "" } },
      "refused 413",
    ],
    ["by a stranger, small", {}, "upload strangers"],
    ["by a stranger, of what another brought", { unclaimedBytes: 10 }, "here"],
    ["by a stranger, large", { strangersBytes: 99 }, "who-are-you"],
    ["by a stranger who had enough", { strangersBytes: undefined }, "who-are-you"],
  ] as const) {
    it(`${what} is ${expected}`, () => {
      const decision = decideUpload({ ...facts, ...more });
      const detail = decision.type === "upload" ? decision.as : decision.type === "refused" ? decision.status : "";
      assert.equal(`${decision.type} ${detail}`.trim(), expected);
    });
  }
});

it("a batch request names files by hash and size, and nothing else is taken for one", () => {
  const read = (value: unknown) => parseBatch(Buffer.from(JSON.stringify(value)));
  assert.deepEqual(read({ operation: "upload", objects: [{ oid, size: 1 }] }), {
    operation: "upload",
    files: [{ oid, size: 1 }],
  });
  for (const value of [null, [], { operation: "upload" }, { operation: "upload", objects: [null] }, "x", 1]) {
    assert.ok("status" in read(value), JSON.stringify(value));
  }
  const many = Array.from({ length: 1_001 }, () => ({ oid, size: 1 }));
  assert.deepEqual((read({ operation: "upload", objects: many }) as { status: number }).status, 413);
});

it("a ticket is good for its repository, file, size, use and hour, at the server that wrote it", () => {
  const tickets = new Tickets(Buffer.from("one"));
  const name = { owner: "1".repeat(64) as Pubkey, identifier: "x" };
  const ticket = { use: "upload-owners", name, oid, size: 5, ends: 100 } as const;
  const query = new URLSearchParams(tickets.write(ticket));
  assert.deepEqual(tickets.read(query, name, oid, 99), ticket);
  assert.equal(tickets.read(query, name, oid, 100), undefined, "it is over");
  assert.equal(tickets.read(query, { ...name, identifier: "y" }, oid, 1), undefined);
  assert.equal(tickets.read(query, { ...name, area: "prs" }, oid, 1), undefined);
  assert.equal(tickets.read(query, name, "b".repeat(64) as LargeFileId, 1), undefined);
  assert.equal(new Tickets(Buffer.from("two")).read(query, name, oid, 1), undefined);
  for (const [key, value] of [
    ["use", "download"],
    ["size", "6"],
    ["ends", "1000"],
    ["proof", "x"],
  ] as const) {
    const changed = new URLSearchParams(query);
    changed.set(key, value);
    assert.equal(tickets.read(changed, name, oid, 1), undefined, key);
  }
});

describe("a range", () => {
  for (const [header, expected] of [
    [undefined, "whole"],
    ["bytes=0-4", { from: 0, to: 5 }],
    ["bytes=4-", { from: 4, to: 10 }],
    ["bytes=4-400", { from: 4, to: 10 }],
    ["bytes=-3", { from: 7, to: 10 }],
    ["bytes=-300", { from: 0, to: 10 }],
    ["bytes=10-", "none"],
    ["bytes=5-4", "none"],
    ["bytes=-0", "none"],
    ["bytes=0-1,3-4", "whole"],
    ["bytes=-", "whole"],
    ["lines=1-2", "whole"],
  ] as const) {
    it(`${header} of ten bytes is ${JSON.stringify(expected)}`, () => assert.deepEqual(rangeOf(header, 10), expected));
  }
});

it("threats 4, 5: of another server's offers only those for wanted files, by http, with plain headers are used", () => {
  const offer = (href: unknown, header: unknown = {}, id: unknown = oid): object => ({
    oid: id,
    actions: { download: { href, header } },
  });
  const read = (...objects: object[]) =>
    readOffers(
      Buffer.from(JSON.stringify({ transfer: "basic", objects })),
      new Set([oid]),
      "https://a.example/x.git/info/lfs/objects/batch",
    );
  assert.deepEqual(read(offer("/file")), [{ oid, href: "https://a.example/file", headers: {} }]);
  for (const href of ["file:///etc/passwd", "ssh://a.example/x", 1, null, "http://["])
    assert.deepEqual(read(offer(href)), []);
  assert.deepEqual(read(offer("/file", {}, "b".repeat(64))), [], "nobody asked for it");
  const headers = {
    Authorization: "Basic eDp5",
    Host: "b.example",
    "Content-Length": "9",
    "X-A": "1\r\nX-B: 2",
    "x y": "1",
    n: 1,
  };
  assert.deepEqual(read(offer("/file", headers))?.[0]?.headers, { Authorization: "Basic eDp5" });
  assert.equal(readOffers(Buffer.from("<html>"), new Set([oid]), "https://a.example/"), undefined);
  assert.equal(
    readOffers(Buffer.from('{"transfer":"tus","objects":[]}'), new Set([oid]), "https://a.example/"),
    undefined,
  );
});
