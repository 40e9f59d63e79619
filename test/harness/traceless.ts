// What an attack leaves behind: files (refs and objects among them), processes, sockets, waiting events and memory of a
// started server, before and after. `traceless` runs the attack and fails unless everything is as it was.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join, relative } from "node:path";
import { Story } from "./grasp-story.js";
import { growthDuring, mebibyte, statusBytes } from "./held-memory.js";
import { type Answer, ask } from "./raw-http.js";
import { type ChildServer, newFolder, type ServerOptions, startChild, until } from "./server.js";

/** A story on a real process whose every file, temporary ones included, is inside its folder. */
export async function beginWatched(
  settings: Readonly<Record<string, string>> = {},
  more: ServerOptions & { readonly program?: string; readonly args?: readonly string[] } = {},
): Promise<{ readonly server: ChildServer; readonly story: Story }> {
  const folder = more.folder ?? (await newFolder());
  mkdirSync(join(folder, "tmp"), { recursive: true });
  // What changes below the folder is the test's doing, not a repack's.
  const quiet = { TMPDIR: join(folder, "tmp"), NGIT_GIT_REPACK_QUIET_SECS: "1h" };
  const server = await startChild({ ...more, folder, settings: { ...quiet, ...settings } });
  return { server, story: await Story.on(server) };
}

/** Each entry below the folder: small files by content, large ones by size, links by where they point. */
export function filesBelow(folder: string): Record<string, string> {
  const found: Record<string, string> = {};
  const look = (path: string): void => {
    let names: string[];
    try {
      names = readdirSync(path);
    } catch {
      return;
    }
    for (const name of names) {
      const entry = join(path, name);
      const stat = lstatSync(entry, { throwIfNoEntry: false });
      if (!stat) continue;
      const shown = relative(folder, entry);
      if (stat.isDirectory()) {
        found[`${shown}/`] = "";
        look(entry);
      } else if (stat.isSymbolicLink()) found[shown] = `-> ${readlinkSync(entry)}`;
      else if (stat.isFile() && stat.size < 65_536) found[shown] = contentOf(entry);
      else found[shown] = `${stat.size} bytes`;
    }
  };
  look(folder);
  return found;
}

function contentOf(path: string): string {
  try {
    return createHash("sha256").update(readFileSync(path)).digest("hex").slice(0, 16);
  } catch {
    return "gone";
  }
}

/** Of a log at level debug: with how many URLs each attempt of that repository's hunt began. */
export const huntAttempts = (log: string, coordinate: string): number[] =>
  [...log.matchAll(new RegExp(`"job":"${coordinate}"[^\\n]*"urls":(\\d+)[^\\n]*"attempt started"`, "g"))].map(
    ([, urls]) => Number(urls),
  );

const pids = (): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

const proc = (pid: number, file: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
};

