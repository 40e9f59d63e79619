// One way for consequences: whoever decides, the same thing ends the same way. Each path that can change what is served is
// driven, and rows, refs, HEAD, git's own files, records and notices are compared with what carry-out said.

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import type { Source } from "../../src/admission/verdict.js";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { readRefs, unalignedRepositories } from "../../src/catalogue/refs.js";
import { type CatalogueRow, catalogueRow, repositoryKey, underPrs } from "../../src/catalogue/repositories.js";
import { waitingEntry } from "../../src/catalogue/waiting.js";
import { ArchiveReview } from "../../src/intake/archive-review.js";
import type { EventId, NostrEvent } from "../../src/nostr/event.js";
import type { Notice } from "../../src/purgatory/bell.js";
import { fromClient, fromSync, HuntHouse } from "../harness/hunt-house.js";
import { keyOf, sign, type TestKey } from "../harness/relay-events.js";
import { until } from "../harness/server.js";

const fromImport: Source = { type: "import" };
const owner = keyOf("owner");
const contributor = keyOf("contributor");

interface Scene {
  readonly house: HuntHouse;
  readonly clock: ManualClock;
  readonly notices: Notice[];
}

const houses: HuntHouse[] = [];
after(() => Promise.all(houses.map((house) => house.close())));

async function open(environment: Readonly<Record<string, string>> = {}): Promise<Scene> {
  const clock = new ManualClock(1_700_000_000_000);
  const house = await HuntHouse.start({ clock, environment: { NGIT_GRASP_06_ENABLE: "true", ...environment } });
  houses.push(house);
  const notices: Notice[] = [];
  house.purgatory.bell.listen((notice) => notices.push(notice));
  return { house, clock, notices };
}

const shared = open();

/** A commit of its own in a repository's objects, as a hunt or a push leaves it before the release. */
async function commit(house: HuntHouse, key: TestKey, identifier: string, text: string): Promise<string> {
  const { directory } = house.repository(house.name(key, identifier));
  const { git } = house.gitHost;
  const tree = (await git.mustRun(["hash-object", "-w", "-t", "tree", "--stdin"], { directory })).toString().trim();
  const env = { GIT_AUTHOR_DATE: "1700000000 +0000", GIT_COMMITTER_DATE: "1700000000 +0000" };
  return (await git.mustRun(["commit-tree", "-m", text, tree], { directory, env })).toString().trim();
}

interface Hosted {
  readonly identifier: string;
  readonly announcement: NostrEvent;
  readonly state: NostrEvent;
  readonly pullRequest: NostrEvent;
  readonly tip: string;
}

let number = 0;

/** A repository that is served, with a state and a pull request of somebody else's. */
async function host(
  { house }: Scene,
  by: Partial<Record<"owner" | "contributor", TestKey>> = {},
  expires?: number,
): Promise<Hosted> {
  const identifier = `r${number++}`;
  const key = by.owner ?? owner;
  const tags = [
    ["d", identifier],
    ["clone", house.url(house.name(key, identifier))],
    ["relays", `ws://${house.domain}`],
  ];
  const expiration = expires === undefined ? [] : [["expiration", String(expires)]];
  const taken = async (event: NostrEvent): Promise<NostrEvent> => {
    const answer = await house.submit(event, fromClient);
    assert.ok(answer.ok, answer.message);
    return event;
  };
  const announcement = await taken(sign(key, { kind: 30617, created_at: house.now, tags }));
  const tip = await commit(house, key, identifier, "first");
  const stateTags = [["d", identifier], ["refs/heads/main", tip], ["HEAD", "ref: refs/heads/main"], ...expiration];
  const state = await taken(sign(key, { kind: 30618, created_at: house.now, tags: stateTags }));
  const address = `30617:${key.pubkey}:${identifier}`;
  const proposed = [
    ["a", address],
    ["c", await commit(house, key, identifier, "proposed")],
    ["clone", "https://elsewhere.example/x.git"],
    ...expiration,
  ];
  const pullRequest = await taken(
    sign(by.contributor ?? contributor, { kind: 1618, created_at: house.now, tags: proposed }),
  );
  assert.ok(
    (await house.isServed(announcement)) && (await house.isServed(state)) && (await house.isServed(pullRequest)),
  );
  return { identifier, announcement, state, pullRequest, tip };
}

