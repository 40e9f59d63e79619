// A machine token ends with what its owner may: on a public service, where everybody else belongs, a ban or the blacklist ends it.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type { OperationName, ParametersOf } from "../../src/operator/operations.js";
import type { ResultOf } from "../../src/operator/run.js";
import { askServer } from "../../src/operator/socket.js";
import { holdfast } from "../cli/run.js";
import { Person } from "../harness/grasp-people.js";
import { Story } from "../harness/grasp-story.js";
import { batch, largeFileOf } from "../harness/lfs-client.js";
import { authenticate, basic, signedHeader } from "../harness/private-service.js";
import { dropInEnvironment } from "../harness/server.js";

test("a public service's token opens nothing while its owner is banned or blacklisted, and the list says so", {
  timeout: 120_000,
}, async (t) => {
  const story = await Story.begin({ backend: "lmdb", settings: { NGIT_UNCLAIMED_MAX_BYTES: "1KiB" } });
  t.after(() => story.end());
  const { server } = story;
  const ask = (operation: string, parameters: unknown) =>
    askServer(join(server.folder, "relay"), { operation, parameters }, () => undefined);
  const operate = async <Name extends OperationName>(operation: Name, parameters: ParametersOf<Name>) => {
    const outcome = await ask(operation, parameters);
    assert.ok(outcome?.ok, JSON.stringify(outcome));
    return outcome.result as ResultOf<Name>;
  };
  const [alice, carol] = [new Person(), new Person()];
  await story.announce(alice, "films");
  const url = story.url(alice, "films");
  const file = largeFileOf("x".repeat(4096));
  const { token } = await operate("tokens.add", { member: carol.npub, push: true });
  const brings = async (authorization: string): Promise<string> => {
    const { status, objects } = await batch(url, "upload", [file], authorization);
    return objects[0]?.error ? `${status} ${objects[0].error.code}` : String(status);
  };
  const works = async (): Promise<boolean[]> => (await operate("tokens.list", {})).tokens.map((one) => one.works);
  assert.deepEqual(
    [await brings(basic("ci", token)), await works()],
    ["200", [true]],
    "more than a stranger may bring",
  );

  const ways = [
    {
      keepOut: () => operate("ban", { type: "key", target: carol.npub, reason: "left in anger" }),
      takeBack: () => operate("unban", { type: "key", target: carol.npub }),
    },
    {
      keepOut: () => operate("lists.add", { list: "event-blacklist", entry: carol.npub }),
      takeBack: () => operate("lists.remove", { list: "event-blacklist", entry: carol.npub }),
    },
  ];
  for (const { keepOut, takeBack } of ways) {
    await keepOut();
    assert.deepEqual([await brings(basic("ci", token)), await works()], ["401", [false]]);
    assert.equal(await brings(signedHeader(carol, url)), "401", "nor does that key's signature");
    const refused = await ask("tokens.add", { member: carol.npub, push: true });
    assert.match(JSON.stringify(refused), /is banned or blacklisted here: take that back first/);
    await takeBack();
    assert.deepEqual([await brings(basic("ci", token)), await works()], ["200", [true]]);
  }

  // The relay asks nobody for membership: whoever is kept out may still say who that is.
  await ways[0]?.keepOut();
  const client = await server.connect();
  t.after(() => client.close());
  client.send("REQ", "mine", { kinds: [30_078], authors: [carol.pubkey] });
  assert.deepEqual((await authenticate(client, server, carol)).slice(2), [true, ""]);
  const listed = await holdfast(["tokens", "list"], dropInEnvironment(server.folder, server.port, { backend: "lmdb" }));
  assert.match(listed.stdout, new RegExp(`push +no .*${carol.npub}`));
});
