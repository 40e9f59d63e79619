// The relay spoken to over real sockets: publishing, asking, counting, limits of a question, bad frames.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { eventId } from "../../src/nostr/event.js";
import { RelayClient } from "../harness/relay-client.js";
import { keyOf, sign } from "../harness/relay-events.js";
import { startRelay, type TestRelay } from "../harness/relay-server.js";

const alice = keyOf("alice");
const bob = keyOf("bob");

describe("a relay over a real socket", { timeout: 900_000 }, () => {
  let server: TestRelay;
  let client: RelayClient;
  before(async () => {
    server = await startRelay({ limits: { eventsPerMinutePerConnection: 1e6, eventsPerMinutePerIp: 1e6 } });
    client = await RelayClient.connect(server.url);
  });
  after(async () => {
    await client.close();
    await server.close();
    assert.deepEqual(server.faults, []);
  });

  test("an accepted event is answered OK true, is served byte for byte, and is visible before its OK", async () => {
    const event = sign(alice, {
      content: "día \u2028 😀 \u0000",
      tags: [
        ["e", "x"],
        ["t", ""],
      ],
    });
    const ok = await client.publish(event);
    assert.deepEqual(ok, ["OK", event.id, true, ""]);
    const raw: string[] = [];
    client.socket.on("message", (data) => raw.push(String(data)));
    const { events, end } = await client.ask("byid", { ids: [event.id] });
    assert.equal(events.length, 1);
    assert.ok(raw.includes(`["EVENT","byid",${event.raw}]`));
    assert.deepEqual(end, ["EOSE", "byid", ["finish"]]);
  });

  test("a duplicate is OK true with the prefix duplicate", async () => {
    const event = sign(alice, { content: "twice" });
    await client.publish(event);
    const [, , accepted, text] = await client.publish(event);
    assert.equal(accepted, true);
    assert.match(String(text), /^duplicate: /);
  });

  test("a limit that was read again holds for the next frame", async (t) => {
    const changing = await startRelay({ limits: { maxFiltersPerReq: 1 } }, t);
    const client = await RelayClient.connect(changing.url);
    assert.equal((await client.ask("two", {}, {})).end[0], "CLOSED");
    changing.change({ maxFiltersPerReq: 2 });
    assert.equal((await client.ask("two", {}, {})).end[0], "EOSE");
    await client.close();
  });

  test("a client is told the server's own limit of size, however far its event is beyond it", async (t) => {
    const small = await startRelay({ limits: { maxEventBytes: 65_536 } }, t);
    const sender = await RelayClient.connect(small.url);
    for (const chars of [65_536, 2 ** 20]) {
      const unsigned = {
        pubkey: alice.pubkey,
        created_at: 1_700_000_000,
        kind: 1,
        tags: [],
        content: "x".repeat(chars),
      };
      const event = { ...unsigned, id: eventId(unsigned), sig: "0".repeat(128) };
      const answer = await sender.publish({ ...event, raw: JSON.stringify(event) });
      assert.deepEqual(answer, ["OK", event.id, false, "invalid: an event may have at most 65536 bytes"]);
    }
    await sender.close();
  });

  test("an older version of a replaceable event is OK true duplicate, not stored, not sent to subscribers", async () => {
    const newer = sign(alice, { kind: 30_000, tags: [["d", "x"]], created_at: 1_700_000_100 });
    const older = sign(alice, { kind: 30_000, tags: [["d", "x"]], created_at: 1_700_000_050 });
    await client.publish(newer);
    const other = await RelayClient.connect(server.url);
    await other.ask("live", { kinds: [30_000], authors: [alice.pubkey] });
    assert.deepEqual(await client.publish(older), ["OK", older.id, true, "duplicate: a newer version is stored"]);
    const marker = sign(alice, { kind: 30_000, tags: [["d", "marker"]], created_at: 1_700_000_200 });
    const markerSeen = other.next(([verb]) => verb === "EVENT");
    await client.publish(marker);
    assert.equal(((await markerSeen)[2] as { id: string }).id, marker.id);
    await other.close();
  });

  test("every EVENT gets an OK with the id that was sent, even a malformed one", async () => {
    for (const bad of [
      { id: "not-an-id" },
      { id: "a".repeat(64) },
      { ...sign(alice), kind: 70_000 },
      { ...sign(alice), tags: [["e", 1]] },
      { ...sign(alice), content: undefined },
    ]) {
      const [, , accepted, text] = await client.publish(bad as { id: string });
      assert.equal(accepted, false);
      assert.match(String(text), /^invalid: /);
    }
  });

  test("a bad frame is answered with a NOTICE and the connection goes on", async () => {
    const frames = ["", "x", "{}", "[]", "[1]", '["HELLO"]', '["EVENT"]', '["EVENT",null]', '["REQ"]', '["REQ",5,{}]'];
    for (const frame of [...frames, `["REQ","${"s".repeat(251)}",{}]`, "[".repeat(100_000)]) {
      const notice = client.next(([verb]) => verb === "NOTICE");
      client.socket.send(frame);
      assert.match(String((await notice)[1]), /^invalid: /, frame.slice(0, 40));
    }
    for (const bytes of [Buffer.from([0xff, 0xfe]), Buffer.from('["REQ","a",{}]')]) {
      const notice = client.next(([verb]) => verb === "NOTICE");
      client.socket.send(bytes, { binary: bytes[0] !== 0xff });
      assert.match(String((await notice)[1]), /^invalid: /);
    }
    assert.equal((await client.ask("still", { limit: 1 })).end[0], "EOSE");
  });

  test("a bad REQ is answered with CLOSED for its subscription", async () => {
    const bad: unknown[][] = [
      [],
      [null],
      [{ ids: ["x"] }],
      [{ ids: "x" }],
      [{ authors: [alice.pubkey.toUpperCase()] }],
      [{ kinds: [1.5] }],
      [{ kinds: [-1] }],
      [{ since: "1" }],
      [{ limit: -1 }],
      [{ "#e": [5] }],
      Array.from({ length: 101 }, () => ({})),
      [{ "#e": Array.from({ length: 5_001 }, (_, index) => String(index)) }],
    ];
    for (const filters of bad) {
      const { end } = await client.ask("bad", ...filters);
      assert.equal(end[0], "CLOSED", JSON.stringify(filters).slice(0, 80));
      assert.match(String(end[2]), /^invalid: /);
    }
  });

  test("COUNT answers the number of stored matches", async () => {
    const carol = keyOf("carol");
    for (let index = 0; index < 3; index++) await client.publish(sign(carol, { content: String(index) }));
    const answer = client.next(([verb]) => verb === "COUNT");
    client.send("COUNT", "c", { authors: [carol.pubkey] });
    assert.deepEqual(await answer, ["COUNT", "c", { count: 3 }]);
    const refused = client.next(([verb, id]) => verb === "CLOSED" && id === "c2");
    client.send("COUNT", "c2");
    assert.match(String((await refused)[2]), /^invalid: /);
  });

  test("re-using a subscription id replaces the old subscription", async () => {
    const other = await RelayClient.connect(server.url);
    await other.ask("s", { authors: [alice.pubkey], limit: 0 });
    await other.ask("s", { authors: [bob.pubkey], limit: 0 });
    const seen = other.next(([verb]) => verb === "EVENT");
    await client.publish(sign(alice, { content: "for the old one" }));
    const event = sign(bob, { content: "for the new one" });
    await client.publish(event);
    assert.equal(((await seen)[2] as { id: string }).id, event.id);
    assert.equal(server.relay.subscriptions >= 1, true);
    await other.close();
  });

  test("CLOSE ends a subscription; closing the socket ends all of them", async () => {
    const before = server.relay.subscriptions;
    const other = await RelayClient.connect(server.url);
    await other.ask("a", { limit: 0 });
    await other.ask("b", { limit: 0 });
    assert.equal(server.relay.subscriptions, before + 2);
    other.send("CLOSE", "a");
    await other.ask("b", { limit: 0 });
    assert.equal(server.relay.subscriptions, before + 1);
    await other.close();
    while (server.relay.subscriptions > before) await turn();
  });

  test("ephemeral events reach live subscribers and are not stored", async () => {
    const other = await RelayClient.connect(server.url);
    await other.ask("e", { kinds: [20_001] });
    const seen = other.next(([verb]) => verb === "EVENT");
    const event = sign(alice, { kind: 20_001 });
    assert.equal((await client.publish(event))[2], true);
    assert.equal(((await seen)[2] as { id: string }).id, event.id);
    assert.deepEqual((await other.ask("again", { kinds: [20_001] })).events, []);
    await other.close();
  });

  test("threat 23: at most 300 subscriptions are open, the rest are refused with CLOSED blocked", async () => {
    const other = await RelayClient.connect(server.url);
    let closed = 0;
    other.socket.on("message", (data) => {
      if (String(data).startsWith('["CLOSED"')) closed++;
    });
    const last = other.next(([verb, id]) => verb === "CLOSED" && id === "s9999");
    for (let index = 0; index < 10_000; index++) other.send("REQ", `s${index}`, { ids: [alice.pubkey] });
    assert.match(String((await last)[2]), /^blocked: /);
    assert.equal((await other.ask("s0", { ids: [alice.pubkey] })).end[0], "EOSE");
    assert.equal(closed, 9_700);
    await other.close();
  });
});

