// Every number the relay registers really moves, and no label carries a stranger's text.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { RelayClient } from "../harness/relay-client.js";
import { keyOf, sign } from "../harness/relay-events.js";
import { startRelay } from "../harness/relay-server.js";

const names = [
  "ngit_websocket_connections_active",
  "ngit_websocket_unique_ips",
  "ngit_websocket_flagged_abusers",
  "ngit_websocket_connections_total",
  "ngit_websocket_connection_duration_seconds",
  "ngit_websocket_messages_received_total",
  "ngit_websocket_messages_sent_total",
  "ngit_events_received_total",
  "ngit_events_stored_total",
  "ngit_events_rejected_total",
];

test("every registered name is one of the specification's and moves", { timeout: 900_000 }, async (t) => {
  const server = await startRelay({ abuseThreshold: 2 }, t);
  assert.deepEqual(
    server.registry
      .getMetricsAsArray()
      .map(({ name }) => name)
      .sort(),
    [...names].sort(),
  );
  const sums = async () => {
    const all = await server.registry.getMetricsAsJSON();
    return new Map(all.map(({ name, values }) => [name, values.reduce((sum, { value }) => sum + value, 0)]));
  };
  const before = await sums();
  const clients = await Promise.all(Array.from({ length: 4 }, () => RelayClient.connect(server.url)));
  const [client] = clients as [RelayClient];
  const key = keyOf("metrics");
  await client.publish(sign(key));
  await client.publish(sign(key, { kind: 54_321 }));
  await client.publish({ ...sign(key), id: "<b>text</b>" });
  await client.publish({ ...sign(key, { content: "x" }), sig: "0".repeat(128) });
  client.send("<verb of a stranger>");
  await client.ask("q", {});
  await clients[3]?.close();
  while (server.relay.connections > 3) await turn();
  const after = await sums();
  for (const name of names) assert.notEqual(after.get(name), before.get(name), `${name} did not move`);
  const text = await server.registry.metrics();
  assert.match(text, /^ngit_websocket_connections_active 3$/m);
  assert.match(text, /^ngit_websocket_flagged_abusers 1$/m);
  assert.match(text, /^ngit_websocket_messages_received_total\{type="EVENT"\} 4$/m);
  assert.match(text, /^ngit_websocket_messages_received_total\{type="invalid"\} 1$/m);
  assert.match(text, /^ngit_events_stored_total\{kind="other"\} 1$/m);
  assert.match(text, /^ngit_events_rejected_total\{kind="1",reason="bad-signature"\} 1$/m);
  assert.match(text, /^ngit_events_received_total\{kind="1"\} 3$/m);
  assert.doesNotMatch(text, /127\.0\.0\.1|stranger|<b>|54321/);
});
