// `holdfast status`: asks the running server how it is, over its own address (readiness, metrics, information document)
// and its admin socket (counts, verification engine, store).

import { sizeText } from "../../base/text.js";
import type { Config } from "../../config/config.js";
import { hostPortText } from "../../config/kinds.js";
import type { Status as Counts } from "../../operator/status.js";
import type { RelayStatus, SyncStatus } from "../../sync/status.js";
import type { Verb } from "../abilities.js";
import { CommandFailure } from "../abilities.js";
import { askRunning } from "../operate.js";
import { ask, localAddress, serverUrl } from "../server-address.js";
import { acceptSettings, settingsOf } from "../setting-flags.js";
import { timeText } from "../table.js";

export const status: Verb = (program, abilities) => {
  const command = program
    .command("status")
    .description("ask the running server how it is")
    .option("--json", "answer as JSON");
  acceptSettings(command).action(async () => {
    const { config } = settingsOf(command, abilities);
    const answer = await statusOf(config);
    if (!answer) {
      throw new CommandFailure(`no server answers at ${serverUrl(config)}`, 1, { running: false });
    }
    const text = command.getOptionValue("json") ? JSON.stringify(answer, null, 2) : statusText(answer);
    await abilities.terminal.out(`${text}\n`);
    if (!answer.ready) throw new CommandFailure("", 1);
  });
  command.addHelpText(
    "after",
    "\nExamples:\n  holdfast status\n  holdfast status --bind-address 127.0.0.1:8080 --json",
  );
};

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
  /** How it keeps in step with other relays; null when it does not say. */
  readonly sync: SyncStatus | null;
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
  const counts = await askRunning(config, { operation: "status", parameters: {} }).catch(() => undefined);
  const sync = await ask(`${url}/api/sync`);
  return {
    running: true,
    ready: readiness.status === 200,
    url,
    readiness: jsonOr(readiness.body),
    information: information?.status === 200 ? jsonOr(information.body) : null,
    metricsUrl,
    metrics: metrics?.status === 200 ? plainMetrics(metrics.body) : {},
    counts: counts?.ok ? (counts.result as Counts) : null,
    sync: sync?.status === 200 ? ((jsonOr(sync.body) as SyncStatus | undefined) ?? null) : null,
  };
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

function countLines(counts: Counts | null): string[] {
  if (!counts) return ["counts     not available: the admin socket cannot be reached"];
  const { server, store, repositories, archive, waiting } = counts;
  const inStatus = Object.entries(repositories).map(([status, count]) => `${count} ${status}`);
  return [
    `uptime     ${server?.uptimeSeconds ?? 0} s`,
    `signatures ${server?.verification ?? "-"}`,
    `git        ${server?.gitVersion ?? "-"}`,
    `events     ${store.events}, ${store.bytesOnDisk} bytes`,
    `repos      ${inStatus.join(", ")}; ${counts.partialStates} with a partial state`,
    `archive    ${archive.repositories} mirrors, ${sizeText(archive.bytes)} of ${sizeText(archive.maxBytes)} used`,
    `waiting    ${waiting.entries} events, ${waiting.bytes} bytes, ${counts.placeholders} unclaimed pushes`,
    `rules      ${counts.bans} bans, ${counts.listEntries} list entries`,
    `clients    ${server?.connections ?? 0} connections, ${server?.subscriptions ?? 0} subscriptions`,
  ];
}

function relayText(relay: RelayStatus): string {
  const next = relay.nextAttemptSeconds === null ? "" : `, next attempt in ${relay.nextAttemptSeconds} s`;
  const items = `${relay.confirmedItems} of ${relay.wantedItems} items confirmed`;
  const { repositories, clean, oldest } = relay.compared;
  const since = oldest === null ? "" : `, the oldest at ${timeText(oldest)} UTC`;
  const compared = `${clean} of ${repositories} repositories compared clean${since}`;
  const step = relay.inStep ? "in step" : "not in step";
  return `${relay.relay} ${relay.state}, ${relay.health}, ${step}${next}; ${items}, ${relay.liveFilters} live filters; ${compared}`;
}

function statusText(answer: Status): string {
  const information = answer.information as Record<string, unknown> | null;
  const lines = [
    `server     ${answer.url}`,
    `ready      ${answer.ready ? "yes" : `no: ${JSON.stringify(answer.readiness)}`}`,
    `name       ${String(information?.name ?? "-")}`,
    `version    ${String(information?.version ?? "-")}`,
  ];
  lines.push(...countLines(answer.counts));
  for (const relay of answer.sync?.relays ?? []) lines.push(`relay      ${relayText(relay)}`);
  const hasMetrics = Object.keys(answer.metrics).length > 0;
  lines.push(hasMetrics ? `metrics    ${answer.metricsUrl}, or with --json` : "metrics    not available");
  return lines.map((line) => line.replace(/[\x00-\x1f\x7f-\x9f]/g, "?")).join("\n");
}
