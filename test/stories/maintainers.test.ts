// Who may decide, with real git and a real server: invitees, maintainers who leave, leads, announcements without role
// tags; and what follows for refs, states and announcements on every path by which membership changes.

import assert from "node:assert/strict";
import { after, before, describe, it, test } from "node:test";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { type CatalogueRow, catalogueRow } from "../../src/catalogue/repositories.js";
import { MaintainerReview } from "../../src/intake/maintainer-review.js";
import type { NostrEvent, VerifiedEvent } from "../../src/nostr/event.js";
import { Person } from "../harness/grasp-people.js";
import { Story, stateEvent } from "../harness/grasp-story.js";
import { fromClient, fromSync, HuntHouse } from "../harness/hunt-house.js";
import { keyOf, sign, type TestKey } from "../harness/relay-events.js";
import { until } from "../harness/server.js";

type Tags = readonly (readonly string[])[];

describe("maintainers with role tags", () => {
  let story: Story;
  before(async () => {
    story = await Story.begin();
  });
  after(() => story.end());

  /** Answers the invitation without asking for a repository here. */
  const answer = (person: Person, identifier: string, roles: Tags) =>
    person.sign(30617, [
      ["d", identifier],
      ["clone", "https://elsewhere.example/x.git"],
      ["relays", "wss://elsewhere.example"],
      ...roles,
    ]);

  it("an invitee's state authorises nothing until the invitee announces; a maintainer who left cannot push", async () => {
    const [owner, bob] = [new Person(), new Person()];
    const roles = [
      ["M", owner.pubkey],
      ["m", bob.pubkey],
      ["maintainers", bob.pubkey],
    ];
    const { work, tip, url } = await story.hosted(owner, "team", roles);
    const second = await work.commit("by bob");
    const state = stateEvent(bob, "team", { "refs/heads/main": second });
    const refused = { ok: false, message: "invalid: author not authorized for this repository" };
    assert.deepEqual(await story.publish(state), refused);
    const early = await work.git("push", url, "main");
    assert.notEqual(early.code, 0);
    assert.equal((await story.advertised(owner, "team"))["refs/heads/main"], tip);

    // The invitation is answered: the announcement is kept although it lists another server.
    const accepted = await story.accepted(
      answer(bob, "team", [
        ["M", owner.pubkey],
        ["m", bob.pubkey],
      ]),
    );
    assert.ok(await story.isServed(accepted));
    assert.match((await story.publish(state)).message, /^purgatory: /);
    await work.must("push", "-q", url, "main");
    assert.equal((await story.advertised(owner, "team"))["refs/heads/main"], second);
    assert.ok(await story.isServed(state));

    // He leaves: refs stay, his word is worth nothing from now on, also under a state that was taken before.
    const third = await work.commit("by bob again");
    const waiting = stateEvent(bob, "team", { "refs/heads/main": third });
    assert.match((await story.publish(waiting)).message, /^purgatory: /);
    await story.accepted(
      answer(bob, "team", [
        ["M", owner.pubkey],
        ["m", bob.pubkey, "100", "200"],
      ]),
    );
    const late = await work.git("push", url, "main");
    assert.notEqual(late.code, 0);
    assert.match(late.stderr, /no state by a maintainer lists refs\/heads\/main/);
    assert.equal((await story.advertised(owner, "team"))["refs/heads/main"], second);
    assert.deepEqual(await story.publish(stateEvent(bob, "team", { "refs/heads/main": tip })), refused);
    const page = await (await fetch(url, { headers: { Accept: "text/html" } })).text();
    assert.match(page, /Named, not maintainers/);
    assert.match(page, /has left: its own announcement gives it no active role/);

    // The owner goes on.
    await story.state(owner, "team", { "refs/heads/main": third });
    await work.must("push", "-q", url, "main");
    assert.equal((await story.advertised(owner, "team"))["refs/heads/main"], third);
  });

  it("announcements without role tags behave as before: a listed key pushes without announcing", async () => {
    const [owner, bob] = [new Person(), new Person()];
    const { work, url } = await story.hosted(owner, "legacy", [["maintainers", bob.pubkey]]);
    const second = await work.commit("by bob");
    await story.state(bob, "legacy", { "refs/heads/main": second });
    await work.must("push", "-q", url, "main");
    assert.equal((await story.advertised(owner, "legacy"))["refs/heads/main"], second);
  });

  it("a lead decides in the repositories of those who follow; an owner the lead does not name does not", async () => {
    const [owner, lead] = [new Person(), new Person()];
    const { work, url } = await story.hosted(owner, "led");
    await story.accepted(story.announcement(lead, "led", [["M", lead.pubkey]]));
    await story.announce(owner, "led", [["M", lead.pubkey]]);
    const second = await work.commit("by the lead");
    assert.equal((await story.publish(stateEvent(owner, "led", { "refs/heads/main": second }))).ok, false);
    await story.state(lead, "led", { "refs/heads/main": second });
    await work.must("push", "-q", url, "main");
    assert.equal((await story.advertised(owner, "led"))["refs/heads/main"], second);
    assert.deepEqual(await story.advertised(lead, "led"), await story.advertised(owner, "led"), "the lead's too");
  });

  it("a moderator and a deferred invitee may have announcements here or not, and decide nothing", async () => {
    const [owner, bob, carol] = [new Person(), new Person(), new Person()];
    await story.hosted(owner, "moderated", [
      ["M", owner.pubkey],
      ["o", bob.pubkey],
      ["m", carol.pubkey, "1", "defer"],
    ]);
    assert.ok((await story.publish(answer(bob, "moderated", [["o", bob.pubkey]]))).ok);
    assert.match((await story.publish(answer(carol, "moderated", [["m", owner.pubkey]]))).message, /does not list/);
    for (const person of [bob, carol])
      assert.equal((await story.publish(stateEvent(person, "moderated", {}))).ok, false);
  });
});

