// The stage of `mixed` and `load`: a server with repositories, a second one that follows it, processes that make
// traffic, and at the end the proof that nothing acknowledged is missing, also after a restart and on the peer.

import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { SecretKey } from "../src/nostr/keys.js";
import { npubOf } from "../src/nostr/nip19.js";
import { type BenchServer, freePort, inFolder, nextMessage, startBenchServer, startProgram } from "./processes.js";
import { frameOf, RawClient } from "./raw-client.js";
import { type BenchRow, milliseconds } from "./rows.js";
import { type Sample, Sampling } from "./sampling.js";
import { type HostedRepository, nameOf, type Traffic, type TrafficOrder, type TrafficResult } from "./traffic.js";
import { git, Publisher, urlOf } from "./traffic-git.js";

export interface Scene {
  readonly repositories: number;
  readonly seconds: number;
  /** One process each. */
  readonly processes: (folder: string) => readonly (readonly Traffic[])[];
}

export interface SceneResult {
  readonly traffic: readonly TrafficResult[];
  readonly samples: readonly Sample[];
  readonly loopP99Ms: number;
  /** Share of one core, of all threads and of the one that runs the event loop. */
  readonly processor: { readonly all: number; readonly mainThread: number };
  readonly missing: {
    readonly events: number;
    readonly refs: number;
    readonly afterRestart: number;
    readonly onPeer: number;
    readonly peerRefs: number;
    /** Until the peer had everything; undefined: not within two minutes. */
    readonly peerSeconds: number | undefined;
  };
}

/** Everything comes from one address, which is also a private one. Said in the table. */
export const raised =
  "limits per address and per host raised (events, sockets, packs, announcements, git fetches); loopback may be dialled";

export const raisedSettings = (domain: string): Record<string, string> => ({
  BENCH_POLICY: "grasp",
  NGIT_DOMAIN: domain,
  NGIT_ALLOW_PRIVATE_ADDRESSES: "true",
  NGIT_PURGATORY_ANNOUNCEMENTS_PER_HOUR_PER_IP: "100000",
  NGIT_PURGATORY_MAX_ANNOUNCEMENTS_PER_KEY: "10000",
  NGIT_GIT_PACK_CONCURRENT_PER_IP: "100",
  NGIT_GIT_PACK_QUEUE: "1000",
  NGIT_SYNC_MAX_EVENTS_PER_REPOSITORY_PER_DAY: "10000000",
  NGIT_SYNC_MAX_RELAYS_PER_OWNER: "1000",
  NGIT_SYNC_STARTUP_JITTER_MS: "0",
  // All git hosts are one host here.
  NGIT_GIT_DOMAIN_RATE: "100000",
  NGIT_GIT_DOMAIN_CONCURRENT: "10",
});

const peerWaitMs = 120_000;

export function runScene(scene: Scene): Promise<SceneResult> {
  return inFolder(async (folder) => {
    const [port, peerPort] = [await freePort(), await freePort()];
    const domain = `127.0.0.1:${port}`;
    const peerDomain = `127.0.0.1:${peerPort}`;
    const start = (): Promise<BenchServer> => startBenchServer(join(folder, "server"), raisedSettings(domain), port);
    const server = await start();
    const bootstrap = { NGIT_SYNC_BOOTSTRAP_RELAY_URL: `ws://${domain}` };
    const peer = await startBenchServer(
      join(folder, "peer"),
      { ...raisedSettings(peerDomain), ...bootstrap },
      peerPort,
    );
    const repositories = await host(scene.repositories, [port, peerPort], await firstCommit(join(folder, "first")));
    process.stderr.write(`  ${repositories.length} repositories hosted, ${scene.seconds} s of traffic …\n`);
    const children: ChildProcess[] = [];
    for (const traffic of scene.processes(folder)) {
      const child = startProgram("traffic-load");
      const ready = nextMessage<string>(child);
      const order: TrafficOrder = { port, seconds: scene.seconds, repositories, traffic };
      child.send(order);
      await ready;
      children.push(child);
    }
    const before = await server.usage();
    const began = performance.now();
    const sampling = new Sampling(server);
    const results = children.map((child) => nextMessage<TrafficResult>(child));
    for (const child of children) child.send("go");
    const traffic = await Promise.all(results);
    const samples = await sampling.stop();
    const after = await server.usage();
    const ms = performance.now() - began;
    const mainThreadMs = (after.mainThreadMs ?? 0) - (before.mainThreadMs ?? 0);
    const processor = { all: (after.cpuMs - before.cpuMs) / ms, mainThread: mainThreadMs / ms };

    const ids = traffic.flatMap(({ acknowledged }) => acknowledged);
    const refs = Object.assign({}, ...traffic.map((result) => result.refs)) as Record<string, string>;
    const events = await missingEvents(port, ids);
    const lostRefs = await missingRefs(port, repositories, refs);
    const ended = performance.now();
    let onPeer = await missingEvents(peerPort, ids);
    let peerRefs = await missingRefs(peerPort, repositories, refs);
    while (onPeer + peerRefs > 0 && performance.now() - ended < peerWaitMs) {
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      onPeer = await missingEvents(peerPort, ids);
      if (onPeer === 0) peerRefs = await missingRefs(peerPort, repositories, refs);
    }
    const peerSeconds = onPeer + peerRefs === 0 ? (performance.now() - ended) / 1_000 : undefined;
    await peer.close();
    await server.close();
    const again = await start();
    const afterRestart = (await missingEvents(port, ids)) + (await missingRefs(port, repositories, refs));
    await again.close();
    return {
      traffic,
      samples,
      loopP99Ms: after.loopP99Ms,
      processor,
      missing: { events, refs: lostRefs, afterRestart, onPeer, peerRefs, peerSeconds },
    };
  });
}

