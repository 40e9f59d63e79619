// A server starts on what version 0.1 left when it was killed in the middle of a push (test/fixtures/0.1/make.mjs says
// how that was made): nothing that was served or waited is lost, and the push is ended.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { catalogueRow, underPrs } from "../../src/catalogue/repositories.js";
import type { Pubkey } from "../../src/nostr/event.js";
import { npubOf } from "../../src/nostr/nip19.js";
import { openLmdbStore } from "../../src/store/lmdb/open.js";
import type { Store, TableName } from "../../src/store/port.js";
import { runProgram } from "../harness/git-server.js";
import { Person, type SignedEvent } from "../harness/grasp-people.js";
import { Story } from "../harness/grasp-story.js";
import { newFolder, removeFolder, startInProcess } from "../harness/server.js";
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
      const options = { backend: "lmdb", folder, settings } as const;
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
      const options = { backend: "lmdb", folder, settings } as const;
      for (const _start of [1, 2]) {
        const story = await Story.on(await startInProcess(options));
        const url = `${story.server.origin}/prs/${npubOf(facts.contributor)}/own.git`;
        assert.deepEqual(await listed(url), { [`refs/nostr/${facts.prs.served}`]: facts.prs.tip });
        await story.accepted(new Person().sign(1621, [["a", `30617:${facts.owner}:own`]], "another issue"));
        await story.relay.close();
        await story.server.stop();
      }
    } finally {
      await removeFolder(folder);
    }
  });
});
