// The verbs in this process, over the LMDB store and the real verifier.

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { systemClock } from "../../base/clock.js";
import { lockDataDirectory, lockFile } from "../../base/data-lock.js";
import { keyFrom, signedEvent } from "../../nostr/testing/signed.js";
import { openOperator } from "../../offline.js";
import type { Abilities } from "../abilities.js";
import { runCommandLine } from "../run.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-events-"));
after(() => rmSync(folder, { recursive: true }));

const author = keyFrom("author");
const signed = (kind: number, content: string): string => signedEvent({ kind, content }, author).raw;

let folders = 0;
const dataFolder = (): string => join(folder, `data-${folders++}`);

async function run(data: string, args: readonly string[], stdin: readonly string[] = []) {
  const out: string[] = [];
  const error: string[] = [];
  const abilities: Abilities = {
    terminal: {
      out: async (text) => void out.push(text),
      error: (text) => void error.push(text),
      showsProgress: false,
      columns: 100,
      async *lines() {
        yield* stdin;
      },
    },
    environment: { NGIT_DATA_PATH: data },
    umask: 0o022,
    clock: systemClock,
    build: { version: "0", commit: "0" },
    cores: 1,
    serve: async () => 0,
    openOperator: (config, store) => openOperator(config, store, systemClock),
    openImport: () => Promise.reject(new Error("not used")),
    startTemporary: () => Promise.reject(new Error("not used")),
  };
  const code = await runCommandLine(["node", "holdfast", ...args], abilities);
  return { code, out: out.join(""), error: error.join("") };
}

test("import takes good events once, counts what is known and says why others are refused", async () => {
  const data = dataFolder();
  const forged = signed(1, "forged").replace(/"sig":"..../, '"sig":"0000');
  const lines = [signed(1, "a"), "", signed(1, "a b"), forged, "not json", signed(1, "x").replace('"x"', '"y"')];
  const first = await run(data, ["events", "import", "--json"], lines);
  assert.equal(first.code, 0, first.error);
  assert.deepEqual(JSON.parse(first.out), {
    ok: true,
    stored: 2,
    waiting: 0,
    known: 0,
    refused: { "bad-signature": 1, "bad-event": 1, "bad-id": 1 },
  });
  const path = join(folder, "in.jsonl");
  writeFileSync(path, lines.slice(0, 3).join("\r\n"));
  const second = await run(data, ["events", "import", path]);
  assert.equal(second.out, "0 stored, 2 known already, 0 refused\n");
  assert.ok(!readdirSync(join(data, "relay")).includes(lockFile), "the lock is given back");
});

test("importing a file that is not there fails with its name", async () => {
  const ended = await run(dataFolder(), ["events", "import", "/nowhere.jsonl"]);
  assert.equal(ended.code, 1);
  assert.match(ended.error, /\/nowhere\.jsonl is not there \(ENOENT\): check the name/);
});

test("export writes the very text that was stored, and never over an existing file", async () => {
  const data = dataFolder();
  const older = signedEvent({ kind: 1, content: "a", created_at: 1_600_000_000 }, author).raw;
  const newer = signed(7, "é\u2028");
  await run(data, ["events", "import"], [older, newer]);
  const toOutput = await run(data, ["events", "export", "--filter", '{"kinds":[7]}']);
  assert.equal(toOutput.out, `${newer}\n`);
  const path = join(folder, "out.jsonl");
  const toFile = await run(data, ["events", "export", "--json", "--output", path]);
  assert.deepEqual(JSON.parse(toFile.out), { ok: true, exported: 2, file: path });
  assert.equal(readFileSync(path, "utf8"), `${newer}\n${older}\n`);
  const again = await run(data, ["events", "export", "--output", path]);
  assert.equal(again.code, 1);
  assert.match(again.error, /is there already \(EEXIST\): name another/);
});

test("scan counts by kind; delete removes only with --yes, and what it removed can come again", async () => {
  const data = dataFolder();
  const raws = [signed(1, "a"), signed(1, "b"), signed(7, "c")];
  await run(data, ["events", "import"], raws);
  const scan = async () => JSON.parse((await run(data, ["events", "scan", "--json"])).out) as unknown;
  const bytes = raws.reduce((sum, raw) => sum + raw.length, 0);
  assert.deepEqual(await scan(), { ok: true, events: 3, bytes, byKind: { 1: 2, 7: 1 } });
  const dry = await run(data, ["events", "delete", "--filter", '{"kinds":[1]}']);
  assert.equal(dry.out, "2 events match; add --yes to delete them\n");
  assert.deepEqual(await scan(), { ok: true, events: 3, bytes, byKind: { 1: 2, 7: 1 } });
  const real = await run(data, ["events", "delete", "--filter", '{"kinds":[1]}', "--yes"]);
  assert.equal(real.out, "2 events deleted\n");
  assert.deepEqual(await scan(), { ok: true, events: 1, bytes: raws[2]?.length, byKind: { 7: 1 } });
  const again = await run(data, ["events", "import"], raws);
  assert.equal(again.out, "2 stored, 1 known already, 0 refused\n");
});

test("compact keeps every event and says what it won", async () => {
  const data = dataFolder();
  const raws = Array.from({ length: 300 }, (_, index) => signed(1, `${index} ${"x".repeat(2_000)}`));
  await run(data, ["events", "import"], raws);
  await run(data, ["events", "delete", "--filter", '{"kinds":[1]}', "--yes"]);
  await run(data, ["events", "import"], raws.slice(0, 10));
  const ended = await run(data, ["compact", "--json"]);
  const answer = JSON.parse(ended.out) as { events: number; bytesBefore: number; bytesAfter: number };
  assert.equal(answer.events, 10);
  assert.ok(answer.bytesAfter < answer.bytesBefore, ended.out);
  const kept = await run(data, ["events", "export"]);
  assert.deepEqual(kept.out.trim().split("\n").sort(), raws.slice(0, 10).sort());
});

test("while another process holds the data directory nothing is opened", async () => {
  const data = dataFolder();
  const lock = lockDataDirectory(join(data, "relay"));
  assert.ok(lock.ok);
  const ended = await run(data, ["events", "scan"]);
  lock.release();
  assert.equal(ended.code, 1);
  assert.match(ended.error, new RegExp(`in use by process ${process.pid}`));
});

test("doctor reports every part and exits by the worst", async () => {
  const ended = await run(dataFolder(), ["doctor", "--json", "--bind-address", "127.0.0.1:0", "--domain", "localhost"]);
  const answer = JSON.parse(ended.out) as { ok: boolean; findings: { check: string; result: string }[] };
  assert.deepEqual(
    answer.findings.map(({ check }) => check),
    ["node", "git", "verification", "port", "git data", "relay data", "clock"],
  );
  assert.equal(ended.code, answer.ok ? 0 : 1);
});
