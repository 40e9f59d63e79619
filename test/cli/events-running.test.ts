// `holdfast events` beside a running server: the same verbs, asked over the admin socket; what they do is seen at once by
// clients of the relay and of git.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { NostrEvent } from "../../src/nostr/event.js";
import { npubOf } from "../../src/nostr/nip19.js";
import { newKey, OperatorServer, signed } from "../harness/operator-server.js";
import type { RelayClient } from "../harness/relay-client.js";

const rawOf = ({ raw: _, ...event }: NostrEvent): string => JSON.stringify(event);

describe("events while the server runs", { timeout: 900_000 }, () => {
  let server: OperatorServer;
  let client: RelayClient;
  before(async () => {
    server = await OperatorServer.start();
    client = await server.connect();
  });
  after(async () => {
    await client?.close();
    await server?.close();
  });

  const fileOf = (name: string, events: readonly NostrEvent[]): string => {
    const path = join(server.folder, name);
    writeFileSync(path, `${events.map(rawOf).join("\n")}\n`);
    return path;
  };

  test("import goes through the server's own door: stored, waiting, known and refused, and clients see it", async () => {
    const [author, banned] = [newKey(), newKey()];
    await server.operate("ban", { type: "key", target: npubOf(banned.pubkey) });
    const notes = Array.from({ length: 700 }, (_, index) => signed(author, 1, [], `${index} ${"x".repeat(300)}`));
    const announcement = server.announcement(author, "imported");
    const issue = signed(author, 1621, [["a", `30617:${author.pubkey}:imported`]], "an issue");
    const refused = [signed(banned, 1, []), signed(author, 20_001, []), signed(author, 1, [["-"]])];
    const path = fileOf("in.jsonl", [...notes, issue, ...refused, announcement, notes[0] as NostrEvent]);
    assert.deepEqual(await server.json("events", "import", path), {
      ok: true,
      stored: 701,
      waiting: 1,
      known: 1,
      refused: { "author-blocked": 1, unrelated: 1, "not-allowed": 1 },
    });
    assert.equal((await client.ask("stored", { ids: [notes[7]?.id ?? ""] })).events.length, 1);
    const { waiting } = await server.json<{ waiting: { id: string; source: string }[] }>("purgatory", "list");
    assert.deepEqual(
      waiting.map(({ id, source }) => [id, source]),
      [[announcement.id, "import"]],
    );
    // The repository is there for a push at once, not after the next start.
    assert.equal(
      (await fetch(`${server.repositoryUrl(author, "imported")}/info/refs?service=git-receive-pack`)).status,
      200,
    );
  });

  test("export writes the stored text to a file or to standard output, and an import of it finds nothing new", async () => {
    const author = newKey();
    const note = signed(author, 7, [], "é\u2028");
    await server.json("events", "import", fileOf("one.jsonl", [note]));
    const out = await server.verb("events", "export", "--filter", '{"kinds":[7]}');
    assert.equal(out.stdout, `${rawOf(note)}\n`, out.stderr);
    const path = join(server.folder, "out.jsonl");
    const { exported } = await server.json<{ exported: number }>("events", "export", "--output", path);
    const { events, byKind } = await server.json<{ events: number; byKind: object }>("events", "scan");
    assert.equal(exported, events);
    assert.equal(readFileSync(path, "utf8").trim().split("\n").length, exported);
    assert.ok("7" in byKind);
    const again = await server.json<{ stored: number; known: number }>("events", "import", path);
    assert.deepEqual([again.stored, again.known], [0, exported]);
  });

  test("delete takes along what leans on an event, is audited, and what it removed may come again", async () => {
    const owner = newKey();
    const { announcement } = await server.host(client, owner, "hosted");
    const filter = JSON.stringify({ authors: [owner.pubkey], kinds: [30617] });
    const dry = await server.verb("events", "delete", "--filter", filter);
    assert.equal(dry.stdout, "1 event matches; add --yes to delete it\n", dry.stderr);
    const url = `${server.repositoryUrl(owner, "hosted")}/info/refs?service=git-upload-pack`;
    assert.equal((await fetch(url)).status, 200);
    const really = await server.json("events", "delete", "--filter", filter, "--yes");
    assert.deepEqual(really, { ok: true, matching: 1, deleted: 1 });
    assert.equal((await fetch(url)).status, 404);
    assert.deepEqual((await client.ask("gone", { ids: [announcement.id] })).events, []);
    const { changes } = await server.operate<{ changes: { what: string; target: string; via: string }[] }>(
      "audit.list",
      {},
    );
    assert.deepEqual(
      [changes[0]?.what, changes[0]?.target, changes[0]?.via],
      ["delete events", `[${filter}]`, "socket"],
    );
    assert.equal((await client.publish(announcement))[2], true);
    assert.equal((await fetch(url)).status, 200);
  });

  test("a filter's limit is obeyed over many pages: the newest go, the rest stays", async () => {
    const author = newKey();
    const notes = Array.from({ length: 500 }, (_, index) =>
      signed(author, 1, [], String(index), 1_600_000_000 + index),
    );
    await server.operate("events.import", { events: notes });
    const authors = [author.pubkey];
    const asked = { filters: [{ authors, limit: 250 }], really: true };
    assert.deepEqual(await server.operate("events.delete", asked), { matching: 250, deleted: 250 });
    const { events } = await client.ask("left", { authors });
    assert.deepEqual(
      events.map(({ id }) => id),
      notes
        .slice(0, 250)
        .map(({ id }) => id)
        .reverse(),
    );
  });
});
