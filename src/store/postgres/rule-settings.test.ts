import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "../../config/load.js";
import { createMemoryStore } from "../memory/memory-store.js";
import type { Store } from "../port.js";
import { forgetSettings, nodesWithSettings, ruleSettings, settingsApart, watchRuleSettings } from "./rule-settings.js";

function configOf(environment: Record<string, string>) {
  const loaded = loadConfig({
    flags: {},
    environment: { NGIT_DOMAIN: "git.example.com", ...environment },
    configPath: undefined,
    readFile: () => "",
    surroundings: { logIsTerminal: false, cores: 1 },
  });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.config;
}

const cases: readonly (readonly [string, Record<string, string>, string[]])[] = [
  ["nothing differs", {}, []],
  ["another limit for events", { NGIT_MAX_EVENT_BYTES: "8192" }, ["NGIT_MAX_EVENT_BYTES"]],
  [
    "another domain and another list",
    { NGIT_DOMAIN: "x.example.com", NGIT_ARCHIVE_ALL: "true" },
    ["NGIT_DOMAIN", "NGIT_RELAY_NAME", "NGIT_RELAY_DESCRIPTION", "NGIT_ARCHIVE_ALL"],
  ],
  [
    "what is each machine's own",
    { NGIT_BIND_ADDRESS: "127.0.0.1:9", NGIT_LOG_LEVEL: "warn", NGIT_DATA_PATH: "/x" },
    [],
  ],
];

test("settings that rule what is accepted are compared, and those of the machine are not", () => {
  const mine = ruleSettings(configOf({}));
  for (const [what, environment, apart] of cases) {
    assert.deepEqual(settingsApart(mine, ruleSettings(configOf(environment))).sort(), [...apart].sort(), what);
  }
  assert.deepEqual(settingsApart(mine, {}), [], "a program that does not know them");
  assert.ok(!JSON.stringify(mine).includes("example.com"), "digests alone leave the machine");
});

test("a machine warns once about what is set otherwise on another, again when it changes, and takes its row along", async () => {
  const memory = createMemoryStore();
  const followers = new Set<(commit: never) => Promise<void> | undefined>();
  memory.onCommit((commit) => {
    for (const follow of followers) void follow({ ...commit, isForeign: true } as never);
  });
  const store: Store = Object.assign(memory, {
    onForeignCommit: (follow: (commit: never) => Promise<void> | undefined) => {
      followers.add(follow);
      return () => followers.delete(follow);
    },
  });
  const warned: string[] = [];
  const live = (environment: Record<string, string>) => ({
    current: configOf(environment),
    onChange: () => () => undefined,
  });
  const watch = (node: string, environment: Record<string, string>) =>
    watchRuleSettings({
      ...{ store, node, name: `machine ${node}`, live: live(environment) },
      warn: (sentence) => void warned.push(`${node}: ${sentence}`),
      failed: (error) => assert.fail(String(error)),
    });
  const a = await watch("a", {});
  const b = await watch("b", { NGIT_MAX_EVENT_BYTES: "8192" });
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(warned.map((line) => line.replace(/: not set.* on machine/, " on machine").split(";")[0]).sort(), [
    "a: NGIT_MAX_EVENT_BYTES on machine b",
    "b: NGIT_MAX_EVENT_BYTES on machine a",
  ]);
  await forgetSettings(store, ["b"]);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(
    await nodesWithSettings(store),
    ["a", "b"],
    "a machine that was forgotten and lives tells them again",
  );
  await b.close();
  assert.equal(await store.row("meta", "node-settings:b"), undefined);
  await a.close();
});
