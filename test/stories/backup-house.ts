// A server with people who write to it without pause, and the operator's verbs over its data.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { cleanEnvironment, type Ended, endOf, holdfast, program } from "../cli/run.js";
import { runProgram } from "../harness/git-server.js";
import { Person, type SignedEvent } from "../harness/grasp-people.js";
import { Story, stateEvent } from "../harness/grasp-story.js";
import { type ChildServer, startChild, startInProcess, type TestServer } from "../harness/server.js";

export const domain = "git.example.com";

export const dataSettings = (folder: string): Record<string, string> => ({
  NGIT_DOMAIN: domain,
  NGIT_GIT_DATA_PATH: join(folder, "git"),
  NGIT_RELAY_DATA_PATH: join(folder, "relay"),
});

/** A process of its own, which a test can kill. */
export function startVerb(folder: string, args: readonly string[]): { child: ChildProcess; ended: Promise<Ended> } {
  const child = spawn(process.execPath, [program, ...args], {
    env: cleanEnvironment(dataSettings(folder)),
    stdio: ["ignore", "pipe", "pipe"],
  });
  return { child, ended: endOf(child) };
}

export const verb = (folder: string, ...args: readonly string[]): Promise<Ended> =>
  holdfast(args, dataSettings(folder));

export async function jsonOf<T>(folder: string, ...args: readonly string[]): Promise<T> {
  const ended = await verb(folder, ...args, "--json");
  assert.equal(ended.code, 0, ended.stdout + ended.stderr);
  return JSON.parse(ended.stdout) as T;
}

/** Packs stay as they are: a repack between two backups would leave nothing for them to share. */
const settings = { NGIT_DOMAIN: domain, NGIT_GIT_REPACK_AFTER_PACKS: "1000" };

export const startAsChild = (): Promise<ChildServer> => startChild({ backend: "lmdb", settings });

export const startOn = (folder?: string): Promise<TestServer> =>
  startInProcess({ backend: "lmdb", settings, ...(folder === undefined ? {} : { folder }) });

export class Writer {
  readonly owner = new Person();
  readonly acknowledgedEvents: string[] = [];
  /** The last state whose push was acknowledged. */
  pushed: { readonly state: string; readonly tip: string } | undefined;
  #isStopped = false;
  #running: Promise<void> = Promise.resolve();

  constructor(
    readonly story: Story,
    readonly identifier: string,
  ) {}

  announcement(): SignedEvent {
    return this.owner.sign(30617, [
      ["d", this.identifier],
      ["clone", `https://${domain}/${this.owner.npub}/${this.identifier}.git`],
      ["relays", `wss://${domain}`],
    ]);
  }

  async begin(): Promise<void> {
    await this.story.accepted(this.announcement());
    const work = await this.story.workingCopy();
    const url = this.story.url(this.owner, this.identifier);
    const push = async (round: number): Promise<void> => {
      const tip = await work.commit(`${this.identifier} ${round} ${"x".repeat(round * 100)}`);
      const state = stateEvent(this.owner, this.identifier, { "refs/heads/main": tip, [`refs/heads/at${round}`]: tip });
      await this.story.accepted(state);
      await work.must("push", "-q", "-f", "--prune", url, "main:main", `main:at${round}`);
      this.acknowledgedEvents.push(state.id);
      this.pushed = { state: state.id, tip };
      const issue = await this.story.accepted(
        new Person().sign(1621, [["a", this.owner.coordinate(this.identifier)]], `issue ${round}`),
      );
      this.acknowledgedEvents.push(issue.id);
    };
    await push(1);
    this.#running = (async () => {
      for (let round = 2; !this.#isStopped; round++) await push(round);
    })();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }
}

/** Every state served has exactly its refs, and git finds nothing missing. */
export async function provesWhole(server: TestServer): Promise<void> {
  const story = await Story.on(server);
  for (const npub of readdirSync(server.gitPath)) {
    for (const name of readdirSync(join(server.gitPath, npub))) {
      const directory = join(server.gitPath, npub, name);
      const checked = await runProgram("git", ["--git-dir", directory, "fsck", "--no-dangling"]);
      assert.equal(checked.code, 0, checked.stderr);
      const identifier = readFileSync(join(directory, "holdfast-identifier"), "utf8");
      const listed = await runProgram("git", ["ls-remote", "--heads", `${server.origin}/${npub}/${identifier}.git`]);
      const refs = Object.fromEntries(
        listed.stdout
          .trim()
          .split("\n")
          .filter((line) => line !== "")
          .map((line) => line.split("\t").reverse() as [string, string]),
      );
      const [state] = await story.served({ kinds: [30618], "#d": [identifier] });
      const signed = Object.fromEntries((state?.tags ?? []).filter(([key]) => key?.startsWith("refs/heads/")));
      assert.deepEqual(refs, signed, identifier);
    }
  }
  await story.relay.close();
}
