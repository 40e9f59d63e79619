// threats.md rows 46 and 47: what strangers' pull requests that wait may do to a repository. Nothing: they take no lock of
// another's repository along, and housekeeping goes on. Expiry is in src/intake/sweep.test.ts.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  addressOfRepository,
  announcement,
  keyOf,
  makeEvent,
  nameOf,
  oid,
  state,
} from "../../src/admission/testing/world.js";
import { diskAddress } from "../../src/git/address.js";
import { Room } from "../../src/intake/testing/room.js";
import type { Oid, RefName } from "../../src/nostr/nip34.js";

const main = "refs/heads/main" as RefName;
const owners = Array.from({ length: 20 }, (_none, index) => `owner ${index}`);

describe("threats 46 and 47: pull requests that wait", { timeout: 900_000 }, () => {
  let room: Room;
  let tip: Oid;
  const name = nameOf("owner 0", "shared");
  before(async () => {
    room = await Room.open();
    for (const owner of owners) {
      await room.send(announcement(owner, "shared", [], room.now));
      tip = await room.commit(nameOf(owner, "shared"), `first of ${owner}`);
      await room.send(state(owner, "shared", [[main, tip]], room.now));
    }
  });
  after(() => room.close());

  const pullRequest = (commit: string, content: string, to: readonly string[] = owners) => {
    const tags = [...to.map((owner) => ["a", addressOfRepository(owner, "shared")]), ["c", commit]];
    return makeEvent(keyOf("stranger"), 1618, tags, room.now, content);
  };
  const refsIn = async (owner: string): Promise<string[]> => [
    ...(await room.repository(nameOf(owner, "shared")).refs()).refs.keys(),
  ];

  it("threat 46: a release waits for no repository that only a waiting pull request names beside its own", async () => {
    for (let n = 0; n < 5; n++) await room.send(pullRequest(oid("nowhere"), `waits ${n}`));
    let letGo = (): void => undefined;
    const isLetGo = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const held = room.repositories.withLocks([diskAddress(nameOf("owner 7", "shared"))], () => isLetGo);
    try {
      const next = await room.commit(name, "second");
      const newer = state("owner 0", "shared", [[main, next]], room.now + 1);
      assert.equal(await room.send(newer), true, "the owner's state is released while another's lock is held");
    } finally {
      letGo();
      await held;
    }
  });

  it("threat 46: one whose commit is here is served, and placed in every repository it names", async () => {
    const commit = await room.commit(name, "the pull request");
    const event = pullRequest(commit, "for all");
    assert.equal(await room.send(event), true);
    for (const owner of owners) assert.ok((await refsIn(owner)).includes(`refs/nostr/${event.id}`), owner);
  });

  it("threat 47: one that waits does not stop the housekeeping of the repositories it names", async () => {
    const { inUse } = room.repository(name).context;
    let isStopped = false;
    let end = (): void => undefined;
    const tidying = inUse.tidy(diskAddress(name).key, undefined, (signal) => {
      signal.addEventListener("abort", () => {
        isStopped = true;
        end();
      });
      return new Promise<void>((resolve) => {
        end = resolve;
      });
    });
    await room.send(pullRequest(oid("nowhere"), "another one"));
    assert.equal(isStopped, false);
    const next = await room.commit(name, "third");
    await room.send(state("owner 0", "shared", [[main, next]], room.now + 2));
    assert.equal(isStopped, true, "who writes refs does");
    await tidying;
  });
});
