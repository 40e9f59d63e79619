// Runs a verb in this process as `main` would in one of its own: the same program and abilities, an environment that
// holds nothing of ours. run.test.ts compares it with a process.

import type { ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { runCommandLine } from "../../src/cli/run.js";
import { abilitiesOn } from "../../src/verb-abilities.js";

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export const program = fileURLToPath(new URL("../../src/main.js", import.meta.url));

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

export async function holdfast(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  cwd: string = process.cwd(),
): Promise<Ended> {
  let [stdout, stderr] = ["", ""];
  const terminal = {
    out: async (text: string) => {
      stdout += text;
    },
    error: (text: string) => {
      stderr += text;
    },
    showsProgress: false,
    columns: 100,
    async *lines() {},
  };
  const abilities = {
    ...abilitiesOn(terminal, cleanEnvironment(environment)),
    serve: () => Promise.reject(new Error("a server listens to its process's signals: start one of its own")),
  };
  const code = await inFolder(cwd, () => runCommandLine([process.execPath, program, ...args], abilities));
  return { code, stdout, stderr };
}

let running = 0;
let before = { folder: process.cwd(), umask: 0 };

/** Folder and umask belong to the whole process: verbs that run at once share them, and the last one puts them back. */
async function inFolder<T>(folder: string, run: () => Promise<T>): Promise<T> {
  if (running > 0 && folder !== process.cwd()) throw new Error("a verb in another folder must run alone");
  if (running === 0) {
    before = { folder: process.cwd(), umask: process.umask(0o077) };
    process.chdir(folder);
  }
  running += 1;
  try {
    return await run();
  } finally {
    running -= 1;
    if (running === 0) {
      process.chdir(before.folder);
      process.umask(before.umask);
    }
  }
}
