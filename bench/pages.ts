// The goals of the code pages: a repository of BENCH_COMMITS (10,000) commits made from a package's sources, its pages cold
// and warm, how many that are known already a core makes in a second, how heavy they are, and what 50 readers do to events
// and pushes beside them. Everybody comes from an address of their own.

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { SecretKey } from "../src/nostr/keys.js";
import { npubOf } from "../src/nostr/nip19.js";
import { longHistory, sourceTree } from "../test/harness/long-history.js";
import { holdRows } from "./page-holds.js";
import { type BenchServer, freePort, inFolder, startBenchServer } from "./processes.js";
import { type Benchmark, type BenchRow, milliseconds, percentile } from "./rows.js";
import { git, Publisher } from "./traffic-git.js";

const goal = "pages";
const commits = Number(process.env.BENCH_COMMITS ?? 10_000);
const looked = Number(process.env.BENCH_PAGES ?? 40);
const cachedSeconds = 4;
const readers = 50;
const rounds = 4;

interface Answer {
  readonly status: number;
  readonly body: Buffer;
  readonly ms: number;
}

const agent = new Agent({ keepAlive: true, maxSockets: 100 });

function ask(url: string, ip: string): Promise<Answer> {
  const began = performance.now();
  return new Promise((resolve, reject) => {
    const headers = { Accept: "text/html", "X-Forwarded-For": ip };
    const asked = request(url, { agent, headers }, (response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(pieces), ms: performance.now() - began }),
      );
    });
    asked.on("error", reject).end();
  });
}

let asking = 0;
const someone = (): string => `10.${(asking >> 16) & 255}.${(asking >> 8) & 255}.${asking++ & 255}`;

/** Evenly over the list. */
const some = <Item>(items: readonly Item[], count: number): Item[] =>
  Array.from(
    { length: Math.min(count, items.length) },
    (_, index) => items[Math.floor((index * items.length) / Math.min(count, items.length))] as Item,
  );

interface Hosted {
  readonly url: string;
  readonly secretHex: string;
  readonly folder: string;
  readonly addresses: Readonly<Record<"tree" | "blob" | "commit", readonly string[]>>;
}

async function host(folder: string, port: number): Promise<Hosted> {
  await mkdir(folder);
  const ran = async (...args: string[]): Promise<string> => {
    const { ok, text } = await git(folder, ...args);
    if (!ok) throw new Error(`git ${args.join(" ")}: ${text}`);
    return text.trim();
  };
  await ran("init", "-q", "-b", "main");
  const importing = spawn("git", ["fast-import", "--quiet"], { cwd: folder, stdio: ["pipe", "ignore", "inherit"] });
  const files = await sourceTree(fileURLToPath(new URL("../../node_modules/zod/src", import.meta.url)));
  for (const piece of longHistory(files, commits, { "README.md": "# Long\n\nA long history.\n" })) {
    if (!importing.stdin.write(piece)) await once(importing.stdin, "drain");
  }
  importing.stdin.end();
  await once(importing, "exit");
  const secretHex = randomBytes(32).toString("hex");
  const key = SecretKey.fromHex(secretHex);
  if (!key) throw new Error("not a key");
  const url = `http://127.0.0.1:${port}/${npubOf(key.pubkey)}/long.git`;
  const publisher = await Publisher.connect(port);
  const relays = `ws://127.0.0.1:${port}`;
  const refs = (await ran("for-each-ref", "--format=%(refname) %(objectname)"))
    .split("\n")
    .map((line) => line.split(" "));
  await must(
    publisher.publish(secretHex, 30_617, [
      ["d", "long"],
      ["clone", url],
      ["relays", relays],
    ]),
  );
  await must(publisher.publish(secretHex, 30_618, [["d", "long"], ...refs, ["HEAD", "ref: refs/heads/main"]]));
  await ran("push", "-q", url, ...refs.map(([name]) => `${name}:${name}`));
  publisher.client.socket.destroy();
  const paths = (await ran("ls-tree", "-r", "--name-only", "main")).split("\n");
  const folders = [...new Set(paths.map((path) => path.split("/").slice(0, -1).join("/")))];
  const oids = (await ran("rev-list", "main")).split("\n");
  const addresses = {
    tree: some(folders, looked).map((path) => `${url}/tree/main${path === "" ? "" : `/${path}`}`),
    blob: some(paths, looked).map((path) => `${url}/blob/main/${path}`),
    commit: some(oids, looked).map((oid) => `${url}/commit/${oid}`),
  };
  return { url, secretHex, folder, addresses };
}

