import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteBudget } from "../base/budget/bytes.js";
import { ManualClock } from "../base/testing/manual-clock.js";
import { eventFrame, FlushTurn, Outbox } from "./outbox.js";

const budget = new ByteBudget(() => ({ inAll: 2 ** 30, perAddress: 2 ** 30 }));

/** A socket that takes a batch when the test says so. */
function slowSocket(turn: FlushTurn) {
  const waiting: { pieces: readonly Buffer[]; taken: () => void }[] = [];
  const outbox = new Outbox({
    write: (pieces, taken) => waiting.push({ pieces, taken }),
    held: budget.open("192.0.2.1"),
    turn,
    clock: new ManualClock(),
    maxHeldBytes: () => 2 ** 30,
    onOverflow: () => assert.fail("nothing should overflow"),
    onSent: () => undefined,
    onTaken: () => undefined,
  });
  return { outbox, waiting };
}

test("what a socket has not taken yet is not overwritten by what others are sent", async () => {
  const turn = new FlushTurn(new ManualClock());
  const prefix = Buffer.from('["EVENT","s",');
  const clients = Array.from({ length: 3 }, () => ({ ...slowSocket(turn), text: "", received: "" }));
  const sizes = [120, 700, 3_000, 9_000, 300];
  let number = 0;
  for (let round = 0; round < 40; round++) {
    for (const [index, client] of clients.entries()) {
      // From a frame that is alone to several full slabs, from memory and from the disk.
      for (let count = 0; count <= round; count++) {
        const filling = String.fromCharCode(97 + (number % 26)).repeat(sizes[number % sizes.length] as number);
        const json = `{"number":${number++},"filling":"${filling}"}`;
        client.outbox.sendEvent(prefix, number % 2 === 0 ? json : Buffer.from(json));
        client.text += `${prefix}${json}]`;
      }
      await new Promise(setImmediate);
      // The first takes everything, the second some, the third nothing until the end.
      for (let left = index === 0 ? 100 : index === 1 ? 1 : 0; left > 0; left--) take(client);
    }
  }
  for (const client of clients) {
    while (client.waiting.length > 0) take(client);
    assert.equal(client.outbox.heldBytes, 0);
    // Frame headers of these sizes are four bytes, the first of which text does not have.
    assert.ok(client.received.replaceAll(/\x81~../gs, "") === client.text, "a client received something else");
  }
});

test("a frame that several clients get is not written over when one of them has taken it, whatever its size", async () => {
  const turn = new FlushTurn(new ManualClock());
  const prefix = Buffer.from('["EVENT","s",');
  // Header, prefix, text and closing bracket make it just as large as a slab.
  const frame = eventFrame(prefix, Buffer.alloc(128 * 1024 - 10 - prefix.length - 1, "a"));
  assert.equal(frame.length, 128 * 1024);
  const clients = Array.from({ length: 2 }, () => ({ ...slowSocket(turn), received: "" }));
  for (const { outbox } of clients) outbox.sendFrame(frame);
  await new Promise(setImmediate);
  const [first, second] = clients;
  assert.ok(first && second);
  // Somebody who takes nothing uses up the memory that is kept for the next one.
  const hog = slowSocket(turn);
  for (let count = 0; count < 1_000; count++) hog.outbox.sendEvent(prefix, Buffer.alloc(3_000, "c"));
  take(first);
  for (let count = 0; count < 300; count++) first.outbox.sendEvent(prefix, Buffer.alloc(3_000, "b"));
  await new Promise(setImmediate);
  while (first.waiting.length > 0) take(first);
  take(second);
  assert.ok(!second.received.includes("b"), "a client received what was sent to another");
});

function take(client: { waiting: { pieces: readonly Buffer[]; taken: () => void }[]; received: string }): void {
  const batch = client.waiting.shift();
  if (!batch) return;
  // Read only now: until then the bytes are the kernel's to read.
  client.received += Buffer.concat(batch.pieces).toString("latin1");
  batch.taken();
}
