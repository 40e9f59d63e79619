// Stock git as a client: what is accepted, what is refused, what the pusher reads, what is left behind.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, afterEach, before, describe, it } from "node:test";
import { GitRepository } from "../../src/git/repository.js";
import type { Oid, RefName } from "../../src/nostr/nip34.js";
import { type ClientResult, GitServer, headOf, hexId, runProgram } from "../harness/git-server.js";

describe("git push", () => {
  let server: GitServer;
  let work: string;
  let url: string;
  let identifier: string;
  let first: Oid;
  let repositories = 0;
  before(async () => {
    server = await GitServer.start();
  });
  after(() => server.stop());

  const fresh = async (): Promise<void> => {
    identifier = `push${repositories++}`;
    url = await server.create(identifier);
    work = await server.workingCopy(identifier);
    first = await headOf(work);
    server.candidates = [];
    server.mark = undefined;
    server.strict = false;
    server.readOnlyReason = undefined;
    server.quota = undefined;
    server.unclaimed = { ok: true, maxBytes: 20 << 20 };
    server.nostrEvents = new Map();
    server.onAuthority = () => undefined;
    server.onWrite = () => true;
    server.releaseMessages = [];
    server.operations.length = 0;
    server.written.length = 0;
    server.released.length = 0;
  };
  const push = (...args: string[]): Promise<ClientResult> => server.git(work, "push", url, ...args);
  const untouched = async (before: readonly string[]): Promise<void> => {
    assert.deepEqual(await server.filesOf(identifier), before, "nothing is left behind");
    assert.equal(server.launcher.jobsInFlight, 0);
    assert.equal(server.written.length, 0);
    assert.equal(server.released.length, 0);
  };
  const repository = () => server.repositories.open(server.addressOf(identifier));

  afterEach(async () => {
    for (const { fault } of server.operations) assert.equal(fault, undefined);
  });

  it("is accepted when a state lists exactly that value, journaled before and released before the report", async () => {
    await fresh();
    const state = server.state({ "refs/heads/main": first });
    server.releaseMessages = ["released one event"];
    const result = await push("main");
    assert.equal(result.code, 0, result.stderr);
    assert.match(result.stderr, /remote: released one event/);
    assert.match(result.stderr, /\[new branch\]\s+main -> main/);
    assert.equal(await server.refsOf(identifier), `refs/heads/main ${first}`);
    assert.deepEqual(server.written[0]?.updates, [{ ref: "refs/heads/main", to: first }]);
    assert.equal(server.written[0]?.candidate?.id, state.id);
    assert.equal(server.released[0]?.decision.candidate?.id, state.id);
    assert.deepEqual(
      server.operations.filter(({ operation }) => operation === "push").map(({ status }) => status),
      ["ok"],
    );
    assert.deepEqual((await repository().refs()).refs.get("refs/heads/main" as RefName), {
      oid: first,
      peeled: undefined,
    });
  });

  it("without a state is refused with words that say what to do, and leaves nothing", async () => {
    await fresh();
    const before = await server.filesOf(identifier);
    const result = await push("main");
    assert.notEqual(result.code, 0);
    assert.match(
      result.stderr,
      /remote: no state by a maintainer lists refs\/heads\/main at [0-9a-f]{8}: publish a state event first/,
    );
    assert.match(result.stderr, /! \[remote rejected\] main -> main \(no state by a maintainer/);
    assert.doesNotMatch(result.stderr, /not found|\b404\b|Everything up-to-date/i);
    await untouched(before);
  });

  it("over 1 MiB comes as a probe and a chunked body, refused or accepted", async () => {
    await fresh();
    const big = await server.commit(work, "big", randomBytes(3 << 20));
    const before = await server.filesOf(identifier);
    const refused = await push("main");
    assert.match(refused.stderr, /remote rejected\] main -> main \(no state/);
    await untouched(before);
    assert.ok(server.operations.some(({ operation, status }) => operation === "probe" && status === "ok"));
    server.state({ "refs/heads/main": big });
    const accepted = await push("main");
    assert.equal(accepted.code, 0, accepted.stderr);
    assert.match(await server.refsOf(identifier), new RegExp(big));
  });

  it("applies what passes and names the reason for the rest; with --atomic applies nothing", async () => {
    await fresh();
    server.state({ "refs/heads/main": first });
    const before = await server.filesOf(identifier);
    const atomic = await push("--atomic", "main", "main:other");
    assert.notEqual(atomic.code, 0);
    assert.match(atomic.stderr, /main -> other \(no state by a maintainer lists refs\/heads\/other/);
    assert.match(atomic.stderr, /main -> main \(this atomic push was refused because of refs\/heads\/other\)/);
    await untouched(before);
    const both = await push("main", "main:other");
    assert.notEqual(both.code, 0);
    assert.match(both.stderr, /\[new branch\]\s+main -> main/);
    assert.match(both.stderr, /\[remote rejected\] main -> other/);
    assert.equal(await server.refsOf(identifier), `refs/heads/main ${first}`);
  });

  it("moves branches by force and to unrelated histories when the state says so", async () => {
    await fresh();
    const second = await server.commit(work, "two", "2");
    server.state({ "refs/heads/main": second });
    await server.mustGit(work, "push", "-q", url, "main");
    server.state({ "refs/heads/main": first });
    await server.mustGit(work, "push", "-q", "--force", url, `${first}:refs/heads/main`);
    assert.equal(await server.refsOf(identifier), `refs/heads/main ${first}`);
    await server.mustGit(work, "checkout", "-q", "--orphan", "unrelated");
    const unrelated = await server.commit(work, "three", "3");
    server.state({ "refs/heads/main": unrelated });
    await server.mustGit(work, "push", "-q", "--force", url, "unrelated:main");
    assert.equal(await server.refsOf(identifier), `refs/heads/main ${unrelated}`);
  });

  it("deletes a ref the governing state lacks, and not one it lists", async () => {
    await fresh();
    server.state({ "refs/heads/main": first, "refs/heads/old": first }, true);
    await server.mustGit(work, "push", "-q", url, "main", "main:old");
    const refused = await push(":old");
    assert.match(refused.stderr, /\[remote rejected\] old \(the state lists refs\/heads\/old at/);
    server.candidates = [];
    server.state({ "refs/heads/main": first }, true);
    const deleted = await push(":old");
    assert.equal(deleted.code, 0, deleted.stderr);
    assert.equal(await server.refsOf(identifier), `refs/heads/main ${first}`);
  });

  it("threat 16: deletes nothing under a state that neither governs nor is complete", async () => {
    await fresh();
    server.state({ "refs/heads/main": first, "refs/heads/old": first }, true);
    await server.mustGit(work, "push", "-q", url, "main", "main:old");
    const second = await server.commit(work, "two", "2");
    server.candidates = [];
    server.state({ "refs/heads/main": second });
    const early = await push(":old");
    assert.match(early.stderr, /\(refs\/heads\/old can be deleted only together with everything the new state lists/);
    assert.match(await server.refsOf(identifier), /old/);
    const together = await push("main", ":old");
    assert.equal(together.code, 0, together.stderr);
    assert.equal(await server.refsOf(identifier), `refs/heads/main ${second}`);
  });

  it("turns a branch into a directory of branches and back in one push", async () => {
    await fresh();
    server.state({ "refs/heads/a": first });
    await server.mustGit(work, "push", "-q", url, "main:a");
    server.candidates = [];
    server.state({ "refs/heads/a/b": first }, true);
    const there = await push(":a", "main:a/b");
    assert.equal(there.code, 0, there.stderr);
    assert.equal(await server.refsOf(identifier), `refs/heads/a/b ${first}`);
    server.candidates = [];
    server.state({ "refs/heads/a": first }, true);
    const back = await push(":a/b", "main:a");
    assert.equal(back.code, 0, back.stderr);
    assert.equal(await server.refsOf(identifier), `refs/heads/a ${first}`);
  });

  it("mirrors 1,500 refs with annotated tags among them", async () => {
    await fresh();
    await server.mustGit(work, "tag", "-a", "annotated", "-m", "x");
    const tag = (await server.mustGit(work, "rev-parse", "refs/tags/annotated")) as Oid;
    const refs: Record<string, string> = { "refs/heads/main": first, "refs/tags/annotated": tag };
    for (let i = 0; i < 1500; i++) refs[`refs/tags/t${i}`] = first;
    const input = Object.keys(refs)
      .filter((ref) => ref.startsWith("refs/tags/t"))
      .map((ref) => `create ${ref} ${first}\n`)
      .join("");
    assert.equal((await runProgram("git", ["update-ref", "--stdin"], { cwd: work, input })).code, 0);
    server.state(refs);
    const result = await push("--mirror", "-q");
    assert.equal(result.code, 0, result.stderr);
    const { refs: table } = await repository().refs();
    assert.equal(table.size, 1502);
    assert.equal(table.get("refs/tags/annotated" as RefName)?.peeled, first);
    const over = await server.mustGit(work, "-c", "protocol.version=0", "ls-remote", url);
    assert.match(over, new RegExp(`${first}\\trefs/tags/annotated\\^\\{\\}`));
  });

  it("threat 11: the authority at commit time decides, not the one at the beginning", async () => {
    await fresh();
    const state = server.state({ "refs/heads/main": first });
    const before = await server.filesOf(identifier);
    let asked = 0;
    server.onAuthority = () => {
      asked += 1;
      if (asked === 2) server.candidates = server.candidates.filter(({ id }) => id !== state.id);
    };
    const result = await push("main");
    assert.match(result.stderr, /remote rejected\] main -> main \(no state/);
    await untouched(before);
  });

  it("threat 11: a state that went after the second decision, before anything was promised, authorises nothing", async () => {
    await fresh();
    server.state({ "refs/heads/main": first });
    const before = await server.filesOf(identifier);
    server.onWrite = () => {
      server.candidates = [];
      return false;
    };
    const result = await push("main");
    assert.match(result.stderr, /remote rejected\] main -> main \(no state/);
    await untouched(before);
  });

  it("threat 11: a push whose states change faster than it can be written is refused, never called ok", async () => {
    await fresh();
    const before = await server.filesOf(identifier);
    server.onAuthority = () => void server.state({ "refs/heads/main": first });
    const result = await push("main");
    assert.match(result.stderr, /remote rejected\] main -> main \(.*try again/);
    await untouched(before);
  });

  it("threat 16: an older state than the mark authorises nothing", async () => {
    await fresh();
    server.state({ "refs/heads/main": first });
    server.mark = { id: hexId(), created_at: 1_999_999_999 };
    const before = await server.filesOf(identifier);
    const result = await push("main");
    assert.match(
      result.stderr,
      /\(a newer state than the one that lists refs\/heads\/main at [0-9a-f]{8} was used here since/,
    );
    await untouched(before);
  });

  it("in strict mode must bring the whole state", async () => {
    await fresh();
    server.strict = true;
    server.state({ "refs/heads/main": first, "refs/heads/dev": first });
    const part = await push("main");
    assert.match(
      part.stderr,
      /this server takes only pushes of the whole state: push refs\/heads\/dev as the state lists it/,
    );
    const whole = await push("main", "main:dev");
    assert.equal(whole.code, 0, whole.stderr);
  });

  it("to a read-only repository is refused with the reason", async () => {
    await fresh();
    server.state({ "refs/heads/main": first });
    server.readOnlyReason = "this repository is an archive: push to the servers its announcement names";
    const result = await push("main");
    assert.match(result.stderr, /remote: this repository is an archive/);
  });

  it("of names this server does not keep is refused", async () => {
    await fresh();
    for (const ref of ["refs/notes/commits", "refs/heads/HEAD", `refs/heads/${"a".repeat(40)}`, "refs/nostr/abc"]) {
      const result = await push(`main:${ref}`);
      assert.match(result.stderr, /is not a name this server keeps/, ref);
    }
  });

  it("of a branch that is no commit is refused", async () => {
    await fresh();
    const blob = await server.mustGit(work, "rev-parse", "HEAD:one");
    server.state({ "refs/heads/main": blob, "refs/tags/blob": blob });
    const before = await server.filesOf(identifier);
    const branch = await push(`${blob}:refs/heads/main`);
    assert.match(branch.stderr, /a branch must be a commit, [0-9a-f]{8} is none/);
    await untouched(before);
    const tag = await push(`${blob}:refs/tags/blob`);
    assert.equal(tag.code, 0, tag.stderr);
  });

  it("threat 10: a known event's ref takes only its commit, for its repository, and is not deleted", async () => {
    await fresh();
    const id = hexId();
    server.nostrEvents.set(id, { known: true, tip: first, addressesThisRepository: true });
    const second = await server.commit(work, "two", "2");
    const wrong = await push(`${second}:refs/nostr/${id}`);
    assert.match(wrong.stderr, /the c tag of that event names [0-9a-f]{8}, not [0-9a-f]{8}: push that commit/);
    const right = await push(`${first}:refs/nostr/${id}`);
    assert.equal(right.code, 0, right.stderr);
    assert.equal(await server.refsOf(identifier), `refs/nostr/${id} ${first}`);
    const deleted = await push(`:refs/nostr/${id}`);
    assert.match(deleted.stderr, /cannot be deleted by a push: it belongs to its event/);
    const other = hexId();
    server.nostrEvents.set(other, { known: true, tip: first, addressesThisRepository: false });
    const elsewhere = await push(`${first}:refs/nostr/${other}`);
    assert.match(elsewhere.stderr, /that event is for another repository/);
  });

  it("threat 10: data for an unknown event is kept apart, counts for nothing else, and can be claimed or dropped", async () => {
    await fresh();
    const id = hexId();
    const placed = await push(`main:refs/nostr/${id}`);
    assert.equal(placed.code, 0, placed.stderr);
    assert.equal(await server.refsOf(identifier), "", "not a ref yet, so not advertised");
    assert.deepEqual(await repository().missingObjects([first]), new Set([first]));
    const fetched = await server.git(server.folder, "ls-remote", url);
    assert.equal(fetched.stdout, "");
    const second = await server.commit(work, "two", "2");
    await server.mustGit(work, "push", "-q", url, `main:refs/nostr/${id}`);
    const [data] = await repository().unclaimed();
    assert.equal(data?.tip, second, "who pushes last holds it");
    assert.ok(await repository().claim(id, second));
    await repository().dropUnclaimed(id);
    assert.deepEqual(await repository().missingObjects([first, second]), new Set());
    const gone = hexId();
    const before = await server.filesOf(identifier);
    await server.mustGit(work, "push", "-q", url, `main:refs/nostr/${gone}`);
    await repository().dropUnclaimed(gone);
    assert.deepEqual(await server.filesOf(identifier), before);
    server.unclaimed = { ok: false, reason: "too many pushes for unknown events from your address: wait an hour" };
    const flooded = await push(`main:refs/nostr/${hexId()}`);
    assert.match(flooded.stderr, /too many pushes for unknown events/);
    server.unclaimed = { ok: true, maxBytes: 1 << 20 };
    await server.commit(work, "big", randomBytes(2 << 20));
    const large = await push(`main:refs/nostr/${hexId()}`);
    assert.match(large.stderr, /a push may have 1 MiB at most/);
    assert.match(large.stderr, /publish the event first/);
  });

  it("for unknown events that cannot be kept to the end leaves nothing of any of them, and what was kept before", async (context) => {
    await fresh();
    const known = hexId();
    await server.mustGit(work, "push", "-q", url, `main:refs/nostr/${known}`);
    const before = await server.filesOf(identifier);
    const ids = [hexId(), hexId()];
    const keep = GitRepository.prototype.keepUnclaimed;
    let kept = 0;
    context.mock.method(
      GitRepository.prototype,
      "keepUnclaimed",
      async function (this: GitRepository, ...args: Parameters<typeof keep>) {
        const data = await keep.apply(this, args);
        if (++kept === 3) throw new Error("planted: no space left on device");
        return data;
      },
    );
    const refused = await push(...[known, ...ids].map((id) => `main:refs/nostr/${id}`));
    assert.match(refused.stderr, /could not finish the push: try again/);
    assert.match(String(server.operations.pop()?.fault), /planted/);
    assert.deepEqual(await server.filesOf(identifier), before);
  });

  it("that lacks objects is refused although its tip is there", async () => {
    await fresh();
    await server.commit(work, "two", "2");
    const third = await server.commit(work, "three", "3");
    const shallow = server.folderFor(`${identifier}-shallow`);
    await server.mustGit(server.folder, "clone", "-q", "--depth=1", `file://${work}`, shallow);
    server.state({ "refs/heads/main": third });
    const before = await server.filesOf(identifier);
    const result = await server.git(shallow, "push", url, "main");
    assert.notEqual(result.code, 0);
    assert.match(result.stderr, /the push lacks object [0-9a-f]{8}: push from a complete clone/);
    await untouched(before);
  });

  it("over a quota or a budget is refused with the number", async () => {
    await fresh();
    const big = await server.commit(work, "big", randomBytes(2 << 20));
    server.state({ "refs/heads/main": big });
    server.quota = { maxBytes: 1 << 20, reason: "the owner has used up 20 GiB here" };
    const before = await server.filesOf(identifier);
    const result = await push("main");
    assert.match(
      result.stderr,
      /a push may have 1 MiB at most: push in smaller steps \(the owner has used up 20 GiB here\)/,
    );
    await untouched(before);
  });

  it("with equal values reports ok, moves nothing and starts nothing (threat 16)", async () => {
    await fresh();
    server.state({ "refs/heads/main": first });
    await server.mustGit(work, "push", "-q", url, "main");
    server.state({ "refs/heads/main": first, "refs/heads/next": "1".repeat(40) });
    server.released.length = 0;
    server.written.length = 0;
    const line = `${first} ${first} refs/heads/main\0 report-status\n`;
    const pkt = `${(line.length + 4).toString(16).padStart(4, "0")}${line}0000`;
    const empty = Buffer.concat([
      Buffer.from(pkt),
      Buffer.from("5041434b0000000200000000029d08823bd8a8eab510ad6ac75c823cfd3ed31e", "hex"),
    ]);
    const response = await fetch(`${url}/git-receive-pack`, { method: "POST", body: empty });
    assert.equal(response.status, 200);
    assert.equal(await response.text(), "000eunpack ok\n0017ok refs/heads/main\n0000");
    assert.equal(server.released.length + server.written.length, 0);
  });
});
