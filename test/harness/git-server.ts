// A small HTTP server around the git room, with a real launcher and real git, and a stock git client to talk to it.
// Authority is whatever the test says: states are put into `candidates` by hand.

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.js";
import { defaultConfig } from "../../src/config/testing/default-config.js";
import { asNpub, type Npub, RepositoryAddress } from "../../src/git/address.js";
import { askCapabilities } from "../../src/git/advertisement.js";
import { GitHttp } from "../../src/git/http.js";
import type { FoundRepository, GitHttpOptions, GitOperation } from "../../src/git/http-types.js";
import { Launcher } from "../../src/git/launcher.js";
import type {
  CandidateState,
  NostrRefEvent,
  PushAuthority,
  PushOutcome,
  StateStamp,
  UnclaimedAllowance,
} from "../../src/git/push-types.js";
import { Repositories } from "../../src/git/repositories.js";
import type { RefUpdate } from "../../src/git/repository-refs.js";
import { Git } from "../../src/git/run.js";
import type { EventId, Pubkey } from "../../src/nostr/event.js";
import type { ObjectFormat, Oid, RefName } from "../../src/nostr/nip34.js";
import { createMemoryStore } from "../../src/store/memory/memory-store.js";

export const npub = asNpub(`npub1${"q".repeat(58)}`) as Npub;
export const owner = "0".repeat(63).concat("1") as Pubkey;

export const hexId = (): EventId => randomBytes(32).toString("hex") as EventId;

export interface ClientResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export const clientEnvironment = {
  PATH: process.env.PATH ?? "/usr/bin:/bin",
  HOME: "/nonexistent",
  LC_ALL: "C.UTF-8",
  GIT_CONFIG_NOSYSTEM: "1",
  // Not /dev/null: `git config --global`, run as root, would put a file in the place of the device.
  GIT_CONFIG_GLOBAL: "/nonexistent/gitconfig",
  GIT_TERMINAL_PROMPT: "0",
  GIT_AUTHOR_NAME: "A",
  GIT_AUTHOR_EMAIL: "a@example.com",
  GIT_COMMITTER_NAME: "A",
  GIT_COMMITTER_EMAIL: "a@example.com",
  // Two processes more after each commit and fetch.
  GIT_CONFIG_COUNT: "1",
  GIT_CONFIG_KEY_0: "maintenance.auto",
  GIT_CONFIG_VALUE_0: "false",
};

/** Runs a program to its end and keeps what it says. */
export function runProgram(
  program: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: Record<string, string>; readonly input?: string | Buffer } = {},
): Promise<ClientResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: options.cwd, env: { ...clientEnvironment, ...options.env } });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => err.push(chunk));
    child.once("error", reject);
    child.stdin.on("error", () => undefined);
    child.stdin.end(options.input ?? "");
    child.once("close", (code) =>
      resolve({ code, stdout: Buffer.concat(out).toString("utf8"), stderr: Buffer.concat(err).toString("utf8") }),
    );
  });
}

/** As `git init` makes it, without its templates, a process and the look at every setting there is. */
export async function emptyRepository(
  directory: string,
  isBare: boolean,
  format: ObjectFormat = "sha1",
): Promise<void> {
  await mkdir(join(directory, "objects"), { recursive: true });
  await mkdir(join(directory, "refs", "heads"), { recursive: true });
  await writeFile(join(directory, "HEAD"), "ref: refs/heads/main\n");
  const core = `[core]\n\trepositoryformatversion = ${format === "sha1" ? 0 : 1}\n\tbare = ${isBare}\n`;
  const extension = format === "sha1" ? "" : `[extensions]\n\tobjectformat = ${format}\n`;
  await writeFile(join(directory, "config"), core + extension);
}

/**
 * A script of git commands, which must succeed, with `$1`. A shell starts them, because each process that this one starts
 * itself costs as much as a commit.
 */
