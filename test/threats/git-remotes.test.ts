// threats.md row 7: git servers of others that lie, stall, never end or send bad objects, all at once, to a started
// server that hunts for data there. Every attempt ends, the next one ends the same way, and nothing stays.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { type Front, startFront, type TakeOver } from "../harness/front-server.js";
import { runProgram } from "../harness/git-server.js";
import { Person } from "../harness/grasp-people.js";
import type { Story } from "../harness/grasp-story.js";
import { HuntGitServer, type Misbehaviour, mustGit, WorkingClone } from "../harness/hunt-git-server.js";
import { pkt } from "../harness/raw-http.js";
import { type ChildServer, until } from "../harness/server.js";
import { beginWatched, traceless } from "../harness/traceless.js";

const program = fileURLToPath(new URL("../harness/watched-dials-server.js", import.meta.url));

/** What a server does with the request for a pack. */
const onFetch =
  (answer: (response: ServerResponse) => void): TakeOver =>
  (request: IncomingMessage, body: Buffer, response: ServerResponse): boolean => {
    if (!request.url?.endsWith("/git-upload-pack") || !body.includes("command=fetch")) return false;
    response.writeHead(200, { "content-type": "application/x-git-upload-pack-result" });
    response.write(pkt("packfile\n"));
    answer(response);
    return true;
  };

/** As fast as the other side reads, or with a pause after each block. */
function forEver(response: ServerResponse, block: Buffer, pauseMs = 0): void {
  const next = (): unknown => (pauseMs > 0 ? setTimeout(more, pauseMs) : setImmediate(more));
  const more = (): void => {
    // One block a turn: the close of the connection must be heard in between.
    if (response.destroyed || !response.socket?.writable) return;
    if (response.write(block)) next();
    else response.once("drain", more);
  };
  more();
}

const band = (number: number, data: Buffer): Buffer => pkt(Buffer.concat([Buffer.from([number]), data]));

interface Hostile {
  readonly behaviour?: Misbehaviour;
  readonly takesOver?: TakeOver;
  /** Of the fetch, in the log. */
  readonly code: RegExp;
}

const hostile: Readonly<Record<string, Hostile>> = {
  denies: { behaviour: { type: "not-our-ref", advertised: [] }, code: /./ },
  drips: { behaviour: { type: "one-byte-a-second" }, code: /timeout/ },
  hangs: { behaviour: { type: "hang" }, code: /timeout/ },
  "hangs-later": { behaviour: { type: "hang-after-headers" }, code: /timeout/ },
  corrupts: { behaviour: { type: "corrupt-pack" }, code: /bad-objects/ },
  fails: { behaviour: { type: "status", status: 500 }, code: /http-status/ },
  circles: { behaviour: { type: "redirect", to: (path) => path }, code: /redirect-failed/ },
  "endless-pack": {
    takesOver: onFetch((response) => {
      response.write(band(1, Buffer.from("5041434b00000002000000ff", "hex")));
      forEver(response, band(1, randomBytes(60_000)));
    }),
    code: /bad-objects|too-large/,
  },
  // One blob that announces more than it may be and never ends: every byte of it is well formed.
  "endless-blob": {
    takesOver: onFetch((response) => {
      response.write(band(1, Buffer.from("5041434b0000000200000001", "hex")));
      response.write(band(1, Buffer.from("bfffffffff0f7801", "hex")));
      // Stored blocks of 60,000 random bytes, none of them the last.
      forEver(response, band(1, Buffer.concat([Buffer.from("0060ea9f15", "hex"), randomBytes(60_000)])));
    }),
    code: /too-large|bad-objects/,
  },
  // Progress that never ends: bytes flow, none of them belongs to the pack.
  "endless-talk": {
    takesOver: onFetch((response) => forEver(response, band(2, Buffer.alloc(60_000, "x\n")), 20)),
    code: /timeout|too-large/,
  },
  "keep-alive-for-ever": {
    takesOver: onFetch((response) => {
      const timer = setInterval(() => response.write(band(2, Buffer.from("still counting\r"))), 50);
      response.once("close", () => clearInterval(timer));
    }),
    code: /timeout/,
  },
  "endless-refs": {
    takesOver: (request, _body, response) => {
      if (!request.url?.includes("/info/refs")) return false;
      response.writeHead(200, { "content-type": "application/x-git-upload-pack-advertisement" });
      forEver(response, pkt(`${"1".repeat(40)} refs/heads/${"x".repeat(200)}\n`));
      return true;
    },
    code: /./,
  },
  // The same in crumbs: each of 400,000 bytes is a chunk of its own, which must not cost more than a byte.
  "endless-crumbs": {
    takesOver: (request, _body, response) => {
      if (!request.url?.includes("/info/refs")) return false;
      response.writeHead(200, { "content-type": "application/x-git-upload-pack-advertisement" });
      response.write("0");
      const { socket } = response;
      const crumbs = Buffer.from("1\r\n0\r\n".repeat(10_000));
      let left = 40;
      const more = (): void => {
        if (!socket?.writable || left-- === 0) return;
        if (socket.write(crumbs)) setImmediate(more);
        else socket.once("drain", more);
      };
      more();
      return true;
    },
    code: /./,
  },
  "git-entry": { code: /bad-objects/ },
  gitmodules: { code: /bad-objects/ },
};

