// The one hardened way to run git (git-http.md). Every git process of the server is started here: argv arrays only,
// a complete environment of our own, settings that no repository's config can override. Never a shell line, never a
// value from outside as an argument: ids and names go through stdin or after --end-of-options.

import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { buffer } from "node:stream/consumers";
import { isOid, type Oid } from "../nostr/nip34.js";
import type { Job, JobLimits, Launcher } from "./launcher.js";
import type { JobExit } from "./launcher-helper.js";

/** What an object check forgives: faults that old, real projects have. Only the option form of index-pack knows them. */
export const toleratedFaults = "badTimezone=ignore,missingSpaceBeforeDate=ignore,zeroPaddedFilemode=ignore";

const oldestGit = [2, 38] as const;

const settings: Readonly<Record<string, string>> = {
  "core.hooksPath": "/dev/null",
  "core.fsmonitor": "false",
  "core.logAllRefUpdates": "false",
  "core.alternateRefsCommand": "false",
  // Blobs above this are streamed, not held: 500 MiB of zeros stay at 13 MB.
  "core.bigFileThreshold": "16m",
  // Refs are durable as rows of the store: an fsync a ref would cost seconds for a thousand of them.
  "core.fsync": "objects,derived-metadata,-reference",
  "credential.helper": "",
  "gc.auto": "0",
  "maintenance.auto": "false",
  "pack.windowMemory": "100m",
  "protocol.allow": "never",
  "receive.autogc": "false",
  "safe.bareRepository": "explicit",
  // The data directory may belong to another user (a mounted volume); its config files are checked to be ours.
  "safe.directory": "*",
  "transfer.fsckObjects": "true",
  "transfer.unpackLimit": "1",
  "uploadpack.allowAnySHA1InWant": "true",
  "uploadpack.allowFilter": "true",
  "uploadpackfilter.allow": "false",
  "uploadpackfilter.blob:none.allow": "true",
  "uploadpackfilter.blob:limit.allow": "true",
  "uploadpackfilter.tree.allow": "true",
  "uploadpackfilter.tree.maxDepth": "1",
};

const settingArguments = Object.entries(settings).flatMap(([key, value]) => ["-c", `${key}=${value}`]);

export type GitEnvironment = Readonly<
  Partial<
    Record<
      | "GIT_PROTOCOL"
      | "GIT_OBJECT_DIRECTORY"
      | "GIT_ALTERNATE_OBJECT_DIRECTORIES"
      | "GIT_AUTHOR_DATE"
      | "GIT_COMMITTER_DATE",
      string
    >
  >
>;

export interface GitCall {
  /** The repository, as an absolute path made by RepositoryAddress or a scratch directory of ours. */
  readonly directory?: string;
  readonly env?: GitEnvironment;
  /** More `-c` settings, for fetching from other servers. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly limits?: Partial<JobLimits>;
  readonly signal?: AbortSignal;
  /** Whether the caller will write to git. */
  readonly stdin?: boolean;
  /** An existing file for what git says, instead of the job's stdout. */
  readonly stdoutFile?: string;
}

export interface GitResult extends JobExit {
  readonly stdout: Buffer;
}

/** Objects of a repository are not on this machine, and cannot be had now. */
export class ObjectsUnavailableError extends Error {
  override readonly name = "ObjectsUnavailableError";

  constructor(
    /** `lost`: the pack store does not have them any more, and they are looked for on other servers. */
    readonly how: "unreachable" | "lost",
    message: string,
    cause?: unknown,
  ) {
    super(message, { cause });
  }
}

/** git said no where only a broken repository, a full disk or a bug can make it do so. */
export class GitError extends Error {
  override readonly name = "GitError";
  constructor(
    what: string,
    readonly exit: JobExit,
  ) {
    super(`git ${what} failed (${exit.timedOut ? "time-out" : (exit.signal ?? exit.code)}): ${exit.stderr.trim()}`);
  }
}

export class GitTooOldError extends Error {
  override readonly name = "GitTooOldError";
}

const defaultWallClockMs = 10 * 60_000;

export class Git {
  private constructor(
    readonly launcher: Launcher,
    readonly program: string,
    readonly version: string,
    readonly onStart: ((stallMs: number) => void) | undefined,
  ) {}

