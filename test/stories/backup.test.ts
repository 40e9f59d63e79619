// `holdfast backup` and `restore` against a server that is being written to.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Story } from "../harness/grasp-story.js";
import { type ChildServer, newFolder, removeFolder, until } from "../harness/server.js";
import { dataSettings, jsonOf, provesWhole, startAsChild, startOn, startVerb, verb, Writer } from "./backup-house.js";

interface Taken {
  readonly backup: string;
  readonly events: number;
  readonly repositories: number;
  readonly sharedBytes: number;
  readonly heldMs: number;
}

const writersAtOnce = Number(process.env.HOLDFAST_BACKUP_WRITERS ?? 2);

describe("backup and restore", { timeout: 600_000 }, () => {
  let server: ChildServer;
  let story: Story;
  let writers: Writer[];
  let folder: string;
  let collection: string;

  before(async () => {
    folder = await newFolder();
    collection = join(folder, "backups");
    server = await startAsChild();
    story = await Story.on(server);
    writers = Array.from({ length: writersAtOnce }, (_, index) => new Writer(story, `written-${index}`));
    for (const writer of writers) await writer.begin();
  });
  after(async () => {
    await story?.relay.close();
    await server?.stop();
    await removeFolder(server.folder);
    await removeFolder(folder);
  });

  test("a backup taken under load restores to a server with everything acknowledged before it began", async () => {
    const acknowledged = writers.flatMap((writer) => writer.acknowledgedEvents);
    const announced = writers.map(({ pushed }) => pushed);
    assert.ok(announced.every((pushed) => pushed !== undefined));
    const taken = await jsonOf<Taken>(server.folder, "backup", collection);
    assert.equal(taken.repositories, writersAtOnce);
    assert.ok(taken.heldMs < 20_000, `events were held for ${taken.heldMs} ms`);
    const before = writers.map(({ pushed }) => pushed?.tip);
    assert.ok(
      await until(() => writers.every(({ pushed }, index) => pushed?.tip !== before[index]), 120_000),
      "the server goes on",
    );

    const elsewhere = await newFolder();
    const restored = await jsonOf<{ events: number; notes: string[] }>(elsewhere, "restore", collection);
    assert.deepEqual([restored.events, restored.notes], [taken.events, []]);
    const again = await startOn(elsewhere);
    try {
      const reader = await Story.on(again);
      const served = new Set((await reader.served({})).map(({ id }) => id));
      // A state that was replaced by a newer one before the backup is not served any more; issues stay.
      const latest = new Set((await reader.served({ kinds: [30618] })).map(({ id }) => id));
      assert.equal(latest.size, writersAtOnce);
      for (const id of acknowledged) {
        const isReplaced = writers.some(({ acknowledgedEvents }) => {
          const states = acknowledgedEvents.filter((_, index) => index % 2 === 0);
          return states.includes(id) && states.slice(states.indexOf(id) + 1).some((later) => latest.has(later));
        });
        assert.ok(served.has(id) || isReplaced, `${id} was acknowledged and is gone`);
      }
      await reader.relay.close();
      await provesWhole(again);
      const own = readFileSync(join(server.folder, "relay/server.key"), "utf8");
      assert.equal(readFileSync(join(elsewhere, "relay/server.key"), "utf8"), own);
      assert.equal(statSync(join(elsewhere, "relay/server.key")).mode & 0o777, 0o600);
    } finally {
      await again.stop();
      await removeFolder(elsewhere);
    }
  });

  test("a second backup shares unchanged packs with the first, and --keep removes the older", async () => {
    for (const writer of writers) await writer.stop();
    const second = await jsonOf<Taken & { removed: string[] }>(server.folder, "backup", collection, "--keep", "1");
    assert.ok(second.sharedBytes > 0);
    assert.equal(second.events, (await story.served({})).length);
    assert.equal(second.removed.length, 1);
    assert.deepEqual(
      readdirSync(collection).filter((name) => !name.startsWith(".")),
      [second.backup.split("/").at(-1)],
    );
    const checked = await jsonOf<{ backup: string }>(server.folder, "backup", collection, "--verify-only");
    assert.equal(checked.backup, second.backup);
  });

  test("kill -9 of a backup leaves nothing that looks like one, no snapshot, and a server that works", async () => {
    const target = join(folder, "killed");
    for (const stage of ["relay/snapshot-", "killed/.incomplete-"]) {
      const { child, ended } = startVerb(server.folder, ["backup", target]);
      const [place = "", prefix = ""] = stage.split("/");
      const watched = place === "killed" ? target : join(server.folder, place);
      const seen = (): boolean => existsSync(watched) && readdirSync(watched).some((name) => name.startsWith(prefix));
      assert.ok(await until(() => seen() || child.exitCode !== null, 120_000));
      assert.equal(child.exitCode, null, "the backup was quicker than the test");
      child.kill("SIGKILL");
      await ended;
      assert.ok(await until(() => snapshotsLeft(server.folder).length === 0, 120_000), "the server keeps a snapshot");
    }
    const refused = await verb(join(folder, "anywhere"), "restore", target);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /there is no complete backup in/);
    const taken = await jsonOf<Taken>(server.folder, "backup", target, "--without-key");
    assert.deepEqual(
      readdirSync(target).filter((name) => name !== "holdfast.lock"),
      [taken.backup.split("/").at(-1)],
    );
    assert.equal(existsSync(join(taken.backup, "relay/server.key")), false);
  });

  test("a damaged backup is refused by name, and nothing of it stays in the data directory", async () => {
    const { backup } = await jsonOf<Taken>(server.folder, "backup", join(folder, "damaged"));
    const { files } = JSON.parse(readFileSync(join(backup, "manifest.json"), "utf8")) as { files: { path: string }[] };
    const pack = files.find(({ path }) => path.endsWith(".pack"))?.path ?? "";
    const bytes = readFileSync(join(backup, pack));
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 0xff;
    writeFileSync(join(backup, pack), bytes);
    const target = await newFolder();
    const byChecksum = await verb(target, "restore", backup, "--json");
    assert.equal(byChecksum.code, 1);
    assert.match(JSON.parse(byChecksum.stdout).error, new RegExp(`damaged: ${pack} does not have its checksum`));
    assert.deepEqual([readdirSync(join(target, "relay")), readdirSync(join(target, "git"))], [[], []]);
    const verified = await verb(server.folder, "backup", backup, "--verify-only");
    assert.equal(verified.code, 1);
    assert.ok(verified.stderr.includes(`${pack} does not have its checksum`), verified.stderr);
    truncateSync(join(backup, "manifest.json"), 100);
    assert.match((await verb(target, "restore", backup)).stderr, /manifest\.json is damaged/);
    await removeFolder(target);
  });

  test("threat 52: a file that rotted in the last backup is copied anew by the next one", async () => {
    const rotting = join(folder, "rotting");
    const { backup } = await jsonOf<Taken>(server.folder, "backup", rotting);
    const { files } = JSON.parse(readFileSync(join(backup, "manifest.json"), "utf8")) as { files: { path: string }[] };
    const pack = files.find(({ path }) => path.endsWith(".pack"))?.path ?? "";
    const sound = readFileSync(join(backup, pack));
    const rotted = Buffer.from(sound);
    rotted[rotted.length >> 1] = (rotted[rotted.length >> 1] ?? 0) ^ 0xff;
    writeFileSync(join(backup, pack), rotted);
    const next = await jsonOf<Taken>(server.folder, "backup", rotting);
    assert.ok(next.sharedBytes > 0, "what is sound is shared");
    assert.deepEqual(readFileSync(join(next.backup, pack)), sound);
  });

  test("restore refuses data that is there, a running server, and a manifest that leads elsewhere", async () => {
    const { backup } = await jsonOf<Taken>(server.folder, "backup", join(folder, "refused"));
    const running = await verb(server.folder, "restore", backup);
    assert.equal(running.code, 1);
    assert.match(running.stderr, /is in use by process \d+/);
    const target = await newFolder();
    mkdirSync(join(target, "git/npub1somebody"), { recursive: true });
    const occupied = await verb(target, "restore", backup);
    assert.equal(occupied.code, 1);
    assert.match(occupied.stderr, /git is not empty: move what is there away/);
    await removeFolder(join(target, "git"));
    const manifest = JSON.parse(readFileSync(join(backup, "manifest.json"), "utf8")) as { files: { path: string }[] };
    manifest.files[0] = { ...manifest.files[0], path: "git/../../outside" };
    writeFileSync(join(backup, "manifest.json"), JSON.stringify(manifest));
    assert.match((await verb(target, "restore", backup)).stderr, /a path leaves the backup/);
    await removeFolder(target);
  });

  test("a stopped server is backed up too", async () => {
    await story.relay.close();
    await server.stop();
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on("warning", onWarning);
    const taken = await jsonOf<Taken>(server.folder, "backup", collection);
    assert.deepEqual(snapshotsLeft(server.folder), []);
    const elsewhere = await newFolder();
    await jsonOf(elsewhere, "restore", taken.backup);
    process.off("warning", onWarning);
    assert.deepEqual(warnings, [], "many files at once are no leak");
    const again = await startOn(elsewhere);
    const reader = await Story.on(again);
    for (const { pushed, owner, identifier } of writers) {
      assert.equal((await reader.advertised(owner, identifier))["refs/heads/main"], pushed?.tip);
      assert.equal((await reader.served({ ids: [pushed?.state] })).length, 1);
    }
    await reader.relay.close();
    await provesWhole(again);
    await again.stop();
    await removeFolder(elsewhere);
  });
});

const snapshotsLeft = (folder: string): string[] =>
  [dataSettings(folder).NGIT_RELAY_DATA_PATH, dataSettings(folder).NGIT_GIT_DATA_PATH]
    .flatMap((path) => readdirSync(path ?? ""))
    .filter((name) => name.includes("snapshot"));