/** A working copy with one empty commit on main. */
export async function firstCommit(work: string): Promise<string> {
  await mkdir(work);
  await git(work, "init", "-q", "-b", "main");
  await git(work, "commit", "-q", "--allow-empty", "-m", "first");
  return work;
}

/** Announced to the server, and its peer where there is one, with what the working copy has, pushed as anybody would. */
export async function host(
  count: number,
  ports: readonly number[],
  work: string,
  owner: () => SecretKey = () => SecretKey.generate(randomBytes),
  domains: readonly string[] = ports.map((port) => `127.0.0.1:${port}`),
): Promise<HostedRepository[]> {
  const [port = 0] = ports;
  const tip = (await git(work, "rev-parse", "HEAD")).text.trim();
  const publisher = await Publisher.connect(port);
  const hosted: HostedRepository[] = [];
  for (let index = 0; index < count; index++) {
    const key = owner();
    const repository = {
      ownerHex: key.pubkey,
      secretHex: Buffer.from(key.exportBytes()).toString("hex"),
      npub: npubOf(key.pubkey),
      identifier: `repository-${index}`,
    };
    const d = ["d", repository.identifier];
    const clone = ["clone", ...domains.map((domain) => `http://${domain}/${nameOf(repository)}.git`)];
    const relays = ["relays", ...domains.map((domain) => `ws://${domain}`)];
    const state = [d, ["refs/heads/main", tip], ["HEAD", "ref: refs/heads/main"]];
    for (const [kind, tags] of [
      [30617, [d, clone, relays]],
      [30618, state],
    ] as const) {
      const [ok, text] = await publisher.publish(repository.secretHex, kind, tags);
      if (!ok) throw new Error(text);
    }
    const pushed = await git(work, "push", "-q", urlOf(port, repository), "main");
    if (!pushed.ok) throw new Error(pushed.text);
    hosted.push(repository);
  }
  publisher.client.close();
  return hosted;
}

export async function missingEvents(port: number, ids: readonly string[]): Promise<number> {
  const client = await RawClient.connect(port);
  const found = new Set<string>();
  let end: () => void = () => undefined;
  client.onText = (payload) => {
    const message = JSON.parse(payload.toString()) as [string, string, { id: string } | undefined];
    if (message[0] === "EVENT" && message[2]) found.add(message[2].id);
    else if (message[0] === "EOSE" || message[0] === "CLOSED") end();
  };
  for (let at = 0; at < ids.length; at += 400) {
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    client.socket.write(frameOf(JSON.stringify(["REQ", `m${at}`, { ids: ids.slice(at, at + 400), limit: 400 }])));
    await ended;
    client.socket.write(frameOf(JSON.stringify(["CLOSE", `m${at}`])));
  }
  client.close();
  return ids.filter((id) => !found.has(id)).length;
}

/** A later state may have been stated and not pushed when the time was over: what was acknowledged must be reachable. */
export async function missingRefs(
  port: number,
  repositories: readonly HostedRepository[],
  refs: Readonly<Record<string, string>>,
): Promise<number> {
  let missing = 0;
  for (const repository of repositories) {
    const tip = refs[nameOf(repository)];
    if (tip === undefined) continue;
    const listed = await git("/", "ls-remote", urlOf(port, repository), "refs/heads/main");
    if (!listed.text.startsWith(tip)) missing++;
  }
  return missing;
}

/** A row for each kind of operation, over all processes. */
export function operationRows(goal: string, { traffic }: SceneResult, seconds: number): BenchRow[] {
  return traffic
    .flatMap(({ measured }) => measured)
    .map(({ operation, count, failures, p50Ms, p99Ms }) => ({
      goal,
      work: operation,
      measured: `p50 ${milliseconds(p50Ms)}, p99 ${milliseconds(p99Ms)} (${count.toLocaleString("en")}, ${((count * 60) / seconds).toFixed(0)}/min)`,
      target: "none fails",
      met: failures === 0,
    }));
}

/** What does not depend on who else is at work on the machine. */
export function processorRow(goal: string, { processor }: SceneResult): BenchRow {
  const percent = (share: number): string => `${Math.round(share * 100)} %`;
  return {
    goal,
    work: "server's processor time, all threads / event loop's thread",
    measured: `${percent(processor.all)} / ${percent(processor.mainThread)} of a core`,
  };
}

export function lossRow(goal: string, { traffic, missing }: SceneResult): BenchRow {
  const events = traffic.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0);
  const refs = traffic.reduce((sum, result) => sum + Object.keys(result.refs).length, 0);
  const closed = traffic.reduce((sum, result) => sum + result.closed, 0);
  const lost = missing.events + missing.refs + missing.afterRestart;
  const peer =
    missing.peerSeconds === undefined
      ? `the peer lacks ${missing.onPeer} events and ${missing.peerRefs} refs`
      : `all on the peer ${missing.peerSeconds.toFixed(0)} s later`;
  return {
    goal,
    work: `lost of ${events.toLocaleString("en")} acknowledged events and ${refs} refs, also after a restart`,
    measured: `${lost}; ${closed} sockets closed by the server; ${peer}`,
    target: "0",
    met: lost === 0 && closed === 0 && missing.peerSeconds !== undefined,
  };
}