/** Everything there is of it, in rows, refs and HEAD. */
async function endOf({ house }: Scene, hosted: Hosted, key = owner) {
  const name = house.name(key, hosted.identifier);
  const row = await catalogueRow(house.store, name);
  const repository = house.repository(name);
  const { refs, head } = await repository.refs();
  const rows = await readRefs(house.store, name);
  assert.deepEqual([...refs], [...(rows?.refs ?? [])]);
  if (await house.gitHost.repositories.exists(repository.address)) {
    const files = await repository.refsOnDisk();
    assert.deepEqual(files.head, head);
    assert.deepEqual(
      [...files.refs].map(([ref, { oid }]) => `${ref} ${oid}`).sort(),
      [...refs].map(([ref, { oid }]) => `${ref} ${oid}`).sort(),
    );
  } else assert.equal(rows, undefined, "no row is left of a repository that is gone");
  const own = house.repository(underPrs({ owner: hosted.pullRequest.pubkey, identifier: hosted.identifier }));
  const isUnderPrs = await house.gitHost.repositories.exists(own.address);
  return {
    status: row?.status,
    governs: row ? row.governing !== null : undefined,
    hasMark: row ? row.mark !== null : undefined,
    served: {
      announcement: await house.isServed(hosted.announcement),
      state: await house.isServed(hosted.state),
      pullRequest: await house.isServed(hosted.pullRequest),
    },
    refs: [...refs.keys()].filter((ref) => !ref.includes(hosted.pullRequest.id)),
    pullRequestRef: [...refs.keys()].some((ref) => ref.includes(hosted.pullRequest.id)),
    underPrs: isUnderPrs && (await own.refs()).refs.size > 0,
    head: JSON.stringify(head),
  };
}

/** Repositories whose files are not known to say what their rows say. */
async function unalignedOf({ house }: Scene): Promise<string[]> {
  const names: string[] = [];
  for await (const { identifier } of unalignedRepositories(house.store)) names.push(identifier);
  return names;
}

/** What carry-out told sync and hunt is what the store holds. */
async function isTrue({ house }: Scene, notice: Notice): Promise<void> {
  for (const change of notice.changes) {
    if (change.type === "hold") assert.ok(await waitingEntry(house.store, change.entry.id));
    if (change.type === "unhold") assert.equal(await waitingEntry(house.store, change.id), undefined);
    if (change.type === "remove") assert.equal(await house.store.has(change.id), false);
    if (change.type === "uncatalogue") assert.equal(await catalogueRow(house.store, change.name), undefined);
    if (change.type === "catalogue") {
      const row = await house.store.row<CatalogueRow>("catalogue", repositoryKey(change.row));
      assert.deepEqual(
        { status: row?.status, governing: row?.governing },
        { status: change.row.status, governing: change.row.governing },
      );
    }
  }
}

async function operate({ house }: Scene, operation: string, parameters: unknown): Promise<void> {
  await house.operate(operation, parameters);
}

/** Settled: git's own refs have followed the rows, on disk; and every notice was true. */
async function settled(scene: Scene, from: number): Promise<readonly Notice[]> {
  const heard = scene.notices.slice(from);
  for (const notice of heard) await isTrue(scene, notice);
  assert.ok(
    await until(async () => {
      scene.clock.advance(1_000);
      return (await unalignedOf(scene)).length === 0;
    }),
    "files are left behind their rows",
  );
  assert.deepEqual(scene.house.faults, []);
  return heard;
}

