// Who is on a connection (NIP-42) and who may bring a protected event (NIP-70).

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import type { VerifiedEvent } from "../../src/nostr/event.js";
import { RelayClient } from "../harness/relay-client.js";
import { type EventWish, keyOf, sign, type TestKey } from "../harness/relay-events.js";
import { startRelay, type TestRelay } from "../harness/relay-server.js";

const alice = keyOf("alice");
const mallory = keyOf("mallory");
const nowSeconds = 1_700_000_000;
const protectedBy = (key: TestKey, content = "mine") => sign(key, { tags: [["-"]], content });

describe("AUTH", { timeout: 900_000 }, () => {
  let server: TestRelay;
  let client: RelayClient;
  before(async () => {
    server = await startRelay({ clock: new ManualClock(nowSeconds * 1000), serviceNames: ["relay.example.com/base"] });
  });
  after(async () => {
    await server.close();
    assert.deepEqual(server.faults, []);
  });

  /** A fresh connection that was asked to authenticate. */
  async function asked(): Promise<string> {
    client = await RelayClient.connect(server.url);
    const challenge = client.next(([verb]) => verb === "AUTH");
    const [, , accepted, text] = await client.publish(protectedBy(alice, String(Math.random())));
    assert.equal(accepted, false);
    assert.match(String(text), /^auth-required: /);
    return String((await challenge)[1]);
  }

  async function authenticate(event: { readonly id: string }) {
    const answer = client.next(([verb, id]) => verb === "OK" && id === event.id);
    client.send("AUTH", event);
    return answer;
  }

  const authEvent = (key: TestKey, challenge: string, wish: EventWish & { relay?: string } = {}) => {
    const { relay = "wss://RELAY.example.com:443/base/", ...rest } = wish;
    const tags = [
      ["relay", relay],
      ["challenge", challenge],
    ];
    return sign(key, { kind: 22_242, created_at: nowSeconds, tags, ...rest });
  };

  test("is not asked for until something needs it", async () => {
    client = await RelayClient.connect(server.url);
    await client.publish(sign(alice));
    await client.ask("q", {});
    assert.ok(client.heard.every(([verb]) => verb !== "AUTH"));
    await client.close();
  });

  test("a protected event is accepted from its own author after AUTH, whatever the spelling of the relay's URL", async () => {
    for (const relay of [
      "wss://relay.example.com/base",
      "ws://relay.example.com:80/base/",
      "wss://Relay.Example.COM//base",
    ]) {
      const challenge = await asked();
      const answer = await authenticate(authEvent(alice, challenge, { relay }));
      assert.deepEqual(answer.slice(2), [true, ""], relay);
      const event = protectedBy(alice, relay);
      assert.deepEqual(await client.publish(event), ["OK", event.id, true, ""]);
      await client.close();
    }
  });

  test("another person's protected event is refused and never stored", async () => {
    const challenge = await asked();
    await authenticate(authEvent(mallory, challenge));
    const event = protectedBy(alice, "stolen");
    const [, , accepted, text] = await client.publish(event);
    assert.equal(accepted, false);
    assert.match(String(text), /^restricted: /);
    assert.equal(await server.store.has(event.id), false);
    await client.close();
  });

  test("threat 28: another connection's challenge, a stale event, another relay, a replayed id, a wrong kind are refused", async () => {
    const foreign = await asked();
    await client.close();
    const challenge = await asked();
    const bad: [string, ReturnType<typeof authEvent>][] = [
      ["another connection's challenge", authEvent(alice, foreign)],
      ["too old", authEvent(alice, challenge, { created_at: nowSeconds - 601 })],
      ["too new", authEvent(alice, challenge, { created_at: nowSeconds + 601 })],
      ["another relay", authEvent(alice, challenge, { relay: "wss://relay.example.com.evil.org/base" })],
      ["another path", authEvent(alice, challenge, { relay: "wss://relay.example.com/" })],
      ["not a websocket", authEvent(alice, challenge, { relay: "https://relay.example.com/base" })],
      ["another kind", authEvent(alice, challenge, { kind: 1 })],
      ["no tags", sign(alice, { kind: 22_242, created_at: nowSeconds })],
    ];
    for (const [name, event] of bad) assert.equal((await authenticate(event))[2], false, name);
    const good = authEvent(alice, challenge);
    const forged = { ...good, sig: authEvent(mallory, challenge).sig };
    assert.match(String((await authenticate(forged))[3]), /^invalid: /);
    assert.equal((await client.publish(protectedBy(alice, "not yet")))[2], false);
    assert.equal((await authenticate(good))[2], true, "the good copy is accepted after the forged one");
    assert.match(String((await authenticate(good))[3]), /^restricted: .*before/);
    await client.close();
  });

  test("AUTH without a challenge, and AUTH that is no event, are refused", async () => {
    client = await RelayClient.connect(server.url);
    assert.equal((await authenticate(authEvent(alice, "")))[2], false);
    assert.equal((await authenticate({ id: "nonsense" }))[2], false);
    const notice = client.next(([verb]) => verb === "NOTICE");
    client.send("AUTH", "text");
    assert.match(String((await notice)[1]), /^invalid: /);
    await client.close();
  });

  test("forged authentications without end count like events: what is over the rate is not looked at", async (t) => {
    const clock = new ManualClock(nowSeconds * 1000);
    const limits = { eventsPerMinutePerIp: 12 };
    const own = await startRelay({ clock, serviceNames: ["relay.example.com/base"], limits }, t);
    client = await RelayClient.connect(own.url);
    const challenged = client.next(([verb]) => verb === "AUTH");
    await client.publish(protectedBy(alice, "asks"));
    const challenge = String((await challenged)[1]);
    const forged = (at: number) => ({
      ...authEvent(alice, challenge, { content: String(at) }),
      sig: "0".repeat(128),
    });
    const prefixes: string[] = [];
    for (let at = 0; at < 15; at++) prefixes.push(String((await authenticate(forged(at)))[3]).split(":")[0] ?? "");
    assert.deepEqual(prefixes, [...Array(11).fill("invalid"), ...Array(4).fill("rate-limited")]);
    clock.advance(10_000);
    assert.equal((await authenticate(authEvent(alice, challenge)))[2], true, "after a while it is");
    await client.close();
  });

  test("an authentication event sent as EVENT is refused and never stored", async () => {
    const challenge = await asked();
    const event = authEvent(alice, challenge);
    const [, , accepted, text] = await client.publish(event);
    assert.equal(accepted, false);
    assert.match(String(text), /^blocked: /);
    assert.equal(await server.store.has(event.id), false);
    assert.equal((await client.publish(protectedBy(alice, "still not")))[2], false);
    await client.close();
  });
});

