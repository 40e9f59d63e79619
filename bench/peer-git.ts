// The works of `bench -- peers` that a git host does: states, pushes, advertisements, clones, and a second server that
// takes everything from the first.

import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { NostrEvent } from "../src/nostr/event.js";
import { SecretKey, signEvent } from "../src/nostr/keys.js";
import { npubOf } from "../src/nostr/nip19.js";
import { cpuMicrosOf, type Figure, type Target } from "./peer-relay.js";
import { type Peer, type PeerServer, startPeer } from "./peer-servers.js";
import { freePort } from "./processes.js";
import { percentile } from "./rows.js";
import { firstCommit, missingEvents } from "./scene.js";
import { addressOf, type HostedRepository } from "./traffic.js";
import { git, Publisher, urlOf } from "./traffic-git.js";

const seeded = (seed: string) => (length: number) => createHash("sha256").update(seed).digest().subarray(0, length);

export function repositoryOf(identifier: string): HostedRepository {
  const key = SecretKey.generate(seeded(`peers ${identifier}`));
  const secretHex = Buffer.from(key.exportBytes()).toString("hex");
  return { ownerHex: key.pubkey, secretHex, npub: npubOf(key.pubkey), identifier };
}

/** What the relay works talk about: one repository that everybody hosts. */
export const talkedAbout = repositoryOf("talked-about");

let lastSeconds = Math.floor(Date.now() / 1_000) - 86_400;

function signed({ secretHex }: HostedRepository, kind: number, tags: readonly string[][], content = ""): NostrEvent {
  const key = SecretKey.fromHex(secretHex);
  if (!key) throw new Error("not a key");
  // Each newer than the one before: within a second the lower id would win.
  return signEvent(key, { kind, created_at: ++lastSeconds, tags: tags.map((tag) => [...tag]), content }, randomBytes);
}

const announced = (repository: HostedRepository, ports: readonly number[]): NostrEvent =>
  signed(repository, 30617, [
    ["d", repository.identifier],
    ["clone", ...ports.map((port) => urlOf(port, repository))],
    ["relays", ...ports.map((port) => `ws://127.0.0.1:${port}`)],
  ]);

const stated = (repository: HostedRepository, tip: string): NostrEvent =>
  signed(repository, 30618, [
    ["d", repository.identifier],
    ["refs/heads/main", tip],
    ["HEAD", "ref: refs/heads/main"],
  ]);

async function sendTo(publisher: Publisher, ...events: readonly NostrEvent[]): Promise<void> {
  for (const event of events) {
    const [ok, text] = await publisher.send(event);
    if (!ok) throw new Error(`an event of kind ${event.kind} was refused: ${text}`);
  }
}

async function mustGit(cwd: string, ...args: string[]): Promise<string> {
  const { ok, text } = await git(cwd, ...args);
  if (!ok) throw new Error(`git ${args[0]}: ${text.trim().slice(-300)}`);
  return text.trim();
}

/** The repository as its owner brings it: announced and stated, and pushed where the server takes git. */
export async function bring(
  { port }: Target,
  repository: HostedRepository,
  work: string,
  hasGit: boolean,
): Promise<NostrEvent[]> {
  const publisher = await Publisher.connect(port);
  const events = [announced(repository, [port]), stated(repository, await mustGit(work, "rev-parse", "HEAD"))];
  await sendTo(publisher, ...events);
  if (hasGit) await mustGit(work, "push", "-q", urlOf(port, repository), "main");
  publisher.client.close();
  return events;
}

const pushes = 40;

/** A commit, its state, its push: how long the owner waits for the state's OK, and for the push. */
export async function pushWork(
  target: Target,
  work: string,
): Promise<{ readonly state: Figure; readonly push: Figure }> {
  const publisher = await Publisher.connect(target.port);
  const states: number[] = [];
  const pushed: number[] = [];
  let stateMicros = 0;
  let pushMicros = 0;
  for (let index = 0; index < pushes; index++) {
    await mustGit(work, "commit", "-q", "--allow-empty", "-m", `small ${index}`);
    const state = stated(talkedAbout, await mustGit(work, "rev-parse", "HEAD"));
    stateMicros += await cpuMicrosOf(target.pid, pushes, async () => {
      const began = performance.now();
      await sendTo(publisher, state);
      states.push(performance.now() - began);
    });
    pushMicros += await cpuMicrosOf(target.pid, pushes, async () => {
      const began = performance.now();
      await mustGit(work, "push", "-q", urlOf(target.port, talkedAbout), "main");
      pushed.push(performance.now() - began);
    });
  }
  publisher.client.close();
  return {
    state: { p50Ms: percentile(states, 0.5), cpuMicros: stateMicros },
    push: { p50Ms: percentile(pushed, 0.5), cpuMicros: pushMicros },
  };
}

const advertisements = 1_000;

