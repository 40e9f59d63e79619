import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { cliPage, managementPage, refusalsPage } from "../../src/cli/reference-pages.js";
import { exampleFile, referencePage } from "../../src/config/describe.js";
import { refusalMeanings, refusalPrefixes } from "../../src/nostr/refusals.js";

const pages: Readonly<Record<string, () => string | Promise<string>>> = {
  "docs/reference/configuration.md": referencePage,
  "docs/reference/cli.md": cliPage,
  "docs/reference/refusals.md": refusalsPage,
  "docs/reference/management.md": managementPage,
  "holdfast.example.conf": exampleFile,
};

for (const [name, page] of Object.entries(pages)) {
  test(`${name} says what the program says (else run node scripts/generate-docs.mjs)`, async () => {
    assert.equal(readFileSync(name, "utf8"), await page());
  });
}

test("every refusal has a meaning in the reference, and no meaning is left over", () => {
  assert.deepEqual(Object.keys(refusalMeanings).sort(), Object.keys(refusalPrefixes).sort());
});

test("links between the pages of the documentation lead somewhere", () => {
  const files = ["README.md", "CONTRIBUTING.md", "docs/README.md"];
  for (const file of files) {
    const text = readFileSync(file, "utf8");
    for (const [, target] of text.matchAll(/\]\((?!https?:)([^)#]+)[^)]*\)/g)) {
      const folder = file.includes("/") ? file.slice(0, file.lastIndexOf("/") + 1) : "";
      assert.doesNotThrow(
        () => readFileSync(new URL(`${folder}${target}`, `file://${process.cwd()}/`)),
        `${file} → ${target}`,
      );
    }
  }
});
