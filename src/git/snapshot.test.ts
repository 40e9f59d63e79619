import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { systemClock } from "../base/clock.js";
import type { Pubkey } from "../nostr/event.js";
import { npubOf } from "../nostr/nip19.js";
import type { Oid, RefName } from "../nostr/nip34.js";
import { createMemoryStore } from "../store/memory/memory-store.js";
import type { Store } from "../store/port.js";
import { asNpub, type Npub, RepositoryAddress } from "./address.js";
import { Launcher } from "./launcher.js";
import { Repositories } from "./repositories.js";
import type { GitRepository } from "./repository.js";
import { readRefFiles } from "./repository-files.js";
import { Git } from "./run.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-snapshot-"));
const launcher = new Launcher();
const owner = "a".repeat(64) as Pubkey;
const npub = asNpub(npubOf(owner)) as Npub;
const main = "refs/heads/main" as RefName;
const other = "refs/heads/other" as RefName;
const { signal } = new AbortController();
let git: Git;
let repositories: Repositories;
const store = createMemoryStore({ clock: systemClock });

before(async () => {
  git = await Git.find(launcher);
  repositories = new Repositories({ gitDataPath: join(folder, "git"), git, clock: systemClock, store });
});
after(async () => {
  await launcher.close();
  rmSync(folder, { recursive: true, force: true });
});

const address = (identifier: string): RepositoryAddress =>
  RepositoryAddress.of(owner, npub, identifier, ["offered", "emptied"].includes(identifier) ? "prs" : "main");

async function commitIn({ directory }: GitRepository, text: string, parent?: Oid): Promise<Oid> {
  const run = async (args: readonly [string, ...string[]], input: string): Promise<string> =>
    (await git.mustRun(args, { directory, input })).toString("utf8").trim();
  const blob = await run(["hash-object", "-w", "--stdin"], text);
  const tree = await run(["mktree"], `100644 blob ${blob}\tfile\n`);
  return (await run(["commit-tree", tree, ...(parent ? ["-p", parent] : [])], text)) as Oid;
}

async function made(identifier: string): Promise<{ repository: GitRepository; tip: Oid }> {
  const repository = await repositories.create(address(identifier));
  const tip = await commitIn(repository, identifier);
  await repository.updateRefs([{ ref: main, to: tip }], main);
  return { repository, tip };
}

/** As the store's own snapshot has them. */
async function copyOfRows(): Promise<Store> {
  const copy = createMemoryStore({ clock: systemClock });
  await copy.transact(async (tx) => {
    for await (const [key, value] of store.rows("refs")) tx.setRow("refs", key, value);
  });
  return copy;
}

async function refsIn(directory: string): Promise<Record<string, string>> {
  const { refs } = await readRefFiles(directory);
  return Object.fromEntries([...refs].map(([name, { oid }]) => [name, oid]));
}

test("a snapshot shows every repository as it was when it began, whatever happened before it was looked at", async () => {
  const changed = await made("changed");
  const repacked = await made("repacked");
  const deleted = await made("deleted");
  const still = await made("still");
  const offered = await made("offered");
  const emptied = await made("emptied");
  const snapshot = repositories.beginSnapshot();
  const copy = await copyOfRows();
  assert.ok(snapshot);
  assert.equal(repositories.beginSnapshot(), undefined, "one at a time");
  const later = await commitIn(changed.repository, "later", changed.tip);
  await changed.repository.updateRefs([
    { ref: other, to: later },
    { ref: main, to: undefined },
  ]);
  await changed.repository.updateRefs([], other);
  await changed.repository.updateRefs([{ ref: other, to: changed.tip }]);
  assert.equal(await repacked.repository.housekeep({ cruft: true }), "done");
  await repositories.delete(address("deleted"));
  await emptied.repository.updateRefs([{ ref: main, to: undefined }]);
  assert.equal(await repositories.removeIfEmpty(address("emptied")), true);
  await made("new");
  assert.equal(await snapshot.stageAll(copy, () => undefined, signal), 4);
  repositories.endSnapshot();
  const place = (identifier: string): string => address(identifier).directoryUnder(snapshot.folder);
  for (const [identifier, { tip }] of Object.entries({ changed, repacked, deleted, still, offered, emptied })) {
    assert.deepEqual(await refsIn(place(identifier)), { [main]: tip }, identifier);
    assert.equal(readFileSync(join(place(identifier), "HEAD"), "utf8"), `ref: ${main}\n`);
    const checked = await git.run(["fsck", "--no-dangling"], { directory: place(identifier) });
    assert.equal(checked.code, 0, checked.stderr);
  }
  assert.equal(existsSync(place("new")), false);
  assert.deepEqual(await refsIn(changed.repository.directory), { [other]: changed.tip });
});

test("the folder of a snapshot is no repository, and one that was left goes at the next start", async () => {
  const snapshot = repositories.beginSnapshot();
  await snapshot?.stageAll(store, () => undefined, signal);
  repositories.endSnapshot();
  const names: string[] = [];
  for await (const { npubOrOwner } of repositories.list()) names.push(npubOrOwner);
  assert.deepEqual([...new Set(names)], [npub, owner]);
  await repositories.sweep();
  assert.deepEqual(readdirSync(join(folder, "git")).sort(), [npub, "prs"]);
});