export async function gitScript(cwd: string, script: string, argument: string): Promise<void> {
  const { code, stderr } = await runProgram("sh", ["-c", script, "sh", argument], { cwd });
  if (code !== 0) throw new Error(`${script} (${argument}): ${stderr}`);
}

/** Read here: a commit writes its branch as a file, and a git process would take longer than the commit. */
export async function headOf(workingCopy: string): Promise<Oid> {
  const read = async (name: string): Promise<string> =>
    (await readFile(join(workingCopy, ".git", name), "utf8")).trim();
  const head = await read("HEAD");
  return (head.startsWith("ref: ") ? await read(head.slice("ref: ".length)) : head) as Oid;
}

export class GitServer {
  candidates: CandidateState[] = [];
  mark: StateStamp | undefined;
  strict = false;
  readOnlyReason: string | undefined;
  nostrEvents = new Map<EventId, NostrRefEvent>();
  unclaimed: UnclaimedAllowance = { ok: true, maxBytes: 20 * 2 ** 20 };
  quota: PushAuthority["quota"];
  /** Called at each question for authority; may change it. */
  onAuthority: (asked: number) => void = () => undefined;
  authorityAsked = 0;
  /** False: what the push was decided by is gone. */
  onWrite: () => boolean = () => true;
  readonly operations: GitOperation[] = [];
  readonly written: {
    readonly address: RepositoryAddress;
    readonly candidate: StateStamp | undefined;
    readonly updates: readonly RefUpdate[];
  }[] = [];
  readonly released: PushOutcome[] = [];
  releaseMessages: readonly string[] = [];
  readonly catalogue = new Map<string, FoundRepository>();
  #created = 1_700_000_000;
  #firstCopy: Promise<string> | undefined;

  private constructor(
    readonly folder: string,
    readonly launcher: Launcher,
    readonly repositories: Repositories,
    readonly http: GitHttp,
    readonly origin: string,
    readonly stop: () => Promise<void>,
  ) {}

  static async start(overrides: Partial<GitHttpOptions> = {}): Promise<GitServer> {
    const folder = await mkdtemp(join(tmpdir(), "git-test-"));
    const launcher = new Launcher();
    const git = await Git.find(launcher);
    const store = createMemoryStore({ clock: systemClock });
    const repositories = new Repositories({ gitDataPath: join(folder, "git"), git, clock: systemClock, store });
    let server: GitServer | undefined;
    const it = (): GitServer => {
      if (!server) throw new Error("the server is not up yet");
      return server;
    };
    const http = new GitHttp({
      repositories,
      capabilities: await askCapabilities(git),
      clock: systemClock,
      served: {
        lookUp: (_npub, identifier) => it().catalogue.get(identifier),
        beginPush: (address) => ({
          authority: async () => it().#authority(),
          locked: (work) => repositories.withLocks([address], work),
          keepAside: async () => undefined,
          abandon: async () => undefined,
          release: async (outcome) => {
            const { updates, decision } = outcome;
            if (updates.length > 0 && !it().onWrite()) return false;
            if (updates.length > 0) it().written.push({ address, candidate: decision.candidate, updates });
            await repositories.open(address).updateRefs(updates);
            return true;
          },
          follow: async (outcome) => {
            it().released.push(outcome);
            return { messages: it().releaseMessages };
          },
          end: async () => undefined,
        }),
      },
      live: { current: defaultConfig({ gitPackConcurrent: 4, gitFetchRequestMaxBytes: 4 << 20 }) },
      uploadBodies: { inAll: 64 << 20, perAddress: 16 << 20 },
      cacheDirectory: join(folder, "answers"),
      observe: (operation) => void it().operations.push(operation),
      ...overrides,
    });
    const listener = createServer((message, response) => {
      const [localPath = "", query = ""] = (message.url ?? "").split("?");
      const ip = message.socket.remoteAddress ?? "";
      const request = { message, localPath, query: new URLSearchParams(query), ip };
      if (http.matches(request)) void http.handle(request, response);
      else response.writeHead(404).end("no git URL\n");
    });
    await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
    const { port } = listener.address() as AddressInfo;
    const stop = async (): Promise<void> => {
      listener.closeAllConnections();
      await new Promise((resolve) => listener.close(resolve));
      await http.close();
      await launcher.close();
      await rm(folder, { recursive: true, force: true });
    };
    server = new GitServer(folder, launcher, repositories, http, `http://127.0.0.1:${port}`, stop);
    return server;
  }