describe("threat 7: remote git servers", { timeout: 900_000 }, () => {
  let server: ChildServer;
  let story: Story;
  let work: WorkingClone;
  const remotes = new Map<string, { readonly remote: HuntGitServer; readonly front: Front; readonly tip: string }>();
  const owner = new Person();

  before(async () => {
    work = await WorkingClone.make();
    const plain = await work.commitFile("a", randomBytes(5_000));
    const evil: Record<string, string> = {
      "git-entry": await evilCommit(work, "100644 .git", "x"),
      gitmodules: await evilCommit(
        work,
        "100644 .gitmodules",
        '[submodule "../../x"]\n\tpath = -x\n\turl = --upload-pack=x\n',
      ),
    };
    const names: Record<string, string[][]> = {};
    const honest = await HuntGitServer.start();
    await honest.publish("demo", work.path, { "refs/heads/main": plain });
    for (const [name, { behaviour, takesOver }] of Object.entries(hostile)) {
      const tip = evil[name] ?? plain;
      const remote = takesOver ? honest : await HuntGitServer.start();
      if (!takesOver) await remote.publish("demo", work.path, { "refs/heads/main": tip });
      if (behaviour)
        remote.behaviour = behaviour.type === "not-our-ref" ? { ...behaviour, advertised: [tip] } : behaviour;
      const front = await startFront(remote.port, takesOver ?? (() => false));
      remotes.set(name, { remote, front, tip });
      names[`${name}.example`] = [["127.0.0.1"]];
    }
    const settings = {
      NGIT_LOG_LEVEL: "debug",
      NGIT_GIT_HUNT_DIRECT_DELAY_MS: "0",
      NGIT_GIT_HUNT_BASE_BACKOFF_SECS: "1",
      NGIT_GIT_HUNT_MAX_BACKOFF_SECS: "1",
      NGIT_GIT_HUNT_SLOW_SECS: "1",
      NGIT_GIT_HUNT_TOTAL_SECS: "4",
      NGIT_GIT_HUNT_MAX_BYTES: "4MiB",
      NGIT_GIT_DOMAIN_RATE: "1000",
      NGIT_NAUGHTY_AFTER_FAILURES: "1000",
    };
    ({ server, story } = await beginWatched(settings, { program, args: [JSON.stringify(names)] }));
    for (const [name, { front }] of remotes) {
      const url = `http://${name}.example:${front.port}/demo.git`;
      await story.accepted(story.announcement(owner, name, [["clone", story.url(owner, name), url]]));
    }
  });
  after(async () => {
    await story.end();
    for (const { front } of remotes.values()) await front.close();
    for (const remote of new Set([...remotes.values()].map((each) => each.remote))) await remote.close();
    await work.remove();
  });

  const failures = (name: string): string[] =>
    [
      ...server
        .log()
        .matchAll(new RegExp(`${name}\\.example:\\d+/demo\\.git","code":"([a-z-]+)","message":"fetch failed"`, "g")),
    ].map(([, code]) => code ?? "");
  const attempts = (name: string): number => server.log().split(`${owner.coordinate(name)}","attempts"`).length - 1;

  it("threat 7: whatever a remote does, each attempt ends, the second like the first, and quarantines and processes are gone", async () => {
    await traceless(server, async () => {
      for (const [name, { tip }] of remotes) await story.state(owner, name, { "refs/heads/main": tip });
      const giveUp = (name: string) => story.accepted(owner.sign(5, [["a", `30618:${owner.pubkey}:${name}`]]));
      // Those that end soon are given up after their second time: they would be tried again all the while.
      const soon = new Set(Object.keys(hostile).filter((name) => !hostile[name]?.code.test("timeout")));
      const notTwice = (): string[] => [...remotes.keys()].filter((name) => attempts(name) < 2);
      const allTwice = async (): Promise<boolean> => {
        const left = notTwice();
        for (const name of soon) if (!left.includes(name) && soon.delete(name)) await giveUp(name);
        return left.length === 0;
      };
      assert.ok(await until(allTwice, 120_000), `not tried twice: ${notTwice().join(", ")}`);
      for (const [name, { code }] of Object.entries(hostile)) {
        const seen = failures(name);
        // On a busy machine any of them may run out of its four seconds first, or a name out of the time to resolve it.
        const ended = seen.filter((each) => each !== "timeout" && each !== "dns-temporary");
        for (const each of ended) assert.match(each, code, name);
        assert.ok(name === "denies" || seen.some((each) => each !== "dns-temporary"), `${name}: ${seen.join(" ")}`);
        if (name !== "denies") assert.ok(seen.length >= 2, `${name}: ${seen.join(" ")}`);
        const shown = await story.advertised(owner, name);
        assert.deepEqual(shown, {}, name);
      }
      // The owner gives up the others: what runs is ended, what waits is gone.
      for (const name of remotes.keys()) if (hostile[name]?.code.test("timeout")) await giveUp(name);
    });
    assert.doesNotMatch(server.log(), /"level":"(?:error|fatal)"/);
  });
});

/** A commit of a tree with one entry that git would not write itself. */
async function evilCommit(work: WorkingClone, entry: string, content: string): Promise<string> {
  const blob = await runProgram("git", ["hash-object", "-w", "--stdin"], { cwd: work.path, input: content });
  const input = Buffer.concat([Buffer.from(`${entry}\0`), Buffer.from(blob.stdout.trim(), "hex")]);
  const tree = await runProgram("git", ["hash-object", "-w", "-t", "tree", "--literally", "--stdin"], {
    cwd: work.path,
    input,
  });
  return await mustGit(["commit-tree", tree.stdout.trim(), "-m", "evil"], work.path);
}
