// threats.md rows 32 and 37: frames that are made to keep the parser busy, and bad frames without end.

import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { assertLinear, uglyShapes } from "../../src/base/testing/linear-time.js";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { defaultConfig } from "../../src/config/testing/default-config.js";
import { parseRelayFrame } from "../../src/net/relay-client.js";
import { parseFilter } from "../../src/nostr/filter.js";
import { relayLimits } from "../../src/relay/limits.js";
import { parseClientMessage } from "../../src/relay/messages.js";
import { leastCpuMs, loopBoundMs } from "../harness/loop-hold.js";
import { RelayClient } from "../harness/relay-client.js";
import { keyOf, sign } from "../harness/relay-events.js";
import { startRelay } from "../harness/relay-server.js";
import { startSession } from "../harness/relay-session.js";

const fiveMebibytes = 5 * 2 ** 20;
const keysOf = (count: number): string =>
  Array.from({ length: count }, (_, index) => `"#${index.toString(36)}":[]`).join();
const repeated = (text: string): string => text.repeat(Math.floor((fiveMebibytes - 100) / text.length));

const uglyFrames: [name: string, text: string][] = [
  ["5 MiB of [", repeated("[")],
  ['5 MiB of {"a":', repeated('{"a":')],
  ["a filter of 400,000 keys", `["REQ","s",{${keysOf(400_000)}}]`],
  ["an event of 400,000 keys", `["EVENT",{${keysOf(400_000)}}]`],
  ["empty lists", `["REQ","s",{"#e":[${repeated("[],")}0]}]`],
  ["empty objects", `["EVENT",{"tags":[${repeated("{},")}0]}]`],
  ["numbers", `["REQ","s",{"kinds":[${repeated("0,")}0]}]`],
  ["different words", `["REQ","s",{"#t":[${Array.from({ length: 400_000 }, (_, index) => `"w${index}"`).join()}]}]`],
  ["as much as may be parsed", `["EVENT",[${Array.from({ length: 119_000 }, (_, index) => `"w${index}"`).join()}]]`],
];

describe("threats 32 and 37", { timeout: 900_000 }, () => {
  test("threat 37: no frame holds the event loop, however deep it is, however many keys and values it has", async () => {
    const limits = {
      ...relayLimits(defaultConfig()),
      badFramesPerMinutePerConnection: 1e9,
      badFramesPerMinutePerIp: 1e9,
    };
    const started = await startSession(limits);
    const boundMs = loopBoundMs();
    for (const [name, text] of uglyFrames) {
      const frame = Buffer.from(text);
      const spentMs = leastCpuMs(() => started.session.receive(frame, false), boundMs);
      if (process.env.TRACELESS_FIGURES) process.stderr.write(`${name}: ${spentMs.toFixed(1)} ms\n`);
      assert.ok(spentMs < boundMs, `${name}: ${spentMs} ms of processor time`);
    }
    assert.deepEqual(started.givenUp, []);
    await started.close();
  });

  test("threat 37: no frame of a relay we follow holds the event loop either", () => {
    const boundMs = loopBoundMs();
    for (const [name, text] of uglyFrames) {
      const frame = Buffer.from(text);
      const spentMs = leastCpuMs(() => parseRelayFrame(frame), boundMs);
      assert.ok(spentMs < boundMs, `${name}: ${spentMs} ms of processor time`);
    }
    const event = sign(keyOf("author"), { content: "x".repeat(900_000) });
    assert.equal(parseRelayFrame(Buffer.from(`["EVENT","s",${event.raw}]`))?.type, "EVENT");
  });

  test("threat 37: a bad frame costs a notice, bad frames without end cost the connection, large ones sooner; others are served", async (t) => {
    const server = await startRelay({ clock: new ManualClock() }, t);
    const honest = await RelayClient.connect(server.url, { headers: { "X-Forwarded-For": "192.0.2.9" } });
    for (const [bad, atMost] of [
      ["no JSON", 201],
      [`["REQ","s",${"[".repeat(1_000_000)}`, 7],
    ] as const) {
      const client = await RelayClient.connect(server.url);
      const closed = once(client.socket, "close");
      let sent = 0;
      for (; client.socket.readyState === client.socket.OPEN && sent < 1_000; sent++) {
        const answered = client.next(([verb]) => verb === "NOTICE");
        client.socket.send(bad);
        await Promise.race([answered, closed]);
      }
      assert.equal((await closed)[0], 1008);
      assert.match(String(client.heard.at(-1)?.[1]), /^rate-limited: too many messages were not understood/);
      assert.equal(client.heard.filter(([, text]) => /^invalid: /.test(String(text))).length, atMost);
      // Nothing lasts: the next connection is served, while the address has not used up its share.
      const again = await RelayClient.connect(server.url);
      assert.equal((await again.ask("q", { limit: 1 })).end[0], "EOSE");
      again.socket.send("no JSON");
      await again.next(([verb]) => verb === "NOTICE");
      assert.equal((await again.ask("q", { limit: 1 })).end[0], "EOSE");
      await again.close();
    }
    assert.equal((await honest.ask("q", { limit: 1 })).end[0], "EOSE");
    await honest.publish(sign(keyOf("author")));
    assert.deepEqual(server.faults, []);
  });

  test("threat 32: messages and filters are read in linear time", () => {
    const limits = { ...relayLimits(defaultConfig()), maxFilterValues: 1e9 };
    const large = { maxChars: 2 ** 16 };
    const read = (frame: string) => parseClientMessage(frame, limits);
    for (const [name, shape] of uglyShapes) {
      const text = (chars: number): string => JSON.stringify(shape(chars));
      assertLinear(`a subscription id of ${name}`, (chars) => `["CLOSE",${text(chars)}]`, read, large);
      assertLinear(`a negentropy message of ${name}`, (chars) => `["NEG-MSG","s",${text(chars)}]`, read, large);
      const values = (chars: number) => ({ "#t": [shape(chars)], search: shape(chars) });
      assertLinear(`a tag value of ${name}`, values, parseFilter, large);
      assertLinear(`a tag name of ${name}`, (chars) => ({ [`#${shape(chars)}`]: ["x"] }), parseFilter, large);
      assertLinear(`a frame of ${name}`, shape, (frame) => parseClientMessage(frame, limits), { maxChars: 8 * 1024 });
    }
    for (const [name, list] of [
      ["ids", (count: number) => ({ ids: hexes(count) })],
      ["authors", (count: number) => ({ authors: hexes(count) })],
      ["kinds", (count: number) => ({ kinds: Array.from({ length: count }, (_, index) => index % 65_536) })],
      ["values", (count: number) => ({ "#e": hexes(count) })],
    ] as const) {
      assertLinear(`a filter of many ${name}`, list, parseFilter, { maxChars: 120_000 });
    }
  });
});

const hexes = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => index.toString(16).padStart(64, "0"));
