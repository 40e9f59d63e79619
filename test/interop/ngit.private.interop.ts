// The real ngit on a private service (GRASP-08): init with --private, push, list and clone, with its own signatures and AUTH.
// Run by `npm run test:interop`.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { SecretKey } from "../../src/nostr/keys.js";
import { npubOf } from "../../src/nostr/nip19.js";
import { startInProcess, type TestServer } from "../harness/server.js";
import { PlainRelay } from "../harness/sync-plain-relay.js";
import { ClientHome } from "./client-home.js";

const member = SecretKey.generate(randomBytes);
const stranger = SecretKey.generate(randomBytes);
const hexOf = (key: SecretKey): string => Buffer.from(key.exportBytes()).toString("hex");

let server: TestServer;
/** Where people's own lists are: not a private service's business. */
let elsewhere: PlainRelay;
let home: ClientHome;
let work = "";
let nostrUrl = "";

before(async () => {
  server = await startInProcess({
    settings: { NGIT_PRIVATE_MODE: "true", NGIT_PRIVATE_MEMBERS: npubOf(member.pubkey) },
  });
  elsewhere = await PlainRelay.start({ negentropy: "notice" });
  home = await ClientHome.make({
    NGIT_RELAY_DEFAULT_SET: elsewhere.url,
    NGIT_INDEXER_RELAY_DEFAULT_SET: elsewhere.url,
  });
  work = await home.directory("work");
});

after(async () => {
  await server.end();
  await elsewhere.stop();
  await home.remove();
});

test("ngit init --private announces, publishes the state and pushes, all as a member", async () => {
  await home.must(work, "git", "init", "-q", "-b", "main", ".");
  await home.must(work, "git", "commit", "-q", "--allow-empty", "-m", "one");
  await home.must(work, "git", "config", "--global", "nostr.nsec", hexOf(member));
  await home.must(work, "ngit", "--defaults", "init", "--private", "--name", "plans", "--grasp-server", server.url);
  nostrUrl = (await home.must(work, "git", "remote", "get-url", "origin")).trim();
  assert.match(nostrUrl, /^nostr:\/\/npub1/);
  assert.ok(
    elsewhere.events.every(({ kind }) => kind !== 30617 && kind !== 30618),
    "nothing of it goes elsewhere",
  );
});

test("a push through ngit's helper moves the branch, and a clone by nostr URL has it", async () => {
  await home.must(work, "git", "commit", "-q", "--allow-empty", "-m", "two");
  await home.must(work, "git", "push", "-q", "origin", "main");
  const tip = (await home.must(work, "git", "rev-parse", "HEAD")).trim();
  const copy = join(home.folder, "copy");
  await home.must(home.folder, "git", "clone", "-q", nostrUrl, copy);
  assert.equal((await home.must(copy, "git", "rev-parse", "HEAD")).trim(), tip);
});

test("a stranger's ngit gets nothing", async () => {
  await home.must(work, "git", "config", "--global", "nostr.nsec", hexOf(stranger));
  const cloned = await home.run(home.folder, "git", "clone", "-q", nostrUrl, join(home.folder, "stolen"));
  assert.notEqual(cloned.code, 0);
});
