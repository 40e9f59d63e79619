// The version after this one, as a program: a copy of the built one, in a folder of a test, that can write and read one more
// form of the log. The bytes of its format 2 are those of format 1: who reads and writes which number is what upgrades are about.

import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { newestFormat } from "../../src/store/postgres/body.js";

const root = fileURLToPath(new URL("../../..", import.meta.url));

export const nextFormat = newestFormat + 1;

/** Answers its entry point. */
export function makeNextVersion(folder: string): string {
  const compiled = join(folder, "dist", "src");
  mkdirSync(folder, { recursive: true });
  const isProgram = (path: string): boolean => !/\.map$|\.test\.js$/.test(path);
  cpSync(join(root, "dist", "src"), compiled, { recursive: true, filter: isProgram });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", version: "1000.0.0" }));
  for (const shared of ["node_modules", "src"]) symlinkSync(join(root, shared), join(folder, shared));
  const body = join(compiled, "store", "postgres", "body.js");
  const known = `const newestFormat = ${newestFormat};`;
  const isUnknown = "if (format !== 1)";
  const text = readFileSync(body, "utf8");
  for (const part of [known, isUnknown]) {
    if (text.split(part).length !== 2)
      throw new Error(`${body} does not say ${part} once: a next version is made of it`);
  }
  const raised = text.replace(known, `const newestFormat = ${nextFormat};`);
  writeFileSync(body, raised.replace(isUnknown, `if (format !== 1 && format !== ${nextFormat})`));
  return join(compiled, "main.js");
}