/** Each thread has the children it started: asking for them costs less than a look at every process there is. */
export function descendantsOf(pid: number): number[] {
  let threads: string[];
  try {
    threads = readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
  const children = threads.flatMap((thread) =>
    proc(pid, `task/${thread}/children`)
      .split(" ")
      .filter((text) => text !== "")
      .map(Number),
  );
  return [...children, ...children.flatMap(descendantsOf)];
}

const commandLine = (pid: number): string => proc(pid, "cmdline").replaceAll("\0", " ").trim();

/** Children of the server, and whoever else works in its data: what lost its parent is found by its arguments. */
export function processesOf(server: ChildServer): string[] {
  const below = new Set(descendantsOf(server.child.pid ?? 0));
  const data = `${server.folder}/git/`;
  return pids()
    .filter((pid) => below.has(pid) || commandLine(pid).includes(data))
    .map(commandLine)
    .filter((text) => text !== "")
    .sort();
}

/** Open descriptors of the server and its launcher, by kind: sockets, pipes, files by name. */
export function descriptorsOf(server: ChildServer): Record<string, number> {
  const found: Record<string, number> = {};
  const pid = server.child.pid ?? 0;
  for (const each of [pid, ...descendantsOf(pid)]) {
    let names: string[] = [];
    try {
      names = readdirSync(`/proc/${each}/fd`);
    } catch {
      // It ended meanwhile.
    }
    for (const name of names) {
      try {
        const kind = readlinkSync(`/proc/${each}/fd/${name}`).replace(/:\[.*/, "");
        // A shared answer is kept open for whoever asks for the same next; the cache has a bound of its own.
        if (kind.includes("/answers/")) continue;
        found[kind] = (found[kind] ?? 0) + 1;
      } catch {
        // Closed meanwhile.
      }
    }
  }
  return found;
}

const scrape = (server: ChildServer): Promise<Answer> => ask(`${server.origin}/metrics`);

/** Waiting entries, by the server's own count. */
export async function waitingIn(server: ChildServer): Promise<Record<string, string>> {
  const { text } = await scrape(server);
  return Object.fromEntries([...text.matchAll(/^ngit_purgatory_entries(\{.*\}) (\d+)$/gm)].map((m) => [m[1], m[2]]));
}

export interface Trace {
  readonly files: Record<string, string>;
  readonly processes: readonly string[];
  readonly sockets: Readonly<Record<string, number>>;
  readonly waiting: Readonly<Record<string, string>>;
}

export interface Wish {
  /** Entries of the folder that may differ: what the test itself planted or expects. */
  readonly besides?: RegExp;
  /** Events may wait: they are gone when they expire, which the test looks at itself. */
  readonly mayWait?: boolean;
  /** What the server may hold above what it held before. */
  readonly maxHeldBytes?: number;
  readonly maxGitBytes?: number;
}

export async function traceOf(server: ChildServer, { besides, mayWait }: Wish = {}): Promise<Trace> {
  const files = Object.entries(filesBelow(server.folder)).filter(
    // Not: working copies of the people in the story; the store, which tests look at by asking; the answers that equal
    // fetches share, a cache with a bound of its own.
    ([path]) => /^(git|tmp)\//.test(path) && !/^tmp\/[^/]+\/answers\//.test(path) && !besides?.test(path),
  );
  const waiting = mayWait ? {} : await waitingIn(server);
  return {
    files: Object.fromEntries(files),
    processes: processesOf(server),
    sockets: descriptorsOf(server),
    waiting,
  };
}

export interface Cost {
  /** The most one git process held. */
  gitBytes: number;
}

/** What an attack may make the server hold: a few answers of others at their largest (16 MiB each). */
const mayHoldBytes = 64 * mebibyte;
/** Garbage that V8 has yet to collect and memory of its threads: only to see that it has an end. */
const mayOwnBytes = 400 * mebibyte;

/** Runs it and proves that nothing stayed; what it cost is measured on the way. */
export async function traceless<T>(
  server: ChildServer,
  attack: (cost: Cost) => Promise<T>,
  wish: Wish = {},
): Promise<T> {
  const pid = server.child.pid ?? 0;
  // What was done before the attack must not be taken for its trace: only the launcher is left when nothing is at work.
  await until(() => descendantsOf(pid).length <= 1 && processesOf(server).length <= 1);
  const before = await traceOf(server, wish);
  const cost: Cost = { gitBytes: 0 };
  const sampling = setInterval(() => {
    for (const each of descendantsOf(pid)) {
      if (/(^|\/)git /.test(commandLine(each))) cost.gitBytes = Math.max(cost.gitBytes, statusBytes(each, "VmHWM"));
    }
  }, 50);
  const [result, growth] = await growthDuring(server.child, () => attack(cost)).finally(() => clearInterval(sampling));
  let after = before;
  const isAsBefore = async (): Promise<boolean> => {
    after = await traceOf(server, wish);
    return same(before, after);
  };
  if (!(await until(isAsBefore))) {
    assert.deepEqual(after.files, before.files, "files, refs, objects");
    assert.deepEqual(left(before.processes, after.processes), [], "processes");
    assert.deepEqual(after.waiting, before.waiting, "waiting events");
    assert.deepEqual(added(before.sockets, after.sockets), [], "sockets and other descriptors");
  }
  const { maxHeldBytes = mayHoldBytes, maxGitBytes = 512 * mebibyte } = wish;
  const shown = (bytes: number): string => `${(bytes / mebibyte).toFixed(1)} MiB`;
  const figures = `held ${shown(growth.heldBytes)} more, own ${shown(growth.ownBytes)} more, git ${shown(cost.gitBytes)}`;
  if (process.env.TRACELESS_FIGURES) process.stderr.write(`${figures}\n`);
  assert.ok(growth.heldBytes < maxHeldBytes, figures);
  assert.ok(growth.ownBytes < mayOwnBytes, figures);
  assert.ok(cost.gitBytes < maxGitBytes, figures);
  assert.equal(server.child.exitCode, null, "the server lives");
  return result;
}

/** Kinds of descriptors there are more of; fewer is no trace (a worker that was still loading has read its files). */
const added = (before: Trace["sockets"], after: Trace["sockets"]): string[] =>
  Object.entries(after).flatMap(([kind, count]) =>
    count > (before[kind] ?? 0) ? [`${kind}: ${count}, before ${before[kind] ?? 0}`] : [],
  );

/** Processes that were not there before; one that was and has ended is no trace. */
const left = (before: readonly string[], after: readonly string[]): string[] =>
  after.filter((process) => !before.includes(process));

const same = (one: Trace, other: Trace): boolean =>
  JSON.stringify([one.files, one.waiting]) === JSON.stringify([other.files, other.waiting]) &&
  left(one.processes, other.processes).length === 0 &&
  added(one.sockets, other.sockets).length === 0;
