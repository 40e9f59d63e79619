// NIP-86's two methods that take back what `banpubkey` and `allowpubkey` did, each without doing the other's work.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { manage } from "../src/admin/nip86.js";
import type { OperationName } from "../src/admin/operations.js";
import type { Outcome } from "../src/admin/outcome.js";
import { askServer } from "../src/admin/socket-client.js";
import { newKey, OperatorServer } from "./harness/operator-server.js";
import type { RelayClient } from "./harness/relay-client.js";

let server: OperatorServer;
let client: RelayClient;
before(async () => {
  server = await OperatorServer.start();
  client = await server.connect();
});
after(async () => {
  await client?.close();
  await server?.close();
});

/** The methods' table over the admin socket: tokens are another test's. */
async function call(method: string, ...params: unknown[]): Promise<unknown> {
  const directory = join(server.folder, "data", "relay");
  const run = async (operation: OperationName, parameters: object): Promise<Outcome<unknown>> => {
    const outcome = await askServer(directory, { operation, parameters }, () => undefined);
    if (!outcome) throw new Error("no server");
    return outcome;
  };
  const { result, error } = await manage(Buffer.from(JSON.stringify({ method, params })), run);
  if (error !== undefined) throw new Error(error);
  return result;
}

test("a ban is lifted by unbanpubkey, an allowed key is taken off by unallowpubkey", async () => {
  const methods = (await call("supportedmethods")) as string[];
  assert.ok(methods.includes("unbanpubkey") && methods.includes("unallowpubkey"));
  const [banned, allowed, third] = [newKey(), newKey(), newKey()];
  await call("banpubkey", banned.pubkey, "spam");
  assert.equal(await call("unbanpubkey", banned.pubkey), true);
  assert.deepEqual(await call("listbannedpubkeys"), []);

  // The first entry closes the server to everybody else; only then do allowed keys matter.
  await server.operate("lists.add", { list: "repository-whitelist", entry: third.pubkey });
  await call("allowpubkey", allowed.pubkey);
  assert.equal((await client.publish(server.announcement(allowed, "one")))[2], true);
  assert.equal(await call("unallowpubkey", allowed.pubkey), true);
  assert.match(String((await client.publish(server.announcement(allowed, "two")))[3]), /only repositories on its list/);
  assert.deepEqual(await call("listallowedpubkeys"), [{ pubkey: third.pubkey }]);
  assert.deepEqual(await call("listbannedpubkeys"), [], "not allowed is not banned");
  await assert.rejects(call("unallowpubkey", "a-repository"), /must be a public key/);
});
