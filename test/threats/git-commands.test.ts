// threats.md rows 1, 2, 5 and 13: bytes that are made to mean one thing to the gatekeeper and another to git.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import { packOf } from "../harness/git-packs.js";
import { Person } from "../harness/grasp-people.js";
import type { Story, WorkingCopy } from "../harness/grasp-story.js";
import { type Answer, ask, exchange, pkt } from "../harness/raw-http.js";
import { type ChildServer, until } from "../harness/server.js";
import { beginWatched, traceless, waitingIn } from "../harness/traceless.js";

const zero = "0".repeat(40);

describe("what is authorised is what git executes", () => {
  let server: ChildServer;
  let story: Story;
  let work: WorkingCopy;
  let url: string;
  let old: string;
  let tip: string;
  let pack: Buffer;
  const alice = new Person();
  before(async () => {
    ({ server, story } = await beginWatched());
    ({ work, url, tip: old } = await story.hosted(alice, "target"));
    tip = await work.commit("two");
    await story.state(alice, "target", { "refs/heads/main": tip, "refs/heads/two": tip });
    pack = await packOf(work.folder, [tip], [old]);
  });
  after(() => story.end());

  const push = (body: Buffer, headers: Record<string, string> = {}): Promise<Answer> =>
    ask(`${url}/git-receive-pack`, { method: "POST", body, headers });
  const all = (...parts: (Buffer | string)[]): Buffer => Buffer.concat(parts.map((part) => Buffer.from(part)));
  const cap = "\0report-status";
  const moves = (ref: string): string => `${zero} ${tip} ${ref}`;
  const isRefused = ({ status, text }: Answer, what: string): void => {
    assert.ok(status === 400 || (status === 200 && /unpack (?!ok)/.test(text)), `${what}: ${status} ${text}`);
    assert.doesNotMatch(text, /[0-9a-f]{4}ok /, what);
  };

  it("threat 2: push certificates, in every place and shape, are refused", async () => {
    const certificate = [
      pkt("certificate version 0.1\n"),
      pkt("pusher Eve <eve@example.com> 1700000000 +0000\n"),
      pkt("nonce \n"),
      pkt("\n"),
      pkt(`${moves("refs/heads/two")}\n`),
      pkt("-----BEGIN PGP SIGNATURE-----\n"),
      pkt("-----END PGP SIGNATURE-----\n"),
      pkt("push-cert-end\n"),
    ];
    const good = pkt(moves("refs/heads/main") + cap);
    const shapes: Record<string, Buffer> = {
      alone: all(pkt(`push-cert${cap}\n`), ...certificate, "0000", pack),
      "without its newline": all(pkt(`push-cert${cap}`), ...certificate, "0000", pack),
      "after an honest command": all(good, pkt("push-cert\0x\n"), ...certificate, "0000", pack),
      "after an honest command, without a NUL": all(good, pkt("push-cert\n"), ...certificate, "0000", pack),
      "before an honest command": all(pkt(`push-cert${cap}\n`), ...certificate, good, "0000", pack),
      "without a closing line": all(pkt(`push-cert${cap}\n`), ...certificate.slice(0, -1), "0000", pack),
      "behind shallow lines": all(pkt(`shallow ${old}`), pkt(`push-cert${cap}\n`), ...certificate, "0000", pack),
    };
    await traceless(server, async () => {
      for (const [what, body] of Object.entries(shapes)) {
        isRefused(await push(body), what);
        isRefused(await push(gzipSync(body), { "Content-Encoding": "gzip" }), `${what}, zipped`);
      }
    });
  });

  it("threat 2: zero commands, duplicates, unknown lines, damaged frames and 5,000 commands are refused", async () => {
    const good = moves("refs/heads/main");
    const shapes: Record<string, Buffer> = {
      "zero commands and a pack": all(pkt(`shallow ${old}`), "0000", pack),
      "an empty line": all("0004", "0000", pack),
      "a duplicate": all(pkt(good + cap), pkt(good), "0000", pack),
      "a duplicate with another value": all(pkt(good + cap), pkt(`${zero} ${old} refs/heads/main`), "0000", pack),
      "a duplicate that deletes": all(pkt(good + cap), pkt(`${tip} ${zero} refs/heads/main`), "0000", pack),
      "a delimiter": all(pkt(good + cap), "0001", pkt(moves("refs/heads/two")), "0000", pack),
      "a response end": all(pkt(good + cap), "0002", pack),
      "a second NUL line": all(pkt(good + cap), pkt(moves("refs/heads/two") + cap), "0000", pack),
      "a push option": all(pkt(good + cap), pkt("option ci.skip"), "0000", pack),
      "two commands in one line": all(pkt(`${good}\n${moves("refs/heads/two")}${cap}`), "0000", pack),
      "a carriage return": all(pkt(`${good}\r${cap}`), "0000", pack),
      "a trailing blank": all(pkt(`${good} ${cap}`), "0000", pack),
      "a tab for a blank": all(pkt(`${zero}\t${tip}\trefs/heads/main${cap}`), "0000", pack),
      "upper-case ids": all(pkt(`${zero} ${"ABCDEF".padEnd(40, "A")} refs/heads/main${cap}`), "0000", pack),
      "an id of 39 digits": all(pkt(`${zero} ${tip.slice(1)} refs/heads/main${cap}`), "0000", pack),
      "ids of unequal length": all(pkt(`${zero} ${"1".repeat(64)} refs/heads/main${cap}`), "0000", pack),
      "a refspec": all(pkt(`${zero} ${tip} +refs/heads/two:refs/heads/main${cap}`), "0000", pack),
      "an option for a name": all(pkt(`${zero} ${tip} --upload-pack=x${cap}`), "0000", pack),
      "a symbolic ref": all(pkt(`${zero} ${tip} HEAD${cap}`), "0000", pack),
      "a path upwards": all(pkt(`${zero} ${tip} refs/heads/../../config${cap}`), "0000", pack),
      "bytes that are not UTF-8": all(
        pkt(Buffer.concat([Buffer.from(`${zero} ${tip} refs/heads/`), Buffer.from([0xc0, 0xaf]), Buffer.from(cap)])),
        "0000",
        pack,
      ),
      "a length in upper case beyond the end": all("FFFF", good),
      "a length that is none": all("zzzz", good),
      "a negative length": all("-001", good),
      "a length below four": all("0003", good),
      "a cut line": all("00ff", good),
    };
    const refs = Array.from({ length: 5_000 }, (_, index) => pkt(moves(`refs/heads/m${index}`) + (index ? "" : cap)));
    shapes["5,000 commands"] = all(...refs, "0000", pack);
    shapes["a list over 1 MiB that never ends"] = all(
      pkt(good + cap),
      ...Array(9).fill(pkt(`shallow ${old}`.padEnd(60_000))),
    );
    await traceless(server, async () => {
      for (const [what, body] of Object.entries(shapes)) isRefused(await push(body), what);
    });
  });

  it("threat 2: what comes after the flush is a pack or nothing, never a second list of commands", async () => {
    const one = pkt(moves("refs/heads/main") + cap);
    const two = pkt(moves("refs/heads/two"));
    await traceless(server, async () => {
      isRefused(await push(all(one, "0000", two, "0000", pack)), "a second list");
      isRefused(await push(all(one, "0000", "0000", pack)), "a second flush");
      isRefused(await push(all(one, "0000", pack.subarray(0, 30))), "a cut pack");
      // A probe is answered before anything behind it is looked at.
      const probed = await push(all("0000", one, "0000", pack));
      assert.equal(probed.text, "");
    });
    assert.deepEqual(await story.advertised(alice, "target"), { HEAD: old, "refs/heads/main": old });
  });

  it("threat 5: CR, LF, NUL and control bytes are refused in URLs, refs and identifiers, and echoed nowhere", async () => {
    const controls = ["\0", "\n", "\r", "\r\n", "\x1b", "\x07", "\x7f", "\u0085", "\u2028"];
    const mark = "XSPLITX";
    const heads: string[] = [];
    await traceless(server, async () => {
      for (const control of controls) {
        const poison = `a${control}Set-Cookie: ${mark}`;
        // Percent-encoded in the path and the query; git's own names must not be able to hold them.
        const encoded = encodeURIComponent(poison);
        for (const path of [
          `/${alice.npub}/${encoded}.git/info/refs?service=git-upload-pack`,
          `/${alice.npub}/target.git/info/refs?service=git-upload-pack${encoded}`,
          `/${alice.npub}/target.git/${encoded}`,
          `/${encoded}`,
        ]) {
          const { status, headers } = await ask(server.origin + path);
          assert.ok(status === 404 || status === 400, `${status} for ${path}`);
          heads.push(JSON.stringify(headers));
        }
        const answer = await push(
          all(pkt(`${zero} ${tip} refs/heads/${poison}\0report-status side-band-64k`), "0000", pack),
        );
        // A NUL ends the name, and what follows are capabilities: none that asks for a report.
        if (control === "\0") assert.equal(answer.text, "");
        else isRefused(answer, JSON.stringify(control));
        assert.ok(!answer.text.includes(mark), "the name is not echoed");
        // As an identifier and as a clone URL: an announcement may carry them, no path or URL is made of them.
        const named = await story.publish(story.announcement(alice, poison));
        const cloned = await story.publish(
          alice.sign(30617, [
            ["d", "poisoned"],
            ["clone", `${story.url(alice, "poisoned")}${control}${mark}`],
            ["relays", `ws://${server.domain}`],
          ]),
        );
        // Beyond ASCII a URL parser encodes them; there they are letters of a path like any other.
        const isEncoded = control > "\x7f";
        assert.equal(cloned.ok, isEncoded, `a clone URL with ${JSON.stringify(control)}: ${cloned.message}`);
        assert.ok(
          ![named.message, cloned.message].some((text) => /[\x00-\x1f\x7f]/.test(text)),
          "no control byte in OK",
        );
        if (named.ok) await story.accepted(alice.sign(5, [["a", alice.coordinate(poison)]]));
        if (cloned.ok) await story.accepted(alice.sign(5, [["a", alice.coordinate("poisoned")]]));
      }
      // The same bytes raw: the parser of HTTP is the first gate.
      for (const control of ["\0", "\r", "\x0b", "\x7f"]) {
        const line = `GET /${alice.npub}/a${control}b.git/info/refs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
        assert.match(await exchange(server.origin, line), /^HTTP\/1\.1 40[04] /);
        const header = `GET / HTTP/1.1\r\nHost: x\r\nX-Odd: a${control}b${mark}\r\nConnection: close\r\n\r\n`;
        const answer = await exchange(server.origin, header);
        assert.ok(!answer.includes(mark));
      }
      const smuggled = `POST /${alice.npub}/target.git/git-receive-pack HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /${mark} HTTP/1.1\r\n\r\n`;
      const answer = await exchange(server.origin, smuggled);
      assert.match(answer, /^HTTP\/1\.1 400 /);
      assert.equal(answer.match(/HTTP\/1\.1/g)?.length, 1, "one request, one answer");
    });
    assert.ok(heads.every((text) => !text.includes(mark)));
    assert.doesNotMatch(server.log(), /[\x00-\x09\x0b-\x1f\x7f]/, "no control byte but the line's end in the log");
  });

  it("threat 13: an odd Git-Protocol header, and headers that look like environment, are dropped", async () => {
    const proof = join(server.folder, "trace");
    const values = [
      `version=2\tGIT_TRACE=${proof}`,
      `version=2:GIT_TRACE=${proof}`,
      `version=2 GIT_TRACE=${proof}`,
      "version=3",
      "version=22",
      "key=1:version=2",
      "version=2,version=2",
      "VERSION=2",
      "x".repeat(8_000),
    ];
    const body = all(pkt("command=fetch"), "0001", pkt(`want ${old}\n`), pkt("done\n"), "0000");
    await traceless(server, async () => {
      for (const value of values) {
        const headers = { "Git-Protocol": value, GIT_TRACE: proof, "Git-Trace": proof, PATH: server.folder };
        const shown = await ask(`${url}/info/refs?service=git-upload-pack`, { headers });
        assert.equal(shown.status, 200);
        assert.ok(shown.text.startsWith("001e# service="), "as without the header: protocol v0");
        const fetched = await ask(`${url}/git-upload-pack`, { method: "POST", body, headers });
        assert.doesNotMatch(fetched.text, /packfile/, `${value} is not version 2`);
      }
      const raw = (value: string): string =>
        `GET /${alice.npub}/target.git/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: x\r\nConnection: close\r\nGit-Protocol: ${value}\r\n\r\n`;
      assert.match(await exchange(server.origin, raw(`version=2\nGIT_TRACE=${proof}`)), /^HTTP\/1\.1 400 /);
      // A folded or repeated header is not what the pattern asks for.
      for (const value of [`version=2\r\n GIT_TRACE=${proof}`, `version=2\r\nGit-Protocol: version=1`]) {
        const answer = await exchange(server.origin, raw(value));
        assert.ok(/^HTTP\/1\.1 400 /.test(answer) || answer.includes("# service="), answer.slice(0, 200));
      }
    });
    assert.equal(existsSync(proof), false);
  });

  // The last: what waits here has a second.
  it("threat 1: ids shaped like refspecs or options reach no git, from states and from pull requests", async () => {
    const planted = join(server.folder, "planted");
    const values = [
      "+refs/heads/x:refs/heads/main",
      `--upload-pack=touch ${planted}`,
      `--output=${planted}`,
      `${old}^`,
      `${old}\n${old}`,
      `:${old}`,
      "HEAD",
      "@{-1}",
      old.toUpperCase(),
      old.slice(1),
      "",
      "1".repeat(64),
    ];
    const { tip: held } = await story.hosted(alice, "ids");
    const saidBefore = server.log().length;
    const settings = { NGIT_GIT_HUNT_DIRECT_DELAY_MS: "0", NGIT_LOG_LEVEL: "debug" };
    // Not before: its own announcement would be over before a slow machine's push.
    await server.change({ ...settings, NGIT_PURGATORY_EXPIRY_SECS: "1" });
    const isOver = async (): Promise<boolean> => Object.values(await waitingIn(server)).every((count) => count === "0");
    // What waited for the tests before.
    await story.accepted(alice.sign(5, [["a", `30618:${alice.pubkey}:target`]]));
    assert.ok(await until(isOver, 120_000), JSON.stringify(await waitingIn(server)));
    const bob = new Person();
    const events = values.flatMap((value, index) => [
      alice.sign(30618, [
        ["d", "ids"],
        [`refs/heads/v${index}`, value],
        ["HEAD", "ref: refs/heads/main"],
      ]),
      bob.sign(1618, [
        ["a", alice.coordinate("ids")],
        ["c", value],
      ]),
    ]);
    await traceless(server, async () => {
      let waits = 0;
      for (const event of events) {
        const { ok, message } = await story.publish(event);
        // Either it waits and expires, or it is refused at once; never is it served.
        assert.ok(ok ? message.startsWith("purgatory:") : /^(invalid|blocked|rate-limited):/.test(message), message);
        if (ok) waits++;
      }
      assert.ok(waits >= values.length, `${waits} of ${events.length} wait`);
      assert.ok(await until(isOver, 120_000), JSON.stringify(await waitingIn(server)));
    });
    for (const event of events) assert.equal(await story.isServed(event), false, JSON.stringify(event.tags));
    assert.deepEqual(await story.advertised(alice, "ids"), { HEAD: held, "refs/heads/main": held });
    assert.equal(existsSync(planted), false);
    assert.doesNotMatch(server.log().slice(saidBefore), /"level":"(?:error|fatal)"/);
  });
});
