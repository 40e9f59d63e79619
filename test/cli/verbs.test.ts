import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { holdfast, program } from "./run.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-cli-"));
after(() => rmSync(folder, { recursive: true }));

test("version, config check, show and schema answer in JSON that parses and exit 0", async () => {
  for (const args of [
    ["version"],
    ["config", "check"],
    ["config", "show"],
    ["config", "schema"],
    ["config", "example"],
  ]) {
    const ended = await holdfast([...args, "--json"]);
    assert.equal(ended.code, 0, ended.stderr);
    assert.ok(JSON.parse(ended.stdout));
    assert.equal(ended.stderr, "");
  }
});

test("--help explains the program, a verb and a verb of a group, and exits 0", async () => {
  // The texts of all of them: every-verb.test.ts.
  for (const command of ["", "serve", "events import"]) {
    const ended = await holdfast([...command.split(" ").filter(Boolean), "--help"]);
    assert.equal(ended.code, 0, command);
    assert.match(ended.stdout, /^Usage: holdfast/);
  }
});

test("wrong arguments and configuration exit 2 and say what to do", async () => {
  const cases: readonly (readonly [string[], RegExp])[] = [
    [["stauts"], /"stauts" is not a command.*Did you mean `holdfast status`/],
    [["serve", "--bind-adress", "x"], /--bind-adress: is an unknown flag\. Did you mean --bind-address\?/],
    [
      ["config", "check", "--max-limit", "none", "-x"],
      /2 faults[\s\S]* -x: is an unknown flag[\s\S]*--max-limit: must be/,
    ],
    [["config", "chekc"], /unknown command 'chekc'\. Did you mean check\? Add --help for the arguments\n$/],
    [["completion", "tcsh"], /'tcsh' is invalid .*Allowed choices are bash, zsh, fish\. Add --help/],
    [["completion"], /missing required argument 'shell'/],
    [["version", "--jsno"], /unknown option '--jsno'\. Did you mean --json\?/],
    [["events", "delete"], /say which events with --filter/],
    [["events", "scan", "--filter", "{"], /--filter must be JSON/],
    [["events", "scan", "--filter", '{"ids":["x"]}'], /ids must be/],
    [["config", "check", "--config", "/nowhere"], /--config: the file "\/nowhere" cannot be read/],
  ];
  for (const [args, wanted] of cases) {
    const ended = await holdfast(args, {}, folder);
    assert.equal(ended.code, 2, `${args.join(" ")}: ${ended.stderr}`);
    assert.match(ended.stderr, wanted);
    assert.match(ended.stderr, /^holdfast: (?!error)/);
    assert.equal(ended.stdout, "");
  }
});

test("with --json a failure is JSON on standard output", async () => {
  const ended = await holdfast(["config", "check", "--json", "--log-level", "loud"]);
  assert.equal(ended.code, 2);
  const answer = JSON.parse(ended.stdout) as { ok: boolean; problems: { key: string; fix: string }[] };
  assert.equal(answer.ok, false);
  assert.equal(answer.problems[0]?.key, "--log-level");
});

test("with --json wrong arguments are JSON on standard output too, and a verb without its command says so", async () => {
  for (const [args, wanted] of [
    [["config", "chekc"], /^unknown command 'chekc'/],
    [["version", "--nonsense"], /^unknown option '--nonsense'/],
    [["completion", "tcsh"], /Allowed choices are bash, zsh, fish/],
    [["config"], /^unknown option '--json'/],
  ] as const) {
    const ended = await holdfast([...args, "--json"]);
    assert.equal(ended.code, 2, args.join(" "));
    const { ok, error, code } = JSON.parse(ended.stdout) as Record<string, unknown>;
    assert.deepEqual([ok, code], [false, "bad-request"]);
    assert.match(String(error), wanted);
    assert.equal(ended.stderr, "");
  }
  const help = await holdfast(["config"]);
  assert.equal(help.code, 2);
  assert.match(help.stderr, /^Usage: holdfast config/);
});

test("an unknown NGIT_ variable warns and does not stop anything", async () => {
  const ended = await holdfast(["config", "check"], { NGIT_OWNER_NPUB: "x" });
  assert.equal(ended.code, 0);
  assert.match(ended.stderr, /^warning: NGIT_OWNER_NPUB: /);
});

test("settings come from the file that --config or NGIT_CONFIG names, and secrets are masked", async () => {
  const path = join(folder, "a.conf");
  writeFileSync(path, `# ours\nNGIT_RELAY_NAME="My relay"\nNGIT_RELAY_OWNER_NSEC=${"11".repeat(32)}\n`);
  const byFlag = await holdfast(["config", "show", "--changed", "--config", path]);
  assert.equal(byFlag.stdout, "file        NGIT_RELAY_OWNER_NSEC=********\nfile        NGIT_RELAY_NAME=My relay\n");
  const byVariable = await holdfast(["config", "show", "--changed"], { NGIT_CONFIG: path });
  assert.equal(byVariable.stdout, byFlag.stdout);
});

