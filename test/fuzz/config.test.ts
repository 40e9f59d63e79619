// Fuzz: the config loader with random flags, variables and files. It never throws; whatever it does not take, it names by
// the key the operator wrote, with a sentence and a fix, and secrets are not repeated.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { problemText } from "../../src/config/config.js";
import { type LoadResult, loadConfig } from "../../src/config/load.js";
import { allSettings } from "../../src/config/schema.js";
import { parameters, spiced } from "./runs.js";

const names = allSettings.map(({ name }) => name);
const flags = allSettings.flatMap(({ flag, aliases }) => [flag, ...aliases]);
const value = fc.oneof(
  spiced(
    [
      "0",
      "1",
      "-1",
      "true",
      "off",
      "5MiB",
      "10m",
      "1e9",
      "9".repeat(20),
      "localhost",
      ":",
      "/",
      ",",
      ";",
      " ",
      "npub1",
      "nsec1",
      "wss://x",
      "http://",
      "127.0.0.1:80",
      "::1",
      "10.0.0.0/8",
      "*",
      "%",
      "file:",
      "\0",
      "\n",
      "=",
      "#",
      '"',
      "'",
      "lmdb",
      "memory",
      "é",
    ],
    5,
  ),
  fc.integer().map(String),
  fc.string({ unit: "binary" }),
);
const oddName = spiced(["NGIT_", "DOMAIN", "_", "x", "=", " ", "__proto__", "constructor", "toString", "é"], 4);
const environment = fc.dictionary(fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...names) }, oddName), value, {
  maxKeys: 6,
});
const flagsGiven = fc.dictionary(fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...flags) }, oddName), value, {
  maxKeys: 4,
});
const fileLine = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(fc.constantFrom(...names), value).map(([name, text]) => `${name}=${text}`) },
  fc.tuple(oddName, value).map((parts) => parts.join("=")),
  fc.constantFrom("", "# comment", "  # x", "export A=b", "\ufeff"),
  value,
);
const file = fc.array(fileLine, { maxLength: 6 }).map((lines) => lines.join("\n"));

function load(given: {
  flags: Record<string, string>;
  environment: Record<string, string>;
  file: string | undefined;
}): LoadResult {
  return loadConfig({
    flags: given.flags,
    environment: given.environment,
    configPath: given.file === undefined ? undefined : "/some/file",
    readFile: () => given.file ?? "",
    surroundings: { logIsTerminal: false, cores: 2 },
  });
}

describe("fuzz: the config loader", () => {
  test("never throws, and names every key it does not take", () => {
    let refused = 0;
    fc.assert(
      fc.property(environment, flagsGiven, fc.option(file, { nil: undefined }), (variables, given, text) => {
        const result = load({ environment: variables, flags: given, file: text });
        for (const warning of result.warnings) assert.ok(warning.length > 0);
        if (result.ok) return;
        refused++;
        assert.ok(result.problems.length > 0);
        const written = new Set<string>([
          ...names,
          ...Object.keys(variables),
          ...Object.keys(given).map((flag) => `--${flag}`),
          "--config",
          "NGIT_CONFIG",
        ]);
        for (const line of (text ?? "").split(/\r?\n/))
          written.add((line.split("=")[0] ?? "").replace(/^\ufeff/, "").trim());
        for (const problem of result.problems) {
          assert.ok(
            written.has(problem.key) || /^line \d+$/.test(problem.key),
            `${problem.key} was not written by anybody`,
          );
          assert.ok(problem.message.length > 0 && problem.fix.length > 0);
          assert.ok(problemText(problem).includes(problem.key));
        }
      }),
      parameters(250),
    );
    assert.ok(refused > 0);
  });

  test("one bad value is one problem, about that key, and never repeats a secret", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...allSettings),
        value,
        fc.constantFrom("flag", "environment", "file"),
        (setting, text, origin) => {
          const result = load({
            flags: origin === "flag" ? { [setting.flag]: text } : {},
            environment: { NGIT_DOMAIN: "x.example", ...(origin === "environment" ? { [setting.name]: text } : {}) },
            file: origin === "file" ? `${setting.name}=${text.replace(/[\r\n]/g, "")}` : undefined,
          });
          if (result.ok) return;
          const key = origin === "flag" ? `--${setting.flag}` : setting.name;
          const keys = result.problems.map((problem) => problem.key);
          // A value may be good in itself and clash with another; then its own name is told, or the other's.
          assert.ok(
            keys.length > 0 && keys.every((one) => one === key || (names as readonly string[]).includes(one)),
            keys.join(),
          );
          if (!setting.secret || text.trim().length < 8) return;
          for (const problem of result.problems)
            assert.ok(!problemText(problem).includes(text.trim()), "a secret was repeated");
        },
      ),
      parameters(400),
    );
  });
});
