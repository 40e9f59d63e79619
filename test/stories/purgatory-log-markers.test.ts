// Lines in the log that scripts look for (purgatory.md, "Metrics and logs"): markers with key=value fields.

import assert from "node:assert/strict";
import { it } from "node:test";
import { keyOf, sign } from "../harness/relay-events.js";
import { startInProcess, until } from "../harness/server.js";

it("a state and an announcement that cannot be read leave a [PARSE_FAIL] line, a readable one does not", async (context) => {
  const said: string[] = [];
  const server = await startInProcess({
    onLog: ({ level, message }) => {
      if (level !== "debug") said.push(message);
    },
  });
  context.after(() => server.end());
  const client = await server.connect();
  const created_at = Math.floor(Date.now() / 1000);
  const oid = "1".repeat(40);
  const badState = sign(keyOf("a"), {
    kind: 30618,
    created_at,
    tags: [
      ["d", "x"],
      ["refs/heads/a..b", oid],
    ],
  });
  const badAnnouncement = sign(keyOf("a"), { kind: 30617, created_at, tags: [["clone", "x"]] });
  const stranger = sign(keyOf("a"), {
    kind: 30618,
    created_at,
    tags: [
      ["d", "y"],
      ["refs/heads/main", oid],
    ],
  });
  for (const event of [badState, badAnnouncement, stranger]) assert.equal((await client.publish(event))[2], false);
  await client.close();
  const lines = (): string[] => said.flatMap((message) => message.match(/\[PARSE_FAIL\] [^"\n]*/g) ?? []);
  assert.ok(await until(() => lines().length >= 2, 120_000), said.join("\n"));
  assert.deepEqual(lines(), [
    `[PARSE_FAIL] id=${badState.id} kind=30618 source=client reason=bad-state`,
    `[PARSE_FAIL] id=${badAnnouncement.id} kind=30617 source=client reason=bad-announcement`,
  ]);
});
