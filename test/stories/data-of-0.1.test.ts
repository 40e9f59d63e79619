// A server starts on what version 0.1 left when it was killed in the middle of a push (test/fixtures/0.1/make.mjs says
// how that was made): nothing that was served or waited is lost, and the push is ended. What is rewritten is copied first.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { filesBelow } from "../../src/backup/files.js";
import { type Clock, systemClock, unixSeconds } from "../../src/base/clock.js";
import { catalogueRow, underPrs } from "../../src/catalogue/repositories.js";
import type { Pubkey } from "../../src/nostr/event.js";
import { npubOf } from "../../src/nostr/nip19.js";
import { DatabaseFiles } from "../../src/store/lmdb/database.js";
import { openLmdbStore } from "../../src/store/lmdb/open.js";
import { setMeta } from "../../src/store/lmdb/rows.js";
import type { Store, TableName } from "../../src/store/port.js";
import { holdfast } from "../cli/run.js";
import { runProgram } from "../harness/git-server.js";
import { Person, type SignedEvent } from "../harness/grasp-people.js";
import { Story } from "../harness/grasp-story.js";
import { newFolder, removeFolder, startInProcess } from "../harness/server.js";
import { dataSettings } from "./backup-house.js";
import { listed, switchedOn } from "./prs-world.js";

interface Facts {
  readonly domain: string;
  readonly owner: Pubkey;
  readonly contributor: Pubkey;
  readonly elsewhere: Pubkey;
  readonly banned: Pubkey;
  readonly own: { readonly announcement: string; readonly state: string; readonly issue: string };
  readonly interrupted: { readonly state: string; readonly refs: Readonly<Record<string, string>> };
  readonly archived: { readonly events: readonly string[]; readonly refs: Readonly<Record<string, string>> };
  readonly prs: { readonly served: string; readonly late: SignedEvent; readonly waiting: string; readonly tip: string };
  readonly waiting: { readonly announcement: string; readonly state: string };
}

const fixture = fileURLToPath(new URL("../../../test/fixtures/0.1/", import.meta.url));
const facts = JSON.parse(readFileSync(join(fixture, "facts.json"), "utf8")) as Facts;
const settings = { ...switchedOn, NGIT_DOMAIN: facts.domain, NGIT_ARCHIVE_ALL: "true" };

// What waits without its event ends after a day: whenever these tests run, their servers start two hours after the last event
// that version 0.1 took.
const startedMs = Date.now();
const clock: Clock = {
  ...systemClock,
  nowMs: () => facts.prs.late.created_at * 1000 + 2 * 3_600_000 + Date.now() - startedMs,
};

async function unpacked(): Promise<string> {
  const folder = await newFolder();
  const { code, stderr } = await runProgram("tar", ["-xzf", join(fixture, "data.tar.gz"), "-C", folder]);
  assert.equal(code, 0, stderr);
  return folder;
}

async function keysIn(store: Store, table: TableName, prefix = ""): Promise<string[]> {
  const found: string[] = [];
  for await (const [key] of store.rows(table, { prefix })) found.push(key.slice(prefix.length));
  return found;
}

const heads = (refs: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(refs).filter(([ref]) => ref !== "HEAD"));

const killedProgram = fileURLToPath(new URL("./upgrade-killed-program.js", import.meta.url));