  /** Finds git and refuses one whose settings would not protect us. */
  static async find(
    launcher: Launcher,
    options: { readonly path?: string; readonly onStart?: (stallMs: number) => void } = {},
  ): Promise<Git> {
    const program = findProgram(options.path ?? process.env.PATH ?? "/usr/bin:/bin");
    const advice = "Install git 2.38 or newer (Debian 12, Ubuntu 23.04, Alpine 3.17 or later have it; git-scm.com).";
    if (!program) throw new GitTooOldError(`git is not installed. ${advice}`);
    const git = new Git(launcher, program, "", options.onStart);
    const result = await git.run(["version"]);
    const version = /^git version (\d+)\.(\d+)\S*/.exec(result.stdout.toString("utf8"));
    const [major, minor] = [Number(version?.[1] ?? 0), Number(version?.[2] ?? 0)];
    if (!isNewEnough(major, minor)) throw new GitTooOldError(`git ${major}.${minor} is too old. ${advice}`);
    return new Git(launcher, program, version?.[0]?.slice("git version ".length) ?? "", options.onStart);
  }

  /** Starts git and hands its stream to the caller. */
  async start(args: readonly [string, ...string[]], call: GitCall = {}): Promise<Job> {
    const extra = Object.entries(call.settings ?? {}).flatMap(([key, value]) => ["-c", `${key}=${value}`]);
    const directory = call.directory === undefined ? [] : [`--git-dir=${call.directory}`];
    call.signal?.throwIfAborted();
    const job = await this.launcher.start({
      argv: [this.program, ...settingArguments, ...extra, ...directory, ...args],
      env: { ...baseEnvironment, ...call.env },
      limits: { wallClockMs: defaultWallClockMs, ...call.limits },
      stdin: call.stdin ?? false,
      ...(call.stdoutFile === undefined ? {} : { stdoutFile: call.stdoutFile }),
    });
    this.onStart?.(job.startMs);
    const { signal } = call;
    if (signal) {
      const end = (): void => job.end();
      if (signal.aborted) end();
      signal.addEventListener("abort", end, { once: true });
      void job.exit.then(() => signal.removeEventListener("abort", end));
    }
    return job;
  }

  /** Runs git to its end with a small input and a small output. */
  async run(
    args: readonly [string, ...string[]],
    call: GitCall & { readonly input?: string | Buffer } = {},
  ): Promise<GitResult> {
    const job = await this.start(args, { ...call, stdin: call.input !== undefined });
    job.stdin?.end(call.input ?? "");
    const stdout = await buffer(job.stdout).catch(() => Buffer.alloc(0));
    return { ...(await job.exit), stdout };
  }

  /** Like run, for commands that can only fail by a fault of ours or of the disk. */
  async mustRun(
    args: readonly [string, ...string[]],
    call: GitCall & { readonly input?: string | Buffer } = {},
  ): Promise<Buffer> {
    const result = await this.run(args, call);
    if (result.code !== 0) throw new GitError(args[0], result);
    return result.stdout;
  }
}

const baseEnvironment: Readonly<Record<string, string>> = {
  PATH: process.env.PATH ?? "/usr/bin:/bin",
  HOME: "/nonexistent",
  LC_ALL: "C.UTF-8",
  GIT_TERMINAL_PROMPT: "0",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_ATTR_NOSYSTEM: "1",
  GIT_ASKPASS: "/bin/false",
  SSH_ASKPASS: "/bin/false",
  GIT_NO_REPLACE_OBJECTS: "1",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_AUTHOR_NAME: "holdfast",
  GIT_AUTHOR_EMAIL: "holdfast",
  GIT_COMMITTER_NAME: "holdfast",
  GIT_COMMITTER_EMAIL: "holdfast",
};

export const isNewEnough = (major: number, minor: number): boolean =>
  major > oldestGit[0] || (major === oldestGit[0] && minor >= oldestGit[1]);

function findProgram(path: string): string | undefined {
  for (const folder of path.split(delimiter)) {
    const candidate = join(folder, "git");
    try {
      accessSync(candidate, constants.X_OK);
      return candidate;
    } catch {
      // Not in this folder.
    }
  }
  return undefined;
}

/** The gate at the call: a value that is not an object id never reaches git, whatever its type claims (threats.md row 1). */
export function checkedOid(oid: Oid): Oid {
  if (!isOid(oid)) throw new RangeError("not an object id");
  return oid;
}
