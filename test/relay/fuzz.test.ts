// Random frames: against one session in process, and over a real socket. Nothing throws, everything is bounded, and
// the session still answers afterwards. The seed is printed when it fails; HOLDFAST_SEED repeats it.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { defaultConfig } from "../../src/config/testing/default-config.js";
import { relayLimits } from "../../src/relay/limits.js";
import { runs } from "../fuzz/runs.js";
import { RelayClient } from "../harness/relay-client.js";
import { keyOf, sign } from "../harness/relay-events.js";
import { startRelay } from "../harness/relay-server.js";
import { startSession } from "../harness/relay-session.js";

const frames = runs(25_000);
const seed = Number(process.env.HOLDFAST_SEED ?? Date.now() % 1_000_000);

/** mulberry32: small, good enough, the same on every machine. */
function randomOf(start: number): () => number {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const limits = {
  ...relayLimits(defaultConfig()),
  eventsPerMinutePerConnection: 1e9,
  eventsPerMinutePerIp: 1e9,
  badFramesPerMinutePerConnection: 1e9,
  badFramesPerMinutePerIp: 1e9,
  maxSubscriptionsPerConnection: 20,
};
const good = sign(keyOf("fuzz"), { tags: [["e", "x"]], content: "good" });

class Fuzz {
  readonly random: () => number;

  constructor(start: number) {
    this.random = randomOf(start);
  }

  pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.random() * items.length)] as T;
  }

  value(depth = 0): unknown {
    const leaf = [
      null,
      true,
      0,
      -1,
      1.5,
      2 ** 53,
      1e308,
      "",
      "x",
      "\u0000",
      "\ud800",
      good.id,
      good.pubkey,
      "__proto__",
    ];
    const roll = this.random();
    if (depth > 2 || roll < 0.6) return this.pick(leaf);
    if (roll < 0.8) return Array.from({ length: Math.floor(this.random() * 4) }, () => this.value(depth + 1));
    const keys = ["ids", "authors", "kinds", "#e", "#", "since", "until", "limit", "search", "__proto__", "id", "tags"];
    return Object.fromEntries(
      Array.from({ length: Math.floor(this.random() * 4) }, () => [this.pick(keys), this.value(depth + 1)]),
    );
  }

  event(): unknown {
    const event: Record<string, unknown> = { ...good };
    if (this.random() < 0.9) event[this.pick(Object.keys(event))] = this.value();
    return event;
  }

  hex(): string {
    const bytes = Buffer.from(Array.from({ length: Math.floor(this.random() * 60) }, () => this.random() * 256));
    if (this.random() < 0.5 && bytes.length > 0) bytes[0] = 0x61;
    return bytes.toString("hex");
  }

  frame(): Buffer {
    const verbs = ["EVENT", "REQ", "COUNT", "CLOSE", "AUTH", "NEG-OPEN", "NEG-MSG", "NEG-CLOSE", "EOSE", ""];
    const verb = this.pick(verbs);
    const id = this.pick(["a", "b", "c", "", "\ud800", "x".repeat(300), 5, null]);
    const message: unknown[] =
      verb === "EVENT" || verb === "AUTH"
        ? [verb, this.random() < 0.7 ? this.event() : this.value()]
        : verb === "NEG-OPEN"
          ? [verb, id, this.random() < 0.7 ? {} : this.value(), this.hex()]
          : verb === "NEG-MSG"
            ? [verb, id, this.random() < 0.9 ? this.hex() : this.value()]
            : [verb, id, ...Array.from({ length: Math.floor(this.random() * 3) }, () => this.value())];
    const text = Buffer.from(JSON.stringify(message));
    const roll = this.random();
    if (roll < 0.8) return text;
    if (roll < 0.9) return text.subarray(0, Math.floor(this.random() * text.length));
    const at = Math.floor(this.random() * text.length);
    text[at] = Math.floor(this.random() * 256);
    return text;
  }
}

describe("random frames", { timeout: 900_000 }, () => {
  test(`threats 26 and 27: random frames against one session (seed ${seed})`, async (t) => {
    const started = await startSession(limits);
    t.after(() => started.close());
    const { session, outbox, store, live, records, faults, sent } = started;
    const fuzz = new Fuzz(seed);
    for (let index = 0; index < frames; index++) {
      session.receive(fuzz.frame(), fuzz.random() < 0.01);
      if (!session.wantsToRead) await turn();
    }
    await session.finish();
    session.receive(Buffer.from('["NONSENSE"]'), false);
    await outbox.drained();
    assert.match(started.last(), /\["NOTICE","invalid: this type of message is not known here"\]$/);
    assert.deepEqual(faults, []);
    // About 10.5 % are answered so; of 7,500 frames chance alone takes away less than 2 %.
    assert.ok((sent.get("OK") ?? 0) > frames / 12);
    session.close();
    assert.equal(live.subscriptions, 0);
    assert.equal(records.held, 0);
    for await (const page of store.query([{}])) for (const { id } of page) assert.equal(id, good.id);
  });

  test(`5,000 frames over a real socket (seed ${seed})`, async (t) => {
    const server = await startRelay({ limits }, t);
    const client = await RelayClient.connect(server.url);
    const fuzz = new Fuzz(seed + 1);
    for (let index = 0; index < 5_000; index++) {
      client.socket.send(fuzz.frame(), { binary: fuzz.random() < 0.01 });
      if (index % 100 === 0) await turn();
    }
    const other = await RelayClient.connect(server.url);
    assert.equal((await other.ask("q", { limit: 1 })).end[0], "EOSE");
    for (const id of ["a", "b", "c"]) client.send("CLOSE", id);
    assert.equal((await client.ask("a", { limit: 1 })).end[0], "EOSE");
    assert.deepEqual(server.faults, []);
  });
});
