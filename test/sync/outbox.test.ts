// GRASP-03 with real relays: what participants wrote only to relays of their own is served here. Three relays: the
// repository's, an index relay that knows where people write, and a participant's own.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type NostrEvent, parseEvent } from "../../src/nostr/event.js";
import { npubOf } from "../../src/nostr/nip19.js";
import { Person, type SignedEvent } from "../harness/grasp-people.js";
import { keyOf, sign, type TestKey } from "../harness/relay-events.js";
import { PushedClock } from "../harness/sync-clock.js";
import { PlainRelay } from "../harness/sync-plain-relay.js";
import {
  announce,
  issueFor,
  nowSeconds,
  type SyncServer,
  serveRepository,
  startSyncServer,
  until,
} from "../harness/sync-server.js";
import { beginPrs, prsUrl, pullRequest } from "../stories/prs-world.js";

const owner = keyOf("owner");
const visitor = keyOf("visitor");
const stranger = keyOf("stranger");

const listOf = (key: TestKey, urls: readonly string[], created_at = nowSeconds() - 50): NostrEvent =>
  sign(key, { kind: 10002, created_at, tags: urls.map((url) => ["r", url, "write"]), content: "" });

const commentOn = (key: TestKey, root: NostrEvent, content: string): NostrEvent =>
  sign(key, {
    kind: 1111,
    created_at: nowSeconds() - 5,
    tags: [
      ["E", root.id],
      ["e", root.id],
      ["K", "1621"],
    ],
    content,
  });

const has = async (server: SyncServer, ...events: readonly NostrEvent[]): Promise<boolean> => {
  for (const { id } of events) if (!(await server.store.has(id))) return false;
  return true;
};

/** Every filter that a relay was asked by: REQ and NEG-OPEN. */
const filtersAt = (relay: PlainRelay): Record<string, unknown>[] =>
  relay.heard.flatMap(({ verb, rest }) =>
    verb === "REQ" ? rest.slice(1) : verb === "NEG-OPEN" ? [rest[1]] : [],
  ) as Record<string, unknown>[];

interface Scene {
  readonly server: SyncServer;
  readonly ofRepository: PlainRelay;
  readonly index: PlainRelay;
  readonly own: PlainRelay;
  readonly repository: NostrEvent;
  readonly issue: NostrEvent;
}

/** The visitor's issue is at the repository's relay; where the visitor writes, only the index relay knows. */
async function scene(
  t: { after(work: () => Promise<unknown>): void },
  settings: Record<string, string> = {},
): Promise<Scene> {
  const [ofRepository, index, own] = await Promise.all([PlainRelay.start(), PlainRelay.start(), PlainRelay.start()]);
  for (const relay of [ofRepository, index, own]) t.after(() => relay.stop());
  const server = await startSyncServer({ settings: { NGIT_USER_INDEX_RELAYS: index.url, ...settings } });
  t.after(() => server.close());
  const repository = announce(owner, [server.domain], { relays: [ofRepository.url] });
  const issue = issueFor(visitor, repository, "something is wrong");
  ofRepository.add(issue);
  index.add(listOf(visitor, [own.url]));
  return { server, ofRepository, index, own, repository, issue };
}

test("a comment that exists only on its author's outbox is served here within 60 s, the next one as it is written", async (t) => {
  const { server, ofRepository, index, own, repository, issue } = await scene(t);
  const comment = commentOn(visitor, issue, "written to my own relay only");
  const spam = commentOn(stranger, issue, "buy this");
  own.add(comment, spam, sign(visitor, { kind: 1, created_at: nowSeconds() - 9, tags: [], content: "breakfast" }));
  const beganMs = performance.now();
  await serveRepository(server.store, repository);
  await until("the comment is here", () => has(server, issue, comment));
  assert.ok(performance.now() - beganMs < 60_000);
  t.diagnostic(`served ${Math.round(performance.now() - beganMs)} ms after the repository was hosted`);

  const live = async () =>
    (await server.status()).outbox.live === 1 && own.requests().some(({ rest }) => hasLimitZero(rest));
  await until("the outbox is listened to", live);
  const later = commentOn(visitor, issue, "and one more");
  own.publish(later);
  await until("the next one is here", () => has(server, later));
  assert.equal(await server.metric("ngit_sync_outbox_events_total"), 2);

  assert.equal(await has(server, spam), false, "a stranger's words are not asked for");
  for (const filter of filtersAt(own)) {
    assert.deepEqual(filter.authors, [visitor.pubkey], JSON.stringify(filter));
    const isBound = Object.keys(filter).some((key) => key.startsWith("#")) || filter.kinds !== undefined;
    assert.ok(isBound, JSON.stringify(filter));
  }
  for (const filter of filtersAt(index)) assert.deepEqual(filter.kinds, [10002]);
  assert.ok(filtersAt(ofRepository).some(({ kinds }) => JSON.stringify(kinds) === "[10002]"));

  const { outbox } = await server.status();
  assert.deepEqual(
    [outbox.repositories, outbox.participants, outbox.relays, outbox.connected, outbox.incomplete, outbox.unplaced],
    [1, 2, 1, 1, 0, 0],
  );
  const page = await (await fetch(`http://${server.domain}/status`)).text();
  assert.match(page, /Relays of participants: what 2 people wrote only there is gathered from 1 relay, 1 connected\./);
  assert.doesNotMatch(page, new RegExp(own.key.replaceAll(".", "\\.")), "whose relay it is, is nobody's business");
  const path = `/${npubOf(owner.pubkey)}/repo.git`;
  const ofPage = await fetch(`http://${server.domain}${path}/copies`, { headers: { accept: "text/html" } });
  assert.match(
    await ofPage.text(),
    /2 people take part; what they wrote only to relays of their own is gathered from 1 relay\./,
  );
  const information = await fetch(`http://${server.domain}/`, { headers: { accept: "application/nostr+json" } });
  const { supported_grasps } = (await information.json()) as { supported_grasps: string[] };
  assert.ok(supported_grasps.includes("GRASP-03"));
  assert.deepEqual(server.faults, []);
});