// ---- every path by which membership changes ---------------------------------------------------------------------

const [owner, bob] = [keyOf("the owner"), keyOf("bob")];
const clock = new ManualClock(1_700_000_000_000);
const opening = HuntHouse.start({ clock, environment: { NGIT_PURGATORY_START_GRACE_SECS: "0" } });
after(async () => (await opening).close());

let number = 0;

interface Shared {
  readonly house: HuntHouse;
  readonly identifier: string;
  readonly first: string;
  readonly second: string;
  readonly bobs: NostrEvent;
}

const taken = async (house: HuntHouse, event: NostrEvent, source = fromClient): Promise<NostrEvent> => {
  const answer = await house.submit(event, source);
  assert.ok(answer.ok, answer.message);
  return event;
};

async function commit(house: HuntHouse, key: TestKey, identifier: string, text: string): Promise<string> {
  const { directory } = house.repository(house.name(key, identifier));
  const { git } = house.gitHost;
  const tree = (await git.mustRun(["hash-object", "-w", "-t", "tree", "--stdin"], { directory })).toString().trim();
  const env = { GIT_AUTHOR_DATE: "1700000000 +0000", GIT_COMMITTER_DATE: "1700000000 +0000" };
  return (await git.mustRun(["commit-tree", "-m", text, tree], { directory, env })).toString().trim();
}

let second = 0;
/** Each a second later than the one before. */
const signed = (house: HuntHouse, key: TestKey, kind: number, tags: Tags): NostrEvent =>
  sign(key, { kind, created_at: house.now - 5_000 + second++, tags });

const elsewhere: Tags = [
  ["clone", "https://elsewhere.example/x.git"],
  ["relays", "wss://elsewhere.example"],
];
const here = (house: HuntHouse, key: TestKey, identifier: string): Tags => [
  ["clone", house.url(house.name(key, identifier))],
  ["relays", `ws://${house.domain}`],
];
const announcement = (house: HuntHouse, key: TestKey, identifier: string, places: Tags, roles: Tags): NostrEvent =>
  signed(house, key, 30617, [["d", identifier], ...places, ...roles]);

const answering: Tags = [
  ["M", owner.pubkey],
  ["m", bob.pubkey],
];

/**
 * The owner's repository names bob by role; bob has a repository of the same name, with a newer state of his own, and
 * names nobody yet.
 */
