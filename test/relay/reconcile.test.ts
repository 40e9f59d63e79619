// Threat 26: what a negentropy peer may not do. That reconciling works is in relay-clients.test.ts.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import type { VerifiedEvent } from "../../src/nostr/event.js";
import { RelayClient } from "../harness/relay-client.js";
import { keyOf, sign } from "../harness/relay-events.js";
import { startRelay } from "../harness/relay-server.js";

const author = keyOf("author");
const opening = "61";

async function open(client: RelayClient, id: string, message = opening, filter: unknown = {}) {
  const answer = client.next(([verb, sub]) => String(verb).startsWith("NEG-") && sub === id);
  client.send("NEG-OPEN", id, filter, message);
  return answer;
}

describe("threat 26", { timeout: 900_000 }, () => {
  test("1,000 opens: 20 are served, the rest get NEG-ERR blocked; a closed one makes room", async (t) => {
    const server = await startRelay({}, t);
    const client = await RelayClient.connect(server.url);
    let served = 0;
    for (let index = 0; index < 1_000; index++) {
      const [verb, , text] = await open(client, `n${index}`);
      if (verb === "NEG-MSG") served++;
      else assert.match(String(text), /^blocked: .*20/);
    }
    assert.equal(served, 20);
    client.send("NEG-CLOSE", "n0");
    assert.equal((await open(client, "n1000"))[0], "NEG-MSG");
    assert.equal((await open(client, "n1000"))[0], "NEG-MSG", "an id that is used again replaces");
  });

  test("a filter with more records than the cap gets NEG-ERR blocked with the cap; so does the common budget", async (t) => {
    const limits = { negentropyMaxRecords: 5, negentropyTotalMaxRecords: 8 };
    const server = await startRelay({ limits }, t);
    const client = await RelayClient.connect(server.url);
    for (let index = 0; index < 6; index++) {
      const event = sign(author, { content: String(index), kind: index < 4 ? 1 : 7 }) as VerifiedEvent;
      await server.store.transact((tx) => tx.put(event));
    }
    assert.match(String((await open(client, "all"))[2]), /^blocked: .*\b5\b/);
    assert.equal((await open(client, "a", opening, { kinds: [1] }))[0], "NEG-MSG");
    assert.equal((await open(client, "b", opening, { kinds: [1] }))[0], "NEG-MSG");
    assert.match(String((await open(client, "c", opening, { kinds: [7] }))[2]), /^blocked: /);
    client.send("NEG-CLOSE", "a");
    assert.equal((await open(client, "c", opening, { kinds: [7] }))[0], "NEG-MSG");
    const other = await RelayClient.connect(server.url);
    assert.match(String((await open(other, "x", opening, { kinds: [1] }))[2]), /^blocked: /);
    await client.close();
    while ((await open(other, "x", opening, { kinds: [1] }))[0] !== "NEG-MSG");
  });

  test("another version is answered with ours, as the protocol says; what is no version gets NEG-ERR", async (t) => {
    const server = await startRelay({}, t);
    const client = await RelayClient.connect(server.url);
    assert.deepEqual(await open(client, "newer", "6200"), ["NEG-MSG", "newer", "61"]);
    for (const message of ["00", "7f61", "ff"]) {
      assert.match(String((await open(client, "v", message))[2]), /^invalid: /, message);
    }
  });

  test("text that is not hex, a bad filter and an unknown id get NEG-ERR", async (t) => {
    const server = await startRelay({}, t);
    const client = await RelayClient.connect(server.url);
    assert.match(String((await open(client, "h", "6x"))[2]), /^invalid: /);
    assert.match(String((await open(client, "f", opening, { ids: 1 }))[2]), /^invalid: /);
    const unknown = client.next(([verb, id]) => verb === "NEG-ERR" && id === "u");
    client.send("NEG-MSG", "u", opening);
    assert.match(String((await unknown)[2]), /^closed: /);
  });

  test("a peer that is silent for 60 s is ended with NEG-ERR closed; one that speaks is not", async (t) => {
    const clock = new ManualClock();
    const server = await startRelay({ clock }, t);
    const client = await RelayClient.connect(server.url);
    await open(client, "silent");
    await open(client, "speaks");
    clock.advance(29_000);
    await client.ask("q", { limit: 0 });
    clock.advance(29_000);
    const answered = client.next(([verb, id]) => verb === "NEG-MSG" && id === "speaks");
    client.send("NEG-MSG", "speaks", opening);
    await answered;
    const ended = client.next(([verb]) => verb === "NEG-ERR");
    clock.advance(3_000);
    assert.deepEqual((await ended).slice(0, 2), ["NEG-ERR", "silent"]);
    assert.equal(client.heard.filter(([verb]) => verb === "NEG-ERR").length, 1);
  });
});