describe("private events (kinds 78 and 30078)", { timeout: 900_000 }, () => {
  const settings = (key: TestKey, kind: number, content: string) =>
    sign(key, {
      kind,
      content,
      created_at: nowSeconds,
      tags: [
        ["d", content],
        ["t", "app"],
      ],
    });
  const opening = "6100000200";

  test("are shown to their authors alone, after AUTH: stored before or later, asked, live, counted and reconciled", async (t) => {
    const clock = new ManualClock(nowSeconds * 1000);
    const server = await startRelay({ clock, serviceNames: ["relay.example.com"] }, t);
    const connect = () => RelayClient.connect(server.url);
    const isPrivate = (event: { id: string }): boolean => hidden.some(({ id }) => id === event.id);
    const hidden = [settings(alice, 78, "old"), settings(alice, 30_078, "older")];
    const open = sign(alice, { content: "for all", created_at: nowSeconds, tags: [["t", "app"]] });
    for (const event of [...hidden, open]) await server.store.transact((tx) => tx.put(event as VerifiedEvent));

    const stranger = await connect();
    const filters: Record<string, unknown>[] = [
      {},
      { ids: [...hidden, open].map(({ id }) => id) },
      { authors: [alice.pubkey] },
      { "#t": ["app"] },
      { authors: [alice.pubkey], kinds: [1, 78, 30_078] },
      { kinds: [1, 78], "#t": ["app"] },
    ];
    const counted = async (client: RelayClient, ...asked: unknown[]): Promise<unknown> => {
      const answer = client.next(([verb]) => verb === "COUNT" || verb === "CLOSED");
      client.send("COUNT", "c", ...asked);
      return (await answer)[2];
    };
    const reconciled = async (client: RelayClient, filter: unknown): Promise<string> => {
      const answer = client.next(([verb, id]) => String(verb).startsWith("NEG-") && id === "n");
      client.send("NEG-OPEN", "n", filter, opening);
      const [, , text] = await answer;
      client.send("NEG-CLOSE", "n");
      return String(text);
    };
    for (const [index, filter] of filters.entries()) {
      const name = JSON.stringify(filter);
      const { events, end } = await stranger.ask(`s${index}`, filter);
      assert.deepEqual([events.map(({ id }) => id), end[0]], [[open.id], "EOSE"], name);
      assert.deepEqual(await counted(stranger, filter), { count: 1 }, name);
      const ids = await reconciled(stranger, filter);
      assert.ok(ids.includes(open.id) && !hidden.some(({ id }) => ids.includes(id)), name);
    }
    assert.deepEqual(await counted(stranger, {}, { kinds: [7] }), { count: 1 });

    // Asked for by name, they need AUTH; with other kinds the rest is answered.
    const other = await connect();
    const only = { kinds: [30_078], authors: [alice.pubkey] };
    const challenge = other.next(([verb]) => verb === "AUTH");
    const { end } = await other.ask("only", only);
    assert.match(`${end[0]} ${end[2]}`, /^CLOSED auth-required: /);
    assert.match(String(await counted(other, only)), /^auth-required: /);
    assert.match(await reconciled(other, only), /^auth-required: /);

    // Mallory authenticates, and sees nothing of alice's; alice does, also in a subscription that was open before.
    const as = async (client: RelayClient, key: TestKey, text: unknown) => {
      const tags = [
        ["relay", "wss://relay.example.com"],
        ["challenge", String(text)],
      ];
      const event = sign(key, { kind: 22_242, created_at: nowSeconds, tags });
      const answer = client.next(([verb, id]) => verb === "OK" && id === event.id);
      client.send("AUTH", event);
      assert.equal((await answer)[2], true);
    };
    await as(other, mallory, (await challenge)[1]);
    assert.deepEqual((await other.ask("only", only)).events, []);
    const author = await connect();
    const hers = author.next(([verb]) => verb === "AUTH");
    await author.ask("before", { authors: [alice.pubkey], kinds: [1, 78, 30_078] });
    await as(author, alice, (await hers)[1]);
    const { events } = await author.ask("all", { authors: [alice.pubkey] });
    assert.equal(events.filter(isPrivate).length, 2);
    assert.deepEqual(await counted(author, { "#t": ["app"] }), { count: 3 });
    assert.ok((await reconciled(author, {})).includes(hidden[0]?.id ?? "none"));

    const [live, last] = [settings(alice, 30_078, "new"), sign(alice, { content: "last", created_at: nowSeconds })];
    const heard = author.next(
      ([verb, id, event]) => verb === "EVENT" && id === "before" && (event as { id: string }).id === live.id,
    );
    const ended = [stranger, other].map((client) =>
      client.next(([verb, , event]) => verb === "EVENT" && (event as { id: string }).id === last.id),
    );
    other.send("REQ", "everything", {});
    await other.next(([verb, id]) => verb === "EOSE" && id === "everything");
    assert.equal((await author.publish(live))[2], true);
    await heard;
    await author.publish(last);
    await Promise.all(ended);
    for (const client of [stranger, other]) {
      assert.ok(
        client.heard.every((message) => !JSON.stringify(message).includes(live.id)),
        "not live either",
      );
    }
  });
});

