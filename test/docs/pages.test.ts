// The documentation names only what exists: files, headings, settings, commands, packages.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { settingNamed } from "../../src/config/schema.js";

function pagesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return pagesIn(path);
    return entry.name.endsWith(".md") ? [path] : [];
  });
}

const pages = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "deploy/README.md", ...pagesIn("docs")];
const textOf = (page: string): string => readFileSync(page, "utf8");
/** Without what is shown as code. */
const proseOf = (page: string): string => textOf(page).replace(/^```[\s\S]*?^```$/gm, "");

/** As the usual renderers name them. */
const anchorsOf = (page: string): Set<string> =>
  new Set(
    [...proseOf(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );

for (const page of pages) {
  test(`links in ${page} lead to files and headings that exist`, () => {
    for (const [, target = ""] of proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue;
      const [path = "", anchor] = target.split("#");
      const file = path === "" ? page : join(dirname(page), path);
      assert.ok(existsSync(file), `${target}: no such file`);
      if (anchor === undefined) continue;
      assert.ok(statSync(file).isFile() && anchorsOf(file).has(anchor), `${target}: no such heading`);
    }
  });

  test(`settings in ${page} are settings the program has`, () => {
    for (const [whole, name = ""] of textOf(page).matchAll(/(NGIT_[A-Z0-9]+(?:_[A-Z0-9]+)*)(_?\*)?/g)) {
      if (whole.endsWith("*")) continue;
      // NGIT_CONFIG names the file in which settings are.
      assert.ok(name === "NGIT_CONFIG" || settingNamed(name), name);
    }
  });
}

test("every page people wrote is in the index of the documentation", () => {
  const index = textOf("docs/README.md");
  for (const page of pagesIn("docs")) {
    if (page !== "docs/README.md" && !page.startsWith("docs/reference/"))
      assert.ok(index.includes(`(${page.slice("docs/".length)})`), page);
  }
});

/** Headings of the generated reference are the commands there are. */
const commands = new Set(
  [...textOf("docs/reference/cli.md").matchAll(/^## holdfast (.+)$/gm)].map(([, command = ""]) => command),
);

/** Those that only group others; `sync` does something by itself as well. */
const groups = new Set(
  [...textOf("docs/reference/cli.md").matchAll(/^Usage: holdfast (.+) \[options\] \[command\]$/gm)].map(
    ([, command = ""]) => command,
  ),
);

test("commands the pages name are commands the program has", () => {
  let named = 0;
  for (const page of pages.filter((name) => !name.startsWith("docs/reference/"))) {
    const calls = textOf(page).matchAll(
      /(?:^|`|\$ |exec holdfast )(?:node (?:bin\/holdfast|\S*main\.js)|holdfast) ([a-z]+)(?: ([a-z]+))?/gm,
    );
    for (const [, verb = "", next = ""] of calls) {
      assert.ok(commands.has(verb), `${page}: holdfast ${verb}`);
      if (groups.has(verb)) assert.ok(commands.has(`${verb} ${next}`), `${page}: holdfast ${verb} ${next}`);
      named += 1;
    }
  }
  assert.ok(named > 20, `only ${named} were found`);
});

test("every package has its reason in docs/dependencies.md, and no reason is left over", () => {
  const { dependencies, devDependencies } = JSON.parse(textOf("package.json")) as Record<
    string,
    Record<string, string>
  >;
  const [used = "", development = ""] = textOf("docs/dependencies.md").split("For development only:");
  const listed = (text: string): string[] =>
    [...text.matchAll(/^\| (`.+?`) \|/gm)].flatMap(([, cell = ""]) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name),
    );
  assert.deepEqual(listed(used).sort(), Object.keys(dependencies ?? {}).sort());
  assert.deepEqual(listed(development).sort(), Object.keys(devDependencies ?? {}).sort());
});

test("the changelog has the version of package.json", () => {
  const { version } = JSON.parse(textOf("package.json")) as { version: string };
  assert.ok(textOf("CHANGELOG.md").includes(`## [${version}]`), version);
});

test("how to report a fault is packed, and the README leads there", () => {
  const { files } = JSON.parse(textOf("package.json")) as { files: readonly string[] };
  assert.ok(files.includes("SECURITY.md"));
  assert.ok(textOf("README.md").includes("](SECURITY.md)"));
});
