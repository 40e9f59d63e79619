// threats.md row 4: URLs in events that would make the server talk to its own machine or network. Every connection the
// server makes is watched; none may go where the guard says no.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { startFront } from "../harness/front-server.js";
import { Person } from "../harness/grasp-people.js";
import { type Story, stateEvent } from "../harness/grasp-story.js";
import { HuntGitServer, WorkingClone } from "../harness/hunt-git-server.js";
import { type ChildServer, until } from "../harness/server.js";
import { beginWatched, traceless } from "../harness/traceless.js";

const program = fileURLToPath(new URL("../harness/watched-dials-server.js", import.meta.url));

const impatient = {
  NGIT_LOG_LEVEL: "debug",
  NGIT_GIT_HUNT_DIRECT_DELAY_MS: "0",
  NGIT_SYNC_BATCH_WINDOW_MS: "50",
  NGIT_SYNC_STARTUP_JITTER_MS: "0",
  NGIT_PURGATORY_START_GRACE_SECS: "0",
};
const dials = (server: ChildServer): string[] =>
  [...server.log().matchAll(/^dialled (.*) (\d+)$/gm)].map(([, address]) => address ?? "");

describe("threat 4: without permission for loopback", () => {
  let server: ChildServer;
  let story: Story;
  let port = 0;
  let reached = 0;
  const door = createServer((_request, response) => {
    response.end();
  }).on("connection", () => {
    reached++;
  });
  const names: Record<string, string[][]> = {
    "loops.example": [["127.0.0.1"]],
    "six.example": [["::1"]],
    "both.example": [["198.51.100.7", "127.0.0.1"]],
    "inside.example": [["10.1.2.3"]],
    "meta.example": [["169.254.169.254"]],
    "mapped.example": [["::ffff:127.0.0.1"]],
    "nat64.example": [["64:ff9b::7f00:1"]],
    "zero.example": [["0.0.0.0"]],
    "nothing.example": [[]],
  };
  before(async () => {
    await new Promise<void>((done) => door.listen(0, "::", done));
    port = (door.address() as AddressInfo).port;
    ({ server, story } = await beginWatched(
      { ...impatient, NGIT_TEST: "0" },
      { program, args: [JSON.stringify(names)] },
    ));
  });
  after(async () => {
    await story.end();
    door.close();
  });

  const hosts = [
    ...["127.0.0.1", "127.1", "127.255.255.254", "2130706433", "0x7f000001", "017700000001", "0x7f.1", "0177.0.0.1"],
    ...["[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[::ffff:0:127.0.0.1]"],
    ...["[64:ff9b::127.0.0.1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2001::80ff:fffe]"],
    ...["0.0.0.0", "0", "[::]", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "167772161"],
    ...["169.254.1.1", "169.254.169.254", "100.100.100.200", "[fd00:ec2::254]", "[fe80::1]", "[fec0::1]", "[fc00::1]"],
    ...[
      "224.0.0.1",
      "[ff02::1]",
      "255.255.255.255",
      "240.0.0.1",
      "198.18.0.1",
      "192.0.2.1",
      "[2001:db8::1]",
      "[100::1]",
    ],
    ...["localhost", "LOCALHOST", "localhost.", "\uff11\uff12\uff17.0.0.1", "\u24db\u24deopback.example"],
    ...Object.keys(names),
  ];
  const schemes = [
    "file:///etc/passwd",
    "/etc/passwd",
    "./x",
    "ext::sh -c touch% /tmp/x",
    "ssh://git@127.0.0.1/x",
    "git@127.0.0.1:x",
    "git://127.0.0.1/x",
    "ftp://127.0.0.1/x",
    "gopher://127.0.0.1/x",
    "javascript:alert(1)",
    "--upload-pack=touch /tmp/x",
    "fd::3",
    "http://user:secret@127.0.0.1/x",
    "http://127.0.0.1\\@public.example/x",
    "http:127.0.0.1/x",
    "https:///127.0.0.1/x",
  ];

  it("threat 4: no form of a loopback, private, link-local, metadata, multicast or mapped address is dialled, as clone URL or relay", async () => {
    const urls = [...hosts.map((host) => `http://${host}:${port}/x.git`), ...schemes];
    const owner = new Person();
    const perAnnouncement = 5;
    await traceless(
      server,
      async () => {
        const jobs: string[] = [];
        for (let at = 0; at < urls.length; at += perAnnouncement) {
          const some = urls.slice(at, at + perAnnouncement);
          const identifier = `dial${at}`;
          const event = owner.sign(30617, [
            ["d", identifier],
            ["clone", story.url(owner, identifier), ...some],
            ["relays", `ws://${server.domain}`, ...some.map((url) => url.replace(/^http/, "ws"))],
          ]);
          const { ok, message } = await story.publish(event);
          assert.ok(ok || message.startsWith("invalid:"), message);
          if (!ok) continue;
          await story.accepted(stateEvent(owner, identifier, { "refs/heads/main": "1".repeat(40) }));
          jobs.push(owner.coordinate(identifier));
        }
        assert.ok(jobs.length > 10, `${jobs.length} of them are looked for`);
        const isTried = (job: string): boolean =>
          server.log().includes(`"job":"${job}"`) && new RegExp(`${job}.*back-off`).test(server.log());
        assert.ok(await until(() => jobs.every(isTried), 120_000), server.log().slice(-3_000));
        assert.ok(await until(() => resolvedAll(server), 120_000), "every name was looked up");
      },
      { mayWait: true, besides: /^git\// },
    );
    assert.deepEqual(dials(server), []);
    assert.equal(reached, 0);
    const judged = (what: string): number => server.log().split(what).length - 1;
    assert.ok(judged('"address-not-allowed"') > 30, "git URLs were judged");
    assert.ok(judged('"blocked-address"') > 30, "relay URLs were judged");
  });

  /** Both for git and for the relay, or refused before: what matters is that it was come so far. */
  const resolvedAll = (it: ChildServer): boolean =>
    Object.keys(names).every((name) => it.log().includes(`resolved ${name}`));
});

describe("threat 4: where loopback may be dialled, and nothing else", () => {
  let server: ChildServer;
  let story: Story;
  let remote: HuntGitServer;
  let work: WorkingClone;
  let tip: string;
  const locations = [
    "http://10.0.0.1/x",
    "https://10.0.0.1/x",
    "https://169.254.169.254/latest/meta-data",
    "https://[fd00:ec2::254]/",
    "https://192.168.0.1/",
    "https://[::ffff:10.0.0.1]/",
    "https://167772161/",
    "https://inside.example/",
    "https://both.example/",
    "file:///etc/passwd",
    "ext::sh -c true",
    "ssh://127.0.0.1/x",
    "git://127.0.0.1/x",
    "//10.0.0.1/x",
    "https://user@inside.example/",
  ];
  before(async () => {
    work = await WorkingClone.make();
    tip = await work.commit("one");
    remote = await HuntGitServer.start();
    await remote.publish("good", work.path, { "refs/heads/main": tip });
    const here = ["127.0.0.1"];
    const names: Record<string, string[][]> = {
      "inside.example": [["10.1.2.3"]],
      "both.example": [["127.0.0.1", "10.1.2.3"]],
      // Their next look-up, whoever makes it, answers with an address inside.
      "rebinds1.example": [here, ["10.1.2.3"]],
      "rebinds2.example": [here, here, ["10.1.2.3"]],
      "rebinds3.example": [here, here, here, ["10.1.2.3"]],
      // By now our own requests are made, and only git dials.
      "rebinds4.example": [here, here, here, here, ["10.1.2.3"]],
      "moves.example": [here],
      ...Object.fromEntries(locations.map((_, index) => [`r${index}.example`, [here]])),
    };
    ({ server, story } = await beginWatched(impatient, { program, args: [JSON.stringify(names)] }));
  });
  after(async () => {
    await story.end();
    await remote.close();
    await work.remove();
  });

  const hunted = async (owner: Person, identifier: string, urls: readonly string[], wanted: string) => {
    await story.accepted(story.announcement(owner, identifier, [["clone", story.url(owner, identifier), ...urls]]));
    return await story.state(owner, identifier, { "refs/heads/main": wanted });
  };
  const onlyLoopback = (): void => {
    assert.ok(dials(server).length > 0, "dials are seen");
    assert.deepEqual(new Set(dials(server)), new Set(["127.0.0.1"]));
  };
  const withdrawn = (owner: Person, identifier: string) =>
    story.accepted(
      owner.sign(5, [
        ["a", owner.coordinate(identifier)],
        ["a", owner.coordinate(identifier).replace("30617", "30618")],
      ]),
    );

  it("threat 4: redirects to addresses inside, other schemes and names that lead there are not followed", async () => {
    const owner = new Person();
    const front = await startFront(undefined, (request, _body, response) => {
      const index = Number(/\/r(\d+)\.git/.exec(request.url ?? "")?.[1]);
      response.writeHead(302, { location: locations[index] ?? "/" }).end();
      return true;
    });
    try {
      await traceless(
        server,
        async () => {
          for (let at = 0; at < locations.length; at += 5) {
            const urls = locations
              .slice(at, at + 5)
              .map((_, index) => `http://r${at + index}.example:${front.port}/r${at + index}.git`);
            await hunted(owner, `redirected${at}`, urls, "2".repeat(40));
          }
          const isAnswered = (index: number): boolean => front.seen.some((line) => line.includes(`/r${index}.git/`));
          const isJudged = (index: number): boolean =>
            new RegExp(`r${index}\\.example[^\n]*(redirect-failed|bad-redirect)`).test(server.log());
          const all = locations.map((_, index) => index);
          assert.ok(await until(() => all.every(isAnswered), 120_000), "each was asked");
          assert.ok(await until(() => all.every(isJudged), 120_000), server.log().slice(-4_000));
          for (let at = 0; at < locations.length; at += 5) await withdrawn(owner, `redirected${at}`);
        },
        { besides: /^git\// },
      );
      onlyLoopback();
    } finally {
      await front.close();
    }
  });

  it("threat 4: a name that resolves elsewhere the second time is dialled where it was checked, by git too, or not at all", async () => {
    const owner = new Person();
    const good = (name: string): string => `http://${name}:${remote.port}/good.git`;
    const state = await hunted(owner, "rebound", [good("rebinds4.example")], tip);
    assert.ok(await until(() => story.isServed(state), 120_000), "git fetched from the address that was checked");
    assert.ok(remote.counts().fetch > 0);
    for (const name of ["rebinds1.example", "rebinds2.example", "rebinds3.example"]) {
      const other = await hunted(owner, name, [good(name)], tip);
      assert.ok(await until(() => new RegExp(`${name}[^\\n]*address-not-allowed`).test(server.log()), 120_000), name);
      assert.equal(await story.isServed(other), false);
    }
    onlyLoopback();
  });

  it("threat 4: git follows no redirect, also where the address would be allowed", async () => {
    const owner = new Person();
    const trap = await startFront(undefined, (_request, _body, response) => {
      response.writeHead(200).end();
      return true;
    });
    // Our own look-up gets the truth; git itself is sent elsewhere.
    const front = await startFront(remote.port, (request, _body, response) => {
      if (/holdfast/.test(request.headers["user-agent"] ?? "")) return false;
      response.writeHead(301, { location: `http://127.0.0.1:${trap.port}${request.url}` }).end();
      return true;
    });
    try {
      const second = await work.commit("two");
      await remote.publish("moves", work.path, { "refs/heads/main": second });
      const asked = (): number => front.seen.filter((line) => line.includes("moves.git")).length;
      const state = await hunted(owner, "moves", [`http://moves.example:${front.port}/moves.git`], second);
      assert.ok(await until(() => asked() >= 3 && /moves\.example[^\n]*fetch failed/.test(server.log()), 120_000));
      assert.deepEqual(trap.seen, []);
      assert.equal(await story.isServed(state), false);
      onlyLoopback();
    } finally {
      await front.close();
      await trap.close();
    }
  });
});