describe("forgery", { timeout: 900_000 }, () => {
  test("threat 21: forged copies are refused, before and after the good one, and nothing of them is served", async (t) => {
    const server = await startRelay({}, t);
    const client = await RelayClient.connect(server.url);
    const good = sign(alice, { content: "true" });
    const otherContent = { ...good, content: "false" };
    const otherSignature = { ...good, sig: sign(mallory, { content: "true" }).sig };
    const otherAuthor = { ...good, pubkey: mallory.pubkey };
    for (const forged of [otherContent, otherSignature, otherAuthor]) {
      assert.equal((await client.publish(forged))[2], false);
    }
    assert.deepEqual(await client.publish(good), ["OK", good.id, true, ""]);
    assert.equal((await client.publish(otherContent))[2], false);
    const { events } = await client.ask("q", { ids: [good.id] });
    assert.deepEqual(events, [JSON.parse(good.raw)]);
  });

  test("threat 24: one bad event among 200 sent at once is refused, the other 199 are stored", async (t) => {
    const server = await startRelay({}, t);
    const client = await RelayClient.connect(server.url);
    const events = Array.from({ length: 200 }, (_, index) => sign(alice, { content: `of many ${index}` }));
    const bad = { ...events[100], id: events[100]?.id ?? "", sig: "0".repeat(128) };
    const answers = await Promise.all(events.map((event, index) => client.publish(index === 100 ? bad : event)));
    assert.deepEqual(
      answers.filter(([, , accepted]) => accepted !== true).map(([, id]) => id),
      [bad.id],
    );
    assert.equal(server.store.stats.events, 199);
  });

  test("threat 27: odd JSON is refused or served in a form that hashes to its id", async (t) => {
    const server = await startRelay({}, t);
    const client = await RelayClient.connect(server.url);
    const event = sign(alice, { content: "plain", created_at: 1_000_000_000 });
    const sendRaw = (text: string) => {
      const answer = client.next(([verb]) => verb === "NOTICE" || verb === "OK");
      client.socket.send(`["EVENT",${text}]`);
      return answer;
    };
    const refused = [
      event.raw.replace("1000000000", "9007199254740993"),
      event.raw.replace("1000000000", "-1"),
      event.raw.replace("1000000000", "1000000000.5"),
      event.raw.replace('"kind":1', '"kind":"1"'),
      event.raw.replace('"plain"', '"\\ud800"'),
      event.raw.replace('"tags":[]', `"tags":${"[".repeat(100_000)}${"]".repeat(100_000)}`),
      event.raw.replace('"tags":[]', '"tags":[["e",["x"]]]'),
      event.raw.replace('"content":"plain"', '"content":"plain","content":"other"'),
      event.raw.replace(event.id, event.id.toUpperCase()),
    ];
    for (const text of refused) assert.notEqual((await sendRaw(text))[2], true, text.slice(0, 200));
    // The same number written differently, an unknown key and __proto__ change nothing of what was signed.
    const odd = event.raw.replace("1000000000", "1e9").replace("{", '{"__proto__":{"kind":7},"extra":1,');
    assert.equal((await sendRaw(odd))[2], true);
    const { events } = await client.ask("q", { ids: [event.id] });
    assert.deepEqual(events, [JSON.parse(event.raw)]);
  });
});
