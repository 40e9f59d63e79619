// A private server beside other relays (GRASP-08 "Sync"): it speaks only to those that ask who is there and let its key in, and
// asks nothing before; two private servers of one team keep each other in step, events and git data.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { SecretKey } from "../../src/nostr/keys.js";
import { npubOf } from "../../src/nostr/nip19.js";
import type { ListedEntry } from "../../src/operator/lists.js";
import { askServer } from "../../src/operator/socket.js";
import type { SyncStatus } from "../../src/sync/status.js";
import { freePort } from "../harness/free-port.js";
import { Person } from "../harness/grasp-people.js";
import { Story } from "../harness/grasp-story.js";
import { batch, largeFileOf, pointerTo, put } from "../harness/lfs-client.js";
import { authenticate, signedHeader } from "../harness/private-service.js";
import { ask } from "../harness/raw-http.js";
import { type InProcessOptions, type LogLine, startInProcess, type TestServer } from "../harness/server.js";
import { owner, visitor } from "../harness/sync-pair.js";
import { type PlainHabits, PlainRelay } from "../harness/sync-plain-relay.js";
import { announce, issueFor, nowSeconds, serveRepository, startSyncServer, until } from "../harness/sync-server.js";

const settings = { NGIT_PRIVATE_MODE: "true", NGIT_SYNC_DIAL_TIMEOUT_SECS: "2" };

/** A private server with a repository that lists one other relay. */
async function beside(t: TestContext, habits: PlainHabits) {
  const relay = await PlainRelay.start(habits);
  t.after(() => relay.stop());
  const admin = new Person();
  const server = await startSyncServer({ settings: { ...settings, NGIT_ADMIN_NPUBS: admin.npub } });
  t.after(() => server.close());
  const repository = announce(owner, [server.domain], { relays: [relay.url] });
  const issue = issueFor(visitor, repository, "on the other relay");
  relay.add(repository, issue);
  await serveRepository(server.store, repository);
  const failure = async (): Promise<string | undefined> => {
    const address = `http://${server.domain}/api/sync`;
    // A signature is good for one request: each has a second of its own.
    const headers = { authorization: signedHeader(admin, address, "GET", nowSeconds() - (asked++ % 50)) };
    const answer = await ask(address, { headers });
    return answer.status === 200 ? (JSON.parse(answer.text) as SyncStatus).relays[0]?.lastFailure?.kind : undefined;
  };
  let asked = 0;
  return { relay, server, issue, failure };
}