async function shared(
  roles: Tags = [
    ["M", owner.pubkey],
    ["m", bob.pubkey],
  ],
  bobs: Tags = [],
): Promise<Shared> {
  const house = await opening;
  const identifier = `m${number++}`;
  await taken(house, announcement(house, owner, identifier, here(house, owner, identifier), roles));
  const first = await commit(house, owner, identifier, "first");
  await taken(
    house,
    signed(house, owner, 30618, [
      ["d", identifier],
      ["refs/heads/main", first],
    ]),
  );
  await taken(house, announcement(house, bob, identifier, here(house, bob, identifier), bobs));
  const newer = await commit(house, bob, identifier, "second");
  assert.equal(await commit(house, owner, identifier, "second"), newer, "its objects are here in both");
  const state = await taken(
    house,
    signed(house, bob, 30618, [
      ["d", identifier],
      ["refs/heads/main", newer],
    ]),
  );
  return { house, identifier, first, second: newer, bobs: state };
}

const mainOf = async ({ house, identifier }: Shared, key = owner): Promise<string | undefined> =>
  (await house.refs(house.name(key, identifier)))["refs/heads/main"];
const rowOf = async ({ house, identifier }: Shared): Promise<CatalogueRow | undefined> =>
  catalogueRow(house.store, house.name(owner, identifier));

describe("a state that is here governs as soon as its author is a maintainer", () => {
  const ways: Readonly<Record<string, (scene: Shared) => Promise<unknown>>> = {
    "the invitee answers": ({ house, identifier }) =>
      taken(house, announcement(house, bob, identifier, here(house, bob, identifier), answering)),
    "the answer comes by sync": ({ house, identifier }) =>
      taken(house, announcement(house, bob, identifier, here(house, bob, identifier), answering), fromSync),
    "the invitee answers and leaves this server": ({ house, identifier }) =>
      taken(house, announcement(house, bob, identifier, elsewhere, answering)),
    "the owner asks for no answers any more": ({ house, identifier }) =>
      taken(
        house,
        announcement(house, owner, identifier, here(house, owner, identifier), [["maintainers", bob.pubkey]]),
      ),
  };
  for (const [name, way] of Object.entries(ways)) {
    test(name, async () => {
      const scene = await shared();
      assert.equal(await mainOf(scene), scene.first);
      await way(scene);
      assert.equal(await mainOf(scene), scene.second);
      assert.equal((await rowOf(scene))?.governing, scene.bobs.id);
      assert.deepEqual(scene.house.faults, []);
    });
  }

  test("an announcement by which its author left is deleted", async () => {
    const scene = await shared([["maintainers", bob.pubkey]]);
    const { house, identifier } = scene;
    const left = [["m", bob.pubkey, "1", "2"]];
    await taken(house, announcement(house, bob, identifier, here(house, bob, identifier), left));
    assert.equal((await rowOf(scene))?.governing, null);
    const address = `30617:${bob.pubkey}:${identifier}`;
    await taken(house, sign(bob, { kind: 5, created_at: house.now, tags: [["a", address]] }));
    assert.equal((await rowOf(scene))?.governing, scene.bobs.id);
  });
});

describe("a state governs no longer when its author is no maintainer, and the refs stay", () => {
  const joined = () => shared(undefined, answering);
  const ways: Readonly<Record<string, (scene: Shared) => Promise<unknown>>> = {
    "the maintainer leaves": ({ house, identifier }) =>
      taken(
        house,
        announcement(house, bob, identifier, here(house, bob, identifier), [
          ["M", owner.pubkey],
          ["m", bob.pubkey, "1", "2"],
        ]),
      ),
    "the maintainer names nobody any more": ({ house, identifier }) =>
      taken(house, announcement(house, bob, identifier, here(house, bob, identifier), [["m", bob.pubkey]])),
    "the owner ends the role": ({ house, identifier }) =>
      taken(
        house,
        announcement(house, owner, identifier, here(house, owner, identifier), [
          ["M", owner.pubkey],
          ["m", bob.pubkey, "1", "2"],
        ]),
      ),
    "the maintainer deletes the announcement": ({ house, identifier }) =>
      taken(house, sign(bob, { kind: 5, created_at: house.now, tags: [["a", `30617:${bob.pubkey}:${identifier}`]] })),
    "the operator un-hosts the maintainer's repository": ({ house, identifier }) =>
      house.operate("repos.delete", { repository: `${bob.pubkey}/${identifier}`, reason: "" }),
  };
  for (const [name, way] of Object.entries(ways)) {
    test(name, async () => {
      const scene = await joined();
      assert.equal((await rowOf(scene))?.governing, scene.bobs.id);
      await way(scene);
      const row = await rowOf(scene);
      assert.equal(row?.governing, null);
      assert.equal(row?.mark?.id, scene.bobs.id, "nothing older comes back");
      assert.equal(await mainOf(scene), scene.second);
      assert.deepEqual(scene.house.faults, []);
    });
  }

  test("and governs again when the operator restores the announcement", async () => {
    const scene = await joined();
    const repository = `${bob.pubkey}/${scene.identifier}`;
    await scene.house.operate("repos.delete", { repository, reason: "" });
    assert.equal((await rowOf(scene))?.governing, null);
    await scene.house.operate("repos.restore", { repository });
    assert.equal((await rowOf(scene))?.governing, scene.bobs.id);
  });
});

