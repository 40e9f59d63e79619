// A person's own repository on this machine, worked on with their own git and its settings (name, proxy, credentials),
// unlike the server's repositories.

import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import type { Launcher } from "../git/launcher.js";
import type { Refs } from "./drafts.js";

const gitWithinMs = 60 * 60_000;

const maxSaidChars = 8_192;

/** What git is at, and how far. */
export type PushProgress = (done: number, total: number, label: string) => void;

const progressOfPush = /^(?:remote: )?(\w+ objects): +\d+% \((\d+)\/(\d+)\)/;

function tellProgress(line: string, progress: PushProgress): void {
  const [, label = "", done = "", total = ""] = progressOfPush.exec(line) ?? [];
  if (label !== "") progress(Number(done), Number(total), `${label[0]?.toLowerCase()}${label.slice(1)}`);
}

interface Said {
  readonly code: number | undefined;
  readonly out: string;
  readonly errors: string;
}

/** A repository on a server, and the header that says who asks: made anew for each time git goes there, if one is needed. */
export interface Remote {
  readonly url: string;
  readonly authorization: () => string | undefined;
}

export class WorkTree {
  constructor(
    private readonly launcher: Launcher,
    readonly folder: string,
    private readonly environment: Readonly<Record<string, string>>,
  ) {}

  async git(...args: readonly string[]): Promise<Said> {
    return await this.#run(args, {});
  }