test("looking at the configuration writes nothing into the working directory", async () => {
  const empty = mkdtempSync(join(folder, "empty-"));
  await holdfast(["config", "show"], {}, empty);
  await holdfast(["status"], { NGIT_BIND_ADDRESS: "127.0.0.1:1" }, empty);
  assert.deepEqual(readdirSync(empty), []);
});

test("status asks the running server and fails when there is none", async () => {
  const none = await holdfast(["status", "--json", "--bind-address", "127.0.0.1:1"]);
  assert.equal(none.code, 1);
  assert.deepEqual((JSON.parse(none.stdout) as { running: boolean }).running, false);

  const server = createServer((request, response) => {
    const isInformation = request.headers.accept === "application/nostr+json";
    if (request.url === "/readyz") response.end('{"ready":true}');
    else if (request.url === "/metrics")
      response.end('# HELP x\nngit_events_stored_total{kind="1"} 2\nngit_events_stored_total{kind="7"} 3\n');
    else response.end(isInformation ? '{"name":"here","version":"9"}' : "page");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const json = await holdfast(["status", "--json", "--bind-address", address]);
  const text = await holdfast(["status", "--bind-address", address]);
  server.close();
  assert.equal(json.code, 0, json.stdout);
  const answer = JSON.parse(json.stdout) as {
    ready: boolean;
    information: { name: string };
    metrics: Record<string, number>;
  };
  assert.deepEqual([answer.ready, answer.information.name, answer.metrics.ngit_events_stored_total], [true, "here", 5]);
  assert.match(text.stdout, /ready {6}yes\nname {7}here/);
});

test("offline verbs refuse the memory backend", async () => {
  const ended = await holdfast(["compact"], { NGIT_DATABASE_BACKEND: "memory" }, folder);
  assert.equal(ended.code, 1);
  assert.match(ended.stderr, /memory backend keeps nothing on disk/);
});

/** What a shell offers for a typed line whose last word is not finished: `word<TAB>description` a line. */
const shells: Readonly<Record<string, (script: string, typed: readonly string[]) => readonly [string[], string]>> = {
  bash: (script, typed) => [
    ["--norc"],
    `${script}\nCOMP_WORDS=(${typed.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${typed.length - 1}; COLUMNS=200; _holdfast
printf '%s\\n' "\${COMPREPLY[@]}" | sed -E 's/ +\\((.*)\\)$/\\t\\1/'`,
  ],
  // The part that draws is the shell's own; what it is given is ours.
  zsh: (script, typed) => [
    ["-f"],
    `compdef() { : }; _describe() { print -rl -- "\${(@P)2}" | sed 's/:/\\t/'; }\n${script}
words=(${typed.map((word) => `'${word}'`).join(" ")}); CURRENT=${typed.length}; _holdfast`,
  ],
  fish: (script, typed) => [["--no-config", "-c", `${script}\ncomplete -C '${typed.join(" ")}'`], ""],
};

test("completion offers every verb and flag with a description, in each shell that is installed", async () => {
  for (const [shell, asking] of Object.entries(shells)) {
    const { stdout: script } = await holdfast(["completion", shell]);
    if (spawnSync(shell, ["-c", "true"]).error) {
      assert.match(script, /events, one JSON object a line/, shell);
      continue;
    }
    const offered = (...typed: string[]): string[] => {
      const [flags, input] = asking(script, ["holdfast", ...typed]);
      const { stdout, stderr } = spawnSync(shell, flags, { input, encoding: "utf8" });
      assert.equal(stderr, "", shell);
      return stdout.trim().split("\n");
    };
    const events = offered("events", "");
    assert.ok(events.includes("scan\tcount events by kind"), `${shell}: ${events}`);
    assert.ok(events.includes("delete\tremove events"), `${shell}: ${events}`);
    assert.equal(events.filter((line) => /^(?:serve|show)\b/.test(line)).length, 0, `${shell}: only what fits there`);
    assert.ok(offered("serve", "--log-").includes("--log-level\tHow much is logged"), `${shell}: settings are flags`);
    assert.ok(
      offered("--config", "x", "repos", "").some((line) => line.startsWith("gc\t")),
      `${shell}: after a flag`,
    );
  }
});

test("bash types a word that is the only one, without its description", async () => {
  const { stdout: script } = await holdfast(["completion", "bash"]);
  const [flags, input] = shells.bash?.(script, ["holdfast", "events", "ex"]) ?? assert.fail();
  assert.equal(spawnSync("bash", flags, { input, encoding: "utf8" }).stdout.trim(), "export");
});

test("a reader that closes the pipe early is not a fault", () => {
  const ended = spawnSync("bash", ["-c", `"${process.execPath}" ${program} config show | head -1`], {
    encoding: "utf8",
  });
  assert.equal(ended.status, 0);
  assert.equal(ended.stderr, "");
});