test("why, and the details of a repository, tell who is a maintainer and who is not, and because of what", async () => {
  const scene = await shared();
  const { house, identifier } = scene;
  const refused = signed(house, keyOf("a stranger"), 30618, [
    ["d", identifier],
    ["refs/heads/main", scene.first],
  ]);
  assert.equal((await house.submit(refused, fromClient)).ok, false);
  const why = async (subject: string) =>
    ((await house.operate("why", { subject, limit: 5 })) as { now: readonly string[] }).now.join("\n");
  assert.match(await why(`${owner.pubkey}/${identifier}`), /is a maintainer: it owns the repository/);
  assert.match(
    await why(`${owner.pubkey}/${identifier}`),
    /is not a maintainer: it was invited by npub1\S+, but its own/,
  );
  assert.match(await why(scene.bobs.id), /its author does not decide in npub1\S+: the key was invited by/);
  const shown = (await house.operate("repos.show", { repository: `${owner.pubkey}/${identifier}` })) as {
    standings: readonly { as: string; decides: boolean }[];
  };
  assert.deepEqual(
    shown.standings.map(({ as, decides }) => `${decides} ${as}`),
    ["true owner", "false unanswered"],
  );
});

test("NGIT_MAINTAINERS_MUTUAL asks listed keys for answers too, from the moment it is set", async () => {
  const house = await opening;
  const scene = await shared([["maintainers", bob.pubkey]]);
  assert.equal((await rowOf(scene))?.governing, scene.bobs.id);
  const carol = keyOf("carol");
  const listing = announcement(house, bob, scene.identifier, here(house, bob, scene.identifier), [
    ["maintainers", carol.pubkey],
  ]);
  await taken(house, listing);
  const byException = await taken(house, announcement(house, carol, scene.identifier, elsewhere, []));
  // Named only by an invitee of the owner's from then on; and one that is here because the operator imported it.
  const [dave, erin] = [keyOf("dave"), keyOf("erin")];
  const lists = (key: TestKey): Tags => [["maintainers", key.pubkey]];
  const places = here(house, owner, "chain");
  await taken(house, announcement(house, owner, "chain", places, lists(dave)));
  const first = await commit(house, owner, "chain", "first");
  await taken(
    house,
    signed(house, owner, 30618, [
      ["d", "chain"],
      ["refs/heads/main", first],
    ]),
  );
  const invited = await taken(house, announcement(house, dave, "chain", elsewhere, lists(erin)));
  const beyond = await taken(house, announcement(house, erin, "chain", elsewhere, []));
  const imported = announcement(house, keyOf("somebody"), "chain", elsewhere, []);
  await house.store.transact((tx) => tx.put(imported as VerifiedEvent));
  const review = new MaintainerReview(
    house.context((error) => void house.faults.push(error)),
    house.carryOut,
  );
  const reviewed = async (mutual: boolean): Promise<void> => {
    house.reload({ NGIT_MAINTAINERS_MUTUAL: String(mutual) });
    review.start();
    const isDone = async (): Promise<boolean> =>
      (await house.store.row<{ mutual: boolean }>("meta", "maintainers-reviewed"))?.mutual === mutual;
    assert.ok(await until(isDone));
  };
  await reviewed(true);
  assert.equal((await rowOf(scene))?.governing, null);
  // Bob's own repository names carol outright no more either, but she is invited there.
  assert.equal(await house.isServed(byException), true);
  assert.deepEqual(await Promise.all([invited, beyond, imported].map((event) => house.isServed(event))), [
    true,
    false,
    true,
  ]);
  await reviewed(false);
  assert.equal((await rowOf(scene))?.governing, scene.bobs.id);
  await review.close();
  assert.deepEqual(house.faults, []);
});
