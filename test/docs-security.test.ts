// The table of attacks in docs/explanation/security.md: every test it names is in the file it names, and every row of the
// git side has one.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";

interface Row {
  readonly section: string;
  readonly row: string;
  readonly file: string;
  readonly test: string;
}

function rowsOf(page: string): Row[] {
  const rows: Row[] = [];
  let section = "";
  for (const line of page.slice(page.indexOf("## Every attack and its test")).split("\n")) {
    if (line.startsWith("### ")) section = line.slice(4);
    const cells = line.split(/(?<!\\)\|/).map((cell) => cell.trim());
    const file = /^`(test\/[^`]+\.ts|src\/[^`]+\.ts)`$/.exec(cells[3] ?? "")?.[1];
    if (file) rows.push({ section, row: cells[1] ?? "", file, test: (cells[4] ?? "").replaceAll("\\|", "|") });
  }
  return rows;
}

/** Names of tests as they stand in the source; what a template fills in is `…`. */
function testNames(source: string): Set<string> {
  const names = new Set<string>();
  for (const match of source.matchAll(/\b(?:it|test|describe)\(\s*(?:"((?:[^"\\]|\\.)*)"|`([^`]*)`)/g)) {
    const [, quoted, template] = match;
    if (quoted !== undefined) names.add(JSON.parse(`"${quoted}"`) as string);
    else if (template !== undefined) names.add(template.replace(/\$\{[^}]*\}/g, "…"));
  }
  return names;
}

const rows = rowsOf(readFileSync("docs/explanation/security.md", "utf8"));

test("every test the table of attacks names is in the file it names", () => {
  const lost = rows.filter(
    ({ file, test: name }) => !existsSync(file) || !testNames(readFileSync(file, "utf8")).has(name),
  );
  assert.deepEqual(lost, []);
});

test("every row of the git side of threats.md has a test", () => {
  const covered = new Set(rows.filter(({ section }) => section === "Git side").map(({ row }) => Number(row)));
  const expected = Array.from({ length: 20 }, (_, index) => index + 1);
  assert.deepEqual(
    [...covered].sort((a, b) => a - b),
    expected,
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
