// How a server and its machine are. `holdfast status` asks the running server, over its own address (readiness, metrics,
// information document) and its admin socket (counts, verification engine, store); `holdfast doctor` looks at the machine
// a server is to run on and says what is missing and how to get it.

import { lookup } from "node:dns/promises";
import { existsSync, statSync } from "node:fs";
import { mkdir, statfs } from "node:fs/promises";
import { get } from "node:http";
import { createServer } from "node:net";
import { systemErrorSentence, thisMachine } from "../../base/system-error.js";
import { counted, sizeText, timeText } from "../../base/text.js";
import type { Config } from "../../config/config.js";
import { type HostPort, hostPortText } from "../../config/value-kinds.js";
import type { Status as Counts } from "../../operator/status.js";
import type { RelayStatus, SyncStatus } from "../../sync/status.js";
import { type Abilities, CommandFailure, type Verb } from "../abilities.js";
import { answering } from "../flags.js";
import { askRunning, withGit } from "../operate.js";
import { durationText } from "../progress.js";

export const status: Verb = (program, abilities) => {
  const command = program.command("status").description("ask the running server how it is");
  answering(command, abilities, async (config) => {
    const answer = await statusOf(config);
    if (!answer) throw new CommandFailure(`no server answers at ${serverUrl(config)}`, 1, { running: false });
    return { json: answer, isIndented: true, text: statusText(answer), isGood: answer.ready };
  });
  command.addHelpText(
    "after",
    "\nExamples:\n  holdfast status\n  holdfast status --bind-address 127.0.0.1:8080 --json",
  );
};

type RelaysOfSync = Partial<SyncStatus> & Pick<SyncStatus, "relays">;

interface Status {
  readonly running: true;
  readonly ready: boolean;
  readonly url: string;
  readonly readiness: unknown;
  readonly information: unknown;
  readonly metricsUrl: string;
  readonly metrics: Readonly<Record<string, number>>;
  /** Null where the admin socket cannot be reached. */
  readonly counts: Counts | null;
  readonly whyNoCounts?: string;
  /** How it keeps in step with other relays; of a private server the relays alone; null when it does not say. */
  readonly sync: RelaysOfSync | null;
}

async function statusOf(config: Config): Promise<Status | undefined> {
  const url = serverUrl(config);
  const readiness = await ask(`${url}/readyz`);
  if (!readiness) return undefined;
  const base = config.domain.includes("/") ? config.domain.slice(config.domain.indexOf("/")) : "/";
  const information = await ask(`${url}${base}`, { accept: "application/nostr+json" });
  const metricsAt = config.metricsBindAddress ? `http://${hostPortText(localAddress(config.metricsBindAddress))}` : url;
  const metricsUrl = `${metricsAt}/metrics`;
  const token = config.metricsToken;
  const metrics = await ask(metricsUrl, token ? { authorization: `Bearer ${token}` } : {});
  let whyNoCounts = "the admin socket cannot be reached";
  const counts = await askRunning(config, { operation: "status", parameters: {} }).catch((error: unknown) => {
    whyNoCounts = systemErrorSentence(error, thisMachine(["status"])) ?? whyNoCounts;
    return undefined;
  });
  return {
    running: true,
    ready: readiness.status === 200,
    url,
    readiness: jsonOr(readiness.body),
    information: information?.status === 200 ? jsonOr(information.body) : null,
    metricsUrl,
    metrics: metrics?.status === 200 ? plainMetrics(metrics.body) : {},
    counts: counts?.ok ? counts.result : null,
    ...(!counts?.ok && { whyNoCounts }),
    sync: config.privateMode ? await relaysBySocket(config) : await syncByAddress(url),
  };
}

async function syncByAddress(url: string): Promise<SyncStatus | null> {
  const answer = await ask(`${url}/api/sync`);
  return answer?.status === 200 ? (jsonOr(answer.body) as SyncStatus) : null;
}

