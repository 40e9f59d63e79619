// The log and the metrics of a private service name no repository (GRASP-08), also where something goes wrong: a failing hunt,
// housekeeping, a check that finds damage, data that expires, a repository that git cannot open.

import assert from "node:assert/strict";
import { readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { HuntGitServer } from "../harness/hunt-git-server.js";
import { signedHeader, startPrivate } from "../harness/private-service.js";
import { ask } from "../harness/raw-http.js";
import { type LogLine, untilSo } from "../harness/server.js";

const bearer = "Bearer 0123456789abcdef";
/** Identifiers may hold spaces and brackets, at which a pattern for names could stop early. */
const identifiers = ["topsecret", "code name (topsecret) plan"];

test("housekeeping, damage, a failing hunt, expiry and a broken repository are logged without its name", {
  timeout: 120_000,
}, async (t) => {
  const log: LogLine[] = [];
  const remote = await HuntGitServer.start();
  t.after(() => remote.close());
  remote.behaviour = { type: "status", status: 500 };
  const { story, server, alice, operate } = await startPrivate({
    settings: {
      NGIT_METRICS_TOKEN: "0123456789abcdef",
      NGIT_PURGATORY_EXPIRY_SECS: "4",
      NGIT_PURGATORY_MAX_WAIT_SECS: "2",
      NGIT_PURGATORY_SOFT_EXPIRY_SECS: "2",
      NGIT_PURGATORY_START_GRACE_SECS: "0",
      NGIT_PURGATORY_SWEEP_INTERVAL_MS: "100",
      NGIT_GIT_HUNT_DIRECT_DELAY_MS: "50",
      NGIT_GIT_HUNT_SYNC_DELAY_MS: "50",
    },
    onLog: (line) => void log.push(line),
  });
  t.after(() => server.end().catch(() => undefined));
  const known = new Set<string>();
  for (const identifier of identifiers) {
    const root = story.url(alice, identifier);
    const signed = signedHeader(alice, root);
    await story.accepted(
      alice.sign(30617, [
        ["d", identifier],
        ["clone", root, `${remote.url("topsecret")}`],
        ["relays", server.url],
      ]),
    );
    const work = await story.workingCopy();
    await story.state(alice, identifier, { "refs/heads/main": await work.commit("one") });
    await work.must("-c", `http.extraHeader=Authorization: ${signed}`, "push", "-q", root, "main");
    const repository = `${alice.npub}/${identifier}`;
    await operate("repos.gc", { repository });

    // Its data is nowhere: the hunt fails, and the state expires.
    const asked = remote.requests.length;
    const lost = await story.state(alice, identifier, { "refs/heads/main": "1".repeat(40) });
    await untilSo("the remote was asked", () => remote.requests.length > asked, 20_000);
    const isWaiting = async (): Promise<boolean> =>
      JSON.stringify(await operate("purgatory.list", {})).includes(lost.id);
    await untilSo("the state expired", async () => !(await isWaiting()), 20_000);

    const folder = newRepository(server.gitPath, known);
    for (const file of filesBelow(join(folder, "objects"))) {
      if (/\.pack$|\/[0-9a-f]{2}\/[0-9a-f]{38}$/.test(file)) writeFileSync(file, "damaged");
    }
    const checked = await operate("repos.fsck", { repository });
    assert.match(JSON.stringify(checked), /topsecret/, "the operator is told by name");
    // Its files are written a moment after their rows, and that may be now: then it is broken once more.
    await untilSo("the broken repository is noticed", async () => {
      rmSync(join(folder, "HEAD"), { force: true });
      const posted = await ask(`${root}/git-upload-pack`, {
        method: "POST",
        headers: { authorization: signed, "content-type": "application/x-git-upload-pack-request" },
        body: "0032want 1111111111111111111111111111111111111111\n00000009done\n",
      });
      return posted.status === 500;
    });
  }
  const metrics = await ask(`${server.origin}/metrics`, { headers: { authorization: bearer } });
  assert.equal(metrics.status, 200);
  assert.doesNotMatch(metrics.text, /topsecret|npub1/);
  const loud = log.filter(({ level }) => !["trace", "debug"].includes(level)).map((line) => JSON.stringify(line));
  const told = ['"housekeeping"', '"fetch failed"', "PURGATORY_EXPIRED", '"a git request failed"'];
  for (const words of told) assert.ok(loud.filter((line) => line.includes(words)).length >= identifiers.length, words);
  for (const line of loud) assert.doesNotMatch(line, /topsecret|code name/);
});

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((file) => statSync(file).isFile());
}

/** A name that does not fit into a path is written otherwise on disk: the repository is the one that was not there before. */
function newRepository(gitPath: string, known: Set<string>): string {
  const heads = readdirSync(gitPath, { recursive: true })
    .map(String)
    .filter((name) => /\.git\/HEAD$/.test(name));
  const [found, ...more] = heads.filter((name) => !known.has(name));
  assert.ok(found !== undefined && more.length === 0, heads.join(" "));
  known.add(found);
  return join(gitPath, found.slice(0, -"/HEAD".length));
}