// They wait more than they work, each for servers of its own.
describe("a private server beside other relays", { timeout: 120_000, concurrency: 4 }, () => {
  test("a relay that lets the server's key in is followed, and nothing is asked before that", async (t) => {
    const { relay, server, issue } = await beside(t, { wantsAuth: true });
    await until("the other relay's issue is here", () => server.store.has(issue.id));
    assert.equal(relay.heard[0]?.verb, "AUTH");
    assert.equal(relay.authenticatedAs.length, relay.connections);
    assert.ok(!relay.requests("EVENT").length, "nothing is sent there");
  });

  test("a relay that does not let it in hears no filter", async (t) => {
    const { relay, server, issue, failure } = await beside(t, { wantsAuth: true, refusesAuth: true });
    await until("it was given up", async () => (await failure()) === "no-entry");
    assert.ok(relay.heard.every(({ verb }) => verb === "AUTH"));
    assert.equal(await server.store.has(issue.id), false);
  });

  test("a public relay, which does not ask who is there, hears nothing at all", async (t) => {
    const { relay, failure } = await beside(t, {});
    await until("it was given up", async () => (await failure()) === "no-entry");
    assert.deepEqual(relay.heard, []);
    assert.ok(relay.connections > 0);
  });

  interface Side {
    readonly port: number;
    readonly key: SecretKey;
  }

  const sideOf = async (): Promise<Side> => ({ port: await freePort(), key: SecretKey.generate(randomBytes) });

  const startSide = (
    side: Side,
    more: Readonly<Record<string, string>>,
    options: InProcessOptions = {},
  ): Promise<TestServer> =>
    startInProcess({
      ...options,
      port: side.port,
      settings: {
        ...settings,
        NGIT_RELAY_OWNER_NSEC: Buffer.from(side.key.exportBytes()).toString("hex"),
        NGIT_GIT_HUNT_SYNC_DELAY_MS: "100",
        NGIT_SYNC_BATCH_WINDOW_MS: "50",
        NGIT_SYNC_BASE_BACKOFF_SECS: "1",
        ...more,
      },
    });

  test("two private servers keep a repository in step; where peers are members, the key that runs the other relay is one while it is listed, and shown", async (t) => {
    const alice = new Person();
    const [first, second] = [await sideOf(), await sideOf()];
    // The first knows the second only by its relay in the announcement; the second has the first's key on its list.
    const log: LogLine[] = [];
    const here = await startSide(
      first,
      { NGIT_PRIVATE_MEMBERS: alice.npub, NGIT_PRIVATE_PEERS: "true" },
      { backend: "lmdb", onLog: (line) => void log.push(line) },
    );
    t.after(() => here.end());
    const there = await startSide(second, {
      NGIT_PRIVATE_MEMBERS: `${alice.npub},${npubOf(first.key.pubkey)}`,
      NGIT_SYNC_BOOTSTRAP_RELAY_URL: here.url,
    });
    t.after(() => there.end());
    const story = await Story.on(here);
    await authenticate(story.relay, here, alice);
    const copy = `${there.origin}/${alice.npub}/plans.git`;
    await story.announce(alice, "plans", [
      ["clone", copy],
      ["relays", there.url],
    ]);
    const work = await story.workingCopy();
    const large = largeFileOf("a large file of the team");
    await writeFile(join(work.folder, "large.bin"), `${pointerTo(large)}\n`);
    const tip = await work.commit("one");
    await story.state(alice, "plans", { "refs/heads/main": tip });
    const url = story.url(alice, "plans");
    const { objects } = await batch(url, "upload", [large], signedHeader(alice, url));
    const href = objects[0]?.actions?.upload.href ?? "";
    assert.equal((await put(href, large.content, signedHeader(alice, url))).status, 200);
    await work.must("-c", `http.extraHeader=Authorization: ${signedHeader(alice, url)}`, "push", "-q", url, "main");
    await until("the other server serves the branch", async () => {
      const headers = { authorization: signedHeader(alice, copy) };
      const answer = await ask(`${copy}/info/refs?service=git-upload-pack`, { headers });
      return answer.status === 200 && answer.text.includes(`${tip} refs/heads/main`);
    });
    // The large file was hunted with the other server's own signature: its batch and its download ask for one each.
    await until("the other server has the large file", async () => {
      const authorization = signedHeader(alice, copy);
      const found = (await batch(copy, "download", [large], authorization)).objects[0]?.actions?.download.href;
      if (found === undefined) return false;
      assert.equal((await ask(found)).status, 401);
      return (await ask(found, { headers: { authorization } })).text === large.content.toString();
    });
    const peers = async (): Promise<ListedEntry[]> => {
      const question = { operation: "lists.show", parameters: { list: "private-members" } };
      const outcome = await askServer(join(here.folder, "relay"), question, () => undefined);
      assert.ok(outcome?.ok);
      return (outcome.result as { entries: ListedEntry[] }).entries.filter(({ origin }) => origin === "peer relay");
    };
    assert.deepEqual(
      (await peers()).map(({ entry, reason }) => [entry, reason]),
      [[npubOf(second.key.pubkey), there.domain]],
    );
    const told = log.filter(({ message }) => message === "the key that runs this relay counts as a member");
    assert.deepEqual(
      told.map(({ level, key }) => [level, key]),
      [["info", second.key.pubkey]],
    );
    await story.announce(alice, "plans");
    await until("nobody lists the other relay any more", async () => (await peers()).length === 0);
    await story.relay.close();
  });
});
