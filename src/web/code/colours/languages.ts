// The languages that are told apart, by the names of their files: the most used ones. A language is a line or two of facts
// (grammar.ts).

import { type Grammar, words } from "./grammar.js";
import { cFamily, type LanguageFacts } from "./languages-c.js";
import { dataAndMarkup } from "./languages-data.js";
import { scripts } from "./languages-others.js";

const all: Readonly<Record<string, LanguageFacts>> = { ...cFamily, ...scripts, ...dataAndMarkup };

const bySuffix = new Map<string, string>();
const byName = new Map<string, string>();
for (const [language, { files }] of Object.entries(all)) {
  for (const file of words(files)) {
    if (file.startsWith(".")) bySuffix.set(file.slice(1), language);
    else byName.set(file.toLowerCase(), language);
  }
}

export const languageCount = Object.keys(all).length;

/** By the file's name; `firstLine` says it for programs without a suffix. */
export function languageOf(fileName: string, firstLine = ""): string | undefined {
  const name = fileName.slice(-100).toLowerCase();
  const whole = byName.get(name) ?? byName.get(name.split(".")[0] ?? "");
  const suffix = name.includes(".") ? bySuffix.get(name.slice(name.lastIndexOf(".") + 1)) : undefined;
  if (suffix ?? whole) return suffix ?? whole;
  return firstLine.startsWith("#!") ? byName.get(programOf(firstLine.slice(2, 200))) : undefined;
}

/** `/usr/bin/env -S python3 -u` is python. */
function programOf(line: string): string {
  const [first = "", ...others] = (line.split("\n")[0] ?? "").trim().split(/\s+/);
  const name = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
  const program = name(first) === "env" ? others.find((word) => !word.startsWith("-")) : first;
  return name(program ?? "").replace(/[\d.]+$/, "");
}

/** By the word after the fence of a Markdown block. */
export const languageNamed = (word: string): string | undefined => {
  const name = word.slice(0, 30).toLowerCase();
  return Object.hasOwn(all, name) ? name : (bySuffix.get(name) ?? byName.get(name));
};

export const grammarOf = (language: string): Grammar | undefined =>
  Object.hasOwn(all, language) ? all[language]?.grammar : undefined;