/** A private server tells it to nobody who has not signed, as a careless proxy makes everybody a program of this machine. */
async function relaysBySocket(config: Config): Promise<RelaysOfSync | null> {
  const answer = await askRunning(config, { operation: "relays.list", parameters: {} }).catch(() => undefined);
  return answer?.ok ? { relays: answer.result.relays } : null;
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text.trim();
  }
}

/** The server's own metrics without labels; those with labels are added up. */
function plainMetrics(body: string): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const line of body.split("\n")) {
    const match = /^((?:ngit|purgatory)_\w+|process_resident_memory_bytes)(?:\{.*\})? ([-+.\deE]+)$/.exec(line);
    const name = match?.[1];
    if (!name || name.endsWith("_bucket")) continue;
    sums[name] = (sums[name] ?? 0) + Number(match?.[2]);
  }
  return sums;
}

function countLines({ counts, whyNoCounts }: Status): string[] {
  if (!counts) return [`counts     not available: ${whyNoCounts}`];
  const { server, store, repositories, archive, waiting } = counts;
  const inStatus = Object.entries(repositories).map(([status, count]) => `${count} ${status}`);
  return [
    `uptime     ${durationText(server?.uptimeSeconds ?? 0)}`,
    `signatures ${server?.verification ?? "-"}${server?.verificationAdvice ? `: ${server.verificationAdvice}` : ""}`,
    `git        ${server?.gitVersion ?? "-"}`,
    `events     ${store.events}, ${sizeText(store.bytesOnDisk)}`,
    `repos      ${inStatus.join(", ")}; ${counts.partialStates} with a partial state`,
    `archive    ${counted(archive.repositories, "mirror", "mirrors")}, ${sizeText(archive.bytes)} of ${sizeText(archive.maxBytes)} used`,
    `waiting    ${counted(waiting.entries, "event", "events")}, ${sizeText(waiting.bytes)}, ${counted(counts.placeholders, "unclaimed push", "unclaimed pushes")}`,
    `rules      ${counted(counts.bans, "ban", "bans")}, ${counted(counts.listEntries, "list entry", "list entries")}`,
    `clients    ${counted(server?.connections ?? 0, "connection", "connections")}, ${counted(server?.subscriptions ?? 0, "subscription", "subscriptions")}`,
  ];
}

function relayText(relay: RelayStatus): string {
  const next = relay.nextAttemptSeconds === null ? "" : `, next attempt in ${relay.nextAttemptSeconds} s`;
  const items = `${relay.confirmedItems} of ${counted(relay.wantedItems, "item", "items")} confirmed`;
  const { repositories, clean, oldest } = relay.compared;
  const since = oldest === null ? "" : `, the oldest at ${timeText(oldest)} UTC`;
  const compared = `${clean} of ${counted(repositories, "repository", "repositories")} compared clean${since}`;
  const step = relay.inStep ? "in step" : "not in step";
  return `${relay.relay} ${relay.state}, ${relay.health}, ${step}${next}; ${items}, ${counted(relay.liveFilters, "live filter", "live filters")}; ${compared}`;
}

function statusText(answer: Status): string {
  const information = answer.information as Record<string, unknown> | null;
  const lines = [
    `server     ${answer.url}`,
    `ready      ${answer.ready ? "yes" : `no: ${JSON.stringify(answer.readiness)}`}`,
    `name       ${String(information?.name ?? "-")}`,
    `version    ${String(information?.version ?? "-")}`,
  ];
  lines.push(...countLines(answer));
  for (const relay of answer.sync?.relays ?? []) lines.push(`relay      ${relayText(relay)}`);
  const hasMetrics = Object.keys(answer.metrics).length > 0;
  lines.push(hasMetrics ? `metrics    ${answer.metricsUrl}, or with --json` : "metrics    not available");
  return lines.map((line) => line.replace(/[\x00-\x1f\x7f-\x9f]/g, "?")).join("\n");
}

