// GRASP-05: a second server that mirrors the first by each of the three modes. What is pushed to the first is served by
// the second, events and data, though nobody ever named it.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Person, type SignedEvent } from "../harness/grasp-people.js";
import { Story, stateEvent } from "../harness/grasp-story.js";
import { until } from "../harness/server.js";

// Other test files share the machine.
const patienceMs = 120_000;

const owner = new Person();
const stranger = new Person();

/** With a first server of its own: an archive would mirror what other tests push to a common one too. */
async function onFirst(story: (first: Story) => Promise<void>): Promise<void> {
  const first = await Story.begin();
  try {
    await story(first);
  } finally {
    await first.end();
  }
}

async function archive(first: Story, settings: Record<string, string>): Promise<Story> {
  return Story.begin({
    settings: {
      NGIT_SYNC_BOOTSTRAP_RELAY_URL: `ws://${first.server.domain}`,
      NGIT_SYNC_BATCH_WINDOW_MS: "50",
      NGIT_SYNC_STARTUP_JITTER_MS: "0",
      // Every server here is one host.
      NGIT_GIT_DOMAIN_RATE: "1000",
      ...settings,
    },
  });
}

const announcementOf = async (first: Story, person: Person, identifier: string): Promise<SignedEvent> => {
  const [event] = await first.served({ kinds: [30617], authors: [person.pubkey], "#d": [identifier] });
  assert.ok(event, `${identifier} is served by the first server`);
  return event;
};

async function information(story: Story): Promise<Record<string, unknown>> {
  const answer = await fetch(story.server.origin, { headers: { accept: "application/nostr+json" } });
  return (await answer.json()) as Record<string, unknown>;
}

async function mirrors(first: Story, second: Story, person: Person, identifier: string, tip: string): Promise<void> {
  const announcement = await announcementOf(first, person, identifier);
  assert.ok(await until(() => second.isServed(announcement), patienceMs), `${identifier}: its announcement is served`);
  const refs = await second.advertised(person, identifier);
  assert.equal(refs["refs/heads/main"], tip);
  const copy = await second.workingCopy();
  await copy.must("fetch", "-q", second.url(person, identifier), "main");
}

describe("an archive", { concurrency: true }, () => {
  for (const [mode, settings, takesStranger] of [
    ["everything", () => ({ NGIT_ARCHIVE_ALL: "true" }), true],
    ["a key", () => ({ NGIT_ARCHIVE_WHITELIST: owner.npub }), false],
    ["one repository", () => ({ NGIT_ARCHIVE_WHITELIST: `${owner.npub}/of-one-repository` }), false],
    ["an identifier", () => ({ NGIT_ARCHIVE_WHITELIST: "of-an-identifier" }), false],
    [
      "a service",
      (first: Story) => ({ NGIT_ARCHIVE_GRASP_SERVICES: first.server.domain, NGIT_SYNC_BOOTSTRAP_RELAY_URL: "" }),
      true,
    ],
  ] as const) {
    test(`a server that mirrors ${mode} serves what is pushed to the other, and further pushes`, () =>
      onFirst(async (first) => {
        const identifier = `of-${mode.replaceAll(" ", "-")}`;
        const { work, tip, url } = await first.hosted(owner, identifier);
        const other = `strange-${identifier}`;
        const strange = await first.hosted(stranger, other);
        const second = await archive(first, settings(first));
        try {
          await mirrors(first, second, owner, identifier, tip);
          const next = await work.commit("two");
          const state = await first.state(owner, identifier, { "refs/heads/main": next });
          await work.must("push", "-q", url, "main");
          assert.ok(await until(() => second.isServed(state), patienceMs), "the further push arrives");
          assert.equal((await second.advertised(owner, identifier)).HEAD, next);
          if (takesStranger) await mirrors(first, second, stranger, other, strange.tip);
          else assert.equal(await second.isServed(await announcementOf(first, stranger, other)), false);
          const facts = await information(second);
          assert.ok((facts.supported_grasps as string[]).includes("GRASP-05"));
          assert.match(String(facts.repo_acceptance_criteria), /As an archive it also mirrors/);
          const page = await (await fetch(second.url(owner, identifier), { headers: { accept: "text/html" } })).text();
          assert.match(page, /Archived here, read-only/);
        } finally {
          await second.end();
        }
      }));
  }

  test("a server that does not archive says nothing of it and refuses what does not list it", () =>
    onFirst(async (first) => {
      assert.deepEqual((await information(first)).supported_grasps, ["GRASP-01", "GRASP-02", "GRASP-03"]);
      const elsewhere = owner.sign(30617, [
        ["d", "elsewhere"],
        ["clone", "https://git.example/x.git"],
        ["relays", "wss://git.example"],
      ]);
      assert.match((await first.publish(elsewhere)).message, /does not list this service/);
    }));

  test("nothing is pushed into a mirror, and git prints why; where it is allowed, pushes work as ever", () =>
    onFirst(async (first) => {
      const { work, tip } = await first.hosted(owner, "pushed");
      const second = await archive(first, { NGIT_ARCHIVE_WHITELIST: owner.npub });
      try {
        await mirrors(first, second, owner, "pushed", tip);
        const next = await work.commit("not here");
        // Refused although a maintainer signed it: a mirror's data comes by hunting only.
        await second.accepted(stateEvent(owner, "pushed", { "refs/heads/main": next, "refs/tags/v1": next }));
        for (const ref of ["refs/heads/main", "refs/tags/v1", `refs/nostr/${"ab".repeat(32)}`]) {
          const result = await work.git("push", second.url(owner, "pushed"), `HEAD:${ref}`);
          assert.notEqual(result.code, 0, ref);
          assert.match(result.stderr, /only mirrors this repository: push to a server its announcement lists/, ref);
        }
        assert.equal((await second.advertised(owner, "pushed"))["refs/heads/main"], tip);
      } finally {
        await second.end();
      }
      const third = await archive(first, { NGIT_ARCHIVE_WHITELIST: owner.npub, NGIT_ARCHIVE_READ_ONLY: "false" });
      try {
        await mirrors(first, third, owner, "pushed", tip);
        const next = await work.must("rev-parse", "HEAD");
        await third.state(owner, "pushed", { "refs/heads/main": next });
        await work.must("push", "-q", third.url(owner, "pushed"), "main");
        assert.equal((await third.advertised(owner, "pushed"))["refs/heads/main"], next);
      } finally {
        await third.end();
      }
    }));

  test("a mirror becomes an ordinary repository when its owner lists the server, and a mirror again when not", () =>
    onFirst(async (first) => {
      const { work, tip } = await first.hosted(owner, "joins");
      const second = await archive(first, { NGIT_ARCHIVE_WHITELIST: owner.npub });
      try {
        await mirrors(first, second, owner, "joins", tip);
        const both = [
          ["clone", second.url(owner, "joins")],
          ["relays", `ws://${second.server.domain}`],
        ];
        await second.accepted(first.announcement(owner, "joins", both));
        const next = await work.commit("two");
        await second.state(owner, "joins", { "refs/heads/main": next });
        await work.must("push", "-q", second.url(owner, "joins"), "main");
        await second.accepted(first.announcement(owner, "joins"));
        const later = await work.commit("three");
        await second.accepted(stateEvent(owner, "joins", { "refs/heads/main": later }));
        const refused = await work.git("push", second.url(owner, "joins"), "main");
        assert.match(refused.stderr, /only mirrors this repository/);
        assert.equal((await second.advertised(owner, "joins"))["refs/heads/main"], next);
      } finally {
        await second.end();
      }
    }));
});
