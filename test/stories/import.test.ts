// `holdfast repos import` and `events import`: another server's data, taken in through the same doors as everything else.

import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { systemClock } from "../../src/base/clock.js";
import { defaultConfig } from "../../src/config/testing/default-config.js";
import { RelayDialer } from "../../src/net/relay-dialer.js";
import { normalRelayUrl, type RelayUrl } from "../../src/net/url.js";
import { pagesOf } from "../../src/sync/conversation.js";
import { runProgram } from "../harness/git-server.js";
import { Person, type SignedEvent } from "../harness/grasp-people.js";
import { Story, stateEvent, type WorkingCopy } from "../harness/grasp-story.js";
import { signedHeader, startPrivate } from "../harness/private-service.js";
import { newFolder, removeFolder, type TestServer } from "../harness/server.js";
import { domain, jsonOf, provesWhole, startOn, verb } from "./backup-house.js";

interface Imported {
  readonly repositories: readonly { repository: string; verdict: string; why: string }[];
  readonly events: { taken: number; refused: Record<string, number> };
}

const owner = new Person();
const contributor = new Person();

const announcementOf = (identifier: string, service = domain): SignedEvent =>
  owner.sign(30617, [
    ["d", identifier],
    ["clone", `https://${service}/${owner.npub}/${identifier}.git`],
    ["relays", `wss://${service}`],
  ]);

