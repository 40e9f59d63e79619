// The tables of attacks and faults in docs/explanation/security.md: every test they name is in the file they name, and
// every row of both sides has one.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

interface Row {
  readonly section: string;
  readonly row: string;
  readonly file: string;
  /** Empty: the whole file. */
  readonly test: string;
}

const cellsOf = (line: string): string[] => line.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));

function rowsOf(page: string): Row[] {
  const rows: Row[] = [];
  let section = "";
  for (const line of page.slice(page.indexOf("## Every attack and its test")).split("\n")) {
    if (line.startsWith("### ")) section = line.slice(4);
    if (!line.startsWith("|")) continue;
    const [, row = "", , file = "", name = ""] = cellsOf(line);
    const only = /^`((?:src|test)\/[^`]+\.ts)`$/.exec(file)?.[1];
    if (section === "Faults") rows.push(...faultRows(section, row, line));
    else if (only) rows.push({ section, row, file: only, test: name });
  }
  return rows;
}

/** Several files in one cell, each followed by the names of its tests. */
function faultRows(section: string, row: string, line: string): Row[] {
  return [...line.matchAll(/`((?:src|test)\/[^`]+\.ts)`(?:: ((?:"[^"]+"(?:, )?)+))?/g)].flatMap(
    ([, file = "", names]) => {
      const tests = names === undefined ? [""] : [...names.matchAll(/"([^"]+)"/g)].map(([, name = ""]) => name);
      return tests.map((name) => ({ section, row, file, test: name }));
    },
  );
}

/** Names of tests as they stand in the source; what a template fills in is `…`. */
function testNames(source: string): Set<string> {
  const names = new Set<string>();
  for (const match of source.matchAll(/\b(?:(?:it|test|describe)\(|name:)\s*(?:"((?:[^"\\]|\\.)*)"|`([^`]*)`)/g)) {
    const [, quoted, template] = match;
    if (quoted !== undefined) names.add(JSON.parse(`"${quoted}"`) as string);
    else if (template !== undefined) names.add(template.replace(/\$\{[^}]*\}/g, "…"));
  }
  return names;
}

/** The name as it stands there, or as a text that a template puts into one. */
function hasTest(file: string, name: string): boolean {
  if (!existsSync(file)) return false;
  const source = readFileSync(file, "utf8");
  const withoutFirstWord = name.replace(/^when /, "");
  return name === "" || testNames(source).has(name) || source.includes(JSON.stringify(withoutFirstWord));
}

const rows = rowsOf(readFileSync("docs/explanation/security.md", "utf8"));

test("every test the table of attacks names is in the file it names", () => {
  assert.deepEqual(
    rows.filter((row) => !hasTest(row.file, row.test)),
    [],
  );
});

test("every one of the 55 attacks has a test", () => {
  const attacks = rows.filter(({ section }) => ["Git side", "Relay side", "Found by attack"].includes(section));
  const covered = new Set(attacks.map(({ row }) => Number(row)));
  assert.deepEqual(
    [...covered].sort((a, b) => a - b),
    Array.from({ length: 55 }, (_, index) => index + 1),
  );
});

test("every threat test of the git side is in the table", () => {
  const named = new Set(rows.map(({ test: name }) => name));
  const files = new Set(rows.filter(({ section }) => section === "Git side").map(({ file }) => file));
  for (const file of files) {
    const tests = [...testNames(readFileSync(file, "utf8"))].filter((name) => /^threat \d+: .{30}/.test(name));
    for (const name of tests) assert.ok(named.has(name) || name.length < 60, `${file}: ${name}`);
  }
});

test("every row of the tables of attacks names a file of tests", () => {
  const page = readFileSync("docs/explanation/security.md", "utf8");
  const lines = page.slice(page.indexOf("## Every attack and its test")).split("\n");
  for (const line of lines.filter((text) => /^\| \d+ \|/.test(text))) {
    assert.match(line, /`(?:src|test)\/[^`]+\.test\.ts`/);
  }
});

test("every test that says which found attack it answers is in the table, wherever it stands", () => {
  const named = new Set(rows.map(({ file, test: name }) => `${file} ${name}`));
  const files = ["src", "test"].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" }).flatMap((path) =>
      path.endsWith(".test.ts") ? [join(folder, path)] : [],
    ),
  );
  const missing = files.flatMap((file) => {
    // The name of a group is no test's.
    const source = readFileSync(file, "utf8").replaceAll(/\bdescribe\(\s*"/g, "");
    const found = [...testNames(source)].filter((name) => Number(/^threat (\d+): /.exec(name)?.[1]) >= 32);
    return found.map((name) => `${file} ${name}`).filter((test) => !named.has(test));
  });
  assert.deepEqual(missing, []);
});