const deletes = (key: TestKey, tags: readonly string[][], at: number): NostrEvent =>
  sign(key, { kind: 5, created_at: at, tags });
const vanishes = (key: TestKey, house: HuntHouse): NostrEvent =>
  sign(key, {
    kind: 62,
    created_at: house.now,
    tags: [
      ["relay", `ws://${house.domain}`],
      ["relay", "ALL_RELAYS"],
    ],
  });

async function recordsOf({ store }: HuntHouse): Promise<number> {
  let count = 0;
  for await (const _ of store.rows("decisions")) count++;
  return count;
}

async function sent({ house }: Scene, event: NostrEvent, source: Source): Promise<void> {
  const before = await recordsOf(house);
  const answer = await house.submit(event, source);
  assert.ok(answer.ok, answer.message);
  await house.decisions.written();
  assert.ok((await recordsOf(house)) > before, "the decision has a record");
}

type Path = (scene: Scene, hosted: Hosted) => Promise<void>;

/** A repository before and after a path was driven, and what was heard meanwhile. */
async function driven(path: Path, by: Parameters<typeof host>[1] = {}) {
  const scene = await shared;
  const hosted = await host(scene, by);
  const before = await endOf(scene, hosted);
  const from = scene.notices.length;
  await path(scene, hosted);
  const heard = await settled(scene, from);
  return { hosted, before, end: await endOf(scene, hosted), heard };
}

describe("a pull request that goes leaves no ref, whoever took it away", () => {
  const expected = { announcement: true, state: true, pullRequest: false };
  const paths: Readonly<Record<string, Path>> = {
    "its author, by a client": (scene, { pullRequest }) =>
      sent(scene, deletes(contributor, [["e", pullRequest.id]], scene.house.now), fromClient),
    "its author, by sync": (scene, { pullRequest }) =>
      sent(scene, deletes(contributor, [["e", pullRequest.id]], scene.house.now), fromSync),
    "its author, in an import": (scene, { pullRequest }) =>
      sent(scene, deletes(contributor, [["e", pullRequest.id]], scene.house.now), fromImport),
    "the operator's ban of the event": (scene, { pullRequest }) =>
      operate(scene, "ban", { type: "event", target: pullRequest.id }),
    "the operator's events delete": (scene, { pullRequest }) =>
      operate(scene, "events.delete", { filters: [{ ids: [pullRequest.id] }], really: true }),
  };
  for (const [name, path] of Object.entries(paths)) {
    test(name, async () => {
      const { before, end } = await driven(path);
      assert.deepEqual(end, { ...before, served: expected, pullRequestRef: false, underPrs: false });
    });
  }

  test("a vanish, and a ban of the key", async () => {
    const [leaver, banned] = [keyOf("contributor who leaves"), keyOf("contributor who is banned")];
    const ways: readonly (readonly [TestKey, Path])[] = [
      [leaver, (scene) => sent(scene, vanishes(leaver, scene.house), fromClient)],
      [banned, (scene) => operate(scene, "ban", { type: "key", target: banned.pubkey })],
    ];
    for (const [key, path] of ways) {
      const { before, end } = await driven(path, { contributor: key });
      assert.deepEqual(end, { ...before, served: expected, pullRequestRef: false, underPrs: false });
    }
  });
});

describe("a state that goes governs nothing, and its refs stay", () => {
  const paths: Readonly<Record<string, Path>> = {
    "its author": (scene, { state }) => sent(scene, deletes(owner, [["e", state.id]], scene.house.now), fromClient),
    "the operator's ban": (scene, { state }) => operate(scene, "ban", { type: "event", target: state.id }),
    "the operator's events delete": (scene, { state }) =>
      operate(scene, "events.delete", { filters: [{ ids: [state.id] }], really: true }),
  };
  for (const [name, path] of Object.entries(paths)) {
    test(name, async () => {
      const { before, end } = await driven(path);
      const served = { announcement: true, state: false, pullRequest: true };
      assert.deepEqual(end, { ...before, governs: false, served });
    });
  }
});

