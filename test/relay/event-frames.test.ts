// Every EVENT gets an OK with the id it was sent with, also when its frame has too much in it (relay.md, "Protocol").

import assert from "node:assert/strict";
import { it } from "node:test";
import { RelayClient } from "../harness/relay-client.js";
import { keyOf, sign } from "../harness/relay-events.js";
import { startRelay } from "../harness/relay-server.js";

it("an EVENT with more than its event in the frame is refused by an OK, and the connection goes on", async (context) => {
  const relay = await startRelay({}, context);
  const client = await RelayClient.connect(relay.url);
  const event = sign(keyOf("much"), { content: "too much" });
  const answer = client.next(([verb]) => verb === "OK" || verb === "NOTICE");
  client.send("EVENT", event, "more");
  assert.deepEqual(await answer, ["OK", event.id, false, "invalid: EVENT is followed by one event"]);
  const notice = client.next(([verb]) => verb === "OK" || verb === "NOTICE");
  client.send("EVENT", { id: 1 }, "more");
  assert.deepEqual(await notice, ["NOTICE", "invalid: EVENT is followed by one event"]);
  assert.equal((await client.publish(event))[2], true);
  await client.close();
});
