// What operators watch of a cluster: `ngit_cluster_*`. Facts of this machine are read when somebody asks; those of the
// database at most every few seconds, and never longer than a moment: the metrics must not hang on a database that is gone.

import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { gaugeOf } from "./base/gauge.js";
import { type PackStore, PackStoreError } from "./packs/port.js";
import type { ClusterStore } from "./store/postgres/open.js";
import type { ClusterStatus } from "./store/postgres/status.js";

const seconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 10];

export interface ClusterMetrics {
  /** A commit had to wait for its turn, and then held it. */
  turn(waitMs: number, holdMs: number): void;
  packStore(operation: string, outcome: string, bytes?: number): void;
  /** Facts that are there once the store is open. */
  watch(
    cluster: Pick<ClusterStore, "facts" | "epoch" | "node">,
    name: string,
    status: () => ClusterStatus | undefined,
  ): void;
}

export function createClusterMetrics(registry: Registry): ClusterMetrics {
  const registers = [registry];
  const histogram = (name: string, help: string): Histogram =>
    new Histogram({ name, help, buckets: seconds, registers });
  const wait = histogram(
    "ngit_cluster_lock_wait_seconds",
    "How long commits waited for their turn in the shared order",
  );
  const hold = histogram(
    "ngit_cluster_lock_hold_seconds",
    "How long commits held the turn, during which no other machine commits",
  );
  const requests = new Counter({
    name: "ngit_cluster_pack_store_requests_total",
    help: "Requests to the pack store, by what was asked and what came of it",
    labelNames: ["operation", "outcome"],
    registers,
  });
  const bytes = new Counter({
    name: "ngit_cluster_pack_store_bytes_total",
    help: "Bytes put into the pack store and fetched from it",
    labelNames: ["operation"],
    registers,
  });
  return {
    turn(waitMs, holdMs) {
      wait.observe(waitMs / 1_000);
      hold.observe(holdMs / 1_000);
    },
    packStore(operation, outcome, moved = 0) {
      requests.inc({ operation, outcome });
      if (moved > 0) bytes.inc({ operation }, moved);
    },
    watch(cluster, name, status) {
      new Gauge({
        name: "ngit_cluster_info",
        help: "Which machine this is",
        labelNames: ["node", "name"],
        registers,
      }).set({ node: cluster.node, name }, 1);
      gaugeOf(registry, "ngit_cluster_leader", "1 on the machine that leads", () =>
        cluster.epoch === undefined ? 0 : 1,
      );
      gaugeOf(
        registry,
        "ngit_cluster_applied_change",
        "The change of the shared log that this machine's view has",
        () => cluster.facts.applied,
      );
      gaugeOf(
        registry,
        "ngit_cluster_lag_changes",
        "Changes in the shared log that this machine has not applied yet",
        () => cluster.facts.newest - cluster.facts.applied,
      );
      totalOf(
        registry,
        "ngit_cluster_stale_answers_total",
        "Answers from the view because the database did not answer in time",
        () => cluster.facts.staleAnswers,
      );
      totalOf(
        registry,
        "ngit_cluster_unknown_commits_total",
        "Commits whose outcome had to be looked up because the database did not answer",
        () => cluster.facts.unknownCommits,
      );
      gaugeOf(registry, "ngit_cluster_log_bytes", "Bytes of the shared log", () => status()?.logBytes ?? 0);
      new Gauge({
        name: "ngit_cluster_nodes",
        help: "Machines of the cluster, alive or silent",
        labelNames: ["state"],
        registers,
        collect() {
          const nodes = status()?.nodes ?? [];
          const alive = nodes.filter(({ isAlive }) => isAlive).length;
          this.set({ state: "alive" }, alive);
          this.set({ state: "silent" }, nodes.length - alive);
        },
      });
    },
  };
}

/** A count that is kept elsewhere. */
function totalOf(registry: Registry, name: string, help: string, read: () => number): void {
  new Counter({
    name,
    help,
    registers: [registry],
    collect() {
      this.reset();
      this.inc(read());
    },
  });
}

/** The same store; what it is asked and what it answers is counted. */
export function counted(store: PackStore, count: ClusterMetrics["packStore"]): PackStore {
  async function counting<T>(
    operation: string,
    work: Promise<T>,
    bytesOf: (answer: T) => number = () => 0,
  ): Promise<T> {
    try {
      const answer = await work;
      count(operation, "ok", bytesOf(answer));
      return answer;
    } catch (error) {
      count(operation, error instanceof PackStoreError ? error.fault : "failed");
      throw error;
    }
  }
  return {
    words: store.words,
    put: (...args) => counting("put", store.put(...args), ({ bytes }) => bytes),
    fetch: (...args) => counting("fetch", store.fetch(...args), ({ bytes }) => bytes),
    has: (name) => counting("has", store.has(name)),
    list: (...args) => store.list(...args),
    remove: (name) => counting("remove", store.remove(name)),
    removeUnfinished: (beforeMs) => counting("remove", store.removeUnfinished(beforeMs)),
    mark: () => store.mark(),
    setMark: (mark) => store.setMark(mark),
    close: () => store.close(),
  };
}
