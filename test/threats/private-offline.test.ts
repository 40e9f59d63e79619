// What a private service keeps leaves by no verb that an operator runs while the server is stopped: NGIT_PRIVATE_MODE may
// stand only in the unit that starts the server, and the verb then has the settings of a public one.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { SyncStatus } from "../../src/sync/status.js";
import { holdfast } from "../cli/run.js";
import { HuntGitServer } from "../harness/hunt-git-server.js";
import { type PrivateService, signedHeader, startPrivate } from "../harness/private-service.js";
import { dropInEnvironment, untilSo } from "../harness/server.js";
import { PlainRelay } from "../harness/sync-plain-relay.js";

describe("a private service at rest", { timeout: 120_000 }, () => {
  test("a verb without NGIT_PRIVATE_MODE dials nobody and says what to set; with it a relay that lets nobody in hears nothing", async (t) => {
    const relay = await PlainRelay.start({ claimedIds: [] });
    t.after(() => relay.stop());
    const remote = await HuntGitServer.start();
    t.after(() => remote.close());
    const service: PrivateService = await startPrivate();
    const { alice, story, server } = service;
    t.after(() => server.end());
    const identifier = "plans";
    const root = story.url(alice, identifier);
    await story.accepted(
      alice.sign(30617, [
        ["d", identifier],
        ["clone", root, remote.url(identifier)],
        ["relays", server.url, relay.url],
      ]),
    );
    const work = await story.workingCopy();
    await story.state(alice, identifier, { "refs/heads/main": await work.commit("one") });
    await work.must("-c", `http.extraHeader=Authorization: ${signedHeader(alice, root)}`, "push", "-q", root, "main");
    const settings = dropInEnvironment(server.folder, server.port, { backend: "lmdb" });
    await untilSo("the relay is told by the admin socket, not at /api/sync", async () => {
      const status = await holdfast(["status", "--json"], { ...settings, NGIT_PRIVATE_MODE: "true" });
      const { relays } = JSON.parse(status.stdout).sync as Pick<SyncStatus, "relays">;
      return relays.some((one) => one.relay === relay.key);
    });
    await story.relay.close();
    await server.stop();
    const [heard, connections, requests] = [relay.heard.length, relay.connections, remote.requests.length];

    const name = `${alice.npub}/${identifier}`;
    const verbs = [
      ["sync", relay.url, "--dir", "up"],
      ["sync", relay.url, "--filter", JSON.stringify({ kinds: [30617], authors: [alice.pubkey] })],
      ["sync", "verify", name],
      ["mirror", name, "--relay", relay.url],
    ];
    for (const verb of verbs) {
      const ended = await holdfast(verb, { ...settings, NGIT_PRIVATE_MODE: "false" });
      assert.equal(ended.code, 1, verb.join(" "));
      assert.match(ended.stderr, /belongs to a private service.*set NGIT_PRIVATE_MODE=true/, verb.join(" "));
    }
    assert.deepEqual(
      [relay.heard.length, relay.connections, remote.requests.length],
      [heard, connections, requests],
      "nobody was asked anything",
    );
    const archived = await holdfast(["lists", "show", "archive-whitelist"], {
      ...settings,
      NGIT_PRIVATE_MODE: "false",
    });
    assert.ok(!archived.stdout.includes(identifier), "and the mirror was not put down");

    // It asks who is there, and lets nobody in: quicker than to wait for a relay that never asks.
    relay.habits = { wantsAuth: true, refusesAuth: true };
    for (const verb of verbs) {
      const ended = await holdfast(verb, { ...settings, NGIT_PRIVATE_MODE: "true" });
      assert.doesNotMatch(ended.stderr, /NGIT_PRIVATE_MODE/);
    }
    assert.ok(relay.connections > connections, "the relay was dialled");
    assert.ok(
      relay.heard.slice(heard).every(({ verb }) => verb === "AUTH"),
      "and heard no filter and no event",
    );
  });
});