test("events whose own time is over (NIP-40) end as if their authors had deleted them", async () => {
  const scene = await open();
  const { house, clock } = scene;
  const hosted = await host(scene, {}, house.now + 100);
  const before = await endOf(scene, hosted);
  clock.advance(200_000);
  const from = scene.notices.length;
  await house.sweep();
  await settled(scene, from);
  assert.deepEqual(await endOf(scene, hosted), {
    ...before,
    governs: false,
    served: { announcement: true, state: false, pullRequest: false },
    pullRequestRef: false,
    underPrs: false,
  });
});

describe("a repository that is taken away is 404 from that moment, and hunt and sync are told", () => {
  const address = ({ identifier }: Hosted): string => `30617:${owner.pubkey}:${identifier}`;
  const paths: Readonly<Record<string, Path>> = {
    "its owner, by a client": (scene, hosted) =>
      sent(scene, deletes(owner, [["a", address(hosted)]], scene.house.now), fromClient),
    "its owner, by sync": (scene, hosted) =>
      sent(scene, deletes(owner, [["a", address(hosted)]], scene.house.now), fromSync),
    "its owner, in an import": (scene, hosted) =>
      sent(scene, deletes(owner, [["a", address(hosted)]], scene.house.now), fromImport),
    "the operator's repos delete": (scene, { identifier }) =>
      operate(scene, "repos.delete", { repository: `${owner.pubkey}/${identifier}`, reason: "" }),
    "the operator's ban": (scene, hosted) => operate(scene, "ban", { type: "event", target: hosted.announcement.id }),
  };
  for (const [name, path] of Object.entries(paths)) {
    test(name, async () => {
      const { hosted, before, end, heard } = await driven(path);
      assert.equal(end.status, "deleted");
      assert.equal(end.served.announcement, false);
      assert.deepEqual([end.refs, end.head], [before.refs, before.head], "its data is kept for the grace period");
      assert.ok(
        heard.some(({ names }) =>
          names.some((one) => one.owner === owner.pubkey && one.identifier === hosted.identifier),
        ),
        "the bell names it",
      );
    });
  }
});

test("the operator's restore brings a repository back as it was, and tells hunt and sync", async () => {
  const scene = await shared;
  const hosted = await host(scene);
  const before = await endOf(scene, hosted);
  const repository = `${owner.pubkey}/${hosted.identifier}`;
  await operate(scene, "repos.delete", { repository, reason: "" });
  const from = scene.notices.length;
  await operate(scene, "repos.restore", { repository });
  const heard = await settled(scene, from);
  assert.deepEqual(await endOf(scene, hosted), before);
  assert.ok(heard.some(({ names }) => names.some(({ identifier }) => identifier === hosted.identifier)));
});

test("an owner who un-hosts leaves it read-only with its refs", async () => {
  const scene = await shared;
  const { house } = scene;
  const hosted = await host(scene);
  const before = await endOf(scene, hosted);
  const tags = [
    ["d", hosted.identifier],
    ["clone", "https://elsewhere.example/x.git"],
    ["relays", "wss://elsewhere.example"],
  ];
  const from = scene.notices.length;
  await sent(scene, sign(owner, { kind: 30617, created_at: house.now + 1, tags }), fromClient);
  await settled(scene, from);
  const end = await endOf(scene, hosted);
  assert.equal(end.status, "leaving");
  assert.deepEqual([end.refs, end.head], [before.refs, before.head]);
});

