import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { announcement, keyOf, maintainers, makeEvent, nameOf, oid, state, sync } from "../admission/testing/world.js";
import { rememberedId } from "../catalogue/decisions.js";
import { catalogueRow, underPrs } from "../catalogue/repositories.js";
import { partialPush, waitingEntry } from "../catalogue/waiting.js";
import { diskAddress } from "../git/address.js";
import { Overtaken } from "../git/change-refs.js";
import type { PushOutcome } from "../git/push-types.js";
import { Room } from "../intake/testing/room.js";
import type { EventId } from "../nostr/event.js";
import type { Oid, RefName } from "../nostr/nip34.js";
import { SharedLogError } from "../store/port.js";

const main = "refs/heads/main" as RefName;
const minutes = 60;
const days = 86_400;

describe("the waiting room", () => {
  let room: Room;
  before(async () => {
    room = await Room.open();
  });
  after(() => room.close());

  const head = async (owner: string, identifier: string): Promise<string | undefined> =>
    (await room.repository(nameOf(owner, identifier)).refs()).refs.get(main)?.oid;

  it("objects that a hunt brought release state and announcement, the announcement first", async () => {
    const event = announcement("alice", "hunted", [], room.now);
    await room.send(event, sync);
    const tip = await room.commit(nameOf("alice", "hunted"), "one");
    await room.repositories.delete(diskAddress(nameOf("alice", "hunted")));
    await room.repositories.create(diskAddress(nameOf("alice", "hunted")));
    const held = state("alice", "hunted", [[main, tip]], room.now);
    assert.equal(await room.send(held, sync), false);
    await room.commit(nameOf("alice", "hunted"), "one");
    const released = await room.purgatory.fetched(nameOf("alice", "hunted"));
    assert.deepEqual(
      released.map(({ id, via }) => [id, via]),
      [
        [event.id, "hunt"],
        [held.id, "hunt"],
      ],
    );
    assert.equal(await head("alice", "hunted"), tip);
  });

  it("what a leader does in an epoch that is over is refused: its hunt and its sweep release nothing", async () => {
    const name = nameOf("alice", "led");
    await room.send(announcement("alice", "led", [], room.now));
    const held = state("alice", "led", [[main, await room.commit(name, "led")]], room.now);
    await room.write(held, sync);
    const transact = room.store.transact.bind(room.store);
    const over = { epoch: 1 };
    room.store.transact = (work, options) =>
      options?.epoch === over.epoch
        ? Promise.reject(new SharedLogError("not-leader", "another server leads by now"))
        : transact(work, options);
    const isRefused = { trouble: "not-leader" };
    try {
      await assert.rejects(room.purgatory.fetched(name, undefined, over), isRefused);
      await assert.rejects(room.purgatory.releasePartial(name, new Set([held.id]), over), isRefused);
      await assert.rejects(room.purgatory.revive(name, over), isRefused);
      assert.ok(room.purgatory.releaser.isUnfinished(name));
      await assert.rejects(room.purgatory.releaseUnfinished(over), isRefused);
      assert.equal(await room.isServed(held), false);
    } finally {
      room.store.transact = transact;
    }
    await room.purgatory.releaseUnfinished({ epoch: 2 });
    assert.ok(await room.isServed(held));
  });

  it("an announcement whose own time is over is not released by what comes before it is swept", async () => {
    const expiring = announcement("alice", "brief", [["expiration", String(room.now + 100)]], room.now);
    await room.send(expiring);
    const name = nameOf("alice", "brief");
    const tip = await room.commit(name, "brief");
    await room.repositories.delete(diskAddress(name));
    await room.repositories.create(diskAddress(name));
    assert.equal(await room.send(state("alice", "brief", [[main, tip]], room.now)), false);
    await room.commit(name, "brief");
    room.clock.advance(100_000);
    assert.deepEqual(await room.purgatory.fetched(name), []);
    assert.equal((await catalogueRow(room.store, name))?.status, "waiting");
  });

  it("oldest first: of several states that become complete the newest decides and each author's newest is served", async () => {
    await room.send(announcement("ann", "several", [maintainers("ben")], room.now));
    const name = nameOf("ann", "several");
    const one = await room.commit(name, "1");
    const two = await room.commit(name, "2");
    const missing = oid("elsewhere");
    const older = state("ann", "several", [[main, one]], room.now);
    const newer = state("ben", "several", [[main, two]], room.now + 1);
    const newest = state("ann", "several", [[main, missing]], room.now + 2);
    for (const event of [newest, older, newer]) await room.write(event);
    await room.purgatory.fetched(name);
    assert.equal(await head("ann", "several"), two);
    assert.deepEqual(await Promise.all([older, newer, newest].map((event) => room.isServed(event))), [
      true,
      true,
      false,
    ]);
    assert.equal((await catalogueRow(room.store, name))?.mark?.id, newer.id);
  });

  it("a synced state goes soft after half an hour, is released if its data comes, and is remembered after a week", async () => {
    await room.send(announcement("sue", "synced", [], room.now));
    const name = nameOf("sue", "synced");
    const tip = await room.commit(name, "base");
    await room.send(state("sue", "synced", [[main, tip]], room.now));
    const lost = state("sue", "synced", [[main, oid("lost")]], room.now + 5);
    await room.send(lost, sync);
    await room.advance(31 * minutes);
    assert.equal((await waitingEntry(room.store, lost.id))?.phase, "soft");
    const late = await room.commit(name, "late");
    const found = state("sue", "synced", [[main, late]], room.now);
    await room.write(found, sync);
    await room.purgatory.fetched(name);
    assert.ok(await room.isServed(found));
    await room.advance(7 * days + 60);
    assert.equal(await waitingEntry(room.store, lost.id), undefined);
    assert.equal((await rememberedId(room.store, lost.id, room.now))?.reason, "expired");
    await room.advance(7 * days + 3_700);
    assert.equal(await room.store.row("remembered", `id:${lost.id}`), undefined, "forgotten for good");
  });

  it("a push that brings a part of a state raises the mark and starts its clock with its refs, in one transaction", async () => {
    await room.send(announcement("pia", "promised", [], room.now));
    const name = nameOf("pia", "promised");
    const address = diskAddress(name);
    const tip = await room.commit(name, "promised");
    const waiting = state(
      "pia",
      "promised",
      [
        [main, tip],
        ["refs/heads/far", oid("far")],
      ],
      room.now,
    );
    await room.send(waiting);
    const candidate = { id: waiting.id, created_at: waiting.created_at };
    const push = { address, decision: { verdicts: [], candidate, moves: true }, updates: [{ ref: main, to: tip }] };
    const transact = room.store.transact.bind(room.store);
    room.store.transact = () => Promise.reject(new Error("the disk is full"));
    await assert.rejects(room.pushed(push), /disk is full/);
    room.store.transact = transact;
    assert.equal((await catalogueRow(room.store, name))?.mark, null, "the mark is as before");
    assert.equal(await partialPush(room.store, name, waiting.id), undefined);
    assert.equal((await room.repository(name).refs()).refs.size, 0);
    await room.pushed(push);
    assert.ok(await partialPush(room.store, name, waiting.id));
    room.restart();
    await room.purgatory.resume();
    await room.purgatory.startClocks();
    const { refs } = await room.repository(name).refs();
    assert.deepEqual([...refs.keys()], [main]);
    assert.equal((await catalogueRow(room.store, name))?.mark?.id, waiting.id);
  });

  it("a partial state is released once its grace is over, also when the server restarts meanwhile", async () => {
    const waiting = (await waitingEntry(room.store, [...(await partialIds())][0] as EventId))?.id as EventId;
    assert.equal(await room.store.has(waiting), false);
    room.clock.advance(12_000);
    for (let i = 0; i < 500 && !(await room.store.has(waiting)); i++)
      await new Promise((resolve) => setTimeout(resolve, 10));
    assert.ok(await room.store.has(waiting));
    const row = await catalogueRow(room.store, nameOf("pia", "promised"));
    assert.deepEqual(row?.partial?.missingRefs, ["refs/heads/far"]);
  });

  it("a partial state is released once its grace is over, also when the store failed at the end of its push", async (t) => {
    await room.send(announcement("pim", "halved", [], room.now));
    const name = nameOf("pim", "halved");
    const address = diskAddress(name);
    const tip = await room.commit(name, "halved");
    const refs: [string, string][] = [
      [main, tip],
      ["refs/heads/far", oid("far")],
    ];
    const waiting = state("pim", "halved", refs, room.now);
    await room.send(waiting);
    const candidate = { id: waiting.id, created_at: waiting.created_at, refs: new Map(), governs: false };
    const updates = [{ ref: main, to: tip }];
    const { releaser } = room.purgatory;
    t.mock.method(releaser, "follow", () => Promise.reject(new Error("the disk is full")), { times: 1 });
    const decision = { verdicts: [], candidate, moves: true };
    const outcome: PushOutcome = { address, decision, updates, placeholders: [], packBytes: 0, ip: "192.0.2.1" };
    await assert.rejects(room.pushed(outcome), /disk is full/);
    room.clock.advance(12_000);
    for (let i = 0; i < 500 && !(await room.store.has(waiting.id)); i++)
      await new Promise((resolve) => setTimeout(resolve, 10));
    assert.ok(await room.store.has(waiting.id));
  });

  const partialIds = async (): Promise<Set<string>> => {
    const found = new Set<string>();
    for await (const [key] of room.store.rows("journal", { prefix: "partial:" })) found.add(key.slice(-64));
    return found;
  };

  /** As a push tells it: first what was put aside, then that it is over. */
  async function pushedAside(outcome: PushOutcome): Promise<void> {
    await room.keptAside(outcome);
    await room.pushed(outcome);
  }

  it("threats 19: unclaimed data is bounded, and whoever holds most gives way first", async () => {
    await room.send(announcement("pat", "full", [], room.now));
    const address = diskAddress(nameOf("pat", "full"));
    room.config = { ...room.config, unclaimedMaxBytes: 100, unclaimedPerHourPerIp: 2, unclaimedTotalMaxBytes: 250 };
    const push = (id: string, ip: string, bytes: number): Promise<void> =>
      pushedAside({
        address,
        decision: { verdicts: [], candidate: undefined, moves: true },
        updates: [],
        placeholders: [{ eventId: id.repeat(64) as EventId, tip: oid("x") as Oid, bytes, sinceMs: room.clock.nowMs() }],
        packBytes: bytes,
        ip,
      });
    await push("a", "192.0.2.1", 100);
    room.clock.advance(1_000);
    await push("b", "192.0.2.1", 100);
    await push("c", "192.0.2.2", 100);
    assert.deepEqual(room.purgatory.placeholders.ids, ["b".repeat(64), "c".repeat(64)]);
    const ids = ["1", "2", "3"].map((digit) => digit.repeat(64) as EventId);
    const { placeholders } = room.purgatory;
    assert.equal(placeholders.allowance("192.0.2.9", address, ids.slice(0, 2), room.now).ok, true);
    assert.equal(
      placeholders.allowance("192.0.2.9", address, ids.slice(0, 2), room.now).ok,
      true,
      "asked twice, counted once",
    );
    assert.equal(placeholders.allowance("192.0.2.9", address, ids.slice(2), room.now).ok, false);
  });

  it("threat 50: many addresses of one network are one: the network that holds most gives way, not the largest of others", async () => {
    const address = diskAddress(nameOf("pat", "full"));
    room.config = { ...room.config, unclaimedMaxBytes: 200, unclaimedTotalMaxBytes: 515 };
    const push = async (id: string, ip: string, bytes: number): Promise<void> => {
      room.clock.advance(1_000);
      await pushedAside({
        address,
        decision: { verdicts: [], candidate: undefined, moves: true },
        updates: [],
        placeholders: [{ eventId: id.repeat(64) as EventId, tip: oid("x") as Oid, bytes, sinceMs: room.clock.nowMs() }],
        packBytes: bytes,
        ip,
      });
    };
    const heldBefore = room.purgatory.placeholders.ids;
    await push("d", "198.51.100.7", 150);
    await push("e", "2001:db8::1", 80);
    await push("f", "2001:db8::2", 80);
    await push("7", "2001:db8::3", 60);
    const held = ["d", "f", "7"].map((digit) => digit.repeat(64));
    assert.deepEqual(room.purgatory.placeholders.ids, [...heldBefore, ...held]);
  });

  it("threats 19: a stranger's pull requests use his quota and the repository's share, not the owner's", async () => {
    await room.send(announcement("olga", "quota", [], room.now));
    const name = nameOf("olga", "quota");
    const tip = await room.commit(name, "base");
    await room.send(state("olga", "quota", [[main, tip]], room.now));
    const proposed = await room.commit(nameOf("alice", "hunted"), "pr");
    const tags = [
      ["a", `30617:${keyOf("olga")}:quota`],
      ["c", proposed],
    ];
    const event = makeEvent(keyOf("stranger"), 1618, tags, room.now);
    await room.send(event);
    assert.equal(await room.commit(name, "pr"), proposed, "the push brings it");
    const ref = `refs/nostr/${event.id}` as RefName;
    const command = { ref, old: undefined, new: proposed };
    const address = diskAddress(name);
    const quota = async () => (await room.authority(address, [command], "192.0.2.1")).quota?.maxBytes;
    room.config = { ...room.config, prAuthorMaxBytes: 500 };
    assert.equal(await quota(), 500);
    await room.pushed({
      address,
      decision: { verdicts: [], candidate: undefined, moves: true },
      updates: [{ ref, to: proposed }],
      placeholders: [],
      packBytes: 400,
      ip: "192.0.2.1",
    });
    assert.equal(await quota(), 100);
    const counters = (await catalogueRow(room.store, name))?.counters;
    assert.deepEqual([counters?.bytes, counters?.pullRequestBytes], [0, 400]);
  });

  it("commits that were copied for a pull request go again when its release is overtaken, and count when it is written", async (context) => {
    const [source, target] = [nameOf("paul", "twin"), nameOf("rita", "twin")];
    for (const owner of ["paul", "rita"]) {
      await room.send(announcement(owner, "twin", [maintainers("paul", "rita")], room.now));
    }
    const base = await room.commit(source, "base");
    await room.commit(target, "base");
    await room.send(state("paul", "twin", [[main, base]], room.now));
    // A state of a maintainer of both waits: they are looked at together.
    await room.send(state("paul", "twin", [[main, oid("far")]], room.now + 1));
    const proposed = await room.commit(nameOf("alice", "hunted"), "for the twins");
    const tags = [
      ["a", `30617:${keyOf("paul")}:twin`],
      ["a", `30617:${keyOf("rita")}:twin`],
      ["c", proposed],
    ];
    const event = makeEvent(keyOf("stranger"), 1618, tags, room.now);
    await room.send(event);
    assert.equal(await room.commit(source, "for the twins"), proposed, "a hunt brings it");
    const overtaken = context.mock.method(room.repositories, "changeRefs", async () => {
      throw new Overtaken("something came first");
    });
    const share = async () => (await catalogueRow(room.store, target))?.counters.pullRequestBytes;
    await assert.rejects(room.purgatory.fetched(source, event.id), Overtaken);
    assert.deepEqual(await room.repository(target).missingObjects([proposed]), new Set([proposed]));
    assert.equal(await share(), 0);
    overtaken.mock.restore();
    await room.purgatory.fetched(source, event.id);
    assert.ok((await room.repository(target).refs()).refs.has(`refs/nostr/${event.id}` as RefName));
    assert.ok(((await share()) ?? 0) > 0);
  });

  it("what a push under /prs/ left without data goes when the push ends, its row too", async () => {
    const name = underPrs(nameOf("carl", "mine"));
    const address = diskAddress(name);
    const push = room.purgatory.beginPush(address, "192.0.2.1");
    await room.repositories.create(address);
    const eventId = "9".repeat(64) as EventId;
    await push.keepAside([{ eventId, tip: oid("mine") as Oid, bytes: 1, sinceMs: room.clock.nowMs() }]);
    await push.abandon();
    assert.ok(await catalogueRow(room.store, name), "others would take it away under the push");
    await push.end();
    assert.equal(await catalogueRow(room.store, name), undefined);
    assert.equal(await room.repositories.exists(address), false);
  });

  it("a crash between an event and its git data's claim is mended at the next start", async () => {
    const name = nameOf("olga", "quota");
    const repository = room.repository(name);
    const quarantine = await repository.quarantine();
    const env = {
      ...quarantine.writingEnvironment,
      GIT_AUTHOR_DATE: "1700000000 +0000",
      GIT_COMMITTER_DATE: "1700000000 +0000",
    };
    const { directory } = repository;
    const tree = (await room.git.mustRun(["hash-object", "-t", "tree", "--stdin"], { directory })).toString().trim();
    const tip = (await room.git.mustRun(["commit-tree", "-m", "contribution", tree], { directory, env }))
      .toString()
      .trim();
    const pack = await room.git.mustRun(["pack-objects", "-q", `${quarantine.directory}/pack/pack`], {
      directory,
      env,
      input: `${tip}\n`,
    });
    assert.match(pack.toString(), /^[0-9a-f]{40}/);
    const tags = [
      ["a", `30617:${keyOf("olga")}:quota`],
      ["c", tip],
    ];
    const event = makeEvent(keyOf("stranger"), 1618, tags, room.now);
    const kept = await repository.keepUnclaimed(quarantine, event.id, tip as Oid);
    await quarantine.drop();
    await pushedAside({
      address: diskAddress(name),
      decision: { verdicts: [], candidate: undefined, moves: true },
      updates: [],
      placeholders: [{ ...kept, bytes: 1 }],
      packBytes: 1,
      ip: "192.0.2.1",
    });
    await room.write(event);
    room.restart();
    await room.purgatory.resume();
    await room.purgatory.startClocks();
    assert.ok(await room.isServed(event));
    assert.equal((await repository.refs()).refs.get(`refs/nostr/${event.id}` as RefName)?.oid, tip);
  });
});
