// Fuzz: the head of a push, and ref names. The oracle is git itself: `git receive-pack` reads the same bytes in a scratch
// repository, and its pre-receive hook says which commands it would execute. Threat 2: what we authorise is that, exactly.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import fc from "fast-check";
import { defaultConfig } from "../../src/config/testing/default-config.js";
import { encodePkt, PktError, readAllPkts } from "../../src/git/pkt-line.js";
import { PushHeadParser, type PushHeadResult } from "../../src/git/push-commands.js";
import { isRefName, maxRefNameBytes } from "../../src/nostr/nip34.js";
import { clientEnvironment as environment } from "../harness/git-server.js";
import { parameters, spiced } from "./runs.js";

const zero = "0".repeat(40);
const emptyPack = (() => {
  const head = Buffer.from([0x50, 0x41, 0x43, 0x4b, 0, 0, 0, 2, 0, 0, 0, 0]);
  return Buffer.concat([head, createHash("sha1").update(head).digest()]);
})();

let folder = "";
let tip = "";

function git(...args: string[]): string {
  return execFileSync("git", ["-C", folder, ...args], { env: environment, encoding: "utf8" }).trim();
}

before(() => {
  folder = mkdtempSync(join(tmpdir(), "fuzz-push-"));
  execFileSync("git", ["init", "-q", "--bare", folder], { env: environment });
  tip = git("commit-tree", "-m", "one", git("hash-object", "-w", "-t", "tree", "/dev/null"));
  git("update-ref", "refs/heads/old", tip);
  git("config", "receive.advertisePushOptions", "true");
  git("config", "receive.denyDeleteCurrent", "ignore");
  git("config", "receive.certNonceSeed", "seed");
  // It keeps what it is asked and lets nothing happen, so that every case finds the same repository.
  const hook = join(folder, "hooks", "pre-receive");
  writeFileSync(hook, '#!/bin/sh\ncat > "$GIT_DIR/asked"\nexit 1\n');
  chmodSync(hook, 0o755);
});
after(() => rmSync(folder, { recursive: true, force: true }));

/** The commands git would execute for these bytes: `old new ref`, sorted. */
function whatGitExecutes(bytes: Buffer): string[] {
  const asked = join(folder, "asked");
  rmSync(asked, { force: true });
  spawnSync("git", ["receive-pack", "--stateless-rpc", folder], { env: environment, input: bytes, timeout: 60_000 });
  if (!existsSync(asked)) return [];
  return readFileSync(asked, "latin1")
    .split("\n")
    .filter((line) => line !== "")
    .sort();
}

/** In pieces, as a network brings them; the result does not depend on where they are cut. */
function parse(bytes: Buffer, cut: number): PushHeadResult {
  const parser = new PushHeadParser(defaultConfig());
  for (let at = 0; at < bytes.length; at += cut) {
    const result = parser.push(bytes.subarray(at, at + cut));
    if (result.status !== "more") return result;
  }
  return { status: "more" };
}

const commandsOf = (result: PushHeadResult): string[] =>
  result.status === "ready"
    ? result.head.commands
        .map((one) => Buffer.from(`${one.old ?? zero} ${one.new ?? zero} ${one.ref}`).toString("latin1"))
        .sort()
    : [];

const refPieces = [
  "refs/heads/",
  "refs/tags/",
  "refs/nostr/",
  "old",
  "main",
  "a",
  "/",
  ".",
  "..",
  ".lock",
  "@{",
  "@",
  "~",
  "\\",
  " ",
  "\t",
  "-",
  "é",
  "x".repeat(60),
  "HEAD",
  "*",
  "\u007f",
];
const refText = fc.oneof(
  fc.constantFrom("refs/heads/old", "refs/heads/new", "refs/tags/v1", "refs/nostr/x", "HEAD", "refs/heads/.x", ""),
  spiced(refPieces, 4).map((text) => `refs/heads/${text}`),
  spiced(refPieces, 5),
);
const oidText = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom("TIP", zero) },
  fc.constantFrom("0".repeat(64), "A".repeat(40), "0".repeat(39), "-".repeat(40), `${zero}0`, ""),
);
const separator = fc.oneof({ weight: 12, arbitrary: fc.constant(" ") }, fc.constantFrom("  ", "\t", "\n", ""));
const command = fc.tuple(oidText, separator, oidText, separator, refText).map((parts) => parts.join(""));
const capabilities = fc.oneof(
  { weight: 4, arbitrary: fc.constant("\0 report-status side-band-64k") },
  fc.constant(""),
  spiced(
    ["\0", " ", "report-status", "atomic", "push-options", "push-cert=x", "object-format=sha1", "quiet", "agent=a"],
    6,
  ),
);
const certificate = fc
  .tuple(command, refText)
  .map(([inside, pushee]) => [
    "push-cert\0report-status\n",
    "certificate version 0.1\n",
    `pushee ${pushee}\n`,
    "\n",
    `${inside}\n`,
    "push-cert-end\n",
  ]);
const goodCommand = fc
  .tuple(fc.boolean(), fc.constantFrom("refs/heads/old", "refs/heads/new", "refs/tags/v1", "refs/heads/é"))
  .map(([isDeletion, ref]) => `${isDeletion ? "TIP" : zero} ${isDeletion ? zero : "TIP"} ${ref}`);