describe("a wait that ends leaves neither row nor directory, and the bell names it", () => {
  const announce = async ({ house }: Scene, key: TestKey): Promise<{ identifier: string; id: EventId }> => {
    const identifier = `w${number++}`;
    const event = await house.announce(key, identifier, [], { source: fromClient });
    assert.ok(await waitingEntry(house.store, event.id));
    return { identifier, id: event.id };
  };
  const isGone = async (
    scene: Scene,
    key: TestKey,
    waited: { identifier: string; id: EventId },
    from: number,
  ): Promise<void> => {
    const { house } = scene;
    const heard = await settled(scene, from);
    const name = house.name(key, waited.identifier);
    assert.equal(await waitingEntry(house.store, waited.id), undefined);
    assert.equal(await catalogueRow(house.store, name), undefined);
    assert.equal(await house.gitHost.repositories.exists(house.repository(name).address), false);
    assert.ok(heard.some(({ ids }) => ids.includes(waited.id)));
    assert.ok(
      heard.some(({ changes }) => changes.some((change) => change.type === "unhold" && change.id === waited.id)),
    );
  };
  const paths: Readonly<Record<string, (scene: Scene, waited: { identifier: string; id: EventId }) => Promise<void>>> =
    {
      "its author": (scene, { id }) => sent(scene, deletes(owner, [["e", id]], scene.house.now), fromClient),
      "the operator's drop": (scene, { id }) => operate(scene, "purgatory.drop", { event: id }),
      "the operator's ban": (scene, { id }) => operate(scene, "ban", { type: "event", target: id }),
    };
  for (const [name, path] of Object.entries(paths)) {
    test(name, async () => {
      const scene = await shared;
      const waited = await announce(scene, owner);
      const from = scene.notices.length;
      await path(scene, waited);
      await isGone(scene, owner, waited, from);
    });
  }

  test("its time", async () => {
    const scene = await open({ NGIT_GIT_HUNT_SYNC_DELAY_MS: "0", NGIT_PURGATORY_START_GRACE_SECS: "0" });
    const { house, clock } = scene;
    const waited = await announce(scene, owner);
    const from = scene.notices.length;
    const { purgatoryExpirySecs, purgatorySoftExpirySecs } = house.live.current;
    clock.advance((purgatoryExpirySecs + 60) * 1_000);
    await house.sweep();
    assert.equal((await catalogueRow(house.store, house.name(owner, waited.identifier)))?.status, "soft");
    clock.advance((purgatorySoftExpirySecs + 60) * 1_000);
    await house.sweep();
    await isGone(scene, owner, waited, from);
  });
});

test("a review of the archive writes, follows and tells like any verdict", async () => {
  const scene = await open({ NGIT_ARCHIVE_ALL: "true" });
  const { house, notices } = scene;
  const identifier = "mirrored";
  const tags = [
    ["d", identifier],
    ["clone", "https://elsewhere.example/x.git"],
    ["relays", "wss://elsewhere.example"],
  ];
  const announcement = sign(owner, { kind: 30617, created_at: house.now, tags });
  assert.ok((await house.submit(announcement, fromSync)).ok);
  const name = house.name(owner, identifier);
  const tip = await commit(house, owner, identifier, "first");
  await house.state(owner, identifier, { "refs/heads/main": tip });
  assert.equal((await catalogueRow(house.store, name))?.status, "archived");
  const { carryOut, admissionSettings: settings } = house;
  const review = new ArchiveReview(
    house.context((error) => void house.faults.push(error)),
    { carryOut, settings },
  );
  for (const [archive, status] of [
    ["false", "leaving"],
    ["true", "archived"],
  ] as const) {
    house.reload({ NGIT_ARCHIVE_ALL: archive });
    const from = notices.length;
    review.start();
    assert.ok(await until(async () => (await catalogueRow(house.store, name))?.status === status), status);
    assert.ok(await until(() => notices.length > from));
    const heard = await settled(scene, from);
    assert.deepEqual(
      heard.flatMap(({ reviewed }) => (reviewed ? [reviewed.hosted] : [])),
      [status === "archived"],
    );
    assert.equal((await house.refs(name))["refs/heads/main"], tip);
  }
  await review.close();
});
