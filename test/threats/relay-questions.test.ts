// threats.md rows 23 and 26 against the started server: questions made to cost more than they are worth.

import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import type { Filter, Event as ToolEvent } from "nostr-tools";
import { NegentropyClient } from "../../src/nostr/negentropy/reconcile.js";
import { NegentropyRecords } from "../../src/nostr/negentropy/records.js";
import { Random } from "../../src/store/testing/random.js";
import { runs } from "../fuzz/runs.js";
import { RelayClient } from "../harness/relay-client.js";
import { keyOf } from "../harness/relay-events.js";
import { eventually, mebibyte, RelayWorld, someKeys } from "./relay-world.js";

const seed = Number(process.env.HOLDFAST_SEED ?? Date.now() % 1_000_000);
const randomMessages = runs(400);
const hexOf = (index: number, letter = "0"): string => index.toString(16).padStart(64, letter);
const manyHex = (count: number, letter?: string): string[] => Array.from({ length: count }, (_, i) => hexOf(i, letter));

/** NIP-01, word for word. */
function matches(filter: Filter, event: ToolEvent): boolean {
  const isIn = (list: readonly unknown[] | undefined, value: unknown) => list === undefined || list.includes(value);
  if (!isIn(filter.ids, event.id) || !isIn(filter.authors, event.pubkey) || !isIn(filter.kinds, event.kind))
    return false;
  if (event.created_at < (filter.since ?? 0) || event.created_at > (filter.until ?? Infinity)) return false;
  return Object.entries(filter)
    .filter(([name]) => name.startsWith("#"))
    .every(([name, values]) =>
      event.tags.some(([tag, value]) => tag === name.slice(1) && (values as unknown[]).includes(value)),
    );
}

/** Walks everything: newest first, lower id first within a second, each event once, limits by filter. */
function naive(all: readonly ToolEvent[], filters: readonly Filter[]): string[] {
  const newestFirst = [...all].sort((a, b) => b.created_at - a.created_at || (a.id < b.id ? -1 : 1));
  const found = filters.flatMap((filter) => {
    const matching = newestFirst.filter((event) => matches(filter, event));
    return matching.slice(0, filter.limit ?? 500).map(({ id }) => id);
  });
  const wanted = new Set(found);
  return newestFirst.map(({ id }) => id).filter((id) => wanted.has(id));
}

