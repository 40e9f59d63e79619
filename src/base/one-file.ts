// A server as people start it is one file (scripts/bundle.mjs). What it must know of that: stacks name places in that
// file, and a table beside it says which lines of the sources those were. Run file by file, as tests do, nothing changes.

import { readFileSync } from "node:fs";
import { basename } from "node:path";

/** Set by the bundler: where the file is. */
declare const holdfastOneFile: string | undefined;
/** Set by scripts/start-one-file.cjs. */
declare const holdfastKeepCompiled: (() => void) | undefined;

const oneFile = typeof holdfastOneFile === "undefined" ? undefined : holdfastOneFile;

/** What is imported late is in this file already: loading it opens no file, so it cannot fail for want of descriptors. */
export const isOneFile = oneFile !== undefined;

/** Once a server has started: the next start need not compile again what this one did. */
export function keepCompiled(): void {
  if (typeof holdfastKeepCompiled !== "undefined") holdfastKeepCompiled();
}

/** `places`: four numbers each, sorted by the first two: a line and column of the file, the source's index, the line there. */
export interface LineTable {
  readonly sources: readonly string[];
  readonly places: readonly number[];
}

/** `src/git/run.ts:12`, or undefined where the place is the bundler's own. */
export function sourceLine({ sources, places }: LineTable, line: number, column: number): string | undefined {
  let [low, high] = [0, places.length / 4];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const [itsLine = 0, itsColumn = 0] = places.slice(middle * 4, middle * 4 + 2);
    if (itsLine < line || (itsLine === line && itsColumn <= column)) low = middle + 1;
    else high = middle;
  }
  if (low === 0) return undefined;
  const [source = 0, there = 0] = places.slice(low * 4 - 2, low * 4);
  return `${sources[source]}:${there}`;
}

let table: LineTable | undefined;

/** Read when the first stack is told: most servers never have one. */
function lineTable(file: string): LineTable | undefined {
  try {
    table ??= JSON.parse(readFileSync(file.replace(/\.script$/, ".lines.json"), "utf8")) as LineTable;
  } catch {
    // Without descriptors or without the table the stack is told as it is.
  }
  return table;
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const namedPlaces =
  oneFile === undefined ? undefined : new RegExp(`[^\\s(]*${escaped(basename(oneFile))}:(\\d+):(\\d+)`, "g");

export function sourceStack(stack: string): string {
  if (oneFile === undefined || namedPlaces === undefined) return stack;
  return stack.replace(namedPlaces, (place, line: string, column: string) => {
    const found = lineTable(oneFile);
    return (found && sourceLine(found, Number(line), Number(column))) ?? place;
  });
}
