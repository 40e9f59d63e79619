// A start as the newest GRASP server's operators and test suites do it: a key from systemd, an open socket, repositories
// that are checked first, the base path apart from the domain.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import { SecretKey } from "../../src/nostr/keys.js";
import { freePort } from "../harness/free-port.js";
import { Person } from "../harness/grasp-people.js";
import { Story } from "../harness/grasp-story.js";
import { dropInEnvironment, type LogLine, newFolder, removeFolder, startInProcess } from "../harness/server.js";
import { cleanEnvironment, endOf, holdfast, program } from "./run.js";

const folders: string[] = [];
after(async () => {
  for (const folder of folders) await removeFolder(folder);
});

async function freshFolder(): Promise<string> {
  const folder = await newFolder();
  folders.push(folder);
  return folder;
}

test("the program says that it can be handed a socket, and serves on one, with its key from systemd's credential", async () => {
  assert.deepEqual(await holdfast(["--internal-test-listener-support"]), {
    code: 0,
    stdout: "ngit-test-listener-v1\n",
    stderr: "",
  });
  const folder = await freshFolder();
  const secret = "44".repeat(32);
  writeFileSync(join(folder, "relay_owner_nsec"), `${secret}\n`);
  const listener = createServer();
  await new Promise<void>((go) => listener.listen(0, "127.0.0.1", go));
  const { port } = listener.address() as AddressInfo;
  const { fd } = (listener as unknown as { _handle: { fd: number } })._handle;
  const child = spawn(process.execPath, [program], {
    cwd: folder,
    env: cleanEnvironment({
      ...dropInEnvironment(folder, await freePort(), {}),
      NGIT_DOMAIN: `127.0.0.1:${port}`,
      NGIT_TEST_LISTENER_FD: "3",
      NGIT_BASE_PATH: "/grasp",
      CREDENTIALS_DIRECTORY: folder,
    }),
    stdio: ["ignore", "pipe", "pipe", fd],
  });
  const ended = endOf(child);
  // From here on only the program answers.
  listener.close();
  try {
    const information = await fetch(`http://127.0.0.1:${port}/grasp/`, {
      headers: { accept: "application/nostr+json" },
    });
    const { self } = (await information.json()) as { self: string };
    assert.equal(self, SecretKey.fromHex(secret)?.pubkey);
  } finally {
    child.kill("SIGTERM");
  }
  assert.equal((await ended).code, 0);
});

test("a credential that is empty stops the start, and says what to do", async () => {
  const folder = await freshFolder();
  writeFileSync(join(folder, "relay_owner_nsec"), "");
  const child = spawn(process.execPath, [program], {
    cwd: folder,
    env: cleanEnvironment({ ...dropInEnvironment(folder, await freePort(), {}), CREDENTIALS_DIRECTORY: folder }),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const { code, stderr } = await endOf(child);
  assert.equal(code, 1);
  assert.match(stderr, /relay_owner_nsec.* holds no nsec and no 64 hex digits/);
});

test("named repositories are checked before the port opens, and what is wrong is said", async () => {
  const folder = await freshFolder();
  const person = new Person();
  const first = await Story.on(await startInProcess({ backend: "lmdb", folder }));
  for (const identifier of ["checked", "other"]) await first.hosted(person, identifier);
  await first.relay.close();
  await first.server.stop();
  for (const identifier of ["checked", "other"]) {
    const hooks = join(folder, "git", person.npub, `${identifier}.git/hooks`);
    mkdirSync(hooks);
    writeFileSync(join(hooks, "post-update"), "#!/bin/sh\n");
  }
  const log: LogLine[] = [];
  const settings = { NGIT_STARTUP_INTEGRITY_IDENTIFIERS: "checked,unknown" };
  const server = await startInProcess({ backend: "lmdb", folder, settings, onLog: (line) => void log.push(line) });
  try {
    const told = log.filter(({ message }) => message.startsWith("a repository is damaged"));
    assert.deepEqual(
      told.map(({ repo, problems }) => [repo, problems]),
      [[`${person.npub}/checked`, ["hooks are planted"]]],
    );
    assert.ok(log.some(({ message, checked }) => message.startsWith("repositories were checked") && checked === 1));
    assert.equal((await fetch(`${server.origin}/healthz`)).status, 200);
  } finally {
    await server.stop();
  }
});
