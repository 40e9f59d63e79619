// The real ngit and its remote helper: init, push, clone, pull request. Run by `npm run test:interop`.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { startInProcess, type TestServer } from "../harness/server.js";
import { ClientHome } from "./client-home.js";

const newKey = (): string => randomBytes(32).toString("hex");

let server: TestServer;
let home: ClientHome;
let work = "";
let nostrUrl = "";

before(async () => {
  server = await startInProcess({ backend: "memory" });
  const relay = server.origin.replace(/^http/, "ws");
  home = await ClientHome.make({ NGIT_RELAY_DEFAULT_SET: relay, NGIT_INDEXER_RELAY_DEFAULT_SET: relay });
  work = await home.directory("work");
});

after(async () => {
  await server.stop();
  await home.remove();
});

test("ngit init announces, publishes the state and pushes", async () => {
  await home.must(work, "git", "init", "-q", "-b", "main", ".");
  await home.must(work, "git", "commit", "-q", "--allow-empty", "-m", "one");
  const key = newKey();
  await home.must(work, "git", "config", "nostr.nsec", key);
  const relay = server.origin.replace(/^http/, "ws");
  await home.must(work, "ngit", "--nsec", key, "--defaults", "init", "--name", "demo", "--grasp-server", relay);
  nostrUrl = (await home.must(work, "git", "remote", "get-url", "origin")).trim();
  assert.match(nostrUrl, /^nostr:\/\/npub1/);
});

test("git push through ngit's remote helper publishes a new state and moves the branch", async () => {
  await home.must(work, "git", "commit", "-q", "--allow-empty", "-m", "two");
  await home.must(work, "git", "push", "-q", "origin", "main");
  const tip = (await home.must(work, "git", "rev-parse", "HEAD")).trim();
  const listed = await home.must(work, "git", "ls-remote", "origin", "refs/heads/main");
  assert.match(listed, new RegExp(`^${tip}`, "m"));
});

test("a clone by nostr URL has what was pushed, and a contributor's pull request is served to the owner", async () => {
  const copy = join(home.folder, "copy");
  await home.must(home.folder, "git", "clone", "-q", nostrUrl, copy);
  const tip = (await home.must(work, "git", "rev-parse", "HEAD")).trim();
  assert.equal((await home.must(copy, "git", "rev-parse", "HEAD")).trim(), tip);
  const contributor = newKey();
  await home.must(copy, "git", "config", "nostr.nsec", contributor);
  await home.must(copy, "git", "checkout", "-q", "-b", "pr/fix");
  // Larger than a patch may be: ngit then sends a pull request with git data.
  await writeFile(join(copy, "big.txt"), randomBytes(80_000).toString("base64"));
  await home.must(copy, "git", "add", "big.txt");
  await home.must(copy, "git", "commit", "-q", "-m", "a fix");
  await home.must(
    copy,
    "git",
    "push",
    "-q",
    "-o",
    "title=A fix",
    "-o",
    "description=It fixes",
    "-u",
    "origin",
    "pr/fix",
  );
  const fix = (await home.must(copy, "git", "rev-parse", "HEAD")).trim();
  const npub = /^nostr:\/\/(npub1[a-z0-9]+)/.exec(nostrUrl)?.[1];
  const seen = await home.must(work, "git", "ls-remote", `${server.origin}/${npub}/demo.git`, "refs/nostr/*");
  assert.match(seen, new RegExp(`^${fix}\\s+refs/nostr/[0-9a-f]{64}$`, "m"));
  assert.match(await home.must(work, "ngit", "pr", "list"), /A fix/);
});
