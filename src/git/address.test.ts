import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Pubkey } from "../nostr/event.js";
import { asNpub, type Npub, parseGitPath, RepositoryAddress } from "./address.js";

const npub = asNpub(`npub1${"q".repeat(58)}`) as Npub;
const owner = "ab".repeat(32) as Pubkey;
const directory = (identifier: string): string => RepositoryAddress.of(owner, npub, identifier).directoryUnder("/data");

describe("repository address", () => {
  it("uses a safe identifier as it is", () => {
    for (const name of ["a", "Holdfast", "x-1_2.3", "a".repeat(100)]) {
      assert.equal(directory(name), `/data/${npub}/${name}.git`);
    }
    const pulls = RepositoryAddress.of(owner, npub, "x", "prs");
    assert.equal(pulls.directoryUnder("/data"), `/data/prs/${owner}/x.git`);
  });

  it("threat 3: keeps every other identifier inside, in one directory name, and no two in one place", () => {
    const identifiers = fc.uniqueArray(
      fc.string({ unit: "binary", maxLength: 200 }).filter((text) => text.isWellFormed()),
      { maxLength: 20 },
    );
    fc.assert(
      fc.property(identifiers, (names) => {
        const found = names.map(directory);
        assert.equal(new Set(found).size, names.length);
        for (const path of found) {
          const [, data, folder, name = "", ...more] = path.split("/");
          assert.deepEqual([data, folder, more], ["data", npub, []]);
          assert.match(name, /^[A-Za-z0-9=][A-Za-z0-9._-]*\.git$/);
          assert.ok(name.length <= 255);
        }
      }),
    );
    for (const name of [
      "",
      ".",
      "..",
      ".git",
      "x.git",
      "x.GIT",
      "x.lock",
      "x.",
      "=61",
      "a/b",
      "a".repeat(101),
      "e\u0301",
      "é",
    ]) {
      assert.match(directory(name), new RegExp(`^/data/${npub}/=(?:[0-9a-f]*|sha256-[0-9a-f]{64})\\.git$`), name);
    }
    assert.throws(() => directory("\ud800"), RangeError);
  });
});

describe("git URL", () => {
  it("is taken apart, each segment decoded exactly once", () => {
    const parse = (name: string): string | undefined => parseGitPath(`/${npub}/${name}/info/refs`)?.identifier;
    assert.equal(parse("x.git"), "x");
    assert.equal(parse("x.git.git"), "x.git");
    assert.equal(parse("a%2Fb.git"), "a/b");
    assert.equal(parse("a%2fb.git"), "a/b");
    assert.equal(parse("%252e.git"), "%2e");
    assert.equal(parse("%C3%BC.git"), "ü");
    assert.equal(parse(".git"), "");
    for (const bad of ["x", "%ff.git", "%.git", "a%00b.git", "a%0ab.git", "a%7f.git"])
      assert.equal(parse(bad), undefined, bad);
  });

  it("may stand below a base path or /prs, with a trailing slash", () => {
    assert.equal(parseGitPath(`/${npub}/x.git/`)?.rest, "");
    assert.equal(parseGitPath(`/base/${npub}/x.git`), undefined);
    assert.deepEqual(parseGitPath(`/prs/${npub}/x.git/git-upload-pack`), {
      area: "prs",
      npub,
      identifier: "x",
      rest: "git-upload-pack",
    });
    for (const path of ["/", "/x", `/${npub}`, `/${npub}/`, `/npub1short/x.git`, `/${npub.toUpperCase()}/x.git`]) {
      assert.equal(parseGitPath(path), undefined, path);
    }
  });

  it("comes back from what a client encodes", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (identifier) => {
        if (/[\x00-\x1f\x7f]/.test(identifier)) return;
        assert.equal(parseGitPath(`/${npub}/${encodeURIComponent(identifier)}.git`)?.identifier, identifier);
      }),
    );
  });
});
