import assert from "node:assert/strict";
import { test } from "node:test";
import { ciKinds, isEphemeral, kinds } from "../../nostr/event.js";
import { knownKinds } from "./paging.js";

test("a second that is too full is asked for every kind of the newest clients that is stored", () => {
  const newest = [1624, 1985, 9840, 9841, 9842, 9843, 9844, 19_843, 19_844, 30_624, 39_842, 39_844];
  const stored = [kinds.announcement, kinds.state, kinds.container, ...newest, ...ciKinds].filter(
    (kind) => !isEphemeral(kind),
  );
  assert.deepEqual(
    stored.filter((kind) => !knownKinds.includes(kind)),
    [],
  );
  assert.equal(new Set(knownKinds).size, knownKinds.length);
});
