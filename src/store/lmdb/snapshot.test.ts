import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { VerifiedEvent } from "../../nostr/event.js";
import { keyFrom, signedEvent } from "../../nostr/testing/signed.js";
import { openLmdbStore } from "./open.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-copy-"));
after(() => rmSync(folder, { recursive: true, force: true }));

test("a snapshot has every commit before its moment and none after, while commits go on", async () => {
  const store = await openLmdbStore(join(folder, "store"), { indexAtRows: 50 });
  const key = keyFrom("author");
  const events = Array.from({ length: 300 }, (_, index) => signedEvent({ kind: 1, content: `${index}` }, key));
  let put = 0;
  let running = true;
  const writing = (async () => {
    while (running || put < 100) {
      const event = events[put % events.length] as VerifiedEvent;
      await store.transact(async (tx) => {
        await tx.put(event);
        tx.setRow("meta", "put", put);
      });
      put++;
    }
  })();
  while (put < 20) await store.transact(async () => undefined);
  let atThatMoment = -1;
  const heldMs = await store.snapshot(join(folder, "copy"), () => {
    atThatMoment = put;
  });
  assert.ok(heldMs >= 0);
  const afterwards = put;
  running = false;
  await writing;
  const copy = await openLmdbStore(join(folder, "copy"), { readOnly: true });
  // The work whose commit was done may not have counted itself yet.
  const rows = (await copy.row<number>("meta", "put")) ?? -1;
  assert.ok(rows === atThatMoment - 1 || rows === atThatMoment, `${rows} at ${atThatMoment}, ${afterwards} afterwards`);
  assert.equal(copy.stats.events, Math.min(rows + 1, events.length));
  let found = 0;
  for await (const page of copy.query([{ kinds: [1] }])) found += page.length;
  assert.equal(found, copy.stats.events);
  await copy.close();
  await store.close();
});

test("looking at a store that is not there makes none", async () => {
  await assert.rejects(openLmdbStore(join(folder, "nowhere"), { readOnly: true }));
});
