// Traffic of stock git clients: pushes (commit, state event, push) and clones.

import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { NostrEvent } from "../src/nostr/event.js";
import { SecretKey, signEvent } from "../src/nostr/keys.js";
import { atRate, type Ledger } from "./ledger.js";
import { frameOf, RawClient } from "./raw-client.js";
import { type HostedRepository, nameOf, type Traffic, type TrafficOrder } from "./traffic.js";

type Of<Role extends Traffic["role"]> = Extract<Traffic, { role: Role }>;
type Run = () => Promise<void>;

const env = {
  PATH: process.env.PATH ?? "/usr/bin:/bin",
  HOME: "/nonexistent",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_TERMINAL_PROMPT: "0",
  GIT_AUTHOR_NAME: "bench",
  GIT_AUTHOR_EMAIL: "bench",
  GIT_COMMITTER_NAME: "bench",
  GIT_COMMITTER_EMAIL: "bench",
};

export const git = (cwd: string, ...args: string[]): Promise<{ readonly ok: boolean; readonly text: string }> =>
  new Promise((resolve) => {
    execFile("git", args, { cwd, env, maxBuffer: 2 ** 26 }, (error, stdout, stderr) =>
      resolve({ ok: error === null, text: stdout + stderr }),
    );
  });

async function mustGit(cwd: string, ...args: string[]): Promise<void> {
  const { ok, text } = await git(cwd, ...args);
  if (!ok) throw new Error(`git ${args.join(" ")}: ${text}`);
}

export const urlOf = (port: number, repository: HostedRepository): string =>
  `http://127.0.0.1:${port}/${nameOf(repository)}.git`;

/** Events of owners over one connection; the answer is the OK's. */
export class Publisher {
  readonly #waiting = new Map<string, (answer: readonly [boolean, string]) => void>();

  private constructor(
    readonly client: RawClient,
    readonly lastSeconds: Map<string, number>,
  ) {
    client.onText = (payload) => {
      const [verb, id, ok, text] = JSON.parse(payload.toString()) as [string, string, boolean, string];
      if (verb === "OK") this.#waiting.get(id)?.([ok, text]);
    };
  }

  /** `lastSeconds`: when each owner's last event is from, for those who publish over several connections. */
  static async connect(
    port: number,
    localAddress?: string,
    lastSeconds = new Map<string, number>(),
  ): Promise<Publisher> {
    return new Publisher(await RawClient.connect(port, localAddress), lastSeconds);
  }

  /** Each event of an owner is newer than the one before: within a second the lower id would win. */
  signed(secretHex: string, kind: number, tags: readonly (readonly string[])[], content = ""): NostrEvent {
    const key = SecretKey.fromHex(secretHex);
    if (!key) throw new Error("not a key");
    const first = Math.floor(Date.now() / 1_000) - 86_400;
    const created_at = Math.max(first, (this.lastSeconds.get(secretHex) ?? 0) + 1);
    this.lastSeconds.set(secretHex, created_at);
    return signEvent(key, { kind, created_at, tags: tags.map((tag) => [...tag]), content }, randomBytes);
  }

  async send({ id, raw }: NostrEvent): Promise<readonly [ok: boolean, text: string, id: string]> {
    const answer = new Promise<readonly [boolean, string]>((resolve) => this.#waiting.set(id, resolve));
    this.client.socket.write(frameOf(`["EVENT",${raw}]`));
    const [ok, text] = await answer;
    this.#waiting.delete(id);
    return [ok, text, id];
  }

  publish(...event: Parameters<Publisher["signed"]>): Promise<readonly [ok: boolean, text: string, id: string]> {
    return this.send(this.signed(...event));
  }
}

export class Pusher {
  #last = Promise.resolve();
  #count = 0;

  constructor(
    readonly port: number,
    readonly repository: HostedRepository,
    readonly folder: string,
    readonly publisher: Publisher,
  ) {}

  async open(): Promise<void> {
    await mkdir(this.folder, { recursive: true });
    await mustGit(this.folder, "clone", "-q", urlOf(this.port, this.repository), ".");
    await mustGit(this.folder, "checkout", "-q", "main");
  }

  /** One at a time on one working copy. */
  push(ledger: Ledger): Promise<void> {
    this.#last = this.#last.then(() => (ledger.isOver ? undefined : this.#push(ledger)));
    return this.#last;
  }

  async #push(ledger: Ledger): Promise<void> {
    const { repository } = this;
    await mustGit(this.folder, "commit", "-q", "--allow-empty", "-m", `load ${this.#count++}`);
    const tip = (await readFile(join(this.folder, ".git/refs/heads/main"), "utf8")).trim();
    const tags = [
      ["d", repository.identifier],
      ["refs/heads/main", tip],
      ["HEAD", "ref: refs/heads/main"],
    ];
    const event = this.publisher.signed(repository.secretHex, 30618, tags);
    const began = performance.now();
    const [ok, text] = await this.publisher.send(event);
    if (!ok) return ledger.failed("state event, to its OK", text);
    ledger.took("state event, to its OK", performance.now() - began);
    const pushBegan = performance.now();
    const pushed = await git(this.folder, "push", "-q", "origin", "main");
    if (!pushed.ok) return ledger.failed("git push", pushed.text);
    ledger.took("git push", performance.now() - pushBegan);
    ledger.refs[nameOf(repository)] = tip;
  }
}

export async function pushTraffic(order: TrafficOrder, traffic: Of<"pushes">, ledger: Ledger): Promise<Run> {
  const publisher = await Publisher.connect(order.port);
  const workers = Math.min(order.repositories.length, 20);
  const pushers = order.repositories
    .slice(0, workers)
    .map((repository, index) => new Pusher(order.port, repository, join(traffic.folder, `work${index}`), publisher));
  for (const pusher of pushers) await pusher.open();
  let turn = 0;
  return () => atRate(traffic.perMinute / 60, ledger, async () => pushers[turn++ % pushers.length]?.push(ledger));
}

export async function cloneTraffic(order: TrafficOrder, traffic: Of<"clones">, ledger: Ledger): Promise<Run> {
  await mkdir(traffic.folder, { recursive: true });
  let turn = 0;
  const clone = async (): Promise<void> => {
    const repository = order.repositories[turn % order.repositories.length];
    const target = join(traffic.folder, `clone${turn++}`);
    if (!repository) return;
    const began = performance.now();
    const cloned = await git(traffic.folder, "clone", "-q", "--bare", urlOf(order.port, repository), target);
    if (cloned.ok) ledger.took("git clone", performance.now() - began);
    else ledger.failed("git clone", cloned.text);
    await rm(target, { recursive: true, force: true });
  };
  return () => atRate(traffic.perMinute / 60, ledger, clone);
}