interface Finding {
  readonly check: string;
  readonly result: "ok" | "note" | "bad";
  readonly detail: string;
}

export const doctor: Verb = (program, abilities) => {
  const command = program
    .command("doctor")
    .description("check this machine: Node, git, signature verification, port, disk, clock, DNS, and its cluster");
  answering(command, abilities, async (config) => {
    const findings = await examine(config, abilities);
    const ok = findings.every((finding) => finding.result !== "bad");
    const lines = findings.map(({ check, result, detail }) => `${result.padEnd(4)}  ${check.padEnd(12)}  ${detail}`);
    return { json: { ok, findings }, isIndented: true, text: lines.join("\n"), isGood: ok };
  });
  command.addHelpText("after", "\nExample:\n  holdfast doctor --config /etc/holdfast.conf");
};

async function examine(config: Config, abilities: Abilities): Promise<Finding[]> {
  return [
    node(),
    await git(),
    await verification(abilities),
    await port(config),
    await disk("git data", config.gitDataPath, config),
    ...(config.databaseBackend === "memory" ? [] : [await disk("relay data", config.relayDataPath, config)]),
    ...(config.databaseBackend === "postgres" ? await cluster(config, abilities) : []),
    clock(abilities),
    ...(await names(config)),
  ];
}

const finding = (check: string, result: Finding["result"], detail: string): Finding => ({ check, result, detail });

function node(): Finding {
  const major = Number(process.versions.node.split(".")[0]);
  if (major < 20) return finding("node", "bad", `${process.versions.node} is too old: install Node 20 or newer`);
  if (major < 24) return finding("node", "ok", `${process.versions.node} (24 is faster at JSON and hashing)`);
  return finding("node", "ok", process.versions.node);
}

async function git(): Promise<Finding> {
  const { GitTooOldError } = await import("../../git/run.js");
  try {
    return finding("git", "ok", await withGit(async ({ version }) => version));
  } catch (error) {
    if (!(error instanceof GitTooOldError)) throw error;
    return finding("git", "bad", `${error.message}: install git 2.38 or newer`);
  }
}

async function verification({ cores }: Abilities): Promise<Finding> {
  const [{ createVerifierPool }, { verificationAdvice }] = await Promise.all([
    import("../../nostr/verify/pool.js"),
    import("../../nostr/verify/advice.js"),
  ]);
  const verifier = await createVerifierPool({ workers: Math.max(1, cores - 1) });
  await verifier.close();
  const advice = verificationAdvice(verifier.engine);
  return finding("verification", advice === undefined ? "ok" : "note", advice ?? verifier.engine);
}

async function port(config: Config): Promise<Finding> {
  const address = hostPortText(config.bindAddress);
  const failure = await tryListening(config.bindAddress);
  if (failure === undefined) return finding("port", "ok", `${address} is free`);
  const reply = await ask(`${serverUrl(config)}/healthz`);
  if (failure === "EADDRINUSE" && reply?.status === 200)
    return finding("port", "note", `a server answers at ${address}`);
  return finding("port", "bad", `${address} cannot be used (${failure}): choose another with NGIT_BIND_ADDRESS`);
}

function tryListening({ host, port: number }: HostPort): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen(number, host, () => server.close(() => resolve(undefined)));
  });
}

async function disk(check: string, path: string, config: Config): Promise<Finding> {
  try {
    await mkdir(path, { recursive: true });
    const { blocks, bavail, bsize } = await statfs(path);
    const usedPercent = blocks > 0 ? Math.round((1 - bavail / blocks) * 100) : 0;
    const detail = `${path}: ${sizeText(bavail * bsize)} free, ${usedPercent} % used`;
    if (usedPercent >= config.diskEventsMaxPercent) return finding(check, "bad", `${detail}: events are refused`);
    if (usedPercent >= config.diskPushMaxPercent) return finding(check, "note", `${detail}: pushes are refused`);
    return finding(check, "ok", detail);
  } catch (error) {
    return finding(
      check,
      "bad",
      systemErrorSentence(error, thisMachine(["doctor"])) ?? `${path} cannot be used: ${error}`,
    );
  }
}