describe("limits of a stored answer", { timeout: 900_000 }, () => {
  let server: TestRelay;
  let client: RelayClient;
  const limits = { defaultLimit: 5, maxLimit: 20, eventsPerMinutePerConnection: 1e6, eventsPerMinutePerIp: 1e6 };
  before(async () => {
    server = await startRelay({ limits });
    client = await RelayClient.connect(server.url);
    for (let index = 0; index < 30; index++) {
      const tags = [
        ["e", "root"],
        ["t", index % 2 ? "odd" : "even"],
      ];
      await client.publish(sign(alice, { created_at: 1_700_000_000 + index, tags, content: String(index) }));
    }
    for (const subject of ["word7 here", "word8 there"]) {
      await client.publish(sign(alice, { kind: 1621, created_at: 1_600_000_000, tags: [["subject", subject]] }));
    }
  });
  after(async () => {
    await client.close();
    await server.close();
  });

  const cases: [name: string, filters: unknown[], count: number, hint: unknown][] = [
    ["without a limit the default holds and EOSE says more", [{ kinds: [1] }], 5, ["more"]],
    ["a filter by #e without a limit gets the maximum", [{ "#e": ["root"] }], 20, ["more"]],
    ["a limit above the maximum is the maximum", [{ kinds: [1], limit: 1_000 }], 20, ["more"]],
    ["a limit that holds everything says finish", [{ "#t": ["odd"], limit: 15 }], 15, ["finish"]],
    ["one less than everything says more", [{ "#t": ["odd"], limit: 14 }], 14, ["more"]],
    ["limit 0 asks for nothing stored", [{ kinds: [1], limit: 0 }], 0, undefined],
    [
      "each filter has its own limit",
      [
        { "#t": ["odd"], limit: 2 },
        { "#t": ["even"], limit: 3 },
      ],
      5,
      ["more"],
    ],
    [
      "an event that two filters want comes once",
      [
        { kinds: [1], limit: 4 },
        { "#e": ["root"], limit: 4 },
      ],
      4,
      ["more"],
    ],
    ["an empty list matches nothing", [{ kinds: [] }], 0, ["finish"]],
    ["since after until matches nothing", [{ since: 10, until: 5 }], 0, ["finish"]],
    ["a search is answered from the words of subjects", [{ search: "word7", limit: 3 }], 1, ["finish"]],
  ];
  for (const [name, filters, count, hint] of cases) {
    test(name, async () => {
      const { events, end } = await client.ask("q", ...filters);
      assert.equal(events.length, count);
      assert.equal(new Set(events.map((event) => event.id)).size, count);
      assert.deepEqual(end[2], hint);
    });
  }

  test("a search subscription is not sent every new event", async () => {
    await client.ask("search", { search: "word7" });
    await client.ask("all", { kinds: [1], limit: 0 });
    const seen = client.next(([verb]) => verb === "EVENT");
    await client.publish(sign(bob, { content: "nothing of the kind" }));
    assert.equal((await seen)[1], "all");
  });

  test("threat 23: odd filters get the same answer as a naive scan", async () => {
    const filters = [
      {},
      { unknown: "key" },
      { "#t": ["odd", "x".repeat(64 * 1024)] },
      { authors: Array.from({ length: 1_000 }, (_, index) => index.toString(16).padStart(64, "0")) },
      { ids: [] },
      {
        "#e": Array.from({ length: 5_000 }, (_, index) =>
          index === 4_999 ? "root" : index.toString(16).padStart(64, "0"),
        ),
      },
    ];
    for (const filter of filters) {
      const { events, end } = await client.ask("odd", filter);
      assert.equal(end[0], "EOSE");
      const expected =
        "unknown" in filter || Object.keys(filter).length === 0 ? 5 : "#t" in filter ? 5 : "#e" in filter ? 20 : 0;
      assert.equal(events.length, expected, JSON.stringify(filter).slice(0, 60));
    }
    assert.equal((await client.ask("many", ...Array.from({ length: 200 }, () => ({})))).end[0], "CLOSED");
  });

  test("threat 23: a message beyond the limit is refused with a NOTICE, one of more than twice that with code 1009", async () => {
    const other = await RelayClient.connect(server.url);
    const authors = Array.from({ length: 1_000 }, (_, index) => index.toString(16).padStart(64, "0"));
    const notice = other.next(([verb]) => verb === "NOTICE");
    other.send("REQ", "big", ...Array.from({ length: 100 }, () => ({ authors })));
    assert.match(String((await notice)[1]), /^invalid: .*5242880/);
    const closed = once(other.socket, "close");
    other.send("REQ", "many", ...Array.from({ length: 200 }, () => ({ authors })));
    assert.equal((await closed)[0], 1009);
    assert.equal((await client.ask("fine", { limit: 1 })).end[0], "EOSE");
  });
});
