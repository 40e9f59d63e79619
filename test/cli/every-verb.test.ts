// What holds for every verb there is: it explains itself, answers as JSON, is completed, and some test runs it.

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { cliPage } from "../../src/cli/reference-pages.js";
import { verb } from "../stories/backup-house.js";

const self = "cli/every-verb.test.ts";
const folder = mkdtempSync(join(tmpdir(), "holdfast-verbs-"));
const path = (file: string): string => join(folder, file);
const page = await cliPage();

/** Help texts by command, without the commands that only group others. */
function leaves(): Map<string, string> {
  const sections = page.split("\n## holdfast").slice(1);
  const texts = sections.map((section) => [section.slice(0, section.indexOf("\n")).trim(), section] as const);
  return new Map(texts.filter(([, help]) => !/^Usage: .*\[command\]$/m.test(help)));
}

/** Sources of the black-box tests, this one left out. */
function testSources(): string {
  const sources = fileURLToPath(new URL("../../../test", import.meta.url));
  const names = (readdirSync(sources, { recursive: true }) as string[]).filter(
    (name) => name.endsWith(".ts") && name !== self,
  );
  return names.map((name) => readFileSync(join(sources, name), "utf8")).join("\n");
}

describe("every verb", { timeout: 600_000 }, () => {
  after(() => rmSync(folder, { recursive: true, force: true }));

  test("of the specification exists", () => {
    const wanted = [
      ["serve", "config check", "config show", "config schema", "doctor", "status", "purgatory list", "sync", "why"],
      ["sync verify", "relays list", "relays reconnect", "relays ignore", "relays unignore"],
      ["repos list", "repos show", "repos fsck", "repos gc", "repos delete", "repos restore", "repos import"],
      ["events import", "events export", "events scan", "events delete", "backup", "restore", "compact"],
      ["lists show", "lists add", "lists remove", "ban", "unban", "admin link", "completion", "bench", "version"],
    ].flat();
    const known = leaves();
    assert.deepEqual(
      wanted.filter((name) => !known.has(name)),
      [],
    );
  });

  test("explains itself with an example and knows --json", () => {
    for (const [name, help] of leaves()) {
      assert.match(help, /\nExamples?:\n {2}\S*\s?holdfast/, name);
      assert.ok(help.includes("--json"), name);
    }
  });

  test("is offered by completion", async () => {
    const ended = await verb(folder, "completion", "bash", "--json");
    const words = JSON.parse(ended.stdout) as Record<string, string[]>;
    for (const name of leaves().keys()) {
      const parts = name.split(" ");
      assert.ok(words[parts.slice(0, -1).join(" ")]?.includes(parts.at(-1) ?? ""), name);
    }
  });

  test("is run by another test; bench by this one", () => {
    const sources = testSources();
    const isRun = (name: string): boolean =>
      new RegExp(
        name
          .split(" ")
          .map((word) => `"${word}"`)
          .join(",\\s*"),
      ).test(sources);
    assert.deepEqual(
      [...leaves().keys()].filter((name) => name !== "bench" && !isRun(name)),
      [],
    );
  });

  test("bench measures everything beside its limit and leaves nothing behind", async () => {
    const ended = await verb(folder, "bench", "--quick", "--folder", folder, "--json");
    assert.equal(ended.code, 0, ended.stderr);
    const { measured } = JSON.parse(ended.stdout) as { measured: { what: string; value: number; limit?: object }[] };
    assert.deepEqual(
      measured.map(({ what, limit }) => [what, limit !== undefined]),
      [
        ["signatures checked", true],
        ["commits one after the other", true],
        ["events stored, 200 at once", false],
        ["events taken over WebSockets", true],
        ["a push of one commit", true],
        ["a small clone", true],
      ],
    );
    for (const { what, value } of measured) assert.ok(value > 0, what);
    assert.equal(ended.stderr, "");
    assert.deepEqual(readdirSync(folder), []);
  });

  test("that is called wrongly ends with 2 and a sentence, one that cannot do its work with 1", async () => {
    writeFileSync(path("a-file"), "");
    const cases: readonly (readonly [number, readonly string[]])[] = [
      [2, ["backup"]],
      [2, ["backup", path("x"), "--keep", "none"]],
      [2, ["restore"]],
      [2, ["repos", "import", folder]],
      [2, ["bench", "--fast"]],
      [1, ["restore", path("nowhere")]],
      [1, ["backup", path("backups")]],
      [1, ["repos", "import", path("a-file"), "--events", path("all.jsonl")]],
      [1, ["backup", path("nowhere"), "--verify-only"]],
    ];
    for (const [code, args] of cases) {
      const ended = await verb(folder, ...args);
      assert.equal(ended.code, code, `${args.join(" ")}: ${ended.stderr}`);
      assert.notEqual(ended.stderr, "");
    }
  });
});