  #authority(): PushAuthority {
    this.onAuthority(++this.authorityAsked);
    return {
      strict: this.strict,
      mark: this.mark,
      candidates: this.candidates,
      nostrEvents: this.nostrEvents,
      unclaimed: this.unclaimed,
      ...(this.readOnlyReason === undefined ? {} : { readOnlyReason: this.readOnlyReason }),
      ...(this.quota === undefined ? {} : { quota: this.quota }),
    };
  }

  /** A newer state than all before. */
  state(refs: Record<string, string>, governs = false): CandidateState {
    const state: CandidateState = {
      id: hexId(),
      created_at: this.#created++,
      refs: new Map(Object.entries(refs) as [RefName, Oid][]),
      governs,
    };
    this.candidates = [...this.candidates, state];
    return state;
  }

  addressOf(identifier: string): RepositoryAddress {
    return RepositoryAddress.of(owner, npub, identifier);
  }

  url(identifier: string): string {
    return `${this.origin}/${npub}/${encodeURIComponent(identifier)}.git`;
  }

  async create(identifier: string): Promise<string> {
    const address = this.addressOf(identifier);
    await this.repositories.create(address);
    this.catalogue.set(identifier, { address });
    return this.url(identifier);
  }

  directoryOf(identifier: string): string {
    return this.repositories.open(this.addressOf(identifier)).directory;
  }

  /** A stock git client. */
  git(cwd: string, ...args: string[]): Promise<ClientResult> {
    return runProgram("git", args, { cwd });
  }

  async mustGit(cwd: string, ...args: string[]): Promise<string> {
    const result = await this.git(cwd, ...args);
    if (result.code !== 0) throw new Error(`git ${args.join(" ")}: ${result.stderr}`);
    return result.stdout.trim();
  }

  /** A working copy with one commit on `main`: made by git once, copied for everybody. */
  async workingCopy(name: string = randomBytes(4).toString("hex")): Promise<string> {
    const cwd = join(this.folder, "work", name);
    this.#firstCopy ??= this.#makeFirstCopy();
    await cp(await this.#firstCopy, cwd, { recursive: true });
    return cwd;
  }

  async #makeFirstCopy(): Promise<string> {
    const cwd = join(this.folder, "first-copy");
    await emptyRepository(join(cwd, ".git"), false);
    await this.commit(cwd, "one", "1\n");
    return cwd;
  }

  async commit(cwd: string, file: string, content: string | Buffer): Promise<Oid> {
    await writeFile(join(cwd, file), content);
    // Random bytes do not shrink; trying costs seconds.
    await gitScript(cwd, 'git -c core.compression=0 add -A && exec git commit -q -m "$1"', `write ${file}`);
    return headOf(cwd);
  }

  folderFor(name: string): string {
    return join(this.folder, "work", name);
  }

  refsOf(identifier: string): Promise<string> {
    return this.mustGit(
      this.folder,
      `--git-dir=${this.directoryOf(identifier)}`,
      "for-each-ref",
      "--format=%(refname) %(objectname)",
    );
  }

  /** Every file of a repository, so that a test can see that nothing was left behind. */
  async filesOf(identifier: string): Promise<string[]> {
    const entries = await readdir(this.directoryOf(identifier), { recursive: true });
    return entries.sort();
  }
}