async function must(answer: Promise<readonly [boolean, string, ...unknown[]]>): Promise<void> {
  const [ok, text] = await answer;
  if (!ok) throw new Error(text);
}

async function times(addresses: readonly string[]): Promise<number[]> {
  const taken: number[] = [];
  for (const address of addresses) {
    const { status, ms } = await ask(address, someone());
    if (status !== 200) throw new Error(`${address}: ${status}`);
    taken.push(ms);
  }
  return taken;
}

async function latencyRows({ addresses }: Hosted): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  for (const [page, all] of Object.entries(addresses)) {
    const cold = await times(all);
    await times(all);
    const warm = await times(all);
    for (const [state, taken, limitMs] of [
      ["cold", cold, 150],
      ["warm", warm, 30],
    ] as const) {
      const p50 = percentile(taken, 0.5);
      rows.push({
        goal,
        work: `${page} page, ${state}, ${taken.length} of them, one after the other`,
        measured: `p50 ${milliseconds(p50)}, p99 ${milliseconds(percentile(taken, 0.99))}`,
        target: `p50 < ${limitMs} ms`,
        met: p50 < limitMs,
      });
    }
  }
  return rows;
}

/** Of processor time: what else runs on the machine does not count. */
async function cachedRow(server: BenchServer, { addresses }: Hosted): Promise<BenchRow> {
  const all = Object.values(addresses).flat();
  const before = await server.usage();
  const until = performance.now() + cachedSeconds * 1_000;
  let pages = 0;
  await Promise.all(
    Array.from({ length: 16 }, async (_, reader) => {
      for (let turn = reader; performance.now() < until; turn += 16) {
        const { status } = await ask(all[turn % all.length] ?? "", someone());
        if (status === 200) pages += 1;
      }
    }),
  );
  const after = await server.usage();
  const perCore = (pages * 1_000) / (after.cpuMs - before.cpuMs);
  return {
    goal,
    work: `pages that are known already, 16 at a time, a second of processor time (all threads)`,
    measured: `${Math.round(perCore)}/s a core, ${Math.round(pages / cachedSeconds)}/s`,
    target: "300/s a core",
    met: perCore >= 300,
  };
}

async function weightRows(hosted: Hosted): Promise<BenchRow[]> {
  const weigh = async (url: string): Promise<{ html: number; others: number; gzipped: number }> => {
    const { body } = await ask(url, someone());
    const { origin } = new URL(url);
    const paths = [...body.toString("utf8").matchAll(/(?:href|src)="(\/assets\/[^"]+\.(?:css|js))"/g)];
    let others = 0;
    for (const [, path = ""] of paths) others += (await ask(origin + path, someone())).body.length;
    return { html: body.length, others, gzipped: gzipSync(body).length };
  };
  const first = await weigh(hosted.url);
  const kilobytes = (bytes: number): string => `${(bytes / 1_000).toFixed(1)} kB`;
  const rows: BenchRow[] = [
    {
      goal,
      work: "first page: markup, style and script",
      measured: `${kilobytes(first.html)} + ${kilobytes(first.others)} = ${kilobytes(first.html + first.others)}`,
      target: "< 60 kB",
      met: first.html + first.others < 60_000,
    },
  ];
  for (const [page, url] of Object.entries({
    tree: hosted.addresses.tree[1],
    blob: hosted.addresses.blob[3],
    commit: hosted.addresses.commit[1],
    commits: `${hosted.url}/commits/main`,
    branches: `${hosted.url}/branches`,
    blame: hosted.addresses.blob[3]?.replace("/blob/", "/blame/"),
    find: `${hosted.url}/find/main`,
    compare: `${hosted.url}/compare/topic-8...topic-9`,
  })) {
    const { html, gzipped } = await weigh(url ?? "");
    rows.push({
      goal,
      work: `${page} page, markup`,
      measured: `${kilobytes(html)} (${kilobytes(gzipped)} if it were packed)`,
    });
  }
  return rows;
}

