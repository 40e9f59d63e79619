// Dashboard and alert rules ask only for numbers a server really has: a started server is fed a little, and its
// /metrics is compared with every query.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { Registry } from "prom-client";
import { createClusterMetrics } from "../../src/cluster-metrics.js";
import { Person } from "../harness/grasp-people.js";
import { Story } from "../harness/grasp-story.js";
import { readPromQl } from "./deploy-promql.js";

const dashboardFile = "deploy/grafana/dashboard.json";
const alertsFile = "deploy/prometheus/alerts.yaml";

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string }[];
}

const dashboard = JSON.parse(readFileSync(dashboardFile, "utf8")) as { readonly panels: readonly Panel[] };
const alerts = [...readFileSync(alertsFile, "utf8").matchAll(/- alert: (\w+)\n\s+expr: (.+)\n/g)].map(
  ([, name = "", expr = ""]) => ({ where: `alert ${name}`, expr }),
);
const queries = [
  ...dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({ where: `panel ${title}`, expr })),
  ),
  ...alerts,
];

/** Made by Prometheus itself and by the exporters docs/how-to/monitor.md names. */
const othersMetrics = new Set(["up", "probe_success"]);

/** Labels Prometheus adds to everything it scrapes, and those of histograms. */
const addedLabels = new Set(["job", "instance", "le"]);

/** Rooms whose numbers are asked for, where they are made. Not looked for only while that file does not exist. */
const rooms = [
  { file: "src/hunt/metrics.ts", prefixes: ["purgatory_", "ngit_git_fetch_"] },
  { file: "src/sync/metrics.ts", prefixes: ["ngit_sync_"] },
];
const isOfAbsentRoom = (metric: string): boolean =>
  rooms.some(({ file, prefixes }) => !existsSync(file) && prefixes.some((prefix) => metric.startsWith(prefix)));

interface Exposed {
  readonly types: ReadonlyMap<string, string>;
  readonly helps: ReadonlyMap<string, string>;
  /** Only of metrics that have samples. */
  readonly labels: ReadonlyMap<string, ReadonlySet<string>>;
}

function exposedBy(text: string): Exposed {
  const types = new Map<string, string>();
  const helps = new Map<string, string>();
  const labels = new Map<string, Set<string>>();
  for (const line of text.split("\n")) {
    const [, name, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
    if (name !== undefined && type !== undefined) types.set(name, type);
    const [, helped, help] = /^# HELP (\S+) (.+)$/.exec(line) ?? [];
    if (helped !== undefined && help !== undefined) helps.set(helped, help);
    const [, metric, braces = ""] = /^([a-z]\w*)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
    if (metric === undefined) continue;
    const seen = labels.get(metric) ?? new Set();
    for (const [, label = ""] of braces.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)) seen.add(label);
    labels.set(metric, seen);
  }
  return { types, helps, labels };
}

/** As it is registered: a histogram is asked for by the names of its parts. */
function registeredName({ types }: Exposed, metric: string): string | undefined {
  if (types.has(metric)) return types.get(metric) === "histogram" ? undefined : metric;
  const histogram = /^(.+)_(?:bucket|sum|count)$/.exec(metric)?.[1];
  return histogram !== undefined && types.get(histogram) === "histogram" ? histogram : undefined;
}

const tablePage = "docs/how-to/monitor.md";
const tableHead = "| metric | type | what it says | shown at |\n|---|---|---|---|\n";

/** Every number of our own, and those of the process that somebody asks for, with the panels and alerts that do. */
function metricTable(exposed: Exposed): string {
  const shownAt = new Map<string, Set<string>>();
  let row = "";
  const note = (expr: string, place: string): void => {
    const read = readPromQl(expr);
    for (const { metric } of read.ok ? read.asked : []) {
      const name = registeredName(exposed, metric);
      if (name) shownAt.set(name, (shownAt.get(name) ?? new Set()).add(place));
    }
  };
  for (const { type, title, targets = [] } of dashboard.panels) {
    if (type === "row") row = title;
    for (const { expr } of targets) note(expr, `${row}: *${title}*`);
  }
  for (const { where, expr } of alerts) note(expr, where.replace(/^alert (.+)$/, "alert `$1`"));
  const names = [...exposed.types.keys()].filter((name) => /^(?:ngit|purgatory)_/.test(name) || shownAt.has(name));
  const cell = (text: string): string => text.replaceAll("|", "\\|");
  return names
    .sort()
    .map((name) => {
      const places = [...(shownAt.get(name) ?? ["not on the dashboard"])].join("; ");
      return `| \`${name}\` | ${exposed.types.get(name)} | ${cell(exposed.helps.get(name) ?? "")} | ${cell(places)} |\n`;
    })
    .join("");
}

/** What a machine of a cluster tells beside all that. Its numbers are those of no real one: only names and labels count here. */
async function clusterMetrics(): Promise<string> {
  const registry = new Registry();
  const metrics = createClusterMetrics(registry);
  const facts = { applied: 1, newest: 1, staleAnswers: 0, unknownCommits: 0, lockWaitMs: 0, lockHoldMs: 0 };
  metrics.watch({ facts, epoch: 1, node: "n" }, "one", () => undefined);
  metrics.packStore("put", "ok", 1);
  return registry.metrics();
}