describe("importing another server", { timeout: 600_000 }, () => {
  let old: TestServer;
  let story: Story;
  let work: WorkingCopy;
  let tip: string;
  let state: SignedEvent;
  let pullRequest: SignedEvent;
  let issue: SignedEvent;
  let comment: SignedEvent;
  /** What the old server leaves on disk, with what other servers' directories have too. */
  let directory: string;
  const folders: string[] = [];

  const freshFolder = async (): Promise<string> => {
    const folder = await newFolder();
    folders.push(folder);
    return folder;
  };

  before(async () => {
    old = await startOn();
    story = await Story.on(old);
    await story.accepted(announcementOf("moved"));
    work = await story.workingCopy();
    tip = await work.commit("one");
    state = await story.state(owner, "moved", { "refs/heads/main": tip });
    await work.must("push", "-q", story.url(owner, "moved"), "main");
    const offered = await work.commit("offered");
    const coordinate = ["a", owner.coordinate("moved")];
    pullRequest = await story.accepted(contributor.sign(1618, [coordinate, ["c", offered]]));
    await work.must("push", "-q", story.url(owner, "moved"), `HEAD:refs/nostr/${pullRequest.id}`);
    issue = await story.accepted(contributor.sign(1621, [coordinate], "an issue"));
    comment = await story.accepted(
      owner.sign(
        1111,
        [
          ["E", issue.id],
          ["e", issue.id],
          ["K", "1621"],
        ],
        "noted",
      ),
    );
    for (const identifier of ["silent", "partial", "without-data"]) await story.accepted(announcementOf(identifier));
    await story.accepted(stateEvent(owner, "partial", { "refs/heads/main": "1".repeat(40) }));

    directory = join(await freshFolder(), "git");
    cpSync(old.gitPath, directory, { recursive: true });
    const mine = join(directory, owner.npub);
    rmSync(join(mine, "without-data.git"), { recursive: true });
    // As another program would have made it: no record of ours, a hook, a config that runs a program.
    rmSync(join(mine, "moved.git/holdfast-identifier"));
    mkdirSync(join(mine, "moved.git/hooks"));
    writeFileSync(join(mine, "moved.git/hooks/post-update"), "#!/bin/sh\ntouch /tmp/never\n", { mode: 0o755 });
    writeFileSync(join(mine, "moved.git/config"), "[core]\n\tbare = true\n\tfsmonitor = touch never\n");
    cpSync(join(mine, "moved.git"), join(mine, "unannounced.git"), { recursive: true });
    cpSync(join(mine, "moved.git"), join(mine, "elsewhere.git"), { recursive: true });
    mkdirSync(join(directory, "not-an-npub/some.git"), { recursive: true });
  });
  after(async () => {
    await story?.relay.close();
    await old?.stop();
    for (const folder of [...folders, old.folder]) await removeFolder(folder);
  });

  /** The old relay serves only what is released; what waited there comes from a file. */
  const events = async (): Promise<SignedEvent[]> => [
    ...(await story.served({})),
    announcementOf("silent"),
    announcementOf("partial"),
    announcementOf("without-data"),
    stateEvent(owner, "partial", { "refs/heads/main": "1".repeat(40) }),
    announcementOf("elsewhere", "other.example.com"),
  ];

  const verdicts = ({ repositories }: Imported): Record<string, string> =>
    Object.fromEntries(
      repositories.map(({ repository, verdict }) => [repository.replace(`${owner.npub}/`, ""), verdict]),
    );

  const expected = {
    moved: "ready",
    silent: "needs action",
    partial: "needs action",
    "without-data": "needs action",
    elsewhere: "needs action",
    unannounced: "unknown",
    "not-an-npub/some.git": "unknown",
  };

  test("a dry run says what would come of it and writes nothing", async () => {
    const folder = await freshFolder();
    const file = join(folder, "events.jsonl");
    writeFileSync(file, (await events()).map((event) => JSON.stringify(event)).join("\n"));
    const target = join(folder, "new");
    const imported = await jsonOf<Imported>(target, "repos", "import", directory, "--events", file, "--dry-run");
    assert.deepEqual(verdicts(imported), expected);
    assert.equal(existsSync(target), false);
  });

  test("from a file every repository is ready, needs something that is said, or is unknown", async () => {
    const folder = await freshFolder();
    const file = join(folder, "events.jsonl");
    writeFileSync(file, (await events()).map((event) => JSON.stringify(event)).join("\n"));
    const imported = await jsonOf<Imported>(folder, "repos", "import", directory, "--events", file);
    assert.deepEqual(verdicts(imported), expected);
    const why = Object.fromEntries(imported.repositories.map((one) => [one.repository.split("/").at(-1), one.why]));
    assert.match(why.silent ?? "", /no state of it was found: one of its maintainers has to push/);
    assert.match(why.partial ?? "", /1 commit that was signed is not in the directory/);
    assert.match(why["without-data"] ?? "", /the directory has no data of it/);
    assert.match(why.elsewhere ?? "", /its announcement is refused \(service-not-listed\)/);
    assert.match(why.unannounced ?? "", /no announcement of it was found/);
    const text = await verb(folder, "repos", "import", directory, "--events", file);
    assert.match(text.stdout, /ready\s+npub1\w+\/moved\n[\s\S]*1 ready, 4 need action, 2 unknown/);
  });

  test("from the old server's relay everything it served is served again, and nothing planted came along", async () => {
    const folder = await freshFolder();
    const relay = old.origin.replace("http", "ws");
    const imported = await jsonOf<Imported>(folder, "repos", "import", directory, "--relay", relay);
    assert.equal(verdicts(imported).moved, "ready");
    assert.deepEqual(imported.events, { taken: 5, known: 0, refused: {} });
    const moved = join(folder, "git", owner.npub, "moved.git");
    assert.equal(existsSync(join(moved, "hooks")), false);
    assert.deepEqual(readdirSync(join(folder, "git", owner.npub)), ["moved.git"]);
    const server = await startOn(folder);
    try {
      const reader = await Story.on(server);
      const ids = (list: readonly { id: string }[]): string[] => list.map(({ id }) => id).sort();
      assert.deepEqual(ids(await reader.served({})), ids(await story.served({})));
      assert.deepEqual(await reader.advertised(owner, "moved"), await story.advertised(owner, "moved"));
      assert.deepEqual(
        [await reader.isServed(state), await reader.isServed(issue), await reader.isServed(comment)],
        [true, true, true],
      );
      const checked = await runProgram("git", ["--git-dir", moved, "fsck", "--no-dangling"]);
      assert.equal(checked.code, 0, checked.stderr);
      await reader.relay.close();
      await provesWhole(server);
    } finally {
      await server.stop();
    }
  });

  /** As the newest server keeps it: objects in families below `.grasp`, borrowed by absolute path, one from the other. */
  async function familyDirectory(): Promise<string> {
    const root = join(await freshFolder(), "git");
    const git = async (...args: readonly string[]): Promise<void> => {
      const done = await runProgram("git", args);
      assert.equal(done.code, 0, done.stderr);
    };
    const source = join(directory, owner.npub, "moved.git");
    const [older, newer] = ["older", "newer"].map((family) => join(root, ".grasp/families", family));
    const repository = join(root, owner.npub, "moved.git");
    await git("init", "-q", "--bare", older!);
    await git("-C", older!, "fetch", "-q", source, `${tip}:refs/heads/main`);
    await git("clone", "-q", "--bare", "--shared", older!, newer!);
    await git("-C", newer!, "fetch", "-q", source, "+refs/*:refs/*");
    await git("clone", "-q", "--bare", "--shared", newer!, repository);
    assert.match(readFileSync(join(repository, "objects/info/alternates"), "utf8"), /^\/.*\.grasp\/families\/newer/);
    const own = readdirSync(join(repository, "objects"), { recursive: true, withFileTypes: true });
    assert.deepEqual(
      own.filter((entry) => entry.isFile()).map(({ name }) => name),
      ["alternates"],
      "the repository has no object of its own",
    );
    return root;
  }

  for (const hasMoved of [false, true]) {
    const where = hasMoved ? "that has moved since" : "where it was made";
    test(`a directory of the newest server, ${where}, loses no object that several repositories share`, async () => {
      const made = await familyDirectory();
      const root = hasMoved ? join(await freshFolder(), "elsewhere") : made;
      if (hasMoved) renameSync(made, root);
      const folder = await freshFolder();
      const file = join(folder, "events.jsonl");
      writeFileSync(file, (await events()).map((event) => JSON.stringify(event)).join("\n"));
      const dry = await jsonOf<Imported>(join(folder, "new"), "repos", "import", root, "--events", file, "--dry-run");
      assert.equal(verdicts(dry).moved, "ready");
      const imported = await jsonOf<Imported>(folder, "repos", "import", root, "--events", file);
      assert.equal(verdicts(imported).moved, "ready");
      await removeFolder(root);
      const moved = join(folder, "git", owner.npub, "moved.git");
      assert.equal(existsSync(join(moved, "objects/info/alternates")), false);
      const checked = await runProgram("git", ["--git-dir", moved, "fsck", "--full", "--strict", "--no-dangling"]);
      assert.equal(checked.code, 0, checked.stderr);
      const objectsIn = async (repository: string): Promise<string[]> =>
        (await runProgram("git", ["--git-dir", repository, "rev-list", "--objects", "--all"])).stdout
          .toString()
          .split("\n")
          .map((line) => line.slice(0, 40))
          .sort();
      assert.deepEqual(await objectsIn(moved), await objectsIn(join(directory, owner.npub, "moved.git")));
    });
  }

  test("borrowed objects that were left behind are named", async () => {
    const root = await familyDirectory();
    rmSync(join(root, ".grasp"), { recursive: true });
    const folder = await freshFolder();
    const file = join(folder, "events.jsonl");
    writeFileSync(file, (await events()).map((event) => JSON.stringify(event)).join("\n"));
    const imported = await jsonOf<Imported>(folder, "repos", "import", root, "--events", file);
    const moved = imported.repositories.find(({ repository }) => repository.endsWith("/moved"));
    assert.equal(moved?.verdict, "needs action");
    assert.match(
      moved.why,
      /borrows objects from \/.*\.grasp\/families\/newer\/objects, which is not there: copy that too/,
    );
  });

  test("events import hosts what lists this service: it waits, and the next start has its repository", async () => {
    const folder = await freshFolder();
    const file = join(folder, "events.jsonl");
    const foreign = announcementOf("elsewhere", "other.example.com");
    // Newest first, as an export writes them.
    const lines = [comment, issue, state, announcementOf("moved"), foreign].map((event) => JSON.stringify(event));
    writeFileSync(file, lines.join("\n"));
    const imported = await jsonOf<{ stored: number; waiting: number }>(folder, "events", "import", file);
    assert.deepEqual([imported.stored, imported.waiting], [3, 2]);
    const server = await startOn(folder);
    try {
      const reader = await Story.on(server);
      assert.equal(existsSync(join(folder, "git", owner.npub, "moved.git/HEAD")), true);
      assert.equal(await reader.isServed(state), false, "a state is not served before its refs are here");
      await work.must("push", "-q", `${server.origin}/${owner.npub}/moved.git`, `${tip}:refs/heads/main`);
      assert.equal(await reader.isServed(state), true);
      assert.equal(await reader.isServed(foreign), true);
      await reader.relay.close();
    } finally {
      await server.stop();
    }
  });

  test("a relay that answers two events at a time is read to its end", async () => {
    const limits = { NGIT_MAX_LIMIT: "2", NGIT_DEFAULT_LIMIT: "2" };
    const small = await Story.begin({ settings: limits });
    try {
      const { tip: hosted } = await small.hosted(owner, "paged");
      assert.ok(hosted);
      const at = Math.floor(Date.now() / 1000);
      const tags = [["a", owner.coordinate("paged")]];
      for (const second of [at, at - 1, at - 1, at - 2]) {
        await small.accepted(contributor.sign(1621, tags, `${second} ${Math.random()}`, second));
      }
      const dialer = new RelayDialer(
        systemClock,
        () => defaultConfig(),
        () => "private",
        "test",
      );
      const url = normalRelayUrl(small.server.origin.replace("http", "ws")) as RelayUrl;
      const kindsFound: number[] = [];
      for await (const page of pagesOf(url, {}, dialer, new AbortController().signal)) {
        kindsFound.push(...page.map(({ kind }) => kind));
      }
      assert.deepEqual(kindsFound.sort(), [1621, 1621, 1621, 1621, 30617, 30618]);
    } finally {
      await small.end();
    }
  });

  test("a private server's events are read by the key of the server that imports, once that is a member there", async () => {
    const { alice, story: told, server, operate } = await startPrivate();
    try {
      const announcement = await told.accepted(
        alice.sign(30617, [
          ["d", "closed"],
          ["clone", `https://${domain}/${alice.npub}/closed.git`, told.url(alice, "closed")],
          ["relays", `wss://${domain}`, server.url],
        ]),
      );
      const copy = await told.workingCopy();
      const commit = await copy.commit("closed");
      await told.state(alice, "closed", { "refs/heads/main": commit });
      const header = `http.extraHeader=Authorization: ${signedHeader(alice, told.url(alice, "closed"))}`;
      await copy.must("-c", header, "push", "-q", told.url(alice, "closed"), "main");
      const folder = await freshFolder();
      const importing = ["repos", "import", server.gitPath, "--relay", server.url];
      const refused = await verb(folder, ...importing);
      assert.equal(refused.code, 1);
      const npub = /does not let (npub1\w+) in: that key must be a member there/.exec(refused.stderr)?.[1] ?? "";
      assert.notEqual(npub, "", refused.stderr);
      await operate("lists.add", { list: "private-members", entry: npub });
      const imported = await jsonOf<Imported>(folder, ...importing);
      assert.deepEqual(
        imported.repositories.map(({ verdict }) => verdict),
        ["ready"],
      );
      const now = await startOn(folder);
      const reader = await Story.on(now);
      assert.equal(await reader.isServed(announcement), true);
      await reader.relay.close();
      await now.stop();
    } finally {
      await told.end();
    }
  });

  test("an import without events, of no directory or beside a running server is refused with what to do", async () => {
    const nothing = await verb(old.folder, "repos", "import", directory);
    assert.equal(nothing.code, 2);
    assert.match(nothing.stderr, /--relay <url> or --events <file>/);
    const nowhere = await verb(old.folder, "repos", "import", "/nowhere", "--events", "x");
    assert.equal(nowhere.code, 1);
    assert.match(nowhere.stderr, /\/nowhere is no directory/);
    const running = await verb(old.folder, "repos", "import", directory, "--events", "x");
    assert.equal(running.code, 1);
    assert.match(running.stderr, /is in use by process \d+/);
    const silent = await verb(await freshFolder(), "repos", "import", directory, "--relay", "ws://127.0.0.1:1");
    assert.equal(silent.code, 1);
    assert.match(silent.stderr, /cannot be reached/);
  });
});