describe("threats 23 and 26", { timeout: 500_000 }, () => {
  const shared = RelayWorld.shared({ NGIT_NEGENTROPY_IDLE_SECS: "2" });

  // The first: it asks for all there is.
  test("threat 23: costly and odd filters get the answer of a naive scan, on REQ and COUNT, in bounded time and memory", async () => {
    const world = shared();
    const keys = someKeys(40);
    // Longer than any key of an index.
    const long = "v".repeat(8 * 1024);
    for (const [index, key] of keys.entries()) {
      const tags = [
        ["t", index % 2 ? "odd" : "even"],
        ["t", `${long}${index % 4}`],
        ["e", hexOf(index)],
        ["", "empty name"],
        ["x", ""],
        ["longer", "name"],
      ];
      for (const at of [0, 1 + (index % 5)]) {
        await world.taken(world.issue(key, `${index} ${at}`, { tags, created_at: 1_700_000_000 + at * 7 }).event);
      }
    }
    const all = (await world.story.relay.ask("all", { limit: 5_000 })).events as ToolEvent[];
    assert.equal(all.length, keys.length * 2 + 2);
    const heldBefore = await world.heldBytes();
    const crowd = (at: number) => [...manyHex(999, "f"), keys[at % keys.length]?.pubkey ?? ""];
    const odd: readonly (readonly Filter[])[] = [
      [{}],
      [{ ids: [] }],
      [{ authors: [] }],
      [{ kinds: [] }],
      [{ "#t": [] }],
      [{ "#t": [], kinds: [1621] }],
      [{ since: 10, until: 5 }],
      [{ since: 1_700_000_007, until: 1_700_000_007 }],
      [{ until: 0 }],
      [{ since: Number.MAX_SAFE_INTEGER }],
      [{ limit: 0 }],
      [{ limit: 5_000 }],
      [{ limit: Number.MAX_SAFE_INTEGER, kinds: [1621] }],
      [{ unknown: "key", kinds: [1621], __proto__: null } as Filter],
      [{ "#t": [`${long}1`, `${long}2`] }],
      [{ "#t": [long] }],
      [{ "#t": [`${long}1x`] }],
      [{ "#t": ["odd", "v".repeat(256 * 1024)] }],
      [{ "#x": [""] }],
      [{ "#longer": ["name"] } as Filter],
      [{ "#t": ["odd"], "#e": manyHex(2_000), kinds: [1621], since: 1_700_000_001 }],
      [{ ids: manyHex(4_998).concat(all.slice(0, 2).map(({ id }) => id)) }],
      [{ "#e": manyHex(5_000, "a").slice(0, 4_999).concat(hexOf(3)) }],
      [{ authors: crowd(0), kinds: Array.from({ length: 4_000 }, (_, kind) => kind) }],
      Array.from({ length: 70 }, (_, at) => ({ authors: crowd(at) })),
      Array.from({ length: 100 }, (_, at) => ({ authors: crowd(at).slice(-500), limit: 1 })),
      Array.from({ length: 100 }, () => ({})),
    ];
    const workedBefore = await world.cpuSeconds();
    for (const filters of odd) {
      const name = JSON.stringify(filters).slice(0, 100);
      const { events, end } = await world.story.relay.ask("odd", ...filters);
      assert.equal(end[0], "EOSE", `${name}: ${String(end[2])}`);
      assert.deepEqual(
        events.map(({ id }) => id),
        naive(all, filters),
        name,
      );
      const [only] = filters;
      if (filters.length === 1 && only && only.limit === undefined) {
        assert.equal(await world.count(only), naive(all, filters).length, `COUNT ${name}`);
      }
    }
    const worked = (await world.cpuSeconds()) - workedBefore;
    assert.ok(worked < 15, `all of them together took the server ${worked} s of work`);
    // Beyond the limits: 100 filters of 1,000 authors are over 5 MiB, 200 of them over twice that.
    const abuser = await world.client();
    const refusal = abuser.next(([verb]) => verb === "NOTICE");
    abuser.send("REQ", "big", ...Array.from({ length: 100 }, (_, at) => ({ authors: crowd(at) })));
    assert.match(String((await refusal)[1]), /^invalid: /);
    const closed = once(abuser.socket, "close");
    abuser.send("REQ", "bigger", ...Array.from({ length: 200 }, (_, at) => ({ authors: crowd(at) })));
    assert.equal((await closed)[0], 1009);
    for (const verb of ["REQ", "COUNT"]) {
      const other = await world.client();
      for (const filters of [
        Array.from({ length: 200 }, () => ({})),
        [{ ids: manyHex(5_001) }],
        [{ "#t": [5] }],
        [[]],
      ]) {
        const answer = other.next(([heard, id]) => heard === "CLOSED" && id === "no");
        other.send(verb, "no", ...filters);
        assert.match(String((await answer)[2]), /^invalid: /);
      }
      await other.close();
    }
    await eventually("one connection is left", async () => (await world.connections()) === 1);
    await world.isUnharmed(heldBefore, 64 * mebibyte);
  });

  test("threat 23: 10,000 subscriptions cost what they match, and nothing when they are gone", async () => {
    const world = shared();
    const wanted = keyOf("wanted");
    const heldBefore = await world.heldBytes();
    const filesBefore = await world.openFiles();
    const clients = await Promise.all(Array.from({ length: 34 }, () => RelayClient.connect(world.url)));
    await Promise.all(
      clients.map(async (client, index) => {
        const last = client.next(([verb, id]) => verb === "CLOSED" && id === "s304");
        for (let at = 0; at < 305; at++) {
          const authors = at === index ? [wanted.pubkey] : [hexOf(index * 305 + at, "f")];
          client.send("REQ", `s${at}`, { authors, kinds: [1621] }, { "#t": [`${index} ${at}`] });
        }
        assert.match(String((await last)[2]), /^blocked: /);
        const heard = (verb: string): number => client.heard.filter(([name]) => name === verb).length;
        await eventually("the others are answered", () => heard("EOSE") === 300);
        assert.equal(heard("CLOSED"), 5);
      }),
    );
    await world.isUnharmed(heldBefore, 100 * mebibyte);
    const event = await world.taken(world.issue(wanted, "for one subscription of each").event);
    for (let index = 0; index < 100; index++)
      await world.taken(world.issue(keyOf("dull"), `for nobody ${index}`).event);
    for (const [index, client] of clients.entries()) {
      await eventually("it is heard", () => client.heard.some(([verb]) => verb === "EVENT"));
      const heard = client.heard.filter(([verb]) => verb === "EVENT");
      assert.deepEqual(
        heard.map(([, id, got]) => [id, (got as ToolEvent).id]),
        [[`s${index}`, event.id]],
      );
    }
    // Half say good-bye, half are cut.
    await Promise.all(clients.map((client, at) => (at % 2 ? client.close() : client.socket.terminate())));
    await eventually("nobody else is left", async () => (await world.connections()) === 1);
    await eventually("their sockets are closed", async () => (await world.openFiles()) <= filesBefore + 3);
    await world.isUnharmed(heldBefore, 100 * mebibyte);
  });

  test(`threat 26: negentropy of random bytes, wrong versions, 1,000 opens and a peer that never ends (seed ${seed})`, async () => {
    const world = shared();
    for (let index = 0; index < 60; index++) await world.taken(world.issue(keyOf("neg"), String(index)).event);
    const heldBefore = await world.heldBytes();
    const random = new Random(seed);
    const client = await world.client();
    const answerFor = (id: string) => client.next(([verb, sub]) => String(verb).startsWith("NEG-") && sub === id);
    const opening = Buffer.from(new NegentropyClient(emptySide()).initiate()).toString("hex");

    // Random bytes, half of them with the right version first, half in a session that was opened well.
    for (let at = 0; at < randomMessages; at++) {
      const bytes = Buffer.from(Array.from({ length: random.below(120) }, () => random.below(256)));
      if (bytes.length > 0 && random.chance(0.7)) bytes[0] = 0x61;
      const id = `n${at % 10}`;
      if (random.chance(0.5)) {
        const opened = answerFor(id);
        client.send("NEG-OPEN", id, { kinds: [1621] }, opening);
        assert.equal((await opened)[0], "NEG-MSG");
        const answer = answerFor(id);
        client.send("NEG-MSG", id, bytes.toString("hex"));
        await answer;
      } else {
        const answer = answerFor(id);
        client.send("NEG-OPEN", id, {}, bytes.toString("hex"));
        await answer;
      }
    }
    for (const version of ["00", "60", "62", "7f", "e1", "ff"]) {
      const answer = answerFor("v");
      client.send("NEG-OPEN", "v", {}, `${version}00`);
      const [verb, , text] = await answer;
      assert.ok(verb === "NEG-ERR" || text === "61", `${version}: ${String(text)}`);
    }
    for (const bad of ["6", "zz", "61 ", "", "61".repeat(600_000)]) {
      const answer = answerFor("b");
      client.send("NEG-OPEN", "b", {}, bad);
      assert.equal((await answer)[0], "NEG-ERR", bad.slice(0, 10));
    }
    await client.close();

    // 1,000 opens on each of three connections: twenty each are served.
    const crowd = await Promise.all([world.client(), world.client(), world.client()]);
    for (const peer of crowd) {
      const last = peer.next(([verb, id]) => String(verb).startsWith("NEG-") && id === "o999");
      for (let at = 0; at < 1_000; at++) peer.send("NEG-OPEN", `o${at}`, {}, opening);
      assert.match(String((await last)[2]), /^blocked: /);
      await eventually("all are answered", () => peer.heard.length === 1_000);
      assert.equal(peer.heard.filter(([verb]) => verb === "NEG-MSG").length, 20);
      assert.equal(peer.heard.filter(([verb]) => verb === "NEG-ERR").length, 980);
    }
    // A peer that asks the same thing for ever is answered, frame by frame, and costs nothing more.
    const endless = await world.client();
    for (let round = 0; round < 500; round++) {
      const answer = endless.next(([verb]) => String(verb).startsWith("NEG-"));
      endless.send(round === 0 ? "NEG-OPEN" : "NEG-MSG", "endless", ...(round === 0 ? [{}] : []), opening);
      assert.equal((await answer)[0], "NEG-MSG");
    }
    // All sessions that were left open are ended by the server, each with one NEG-ERR.
    await eventually("idle sessions are ended", () =>
      crowd.every((peer) => peer.heard.filter(([, , text]) => String(text).startsWith("closed: ")).length === 20),
    );
    const [peer] = crowd;
    const again = peer.next(([verb, id]) => String(verb).startsWith("NEG-") && id === "again");
    peer.send("NEG-OPEN", "again", {}, opening);
    assert.equal((await again)[0], "NEG-MSG", "there is room again");
    await world.isUnharmed(heldBefore, 100 * mebibyte);
  });
});

const emptySide = () => new NegentropyRecords({ length: 0, times: new Float64Array(), ids: Buffer.alloc(0) });