describe("dashboard and alerts", { timeout: 900_000 }, () => {
  let exposed: Exposed;
  let story: Story;

  before(async () => {
    story = await Story.begin();
    const owner = new Person();
    const { work, url } = await story.hosted(owner, "measured");
    await work.commit("not stated");
    assert.notEqual((await work.git("push", "-q", url, "main")).code, 0);
    await story.announce(owner, "waits");
    await story.publish(owner.sign(1, [], "belongs to nothing"));
    const answer = await fetch(`${story.server.origin}/metrics`);
    assert.equal(answer.status, 200);
    exposed = exposedBy((await answer.text()) + (await clusterMetrics()));
  });
  after(() => story.end());

  for (const { where, expr } of queries) {
    test(`${where}: ${expr}`, () => {
      const read = readPromQl(expr);
      assert.ok(read.ok, read.ok ? "" : read.fault);
      for (const { metric, labels } of read.asked) {
        if (othersMetrics.has(metric) || isOfAbsentRoom(metric)) continue;
        assert.ok(registeredName(exposed, metric), `/metrics has no ${metric}`);
        const known = exposed.labels.get(metric);
        if (known === undefined) continue;
        for (const label of labels) {
          assert.ok(addedLabels.has(label) || known.has(label), `${metric} has no label ${label}`);
        }
      }
    });
  }

  test("the table of metrics and panels is what server, dashboard and alerts have (METRICS_TABLE=write writes it)", () => {
    const page = readFileSync(tablePage, "utf8");
    const [before = "", table = ""] = page.split(tableHead);
    const wanted = metricTable(exposed);
    if (process.env.METRICS_TABLE === "write") writeFileSync(tablePage, before + tableHead + wanted);
    else assert.equal(table, wanted);
  });

  test("every number of our own is on the dashboard", () => {
    assert.doesNotMatch(metricTable(exposed), /not on the dashboard/);
  });

  test("what was fed has samples, so that labels were really compared", () => {
    for (const metric of [
      "ngit_git_operations_total",
      "ngit_git_push_authorization_total",
      "ngit_events_rejected_total",
      "ngit_purgatory_entries",
      "ngit_purgatory_released_total",
      "ngit_git_housekeeping_runs_total",
      "ngit_disk_used_ratio",
    ]) {
      assert.ok((exposed.labels.get(metric)?.size ?? 0) > 0, metric);
    }
  });
});

test("the dashboard has a row for every part of the server and answers the six questions about sync", () => {
  const rows = dashboard.panels.filter(({ type }) => type === "row").map(({ title }) => title);
  assert.deepEqual(rows, [
    "At a glance",
    "Relay",
    "Git",
    "Purgatory",
    "Hunting for git data",
    "Sync with other relays",
    "Process",
    "Large files",
    "Several machines",
  ]);
  const asked = queries.map(({ expr }) => expr.replaceAll('job="$job",', "").replaceAll('{job="$job"}', ""));
  for (const question of [
    'count_values("status", ngit_sync_relay_status)',
    'sum(rate(ngit_sync_connection_attempts_total{result="success"}[1h])) / sum(rate(ngit_sync_connection_attempts_total[1h]))',
    "sum by (relay) (rate(ngit_sync_gap_events_total[1h]))",
    'sum(rate(ngit_sync_events_total{source=~"reconnect|daily"}[1h])) / sum(rate(ngit_sync_events_total[1h]))',
    "topk(10, ngit_sync_relay_failures)",
    "ngit_sync_relay_status == 3",
  ]) {
    assert.ok(asked.includes(question), question);
  }
});

test("panels have ids of their own and do not lie over each other", () => {
  const { panels } = dashboard;
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  for (const [index, { title, gridPos: a }] of panels.entries()) {
    assert.ok(a.x + a.w <= 24, title);
    for (const { title: other, gridPos: b } of panels.slice(index + 1)) {
      const apart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
      assert.ok(apart, `${title} lies over ${other}`);
    }
  }
});

test("every alert has an expression on one line, a severity and a summary", () => {
  const text = readFileSync(alertsFile, "utf8");
  const blocks = text.split("- alert: ").slice(1);
  assert.equal(blocks.length, alerts.length);
  assert.ok(alerts.length >= 10);
  for (const block of blocks) {
    assert.match(block, /labels: \{ severity: (warning|critical) \}/);
    assert.match(block, /summary: ".+"/);
  }
});

test("the reader of queries sees slips", () => {
  for (const wrong of [
    "sum(rate(x[5m])",
    "rat(x[5m])",
    "sum by relay (x)",
    'x{a="b}',
    "x{a=b}",
    "sum",
    "1 + 1",
    "x[5m)",
    "x # y",
  ]) {
    assert.equal(readPromQl(wrong).ok, false, wrong);
  }
  assert.deepEqual(readPromQl('sum by (a) (rate(x{b=~"c|d"}[5m:1m])) / y == 3'), {
    ok: true,
    asked: [
      { metric: "x", labels: ["b", "a"] },
      { metric: "y", labels: ["a"] },
    ],
  });
});

const promtool = "promtool";
const hasPromtool = spawnSync(promtool, ["--version"]).error === undefined;
test("promtool accepts the rules", { skip: hasPromtool ? false : "promtool is not installed" }, () => {
  const checked = spawnSync(promtool, ["check", "rules", alertsFile], { encoding: "utf8" });
  assert.equal(checked.status, 0, checked.stdout + checked.stderr);
});