/** How long an event takes to its OK, and a small push to its end. One publisher for all: its states grow newer. */
async function writing({ secretHex, url, folder }: Hosted, publisher: Publisher): Promise<Written> {
  const key = SecretKey.fromHex(secretHex);
  const [events, pushes]: [number[], number[]] = [[], []];
  for (let index = 0; index < 100; index++) {
    const began = performance.now();
    await must(
      publisher.publish(secretHex, 1_621, [
        ["a", `30617:${key?.pubkey}:long`],
        ["subject", `Issue ${index} ${randomBytes(4).toString("hex")}`],
      ]),
    );
    events.push(performance.now() - began);
  }
  for (let index = 0; index < 5; index++) {
    await git(folder, "checkout", "-q", "main");
    await writeFile(join(folder, "pushed.txt"), randomBytes(20).toString("hex"));
    await git(folder, "add", "pushed.txt");
    await git(folder, "commit", "-q", "-m", "Beside readers");
    const refs = (await git(folder, "for-each-ref", "--format=%(refname) %(objectname)")).text
      .trim()
      .split("\n")
      .map((line) => line.split(" "));
    await must(publisher.publish(secretHex, 30_618, [["d", "long"], ...refs, ["HEAD", "ref: refs/heads/main"]]));
    const began = performance.now();
    const { ok, text } = await git(folder, "push", "-q", url, "main");
    if (!ok) throw new Error(text);
    pushes.push(performance.now() - began);
  }
  return { events, pushes };
}

interface Written {
  readonly events: number[];
  readonly pushes: number[];
}

/** By turns without and with readers: what else happens on the machine meets both. */
async function besideReaders(hosted: Hosted, port: number): Promise<BenchRow[]> {
  const publisher = await Publisher.connect(port);
  const all = Object.values(hosted.addresses).flat();
  const [alone, beside]: [Written, Written] = [
    { events: [], pushes: [] },
    { events: [], pushes: [] },
  ];
  let pages = 0;
  let seconds = 0;
  const write = async (to: Written): Promise<void> => {
    const { events, pushes } = await writing(hosted, publisher);
    to.events.push(...events);
    to.pushes.push(...pushes);
  };
  for (let round = 0; round < rounds; round++) {
    await write(alone);
    let isOver = false;
    const reading = Array.from({ length: readers }, async (_, reader) => {
      for (let turn = reader; !isOver; turn += 7) {
        const { status } = await ask(all[turn % all.length] ?? "", `10.200.${round}.${reader}`);
        if (status === 200) pages += 1;
        await new Promise((resolve) => setTimeout(resolve, 1_000));
      }
    });
    const began = performance.now();
    await write(beside);
    isOver = true;
    seconds += (performance.now() - began) / 1_000;
    await Promise.all(reading);
  }
  publisher.client.socket.destroy();
  const row = (work: string, without: readonly number[], withThem: readonly number[]): BenchRow => {
    const [a, b] = [percentile(without, 0.5), percentile(withThem, 0.5)];
    return {
      goal,
      work: `${work}, with ${readers} readers of a page a second beside it, as ratio to none`,
      measured: `p50 ${milliseconds(b)} to ${milliseconds(a)}; p90 ${milliseconds(percentile(withThem, 0.9))} to ${milliseconds(percentile(without, 0.9))}; ${without.length} each`,
      ratio: b / a,
      target: "not delayed: at most 2",
      met: b / a <= 2,
    };
  };
  return [
    row(`EVENT to its OK (readers got ${Math.round(pages / seconds)} pages/s)`, alone.events, beside.events),
    row("git push", alone.pushes, beside.pushes),
  ];
}

export const pagesBenchmark: Benchmark = {
  name: "pages",
  run: () =>
    inFolder(async (folder) => {
      const port = await freePort();
      const settings = {
        BENCH_POLICY: "grasp",
        NGIT_DOMAIN: `127.0.0.1:${port}`,
        NGIT_TRUSTED_PROXIES: "loopback",
        NGIT_ALLOW_PRIVATE_ADDRESSES: "true",
        NGIT_GIT_PACK_CONCURRENT_PER_IP: "100",
      };
      const first = await startBenchServer(join(folder, "server"), settings, port);
      const hosted = await host(join(folder, "work"), port);
      await first.close();
      // Nothing is known of any page: another process.
      const server = await startBenchServer(join(folder, "server"), settings, port);
      process.stderr.write(`  ${commits} commits hosted\n`);
      const rows = await latencyRows(hosted);
      rows.push(await cachedRow(server, hosted), ...(await weightRows(hosted)), ...(await besideReaders(hosted, port)));
      rows.push(...(await holdRows(server, join(folder, "wide"), (url) => ask(url, someone()))));
      await server.close();
      agent.destroy();
      return rows;
    }),
};
