// Stock git as a client: clone and fetch in every protocol version.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import type { Oid } from "../../src/nostr/nip34.js";
import { GitServer, headOf } from "../harness/git-server.js";

describe("git serves", () => {
  let server: GitServer;
  let url: string;
  let work: string;
  let first: Oid;
  let second: Oid;
  before(async () => {
    server = await GitServer.start();
    url = await server.create("serve");
    work = await server.workingCopy("origin");
    first = await headOf(work);
    second = await server.commit(work, "two", "2\n".repeat(1000));
    await server.mustGit(work, "tag", "-a", "v1", "-m", "one", first);
    const tag = await server.mustGit(work, "rev-parse", "refs/tags/v1");
    await server.mustGit(work, "branch", "side", first);
    server.state({ "refs/heads/main": second, "refs/heads/side": first, "refs/tags/v1": tag }, true);
    const pushed = await server.git(work, "push", url, "main", "side", "v1");
    assert.equal(pushed.code, 0, pushed.stderr);
    await server.repositories.open(server.addressOf("serve")).updateRefs([], "refs/heads/main" as never);
  });
  after(() => server.stop());

  for (const version of [0, 1, 2]) {
    it(`a clone with protocol v${version} has every ref, the right HEAD and an annotated tag`, async () => {
      const target = server.folderFor(`clone${version}`);
      const result = await server.git(server.folder, "-c", `protocol.version=${version}`, "clone", "-q", url, target);
      assert.equal(result.code, 0, result.stderr);
      assert.equal(await server.mustGit(target, "rev-parse", "HEAD"), second);
      assert.equal(await server.mustGit(target, "symbolic-ref", "HEAD"), "refs/heads/main");
      assert.equal(await server.mustGit(target, "rev-parse", "v1^{}"), first);
      assert.equal(await server.mustGit(target, "cat-file", "-t", "v1"), "tag");
      assert.equal(await server.mustGit(target, "rev-parse", "origin/side"), first);
    });

    it(`ls-remote with protocol v${version} equals what git itself says`, async () => {
      const own = await server.mustGit(server.folder, "ls-remote", server.directoryOf("serve"));
      const over = await server.mustGit(server.folder, "-c", `protocol.version=${version}`, "ls-remote", url);
      assert.equal(over, own);
    });

    it(`a clone of an empty repository with protocol v${version} works`, async () => {
      const empty = await server.create(`empty${version}`);
      const target = server.folderFor(`clone-empty${version}`);
      const config = ["-c", `protocol.version=${version}`, "-c", "init.defaultBranch=trunk"];
      const result = await server.git(server.folder, ...config, "clone", empty, target);
      assert.equal(result.code, 0, result.stderr);
      const head = await server.mustGit(target, "symbolic-ref", "HEAD");
      // Only v2 can tell an unborn branch; before it the client decides.
      assert.equal(head, version === 2 ? "refs/heads/master" : "refs/heads/trunk");
    });

    it(`an object is fetched by id with protocol v${version}, reachable or not`, async () => {
      const orphan = await server.mustGit(work, "commit-tree", "-m", "orphan", `${first}^{tree}`);
      server.candidates = [];
      server.state({ "refs/heads/orphan": orphan, "refs/heads/main": second }, true);
      await server.mustGit(work, "push", "-q", url, `${orphan}:refs/heads/orphan`);
      server.state({ "refs/heads/main": second }, true);
      await server.mustGit(work, "push", "-q", url, ":refs/heads/orphan");
      const target = server.folderFor(`by-id${version}`);
      await server.mustGit(server.folder, "init", "-q", target);
      const result = await server.git(target, "-c", `protocol.version=${version}`, "fetch", "-q", url, orphan, first);
      assert.equal(result.code, 0, result.stderr);
      assert.equal(await server.mustGit(target, "cat-file", "-t", orphan), "commit");
      const absent = await server.git(target, "-c", `protocol.version=${version}`, "fetch", url, "1".repeat(40));
      assert.notEqual(absent.code, 0);
      assert.match(absent.stderr, /not our ref 1{40}/);
    });
  }

  it("a shallow clone has one commit and can be deepened", async () => {
    const target = server.folderFor("shallow");
    await server.mustGit(server.folder, "clone", "-q", "--depth=1", url, target);
    assert.equal(await server.mustGit(target, "rev-list", "--count", "HEAD"), "1");
    await server.mustGit(target, "fetch", "-q", "--unshallow");
    assert.equal(await server.mustGit(target, "rev-list", "--count", "HEAD"), "2");
  });

  for (const filter of ["blob:none", "tree:0", "blob:limit=10"]) {
    it(`a partial clone with ${filter} leaves objects out and gets them when needed`, async () => {
      const target = server.folderFor(`partial-${filter.replace(/\W/g, "")}`);
      const result = await server.git(server.folder, "clone", "-q", "--no-checkout", `--filter=${filter}`, url, target);
      assert.equal(result.code, 0, result.stderr);
      const missing = await server.mustGit(target, "rev-list", "--objects", "--all", "--missing=print");
      assert.match(missing, /^\?/m);
      await server.mustGit(target, "checkout", "-q", "HEAD");
      assert.ok(existsSync(`${target}/two`));
    });
  }

  it("threat 9: filters that cost the server are refused", async () => {
    for (const filter of [`sparse:oid=${first}`, "tree:5", "combine:tree:3+blob:none"]) {
      const result = await server.git(server.folder, "clone", `--filter=${filter}`, url, server.folderFor("sparse"));
      assert.notEqual(result.code, 0, filter);
      assert.match(result.stderr, /filter '.*' not supported|tree filter allows max depth 1/);
    }
  });

  it("a fetch with gzip-encoded haves works", async () => {
    const target = server.folderFor("gzip");
    await server.mustGit(server.folder, "clone", "-q", url, target);
    for (let i = 0; i < 30; i++) await server.commit(target, "mine", String(i));
    const third = await server.commit(work, "three", "3\n");
    server.state({ "refs/heads/main": third }, true);
    await server.mustGit(work, "push", "-q", url, "main");
    const trace = await server.git(target, "-c", "http.version=HTTP/1.1", "fetch", "-v");
    assert.equal(trace.code, 0, trace.stderr);
    assert.equal(await server.mustGit(target, "rev-parse", "origin/main"), third);
    second = third;
  });
});
