// The verbs over the smallest store that can hold events; the stores' own promises are tested with them.

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { systemClock } from "../../base/clock.js";
import { eventId, parseEvent, type VerifiedEvent } from "../../nostr/event.js";
import { type Filter, matcherOf } from "../../nostr/filter.js";
import type { Pubkey } from "../../nostr/ids.js";
import type { Store, StoredRow } from "../../store/port.js";
import type { Abilities } from "../abilities.js";
import { lockDataDirectory } from "../data-lock.js";
import { runCommandLine } from "../run.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-events-"));
after(() => rmSync(folder, { recursive: true }));

function arrayStore(events: VerifiedEvent[]): Store {
  const matching = (filters: readonly Filter[]): VerifiedEvent[] =>
    events.filter((event) => filters.some((filter) => matcherOf(filter)(event)));
  const store = {
    stats: { events: 0, bytesOnDisk: 7, queuedWorks: 0 },
    has: async (id: string) => events.some((event) => event.id === id),
    count: async (filters: readonly Filter[]) => matching(filters).length,
    async *query(filters: readonly Filter[]): AsyncGenerator<readonly StoredRow[]> {
      for (const event of matching(filters)) {
        yield [{ seq: 1, id: event.id, created_at: event.created_at, json: Buffer.from(event.raw), event }];
      }
    },
    put: async (event: VerifiedEvent) => {
      events.push(event);
      return { stored: true, seq: events.length, replaced: undefined };
    },
    remove: async (id: string) => {
      const at = events.findIndex((event) => event.id === id);
      if (at >= 0) events.splice(at, 1);
      return at >= 0;
    },
    transact: async (work: (tx: unknown) => Promise<unknown>) => work(store),
    compact: async () => undefined,
    close: async () => undefined,
  };
  return store as unknown as Store;
}

function event(kind: number, content: string): string {
  const unsigned = { pubkey: "ab".repeat(32) as Pubkey, created_at: 1_700_000_000, kind, tags: [], content };
  const parsed = parseEvent({ ...unsigned, id: eventId(unsigned), sig: "00".repeat(64) });
  assert.ok(parsed.ok);
  return parsed.event.raw;
}

async function run(events: VerifiedEvent[], args: readonly string[], stdin: readonly string[] = []) {
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
    environment: { NGIT_DATA_PATH: join(folder, "data") },
    clock: systemClock,
    build: { version: "0", commit: "0" },
    cores: 1,
    serve: async () => 0,
    openStore: async () => arrayStore(events),
    // "forged" is what a bad signature looks like here.
    createVerifier: async () => ({
      engine: "test",
      verify: async (candidate) => (candidate.content === "forged" ? undefined : (candidate as VerifiedEvent)),
      close: async () => undefined,
    }),
    importPolicy: async () => ({ ok: true, action: "store", rule: "import" }),
    serverPolicy: () => undefined,
    gitVersion: async () => ({ ok: true, version: "2.39.5" }),
  };
  const code = await runCommandLine(["node", "holdfast", ...args], abilities);
  return { code, out: out.join(""), error: error.join("") };
}

test("import takes good events once, counts what is known and says why others are refused", async () => {
  const events: VerifiedEvent[] = [];
  const lines = [
    event(1, "a"),
    "",
    event(1, "a b"),
    event(1, "forged"),
    "not json",
    event(1, "x").replace('"x"', '"y"'),
  ];
  const first = await run(events, ["events", "import", "--json"], lines);
  assert.equal(first.code, 0, first.error);
  assert.deepEqual(JSON.parse(first.out), {
    ok: true,
    stored: 2,
    known: 0,
    refused: { "bad-signature": 1, "bad-event": 1, "bad-id": 1 },
  });
  const path = join(folder, "in.jsonl");
  writeFileSync(path, lines.slice(0, 3).join("\r\n"));
  const second = await run(events, ["events", "import", path]);
  assert.equal(second.out, "0 stored, 2 known already, 0 refused\n");
  assert.deepEqual(readdirSync(join(folder, "data", "relay")), []);
});

test("importing a file that is not there fails with its name", async () => {
  const ended = await run([], ["events", "import", "/nowhere.jsonl"]);
  assert.equal(ended.code, 1);
  assert.match(ended.error, /\/nowhere\.jsonl cannot be read \(ENOENT\)/);
});

test("export writes the very text that was stored, and never over an existing file", async () => {
  const events = [event(1, "a"), event(7, "é\u2028")].map(
    (raw) => Object.assign(JSON.parse(raw), { raw }) as VerifiedEvent,
  );
  const toOutput = await run(events, ["events", "export", "--filter", '{"kinds":[7]}']);
  assert.equal(toOutput.out, `${event(7, "é\u2028")}\n`);
  const path = join(folder, "out.jsonl");
  const toFile = await run(events, ["events", "export", "--json", "--output", path]);
  assert.deepEqual(JSON.parse(toFile.out), { ok: true, exported: 2, file: path });
  assert.equal(readFileSync(path, "utf8"), `${event(1, "a")}\n${event(7, "é\u2028")}\n`);
  const again = await run(events, ["events", "export", "--output", path]);
  assert.equal(again.code, 1);
  assert.match(again.error, /cannot be created \(EEXIST\)/);
});

test("scan counts by kind; delete removes only with --yes", async () => {
  const raws = [event(1, "a"), event(1, "b"), event(7, "c")];
  const events = raws.map((raw) => Object.assign(JSON.parse(raw), { raw }) as VerifiedEvent);
  const scan = await run(events, ["events", "scan", "--json"]);
  const bytes = raws.reduce((sum, raw) => sum + raw.length, 0);
  assert.deepEqual(JSON.parse(scan.out), { ok: true, events: 3, bytes, byKind: { 1: 2, 7: 1 } });
  const dry = await run(events, ["events", "delete", "--filter", '{"kinds":[1]}']);
  assert.equal(dry.out, "2 events match; add --yes to delete them\n");
  assert.equal(events.length, 3);
  const real = await run(events, ["events", "delete", "--filter", '{"kinds":[1]}', "--yes"]);
  assert.equal(real.out, "2 events deleted\n");
  assert.equal(events.length, 1);
});

test("while another process holds the data directory nothing is opened", async () => {
  const lock = lockDataDirectory(join(folder, "data", "relay"));
  assert.ok(lock.ok);
  const ended = await run([], ["events", "scan"]);
  lock.release();
  assert.equal(ended.code, 1);
  assert.match(ended.error, new RegExp(`in use by process ${process.pid}`));
});

test("doctor reports every part and exits by the worst", async () => {
  const ended = await run([], ["doctor", "--json", "--bind-address", "127.0.0.1:0", "--domain", "localhost"]);
  const answer = JSON.parse(ended.out) as { ok: boolean; findings: { check: string; result: string }[] };
  assert.deepEqual(
    answer.findings.map(({ check }) => check),
    ["node", "git", "verification", "port", "git data", "relay data", "clock"],
  );
  assert.equal(ended.code, answer.ok ? 0 : 1);
});
