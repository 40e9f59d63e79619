// What a repository's page shows of its content: the README, the newest commits, how many there are. Read only, a few
// short processes with small outputs, run once for a commit: what a commit holds never changes, so the answer is kept
// until it is pushed out by newer ones. Only ids from the ref table reach git, by its standard input.

import { StringDecoder } from "node:string_decoder";
import { Turns } from "../base/budget/turns.js";
import type { Oid } from "../nostr/nip34.js";
import type { GitRepository } from "./repository.js";
import { checkedOid, type GitCall } from "./run.js";

interface CommitSummary {
  readonly oid: string;
  readonly author: string;
  /** Seconds, as its author claims. */
  readonly time: number;
  readonly subject: string;
}

export interface Readme {
  readonly name: string;
  readonly text: string;
  readonly isMarkdown: boolean;
  readonly isCut: boolean;
}

export interface CommitView {
  readonly readme: Readme | undefined;
  /** Newest first. */
  readonly commits: readonly CommitSummary[];
  /** Commits reachable from it; not counted further than `countedCommits`. */
  readonly commitCount: number;
}

export const countedCommits = 5_000;
const shownCommits = 10;
const maxReadmeBytes = 64 * 1024;
/** A file above this is not opened at all: git would hold all of it to give us the beginning. */
const maxReadmeFileBytes = 4 * 1024 * 1024;
const maxLogBytes = 64 * 1024;
const limits = { wallClockMs: 5_000, cpuSeconds: 5 };

const readmeNames = [
  "README.md",
  "readme.md",
  "Readme.md",
  "README.markdown",
  "README",
  "README.txt",
  "README.rst",
  "README.adoc",
  "README.org",
];
const isMarkdown = (name: string): boolean => /\.(?:md|markdown)$/i.test(name);

type BrowseResult = { readonly ok: true; readonly view: CommitView } | { readonly ok: false; readonly code: "busy" };

export class Browser {
  readonly #views = new Map<string, Promise<CommitView>>();
  readonly #limiter = new Turns(() => ({ total: 2, perRepository: 1, perIp: 2, maxQueued: 32 }));

  constructor(readonly maxViews = 500) {}

  /** Whether asking for this starts no process. */
  knows(repository: GitRepository, commit: Oid): boolean {
    return this.#views.has(keyOf(repository, commit));
  }

  /** `busy`: more people ask than the queue holds. */
  async view(repository: GitRepository, commit: Oid, ip: string, signal: AbortSignal): Promise<BrowseResult> {
    const key = keyOf(repository, commit);
    const known = this.#views.get(key);
    if (known) return { ok: true, view: await known };
    const release = await this.#limiter.acquire({ repository: repository.address.key, ip }, signal);
    if (!release) return { ok: false, code: "busy" };
    try {
      const view = this.#views.get(key) ?? readCommit(repository, commit);
      this.#keep(key, view);
      return { ok: true, view: await view };
    } catch (error) {
      this.#views.delete(key);
      throw error;
    } finally {
      release();
    }
  }

  #keep(key: string, view: Promise<CommitView>): void {
    this.#views.set(key, view);
    for (const [oldest] of this.#views) {
      if (this.#views.size <= this.maxViews) break;
      this.#views.delete(oldest);
    }
  }
}

const keyOf = (repository: GitRepository, commit: Oid): string => `${commit}:${repository.address.key}`;

async function readCommit(repository: GitRepository, commit: Oid): Promise<CommitView> {
  checkedOid(commit);
  // A branch may point at anything; only a commit has a history and files.
  if ((await repository.objectTypes([commit])).get(commit) !== "commit") {
    return { readme: undefined, commits: [], commitCount: 0 };
  }
  return {
    readme: await readReadme(repository, commit),
    commits: await recentCommits(repository, commit),
    commitCount:
      Number(
        (await output(repository, ["rev-list", "--count", `--max-count=${countedCommits}`, "--stdin"], commit, 100))
          .text,
      ) || 0,
  };
}

async function readReadme(repository: GitRepository, commit: Oid): Promise<Readme | undefined> {
  const asked = readmeNames.map((name) => `${commit}:${name}`).join("\n");
  const { text: answers } = await output(repository, ["cat-file", "--batch-check"], asked, maxLogBytes);
  for (const [index, answer] of answers.split("\n").entries()) {
    const [oid, type, size] = answer.split(" ");
    const name = readmeNames[index];
    if (type !== "blob" || name === undefined || Number(size) > maxReadmeFileBytes) continue;
    const blob = await output(repository, ["cat-file", "--batch"], checkedOid(oid as Oid), maxReadmeBytes);
    const text = blob.text.slice(blob.text.indexOf("\n") + 1).replace(/\n$/, "");
    // Empty or not text: nothing to show.
    if (text.includes("\0") || text.trim() === "") return undefined;
    return { name, text, isMarkdown: isMarkdown(name), isCut: blob.isCut };
  }
  return undefined;
}

const fields = 4;

async function recentCommits(repository: GitRepository, commit: Oid): Promise<CommitSummary[]> {
  // Cut by git: one commit's subject may be as long as an object may be. NUL is the one sign no field can hold.
  const format = "%H%x00%at%x00%<(80,trunc)%aN%x00%<(200,trunc)%s%x00";
  const { text } = await output(
    repository,
    ["rev-list", `--max-count=${shownCommits}`, "--no-commit-header", `--format=${format}`, "--stdin"],
    commit,
    maxLogBytes,
  );
  const values = text.split("\0");
  const commits: CommitSummary[] = [];
  for (let at = 0; at + fields <= values.length; at += fields) {
    const [oid = "", time = "", author = "", subject = ""] = values.slice(at, at + fields);
    commits.push({ oid: oid.trim(), time: Number(time), author: author.trim(), subject: subject.trim() });
  }
  return commits;
}

/** Runs git with one small input and reads no more than this of what it says; then it is ended. */
async function output(
  repository: GitRepository,
  args: [string, ...string[]],
  input: string,
  maxBytes: number,
): Promise<{ readonly text: string; readonly isCut: boolean }> {
  const call: GitCall = { directory: repository.directory, limits, stdin: true };
  const job = await repository.context.git.start(args, call);
  job.stdin?.end(`${input}\n`);
  const decoder = new StringDecoder("utf8");
  let text = "";
  let bytes = 0;
  for await (const chunk of job.stdout as AsyncIterable<Buffer>) {
    text += decoder.write(chunk.subarray(0, maxBytes - bytes));
    bytes += chunk.length;
    if (bytes > maxBytes) break;
  }
  const isCut = bytes > maxBytes;
  if (isCut) job.end();
  await job.exit;
  return { text, isCut };
}