async function signalThatEnded(folder: string, point: string): Promise<NodeJS.Signals | null> {
  const child = spawn(process.execPath, [killedProgram, folder, point], { stdio: ["ignore", "ignore", "inherit"] });
  const [, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
  return signal;
}

/** The data as a backup that version 0.1 took of it. */
async function asBackup(folder: string): Promise<string> {
  const found = (await filesBelow(folder)).filter(({ path }) =>
    /^git\/|^relay\/(events-1\.mdb|server\.key)$/.test(path),
  );
  const files = found.map(({ path, bytes }) => ({
    path,
    bytes,
    sha256: createHash("sha256")
      .update(readFileSync(join(folder, path)))
      .digest("hex"),
  }));
  const repositories = new Set(files.flatMap(({ path }) => /^git\/.*?\.git(?=\/)/.exec(path) ?? []));
  const store = await openLmdbStore(join(folder, "relay"), { readOnly: true });
  const { events } = store.stats;
  await store.close();
  const manifest = { format: 1, program: "holdfast 0.1.0", domain: facts.domain, takenAt: "2026-01-01T00:00:00Z" };
  writeFileSync(
    join(folder, "manifest.json"),
    JSON.stringify({ ...manifest, events, repositories: [...repositories], files }),
  );
  return folder;
}

describe("a server started on data of version 0.1", () => {
  it("serves what was served, ends the push that was cut short, and goes on waiting", async () => {
    const folder = await unpacked();
    try {
      const before = await openLmdbStore(join(folder, "relay"), { readOnly: true });
      const promised = await keysIn(before, "journal", "refs:");
      assert.ok(
        promised.some((key) => key.startsWith(`${facts.owner}:own:`)),
        "the refs of the push are promised",
      );
      await before.close();
      const options = { backend: "lmdb", folder, settings, clock } as const;
      const story = await Story.on(await startInProcess(options));
      const { owner, contributor, elsewhere, own, interrupted, archived, prs, waiting } = facts;
      const url = (area: string, key: Pubkey, identifier: string): string =>
        `${story.server.origin}/${area}${npubOf(key)}/${identifier}.git`;
      const isServed = async (id: string): Promise<boolean> => (await story.served({ ids: [id] })).length === 1;

      for (const id of [own.announcement, own.issue, interrupted.state, ...archived.events, prs.served]) {
        assert.ok(await isServed(id), id);
      }
      const nostrRefs = { [`refs/nostr/${prs.served}`]: prs.tip };
      assert.ok(!(await isServed(own.state)), "the state that was pushed to has replaced the one before");
      assert.deepEqual(heads(await listed(url("", owner, "own"))), { ...interrupted.refs, ...nostrRefs });
      assert.deepEqual(heads(await listed(url("", elsewhere, "mirrored"))), archived.refs);
      assert.deepEqual(await listed(url("prs/", contributor, "own")), nostrRefs);
      assert.deepEqual(await listed(url("prs/", contributor, "late")), { [`refs/nostr/${prs.late.id}`]: prs.tip });

      for (const id of [prs.waiting, waiting.announcement, waiting.state]) assert.ok(!(await isServed(id)), id);
      assert.ok(!(await isServed(prs.late.id)));
      await story.accepted(prs.late);
      assert.ok(await isServed(prs.late.id), "its data was pushed before its event came");
      await story.relay.close();
      await story.server.stop();

      const store = await openLmdbStore(join(folder, "relay"));
      const keys = (table: TableName, prefix: string): Promise<string[]> => keysIn(store, table, prefix);
      assert.deepEqual(
        await keys("purgatory", "e:"),
        [prs.waiting, waiting.announcement, waiting.state].sort(),
        "what waited still waits",
      );
      assert.deepEqual(await keys("purgatory", "g:"), []);
      assert.deepEqual(await keys("journal", ""), []);
      assert.deepEqual(await keys("meta", "prs-bytes:"), []);
      for (const identifier of ["own", "late"]) {
        const row = await catalogueRow(store, underPrs({ owner: contributor, identifier }));
        assert.equal(row?.status, "served", identifier);
        assert.ok((row?.counters.bytes ?? 0) > 0, identifier);
      }
      assert.equal(await catalogueRow(store, underPrs({ owner: contributor, identifier: "waits" })), undefined);
      assert.deepEqual(await keys("bans", "key:"), [facts.banned]);
      await store.close();
    } finally {
      await removeFolder(folder);
    }
  });

  it("takes new events, and serves the same after another start", async () => {
    const folder = await unpacked();
    try {
      const options = { backend: "lmdb", folder, settings, clock } as const;
      for (const _start of [1, 2]) {
        const story = await Story.on(await startInProcess(options));
        const url = `${story.server.origin}/prs/${npubOf(facts.contributor)}/own.git`;
        assert.deepEqual(await listed(url), { [`refs/nostr/${facts.prs.served}`]: facts.prs.tip });
        await story.accepted(
          new Person(unixSeconds(clock)).sign(1621, [["a", `30617:${facts.owner}:own`]], "another issue"),
        );
        await story.relay.close();
        await story.server.stop();
      }
    } finally {
      await removeFolder(folder);
    }
  });

  it("is not harmed when it is killed while it rewrites, and leaves a copy of what was there", async () => {
    for (const point of ["copy", "0", "2"]) {
      const folder = await unpacked();
      try {
        const relay = join(folder, "relay");
        const killed = await signalThatEnded(relay, point);
        assert.equal(killed, "SIGKILL", point);
        const store = await openLmdbStore(relay);
        const { contributor, interrupted, prs, waiting } = facts;
        const waits = [prs.waiting, waiting.announcement, waiting.state, interrupted.state].sort();
        assert.deepEqual(await keysIn(store, "purgatory", "e:"), waits, point);
        assert.deepEqual(await keysIn(store, "meta", "prs-bytes:"), [], point);
        const row = await catalogueRow(store, underPrs({ owner: contributor, identifier: "own" }));
        assert.equal(row?.status, "served", point);
        await store.close();
        const copied = readdirSync(relay).filter((name) => name.startsWith("events-of-"));
        assert.deepEqual(copied, ["events-of-format-1.mdb"], point);
        // Going back: the copy is what the version before finds.
        const before = join(folder, "before");
        mkdirSync(before);
        copyFileSync(join(relay, "events-of-format-1.mdb"), join(before, "events-1.mdb"));
        const old = await openLmdbStore(before, { readOnly: true });
        assert.ok((await keysIn(old, "meta", "prs-bytes:")).length > 0, point);
        assert.deepEqual(await keysIn(old, "purgatory", "e:"), waits, point);
        await old.close();
      } finally {
        await removeFolder(folder);
      }
    }
  });

  it("starts on a backup that version 0.1 took, restored, and says in its log that it rewrote the store", async () => {
    const [data, folder] = [await unpacked(), await newFolder()];
    try {
      const backup = await asBackup(data);
      const restored = await holdfast(["restore", backup], dataSettings(folder));
      assert.equal(restored.code, 0, restored.stdout + restored.stderr);
      const said: string[] = [];
      const onLog = ({ message }: { readonly message: string }): number => said.push(message);
      const server = await startInProcess({ backend: "lmdb", folder, settings, onLog, clock });
      assert.match(
        said.join("\n"),
        /events-of-format-1\.mdb is a copy.*format 1: bringing it to format 3.*format 3 now/s,
      );
      const story = await Story.on(server);
      assert.equal((await story.served({ ids: [facts.own.announcement] })).length, 1);
      const url = `${server.origin}/${npubOf(facts.owner)}/own.git`;
      assert.deepEqual(heads(await listed(url)), {
        ...facts.interrupted.refs,
        [`refs/nostr/${facts.prs.served}`]: facts.prs.tip,
      });
      await story.relay.close();
      await server.stop();
    } finally {
      await removeFolder(data);
      await removeFolder(folder);
    }
  });
});

describe("data of a later version", () => {
  it("is refused by its format at start and by verbs, in one sentence", async () => {
    const folder = await newFolder();
    try {
      const relay = join(folder, "relay");
      await (await openLmdbStore(relay)).close();
      const database = new DatabaseFiles(relay).open();
      await database.write(() => setMeta(database, "version", 99));
      await database.close();
      const sentence = /has format 99; this program reads format 3 and earlier ones: install the version of Holdfast/;
      await assert.rejects(startInProcess({ backend: "lmdb", folder, settings }), {
        name: "StartRefusal",
        message: sentence,
      });
      const { code, stderr } = await holdfast(["repos", "list"], dataSettings(folder));
      assert.equal(code, 1);
      assert.match(stderr, sentence);
      assert.doesNotMatch(stderr, /fault of the program|\n +at /);
    } finally {
      await removeFolder(folder);
    }
  });
});