const line = fc.oneof(
  { weight: 12, arbitrary: goodCommand.map((text) => [text]) },
  { weight: 8, arbitrary: fc.tuple(command, fc.constantFrom("", "", "\n")).map((parts) => [parts.join("")]) },
  { weight: 1, arbitrary: certificate },
  { weight: 1, arbitrary: oidText.map((oid) => [`shallow ${oid}`]) },
  { weight: 1, arbitrary: spiced([" ", "\n", "\0", "shallow", "push-cert-end", zero], 4).map((text) => [text]) },
);
interface Head {
  readonly lines: readonly (readonly string[])[];
  readonly caps: string;
  readonly end: string;
  readonly more: readonly string[];
  readonly flip: readonly (readonly [number, number])[];
}
const head: fc.Arbitrary<Head> = fc.record({
  lines: fc.array(line, { maxLength: 4 }),
  caps: capabilities,
  end: fc.constantFrom("0000", "0000", "0000", "0000", "0001", "0002", "0003", "0004", "000", ""),
  more: fc.oneof({ weight: 5, arbitrary: fc.constant([]) }, fc.array(command, { maxLength: 2 })),
  flip: fc.oneof(
    { weight: 4, arbitrary: fc.constant([]) },
    fc.array(fc.tuple(fc.nat(400), fc.nat(255)), { minLength: 1, maxLength: 2 }),
  ),
});

function bytesOf({ lines, caps, end, more, flip }: Head): Buffer {
  const pkt = (text: string): Buffer => encodePkt(Buffer.from(text.replaceAll("TIP", tip)));
  const flat = lines.flat().map((text, index) => (index === 0 ? text.replace(/\n?$/, (tail) => caps + tail) : text));
  const bytes = Buffer.concat([...flat.map(pkt), Buffer.from(end), ...more.map(pkt)]);
  for (const [at, value] of flip) if (at < bytes.length) bytes[at] = value;
  return bytes;
}

describe("fuzz: pushes and ref names against git", { timeout: 600_000 }, () => {
  test("git executes nothing of a push that the parser did not see", (t) => {
    let executed = 0;
    let read = 0;
    fc.assert(
      fc.property(head, fc.integer({ min: 1, max: 300 }), (wish, cut) => {
        const bytes = bytesOf(wish);
        const ours = parse(bytes, cut);
        assert.deepEqual(parse(bytes, bytes.length || 1).status, ours.status, "chunks change nothing");
        if (ours.status !== "ready") return;
        read++;
        const authorised = commandsOf(ours);
        assert.deepEqual(commandsOf(parse(bytes, bytes.length)), authorised);
        const all = whatGitExecutes(Buffer.concat([bytes, emptyPack]));
        executed += all.length;
        for (const one of all) assert.ok(authorised.includes(one), `git would execute ${JSON.stringify(one)}`);
      }),
      parameters(150),
    );
    t.diagnostic(`${read} were well-formed to us, and of these git would execute ${executed} commands`);
    assert.ok(executed > 0, "some are executed, or this shows nothing");
  });

  test("a well-formed push is read as git reads it", () => {
    const name = fc.constantFrom("refs/heads/old", "refs/heads/new", "refs/tags/v1", "refs/heads/a/b", "refs/heads/é");
    const wellFormed = fc
      .uniqueArray(name, { minLength: 1, maxLength: 4 })
      .chain((refs) =>
        fc.tuple(
          ...refs.map((ref) =>
            fc.boolean().map((isDeletion) => `${isDeletion ? "TIP" : zero} ${isDeletion ? zero : "TIP"} ${ref}`),
          ),
        ),
      );
    fc.assert(
      fc.property(
        wellFormed,
        fc.constantFrom("\0", "\0 ", "\0 report-status", "\0report-status atomic\n"),
        (lines, caps) => {
          const bytes = bytesOf({ lines: lines.map((text) => [text]), caps, end: "0000", more: [], flip: [] });
          const ours = parse(bytes, 7);
          assert.equal(ours.status, "ready");
          const onlyDeletions = lines.every((text) => text.includes(`${zero} refs`));
          const theirs = whatGitExecutes(onlyDeletions ? bytes : Buffer.concat([bytes, emptyPack]));
          assert.deepEqual(theirs, commandsOf(ours));
        },
      ),
      parameters(20),
    );
  });

  test("pkt-lines: what is written is read again, and any bytes are read or refused", () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 6 }),
        fc.uint8Array({ maxLength: 60 }),
        (payloads, tail) => {
          const written = Buffer.concat(payloads.map((payload) => encodePkt(Buffer.from(payload))));
          const read = [...readAllPkts(written)].map((pkt) => (pkt.type === "data" ? [...pkt.payload] : pkt.type));
          assert.deepEqual(
            read,
            payloads.map((payload) => [...payload]),
          );
          try {
            let left = tail.length;
            for (const pkt of readAllPkts(Buffer.from(tail))) left -= pkt.type === "data" ? pkt.payload.length + 4 : 4;
            assert.equal(left, 0);
          } catch (error) {
            assert.ok(error instanceof PktError);
          }
        },
      ),
      parameters(2_000),
    );
  });

  test("ref names are taken exactly where git check-ref-format takes them", () => {
    // One shell for many names; NUL cannot be an argument and is refused by the first check.
    fc.assert(
      fc.property(fc.array(refText, { minLength: 60, maxLength: 60 }), (names) => {
        const usable = names.filter((name) => !name.includes("\0"));
        const script = 'for name in "$@"; do git check-ref-format "$name" && echo 1 || echo 0; done';
        const answers = execFileSync("sh", ["-c", script, "sh", ...usable], {
          env: environment,
          encoding: "utf8",
          stdio: ["ignore", "pipe", "ignore"],
        });
        for (const [index, answer] of answers.trim().split("\n").entries()) {
          const name = usable[index] ?? "";
          const fits = name.startsWith("refs/") && Buffer.byteLength(name) <= maxRefNameBytes && name.isWellFormed();
          assert.equal(isRefName(name), fits && answer === "1", JSON.stringify(name));
        }
      }),
      parameters(5),
    );
  });
});
