// A repository's config file is ours: compared when the repository is first looked at after a start and by fsck, and
// written anew if it is different (git-http.md, "One hardened way to run git"; threats.md row 8).

import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { GitServer } from "../harness/git-server.js";

describe("a config that is not ours", () => {
  let server: GitServer;
  let ours: string;
  before(async () => {
    server = await GitServer.start();
    await server.create("model");
    ours = await readFile(join(server.directoryOf("model"), "config"), "utf8");
  });
  after(() => server.stop());

  for (const [what, spoil] of [
    ["has more in it", (file: string) => writeFile(file, "[core]\n\tsshCommand = false\n", { flag: "a" })],
    ["is missing", (file: string) => rm(file)],
  ] as const) {
    it(`that ${what} is found by fsck, told, and is ours again`, async () => {
      await server.create("looked-at");
      const repository = server.repositories.open(server.addressOf("looked-at"));
      await repository.refs();
      const file = join(server.directoryOf("looked-at"), "config");
      await spoil(file);
      assert.match((await repository.fsck()).join("; "), /config is not the one/);
      assert.equal(await readFile(file, "utf8"), ours);
      assert.deepEqual(await repository.fsck(), []);
    });

    it(`that ${what} is ours again before anything is served after a start`, async () => {
      const url = await server.create(`fresh that ${what}`);
      const file = join(server.directoryOf(`fresh that ${what}`), "config");
      await spoil(file);
      assert.equal((await server.git(server.folder, "ls-remote", url)).code, 0);
      assert.equal(await readFile(file, "utf8"), ours);
    });
  }
});
