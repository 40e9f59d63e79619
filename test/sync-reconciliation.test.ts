// A relay's silence is counted from the moment it was asked (event-sync.md, "History": time-outs run from sending).

import assert from "node:assert/strict";
import { it } from "node:test";
import type { TimedIds } from "../src/store/port.js";
import { Reconciliation } from "../src/sync/reconciliation.js";

it("a comparison that took long to read from our own store is not the relay's silence", async () => {
  const happened: string[] = [];
  let read: (records: TimedIds) => void = () => undefined;
  const own = {
    timedIds: () => new Promise<TimedIds>((resolve) => (read = resolve)),
    sort: async () => ({ missing: [], waiting: [] }),
  };
  const session = new Reconciliation("n1", 10, own, {
    send: ([verb]) => void happened.push(String(verb)),
    progress: () => void happened.push("progress"),
    ended: () => void happened.push("ended"),
    fault: (error) => assert.fail(String(error)),
  });
  const opening = session.open({ kinds: [30617] });
  assert.deepEqual(happened, []);
  read({ length: 0, times: new Float64Array(), ids: new Uint8Array() });
  await opening;
  assert.deepEqual(happened, ["NEG-OPEN", "progress"]);
});
