// threats.md row 20: the server is killed with SIGKILL while git works for it in every way there is: a push, clones that
// are read slowly, a hunt. Nothing of it stays: no process, no socket, no temporary directory; the next start serves.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import { packOf } from "../harness/git-packs.js";
import { Person } from "../harness/grasp-people.js";
import { HuntGitServer, WorkingClone } from "../harness/hunt-git-server.js";
import { pkt } from "../harness/raw-http.js";
import { removeFolder, until } from "../harness/server.js";
import { beginWatched, filesBelow, processesOf } from "../harness/traceless.js";

describe("threat 20: SIGKILL", { timeout: 900_000 }, () => {
  it("threat 20: a server killed with SIGKILL while pushes, clones and hunts run leaves no process, socket or temporary file, and the next start serves", async () => {
    const { server, story } = await beginWatched(
      // Room for two of the three answers: the third comes straight from git, which waits for its reader.
      { NGIT_GIT_HUNT_DIRECT_DELAY_MS: "0", NGIT_LOG_LEVEL: "debug", NGIT_GIT_PACK_CACHE_BYTES: "70MiB" },
      { backend: "lmdb" },
    );
    const remote = await HuntGitServer.start();
    const clone = await WorkingClone.make();
    const alice = new Person();
    let folder = "";
    try {
      folder = server.folder;
      const { work, url } = await story.hosted(alice, "killed");
      writeFileSync(join(work.folder, "large"), randomBytes(24 << 20));
      await work.must("config", "core.compression", "0");
      const tip = await work.commit("large");
      await story.state(alice, "killed", { "refs/heads/main": tip });
      await work.must("push", "-q", url, "main");

      const { hostname, port } = new URL(server.origin);
      const open = (head: string, ...body: Buffer[]): Promise<void> =>
        new Promise((closed) => {
          const socket = connect(Number(port), hostname, () => {
            socket.write(head);
            for (const part of body) socket.write(part);
            // Read nothing: git stands still with a full pipe.
            socket.pause();
          });
          socket.on("error", () => undefined);
          socket.on("close", () => closed());
          void server.ended.then(() => socket.resume());
        });
      const post = (service: string, length: number, more = ""): string =>
        `POST /${alice.npub}/killed.git/${service} HTTP/1.1\r\nHost: x\r\n${more}Content-Length: ${length}\r\n\r\n`;
      const wants = (agent: string): Buffer =>
        Buffer.concat([
          pkt("command=fetch"),
          pkt(`agent=${agent}`),
          Buffer.from("0001"),
          pkt(`want ${tip}\n`),
          pkt("done\n"),
          Buffer.from("0000"),
        ]);
      const v2 = "Git-Protocol: version=2\r\n";
      const clones = ["a", "b", "c"].map((agent) =>
        open(post("git-upload-pack", wants(agent).length, v2), wants(agent)),
      );
      const next = await work.commit("next");
      await story.state(alice, "killed", { "refs/heads/main": next });
      const pack = await packOf(work.folder, [next], [tip]);
      const command = pkt(`${tip} ${next} refs/heads/main\0report-status`);
      const push = open(
        post("git-receive-pack", 10_000_000),
        command,
        Buffer.from("0000"),
        pack.subarray(0, pack.length - 20),
      );
      const hunted = await clone.commitFile("a", randomBytes(100_000));
      await remote.publish("demo", clone.path, { "refs/heads/main": hunted });
      remote.behaviour = { type: "hang-after-headers" };
      await story.accepted(
        story.announcement(alice, "hunted", [["clone", story.url(alice, "hunted"), remote.url("demo")]]),
      );
      await story.state(alice, "hunted", { "refs/heads/main": hunted });

      const running = (): string => processesOf(server).join("\n");
      for (const verb of ["upload-pack", "index-pack", " fetch "]) {
        assert.ok(await until(() => running().includes(verb), 120_000), `${verb} is not running:\n${running()}`);
      }
      server.child.kill("SIGKILL");
      await server.ended;
      await Promise.all([...clones, push]);
      assert.ok(await until(() => processesOf(server).length === 0, 120_000), running());
      assert.ok(
        await until(() => readdirSync(join(folder, "tmp")).length === 0, 120_000),
        readdirSync(join(folder, "tmp")).join(" "),
      );
      assert.ok(await until(() => remote.connectionsOpen === 0, 120_000), "no connection to others is left");

      remote.behaviour = { type: "none" };
      const again = await beginWatched({ NGIT_GIT_HUNT_DIRECT_DELAY_MS: "0" }, { backend: "lmdb", folder });
      const left = (): string[] =>
        Object.keys(filesBelow(again.server.gitPath)).filter((path) => /tmp_|\.lock$/.test(path));
      // The new one hunts at once, and has a trial of its own for a moment.
      assert.ok(await until(() => left().length === 0), `what the killed one left on trial is there: ${left()}`);
      assert.equal(
        (await again.story.advertised(alice, "killed"))["refs/heads/main"],
        tip,
        "the push was never acknowledged",
      );
      await work.must("push", "-q", again.story.url(alice, "killed"), "main");
      assert.equal((await again.story.advertised(alice, "killed"))["refs/heads/main"], next);
      await again.story.relay.close();
      await again.server.stop();
      assert.deepEqual(processesOf(again.server), []);
      assert.deepEqual(readdirSync(join(folder, "tmp")), []);
    } finally {
      server.child.kill("SIGKILL");
      await story.relay.close().catch(() => undefined);
      await remote.close();
      await clone.remove();
      await removeFolder(folder);
    }
  });
});
