// git 2.46 or newer with a credential helper that speaks Nostr (`authtype=Nostr`), against a private server: a push of 3 MB,
// which git begins with a probe without credentials, and a clone. The helper is the smallest there can be: it signs kind 27235
// for the repository's root with a key from its environment. Run by `npm run test:interop`; HOLDFAST_NEWER_GIT names the git.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { SecretKey } from "../../src/nostr/keys.js";
import { npubOf } from "../../src/nostr/nip19.js";
import { type PrivateService, startPrivate } from "../harness/private-service.js";
import { ClientHome } from "./client-home.js";

const git = process.env.HOLDFAST_NEWER_GIT ?? "git";
const helperProgram = fileURLToPath(new URL("./nostr-credential-helper.js", import.meta.url));

/** Where git's helper signs with this key. */
const homeOf = (key: SecretKey): Promise<ClientHome> =>
  ClientHome.make({
    GIT_TERMINAL_PROMPT: "0",
    GIT_CONFIG_NOSYSTEM: "1",
    HELPER_SECRET: Buffer.from(key.exportBytes()).toString("hex"),
  });

let service: PrivateService;
let home: ClientHome;

before(async () => {
  service = await startPrivate();
  const member = SecretKey.generate(randomBytes);
  await service.operate("lists.add", { list: "private-members", entry: npubOf(member.pubkey) });
  home = await homeOf(member);
});

after(async () => {
  await service.story.end();
  await home.remove();
});

test("a member pushes 3 MB and clones with a helper that signs, and a stranger's signature opens nothing", async (t) => {
  const { alice, story } = service;
  t.diagnostic((await home.must(home.folder, git, "--version")).trim());
  const helper = join(home.folder, "helper");
  await writeFile(helper, `#!/bin/sh\nexec "${process.execPath}" "${helperProgram}" "$@"\n`);
  await chmod(helper, 0o755);
  const withHelper = ["-c", `credential.helper=${helper}`, "-c", "credential.useHttpPath=true"];
  await story.announce(alice, "plans");
  const url = story.url(alice, "plans");
  const work = await home.directory("work");
  await home.must(work, git, "init", "-q", "-b", "main", ".");
  const content = randomBytes(3 * 2 ** 20);
  await writeFile(join(work, "large.bin"), content);
  await home.must(work, git, "add", ".");
  await home.must(work, git, "commit", "-q", "-m", "large");
  const tip = (await home.must(work, git, "rev-parse", "HEAD")).trim();
  await story.state(alice, "plans", { "refs/heads/main": tip });
  t.diagnostic(await home.must(work, git, ...withHelper, "push", url, "main"));
  await home.must(home.folder, git, ...withHelper, "clone", "-q", url, "copy");
  assert.deepEqual(await readFile(join(home.folder, "copy", "large.bin")), content);

  const others = await homeOf(SecretKey.generate(randomBytes));
  t.after(() => others.remove());
  const refused = await others.run(others.folder, git, ...withHelper, "clone", "-q", url, "copy");
  assert.notEqual(refused.code, 0);
});