const hasLimitZero = (rest: readonly unknown[]): boolean =>
  rest.some((filter) => typeof filter === "object" && (filter as { limit?: number }).limit === 0);

test("switched off nobody's own relay is asked, and GRASP-03 is not advertised", async (t) => {
  const { server, index, own, repository, issue } = await scene(t, { NGIT_SYNC_PLUS_ENABLED: "false" });
  await serveRepository(server.store, repository);
  await until("the issue is here", () => has(server, issue));
  await until("the relay is in step", async () => (await server.status()).relays.every(({ inStep }) => inStep));
  assert.deepEqual([index.connections, own.connections], [0, 0]);
  const information = await fetch(`http://${server.domain}/`, { headers: { accept: "application/nostr+json" } });
  assert.doesNotMatch(await information.text(), /GRASP-03/);
  assert.doesNotMatch(await (await fetch(`http://${server.domain}/status`)).text(), /Relays of participants/);
});

test("a forged list leads nowhere; who has no list is found at the fallback relay", async (t) => {
  const trap = await PlainRelay.start();
  t.after(() => trap.stop());
  const fallback = await PlainRelay.start();
  t.after(() => fallback.stop());
  const { server, index, repository, issue } = await scene(t, { NGIT_SYNC_PLUS_FALLBACK_RELAYS: fallback.url });
  const signed = listOf(visitor, [trap.url], nowSeconds() - 10);
  index.events.length = 0;
  index.add({ ...signed, raw: signed.raw.replace(signed.sig, "0".repeat(128)), sig: "0".repeat(128) });
  const comment = commentOn(visitor, issue, "I have told nobody where I write");
  fallback.add(comment);
  await serveRepository(server.store, repository);
  await until("the comment is here", () => has(server, comment));
  assert.equal(trap.connections, 0);
  assert.equal((await server.metric("ngit_sync_outbox_lists", { result: "none" })) ?? 0, 2);
});

test("the server's own profile and relay list are on its own relay, and at index relays only when told so", async (t) => {
  const index = await PlainRelay.start();
  t.after(() => index.stop());
  const settings = { NGIT_USER_INDEX_RELAYS: index.url, NGIT_PUBLISH_PROFILE: "true", NGIT_RELAY_NAME: "Our place" };
  const server = await startSyncServer({ settings });
  t.after(() => server.close());
  await until("both were sent", () => index.events.length === 2);
  const byKind = new Map(index.events.map((event) => [event.kind, event]));
  assert.deepEqual(byKind.get(10002)?.tags, [["r", server.url]]);
  assert.equal((JSON.parse(byKind.get(0)?.content ?? "") as { name: string }).name, "Our place");
  assert.ok(await has(server, ...index.events));

  const clock = new PushedClock();
  const quiet = await startSyncServer({
    clock,
    store: server.store,
    settings: { ...settings, NGIT_PUBLISH_PROFILE: "false" },
  });
  t.after(() => quiet.close());
  await clock.push(60_000);
  assert.equal(index.connections, 1, "nothing is sent without being told so");
});

test("the event of an unclaimed push under /prs/ is looked for at its signer's own relays", async (t) => {
  const [index, own] = await Promise.all([PlainRelay.start(), PlainRelay.start()]);
  for (const relay of [index, own]) t.after(() => relay.stop());
  const story = await beginPrs({ settings: { NGIT_USER_INDEX_RELAYS: index.url } });
  t.after(() => story.end());
  const [signer, elsewhere] = [new Person(), new Person()];
  const list = signer.sign(10002, [["r", own.url]]);
  index.add(parsed(list));
  const work = await story.workingCopy();
  const tip = await work.commit("offered");
  const event = pullRequest(story, signer, elsewhere, "theirs", tip);
  own.add(parsed(event));
  await work.must("push", "-q", prsUrl(story, signer, "theirs"), `HEAD:refs/nostr/${event.id}`);
  await until("the pull request is served", () => story.isServed(event));
  assert.equal(own.connections, 1);
});

function parsed(event: SignedEvent): NostrEvent {
  const read = parseEvent(event);
  assert.ok(read.ok);
  return read.event;
}
