// The config file's format: lines `NAME=value`, comments on lines of their own. It is what systemd's EnvironmentFile
// and `docker run --env-file` read too, so one file serves all three, and a line can be tried out in a shell as it is.

import type { Problem } from "./problem.js";

export interface FileEntry {
  readonly name: string;
  readonly value: string;
  readonly line: number;
}

export function parseConfigFile(text: string): {
  readonly entries: readonly FileEntry[];
  readonly problems: Problem[];
} {
  const entries: FileEntry[] = [];
  const problems: Problem[] = [];
  const seen = new Map<string, number>();
  for (const [index, raw] of text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .entries()) {
    const line = index + 1;
    const trimmed = raw.trim();
    if (trimmed === "" || trimmed.startsWith("#")) continue;
    const match = /^([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)$/.exec(trimmed);
    if (!match?.[1]) {
      problems.push(
        fault(`line ${line}`, "is neither NAME=value nor a comment", "Write NAME=value, or # before a comment"),
      );
      continue;
    }
    const first = seen.get(match[1]);
    if (first !== undefined) {
      problems.push(
        fault(match[1], `stands on line ${first} and again on line ${line}`, "Remove one of the two lines"),
      );
      continue;
    }
    seen.set(match[1], line);
    entries.push({ name: match[1], value: unquoted((match[2] ?? "").trim()), line });
  }
  return { entries, problems };
}

const fault = (key: string, message: string, fix: string): Problem => ({ key, origin: "file", message, fix });

/** Quotes around the whole value are for shells; nothing inside them is special. */
function unquoted(value: string): string {
  const quote = value[0];
  return value.length >= 2 && (quote === '"' || quote === "'") && value.endsWith(quote) ? value.slice(1, -1) : value;
}