export async function advertisementWork({ port, pid }: Target): Promise<Figure> {
  const url = `${urlOf(port, talkedAbout)}/info/refs?service=git-upload-pack`;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const took: number[] = [];
  const ask = async (times: number): Promise<void> => {
    for (let index = 0; index < times; index++) {
      const began = performance.now();
      await bytesOf(agent, url);
      took.push(performance.now() - began);
    }
  };
  await ask(advertisements / 5);
  took.length = 0;
  const cpuMicros = await cpuMicrosOf(pid, advertisements, () => ask(advertisements));
  agent.destroy();
  return { cpuMicros, p50Ms: percentile(took, 0.5) };
}

const largeFiles = 80;
const large = repositoryOf("large");

/** A working copy of 80 MB that cannot be made smaller. */
export async function largeCopy(folder: string): Promise<string> {
  const work = join(folder, "large");
  mkdirSync(work);
  await mustGit(work, "init", "-q", "-b", "main");
  for (let index = 0; index < largeFiles; index++) writeFileSync(join(work, `f${index}`), randomBytes(1_000_000));
  await mustGit(work, "-c", "core.compression=0", "add", "-A");
  await mustGit(work, "commit", "-q", "-m", "large");
  return work;
}

const clones = 5;
const atOnce = 6;

/** What a clone asks for, without the client's own work; the median of some, the first of which may have to pack. */
export async function cloneWork(
  target: Target,
  work: string,
): Promise<{ readonly one: Figure; readonly many: Figure }> {
  await bring(target, large, work, true);
  const tip = await mustGit(work, "rev-parse", "HEAD");
  const pkt = (text: string): string => (text.length + 4).toString(16).padStart(4, "0") + text;
  const body = `${pkt(`want ${tip} side-band-64k ofs-delta agent=git/2\n`)}0000${pkt("done\n")}`;
  const agent = new Agent({ keepAlive: false });
  const clone = async (): Promise<void> => {
    const bytes = await bytesOf(agent, `${urlOf(target.port, large)}/git-upload-pack`, body);
    if (bytes < largeFiles * 1_000_000) throw new Error(`a clone had ${bytes} bytes`);
  };
  const times: number[] = [];
  const micros: number[] = [];
  for (let index = 0; index < clones; index++) {
    const began = performance.now();
    micros.push(await cpuMicrosOf(target.pid, 1, clone));
    times.push(performance.now() - began);
  }
  const began = performance.now();
  const all = await cpuMicrosOf(target.pid, 1, () => Promise.all(Array.from({ length: atOnce }, clone)));
  return {
    one: { p50Ms: percentile(times, 0.5), cpuMicros: percentile(micros, 0.5) },
    many: { p50Ms: performance.now() - began, cpuMicros: all },
  };
}

function bytesOf(agent: Agent, url: string, body?: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { "Content-Type": "application/x-git-upload-pack-request" };
    const asked = request(url, { agent, method: body ? "POST" : "GET", ...(body && { headers }) }, (response) => {
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
      });
      response.on("error", reject);
      response.on("end", () =>
        response.statusCode === 200 ? resolve(bytes) : reject(new Error(`HTTP ${response.statusCode} for ${url}`)),
      );
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

const repositories = 60;
const issuesEach = 20;
const lookMs = 100;
const caughtUpWithinMs = 240_000;

/**
 * A second server of the same kind, empty, to which the owners send what they sent to the first: the announcements, which
 * name both, and the states. Until it has every issue that only the first was told.
 */
export async function secondServerWork(peer: Extract<Peer, { type: "command" }>, folder: string): Promise<Figure> {
  const work = await firstCommit(join(folder, "small"));
  const tip = await mustGit(work, "rev-parse", "HEAD");
  const first = await startPeer(peer, join(folder, "first"));
  const port = await freePort();
  let second: PeerServer | undefined;
  try {
    const publisher = await Publisher.connect(first.port);
    const owners: NostrEvent[] = [];
    const issues: string[] = [];
    for (let index = 0; index < repositories; index++) {
      const repository = repositoryOf(`followed-${index}`);
      const events = [announced(repository, [first.port, port]), stated(repository, tip)];
      owners.push(...events);
      await sendTo(publisher, ...events);
      await mustGit(work, "push", "-q", urlOf(first.port, repository), "main");
      for (let issue = 0; issue < issuesEach; issue++) {
        const tags = [
          ["a", addressOf(repository)],
          ["p", repository.ownerHex],
          ["subject", `issue ${issue}`],
        ];
        const event = signed(repository, 1621, tags, "Something is not as it should be.");
        issues.push(event.id);
        await sendTo(publisher, event);
      }
    }
    publisher.client.close();
    second = await startPeer(peer, join(folder, "second"), { port, follows: first.port });
    const began = performance.now();
    const there = await Publisher.connect(port);
    await sendTo(there, ...owners);
    there.client.close();
    for (;;) {
      const missing = await missingEvents(port, issues);
      const ms = performance.now() - began;
      if (missing === 0) return { p50Ms: ms };
      if (ms > caughtUpWithinMs) throw new Error(`${missing} issues are missing after ${Math.round(ms / 1_000)} s`);
      await pause(lookMs);
    }
  } finally {
    await second?.close();
    await first.close();
  }
}
