// Runs the built program as a child process, with an environment that holds nothing of ours. Not through bin/holdfast:
// that one compiles first when a source is newer, and says so.

import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export const program = fileURLToPath(new URL("../src/main.js", import.meta.url));

export function cleanEnvironment(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  return { PATH: process.env.PATH ?? "", HOME: "/nonexistent", ...more };
}

/** What it said, when it is over. */
export function endOf(child: ChildProcess): Promise<Ended> {
  const read = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (text: string) => {
      read[name] += text;
    });
  }
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, ...read }));
  });
}

export function holdfast(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  cwd: string = process.cwd(),
): Promise<Ended> {
  const env = cleanEnvironment(environment);
  return endOf(spawn(process.execPath, [program, ...args], { cwd, env, stdio: ["ignore", "pipe", "pipe"] }));
}
