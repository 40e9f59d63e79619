// threats.md row 55: other users of the machine.

import assert from "node:assert/strict";
import { lstatSync, readdirSync } from "node:fs";
import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Person } from "../harness/grasp-people.js";
import { Story } from "../harness/grasp-story.js";
import { newFolder, removeFolder, startChild } from "../harness/server.js";

/** What others could read, write or enter, with its mode. */
function openToOthers(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    const mode = lstatSync(path).mode & 0o077;
    const own = mode === 0 || entry.isSymbolicLink() ? [] : [`${path} ${mode.toString(8)}`];
    return entry.isDirectory() ? [...own, ...openToOthers(path)] : own;
  });
}

describe("threat 55", { timeout: 200_000 }, () => {
  test("threat 55: files and folders are the server's user's alone, whatever the umask and what was there before", async () => {
    const folder = await newFolder();
    const before = process.umask(0);
    try {
      for (const name of ["relay", "git"]) {
        await mkdir(join(folder, name));
        await chmod(join(folder, name), 0o777);
      }
      const server = await startChild({ backend: "lmdb", folder });
      const story = await Story.on(server);
      await story.hosted(new Person(), "kept");
      const found = ["relay", "git"].flatMap((name) => {
        const mode = lstatSync(join(folder, name)).mode & 0o077;
        return [...(mode === 0 ? [] : [`${name} ${mode.toString(8)}`]), ...openToOthers(join(folder, name))];
      });
      await story.relay.close();
      await server.stop();
      assert.deepEqual(found, []);
    } finally {
      process.umask(before);
      await removeFolder(folder);
    }
  });
});