/** What a machine of several needs beside the others. */
async function cluster(config: Config, { clock }: Abilities): Promise<Finding[]> {
  const [{ clusterPlace }, { problemText }, { askDatabase, readStatus }, { openPackStore }] = await Promise.all([
    import("../../config/cluster-place.js"),
    import("../../config/config.js"),
    import("../../store/postgres/status.js"),
    import("../../packs/open-pack-store.js"),
  ]);
  const place = clusterPlace(config);
  if (!place.ok) return [finding("cluster", "bad", problemText(place.problem))];
  const told = (check: string, asking: Promise<string>): Promise<Finding> =>
    asking.then(
      (detail) => finding(check, "ok", detail),
      (error: Error) => finding(check, "bad", error.message),
    );
  const packs = await openPackStore(place.value.packs);
  try {
    return [
      await told(
        "database",
        askDatabase(place.value, clock, readStatus).then((status) =>
          status
            ? `cluster ${status.cluster}, ${status.nodes.length} machines`
            : "no cluster yet: the first start makes it",
        ),
      ),
      await told(
        "pack store",
        packs.mark().then((mark) => `${packs.words}, ${mark ? `of cluster ${mark.cluster}` : "nobody's yet"}`),
      ),
    ];
  } finally {
    await packs.close();
  }
}

/** A clock far in the past refuses everybody's events as coming from the future. The program itself is a witness. */
function clock(abilities: Abilities): Finding {
  const nowMs = abilities.clock.nowMs();
  const now = new Date(nowMs).toISOString();
  const builtMs = statSync(new URL(import.meta.url)).mtimeMs;
  if (nowMs < builtMs - 86_400_000)
    return finding("clock", "bad", `${now} is before this program was built: set the clock`);
  const isKept = existsSync("/run/systemd/timesync/synchronized") || existsSync("/run/chrony/chronyd.pid");
  return finding(
    "clock",
    isKept ? "ok" : "note",
    isKept ? `${now}, synchronised` : `${now}; is a time service running?`,
  );
}

async function names(config: Config): Promise<Finding[]> {
  const relays = config.syncBootstrapRelayUrl.map((url) => new URL(url).hostname);
  const hosts = new Set([new URL(`http://${config.domain}`).hostname, ...relays]);
  hosts.delete("localhost");
  return Promise.all(
    [...hosts].map(async (host) => {
      try {
        const { address } = await lookup(host.replace(/^\[|\]$/g, ""));
        return finding("dns", "ok", `${host} is ${address}`);
      } catch (error) {
        return finding("dns", "bad", `${host} does not resolve (${(error as NodeJS.ErrnoException).code ?? "error"})`);
      }
    }),
  );
}

/** An address that means "all interfaces" is reached over loopback. */
function localAddress({ host, port }: HostPort): HostPort {
  if (host === "0.0.0.0") return { host: "127.0.0.1", port };
  return host === "::" ? { host: "::1", port } : { host, port };
}

const serverUrl = (config: Config): string => `http://${hostPortText(localAddress(config.bindAddress))}`;

interface Reply {
  readonly status: number;
  readonly body: string;
}

const maxReplyBytes = 16 * 2 ** 20;

/** The reply, or undefined when nobody answers. */
function ask(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Reply | undefined> {
  return new Promise((resolve) => {
    const request = get(url, { headers: { ...headers }, agent: false, timeout: 5000 }, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > maxReplyBytes) request.destroy();
        else chunks.push(chunk);
      });
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString("utf8") }),
      );
      response.on("close", () => resolve(undefined));
    });
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(undefined));
  });
}
