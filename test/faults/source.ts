// Somebody's own clone, from which is pushed: commits made many at a time, each with a file nobody else has.

import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Random } from "../../src/store/testing/random.js";
import { type ClientResult, runProgram } from "../harness/git-server.js";

const commitsAtOnce = 40;
const largestFileBytes = 60_000;

export interface PushedRef {
  readonly ref: string;
  readonly ok: boolean;
}

export interface PushReport {
  readonly refs: readonly PushedRef[];
  readonly isComplete: boolean;
  readonly stderr: string;
}

export class Source {
  #line: string[] = [];
  #strays: string[] = [];
  #tip: string | undefined;
  #growing: Promise<void> = Promise.resolve();

  private constructor(
    readonly directory: string,
    readonly random: Random,
  ) {}

  static async make(directory: string, random: Random): Promise<Source> {
    await mkdir(directory, { recursive: true });
    const source = new Source(directory, random);
    await source.#git("init", "-q", "--bare");
    await source.#grow();
    return source;
  }

  async #git(...args: string[]): Promise<string> {
    const result = await runProgram("git", args, { cwd: this.directory });
    if (result.code !== 0) throw new Error(`git ${args.join(" ")}: ${result.stderr}`);
    return result.stdout;
  }

  /** The next commit of a history that goes on. */
  async next(): Promise<string> {
    return (await this.#take(() => this.#line.shift())) as string;
  }

  /** A commit that no other one of these reaches. */
  async stray(): Promise<string> {
    return (await this.#take(() => this.#strays.shift())) as string;
  }

  async #take(from: () => string | undefined): Promise<string | undefined> {
    for (;;) {
      const oid = from();
      if (oid !== undefined) return oid;
      this.#growing = this.#growing.then(() =>
        this.#line.length > 0 && this.#strays.length > 0 ? undefined : this.#grow(),
      );
      await this.#growing;
    }
  }

  async #grow(): Promise<void> {
    const parts: string[] = [];
    let mark = 0;
    const commit = (branch: string, from: string | undefined): number => {
      const text = this.#text();
      mark++;
      parts.push(`commit ${branch}\nmark :${mark}\ncommitter A <a@example.com> ${1_700_000_000 + mark} +0000\n`);
      parts.push(`data 4\nwork\n${from === undefined ? "" : `from ${from}\n`}`);
      parts.push(`M 100644 inline file${this.random.below(5)}\ndata ${text.length}\n${text}\n`);
      return mark;
    };
    let from = this.#tip;
    const line = Array.from({ length: commitsAtOnce }, () => {
      const made = commit("refs/heads/line", from);
      from = `:${made}`;
      return made;
    });
    const strays = Array.from({ length: commitsAtOnce }, (_, index) =>
      commit(`refs/heads/stray-${this.#strays.length}-${index}`, `:${line[index]}`),
    );
    const marks = join(this.directory, "marks");
    const made = await runProgram("git", ["fast-import", "--quiet", "--force", `--export-marks=${marks}`], {
      cwd: this.directory,
      input: parts.join(""),
    });
    if (made.code !== 0) throw new Error(made.stderr);
    const lines = (await readFile(marks, "utf8")).trim().split("\n");
    const oids = new Map(lines.map((text) => text.split(" ") as [string, string]));
    const oid = (number: number): string => oids.get(`:${number}`) as string;
    this.#line.push(...line.map(oid));
    this.#strays.push(...strays.map(oid));
    this.#tip = this.#line.at(-1);
  }

  #text(): string {
    const bytes = 100 + this.random.below(this.random.chance(0.1) ? largestFileBytes : 2_000);
    let text = "";
    while (text.length < bytes) text += this.random.next().toString(36).slice(2);
    return text;
  }

  /** Pushes; says for each ref what the server said, and nothing about those it said nothing of. */
  async push(
    url: string,
    refs: Readonly<Record<string, string | undefined>>,
    ...options: string[]
  ): Promise<PushReport> {
    const specs = Object.entries(refs).map(([ref, oid]) => `+${oid ?? ""}:${ref}`.replace(/^\+:/, ":"));
    const result: ClientResult = await runProgram("git", ["push", "--porcelain", ...options, url, ...specs], {
      cwd: this.directory,
    });
    const said = [...result.stdout.matchAll(/^([ +\-*=!])\t[^\t]*:([^\t\n]*)\t(.*)$/gm)];
    return {
      // "remote failure" and the like are git's own words for an answer that never came.
      refs: said.flatMap(([, flag = "!", ref = "", why = ""]) =>
        flag === "!" && !why.includes("[remote rejected]") ? [] : [{ ref, ok: flag !== "!" }],
      ),
      isComplete: result.stdout.includes("\nDone") || said.some(([, flag]) => flag === "!"),
      stderr: result.stderr,
    };
  }
}
