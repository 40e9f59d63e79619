// Many test files in one process: starting Node and importing a room costs more processor time than most files need for
// their tests, and neighbours import the same room.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";

/** The files in their order, `size` in each group and no group much smaller than the others. */
export function groupsOf(files, size) {
  const count = Math.ceil(files.length / size);
  const startOf = (index) => Math.round((index * files.length) / count);
  return Array.from({ length: count }, (_, index) => files.slice(startOf(index), startOf(index + 1)));
}

/** Writes a program for each group of several files, and names it; the programs are removed when this process ends. */
export function programsOf(root, groups) {
  const folder = join(root, ".cache", "tests", String(process.pid));
  mkdirSync(folder, { recursive: true });
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
  // A process that crashes is reported by the name of its program.
  const nameOf = (file) => relative(join(root, "dist"), file).slice(0, -".test.js".length).replaceAll("/", "-");
  return groups.map((files) => {
    const [first] = files;
    if (files.length === 1) return first;
    const program = join(folder, `${nameOf(first)} to ${nameOf(files.at(-1))}.mjs`);
    writeFileSync(program, programText(root, files));
    return program;
  });
}

// A file that cannot be imported fails as a test that has the file's name. No test begins before all are imported,
// because some measure the processor time that they take.
const programText = (root, files) => `import { before, test } from "node:test";
let begin;
const imported = new Promise((resolve) => {
  begin = resolve;
});
before(() => imported);
for (const [name, url] of ${JSON.stringify(files.map((file) => [relative(root, file), pathToFileURL(file).href]))}) {
  await import(url).catch((error) => void test(name, () => Promise.reject(error)));
}
begin();
`;