  #start(argv: readonly [string, ...string[]], also: Readonly<Record<string, string>>): ReturnType<Launcher["start"]> {
    return this.launcher.start({
      argv,
      // Nobody is there to answer a question.
      env: { ...this.environment, ...also, GIT_TERMINAL_PROMPT: "0", LC_ALL: "C.UTF-8" },
      limits: { wallClockMs: gitWithinMs },
    });
  }

  async #run(args: readonly string[], also: Readonly<Record<string, string>>): Promise<Said> {
    const job = await this.#start(["git", "-C", this.folder, ...args], also);
    const out = await buffer(job.stdout).catch(() => Buffer.alloc(0));
    const { code, stderr } = await job.exit;
    return { code, out: out.toString("utf8").trim(), errors: stderr.trim() };
  }

  async line(...args: readonly string[]): Promise<string | undefined> {
    const { code, out } = await this.git(...args);
    return code === 0 && out !== "" ? out : undefined;
  }

  /** The folder is the top of a repository, or below it. */
  async isRepository(): Promise<boolean> {
    return (await this.line("rev-parse", "--git-dir")) !== undefined;
  }

  /** An empty or new folder becomes a repository with a README and a first commit. False: it holds files. */
  async begin(title: string, fallbackName: string, fallbackEmail: string): Promise<boolean> {
    mkdirSync(this.folder, { recursive: true });
    if (readdirSync(this.folder).length > 0) return false;
    await this.#must("init", "-q", "-b", "main");
    writeFileSync(join(this.folder, "README.md"), `# ${title}\n`);
    await this.#must("add", "README.md");
    const identity = (await this.line("config", "user.name"))
      ? []
      : ["-c", `user.name=${fallbackName}`, "-c", `user.email=${fallbackEmail}`];
    await this.#must(...identity, "commit", "-q", "-m", "Begin");
    return true;
  }

  async #must(...args: readonly string[]): Promise<string> {
    const { code, out, errors } = await this.git(...args);
    if (code !== 0) throw new PublishRefusal(`git ${args[0]} failed in ${this.folder}: ${errors}`);
    return out;
  }

  /** Branches and tags. */
  async refs(): Promise<Refs> {
    const text = await this.#must("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags");
    return refsIn(text, /^(\S+) (\S+)$/, ([name, oid]) => [name, oid]);
  }

  /** What a server has; undefined while it does not answer for this repository. */
  async refsAt({ url, authorization }: Remote): Promise<Refs | undefined> {
    const args = ["ls-remote", url, "refs/heads/*", "refs/tags/*"];
    const { code, out } = await this.#run(args, this.#withHeader(url, authorization()));
    return code === 0 ? refsIn(out, /^(\S+)\t(\S+)$/, ([oid, name]) => [name, oid]) : undefined;
  }

  /** `refs/heads/main`; undefined when no branch is checked out. */
  headRef(): Promise<string | undefined> {
    return this.line("symbolic-ref", "-q", "HEAD");
  }

  /** Of the history that is checked out: what names a project wherever it is hosted. */
  async firstCommit(): Promise<string | undefined> {
    return (await this.line("rev-list", "--max-parents=0", "HEAD"))?.split("\n").at(-1);
  }

  /** Whether `newer` contains `older`; false also when `older` is not here. */
  async contains(older: string, newer: string): Promise<boolean> {
    return (await this.git("merge-base", "--is-ancestor", older, newer)).code === 0;
  }

  /** `progress` hears what git tells of it while it goes on. */
  async push(
    { url, authorization }: Remote,
    refs: readonly string[],
    { force, progress }: { readonly force: boolean; readonly progress: PushProgress },
  ): Promise<void> {
    const args = ["push", "--progress", ...(force ? ["--force"] : []), url, ...refs.map((ref) => `${ref}:${ref}`)];
    // Git tells its progress where errors go, and those come from the launcher only at the end.
    const argv = ["sh", "-c", 'exec git "$@" 2>&1', "git", "-C", this.folder, ...args] as const;
    const job = await this.#start([...argv], this.#withHeader(url, authorization()));
    let said = "";
    for await (const chunk of job.stdout) {
      const lines = (said + String(chunk)).split(/[\r\n]+/);
      const rest = lines.pop() ?? "";
      for (const line of lines) tellProgress(line, progress);
      said = [...lines.filter((line) => !progressOfPush.test(line)), rest].join("\n").slice(-maxSaidChars);
    }
    const { code, stderr } = await job.exit;
    if (code !== 0) throw new PublishRefusal(`git push failed in ${this.folder}: ${`${said}\n${stderr}`.trim()}`);
  }

  /** In the environment: others on this machine may read the arguments of a program. No redirect takes it elsewhere. */
  #withHeader(url: string, authorization: string | undefined): Record<string, string> {
    if (authorization === undefined) return {};
    const settings = [
      [`http.${url}.extraHeader`, `Authorization: ${authorization}`],
      [`http.${url}.followRedirects`, "false"],
    ] as const;
    const given = Number(this.environment.GIT_CONFIG_COUNT ?? 0) || 0;
    const pairs = settings.flatMap(([key, value], index) => [
      [`GIT_CONFIG_KEY_${given + index}`, key],
      [`GIT_CONFIG_VALUE_${given + index}`, value],
    ]);
    return { ...Object.fromEntries(pairs), GIT_CONFIG_COUNT: String(given + settings.length) };
  }

  /** The remotes by name. */
  async remotes(): Promise<ReadonlyMap<string, string>> {
    const text = (await this.git("config", "--get-regexp", "^remote\\..*\\.url$")).out;
    return refsIn(text, /^remote\.(.+)\.url (\S+)$/, ([name, url]) => [name, url]);
  }

  async addRemote(name: string, url: string): Promise<void> {
    await this.#must("remote", "add", name, url);
  }
}

/** What keeps a publication from happening, in words that say what to do. */
export class PublishRefusal extends Error {
  override readonly name = "PublishRefusal";
}

function refsIn(
  text: string,
  line: RegExp,
  pair: (parts: readonly [string, string]) => readonly [string, string],
): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const part of text.split("\n")) {
    const [, first, second] = line.exec(part) ?? [];
    if (first === undefined || second === undefined || second.endsWith("^{}")) continue;
    const [key, value] = pair([first, second]);
    found.set(key, value);
  }
  return found;
}
