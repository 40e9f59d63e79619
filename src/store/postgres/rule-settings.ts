// Settings that should be the same on all machines of a cluster: what is accepted must not depend on which of them a load
// balancer chose. Each machine tells the others digests of its settings; those that differ are named in a warning.

import { createHash } from "node:crypto";
import type { Config } from "../../config/config.js";
import { allSettings, sections } from "../../config/schema.js";
import type { Commit, Store } from "../port.js";

/** By name. */
export type SettingDigests = Readonly<Record<string, string>>;

/** What each machine has for itself. */
const ownSections: ReadonlySet<string> = new Set([
  "Storage",
  "Several machines as one",
  "Logs and metrics",
  "Serving git",
  "Tests and closed networks",
]);
const ownSettings: ReadonlySet<string> = new Set(["NGIT_BIND_ADDRESS", "NGIT_TRUSTED_PROXIES"]);
const own = new Set(sections.flatMap(({ title, settings }) => (ownSections.has(title) ? settings : [])).map(nameOf));
const shared = allSettings.filter(({ name, secret }) => !own.has(name) && !secret && !ownSettings.has(name));

function nameOf({ name }: { readonly name: string }): string {
  return name;
}

export function ruleSettings(config: Config): SettingDigests {
  const digests: Record<string, string> = {};
  for (const { name, property } of shared) {
    const value = JSON.stringify(config[property]) ?? "";
    digests[name] = createHash("sha256").update(value).digest("hex").slice(0, 8);
  }
  return digests;
}

/** The names of settings that are not the same there. A program of another version may know others: that is no difference. */
export const settingsApart = (mine: SettingDigests, theirs: SettingDigests): string[] =>
  Object.keys(mine).filter((name) => name in theirs && theirs[name] !== mine[name]);

interface NodeSettings {
  /** What people call the machine. */
  readonly name: string;
  readonly digests: SettingDigests;
}

interface WatchParts {
  readonly store: Store;
  readonly node: string;
  readonly name: string;
  readonly live: { readonly current: Config; onChange(listener: () => void): () => void };
  readonly warn: (sentence: string) => void;
  readonly failed: (error: unknown) => void;
}

const prefix = "node-settings:";

/** Machines that told their settings. */
export async function nodesWithSettings(store: Store): Promise<readonly string[]> {
  const nodes: string[] = [];
  for await (const [key] of store.rows("meta", { prefix })) nodes.push(key.slice(prefix.length));
  return nodes;
}

/** Of machines that were forgotten: what they were set to concerns nobody. */
export async function forgetSettings(store: Store, nodes: readonly string[]): Promise<void> {
  if (nodes.length === 0) return;
  await store.transact(async (tx) => {
    for (const node of nodes) tx.deleteRow("meta", prefix + node);
  });
}

/** Until it is closed, which takes this machine's row away. */
export async function watchRuleSettings(parts: WatchParts): Promise<{ close(): Promise<void> }> {
  const { store, node, name, live, warn, failed } = parts;
  const warned = new Map<string, string>();
  const compare = (key: string, theirs: NodeSettings | undefined): void => {
    const apart = theirs && key !== prefix + node ? settingsApart(ruleSettings(live.current), theirs.digests) : [];
    const names = apart.join(", ");
    if (names !== "" && names !== warned.get(key)) {
      warn(`${names}: not set alike on this machine and on ${theirs?.name}; what is accepted depends on who is asked`);
    }
    warned.set(key, names);
  };
  const compareAll = async (): Promise<void> => {
    for await (const [key, row] of store.rows<NodeSettings>("meta", { prefix })) compare(key, row);
  };
  const tell = async (): Promise<void> => {
    const row: NodeSettings = { name, digests: ruleSettings(live.current) };
    await store.transact(async (tx) => tx.setRow("meta", prefix + node, row));
    await compareAll();
  };
  const follow = async (commit: Commit): Promise<void> => {
    for (const key of commit.changedKeys("meta")) {
      if (!key.startsWith(prefix)) continue;
      const row = await store.row<NodeSettings>("meta", key);
      compare(key, row);
      // It was away so long that the others forgot it. Not awaited: the writer waits for those who follow.
      if (key === prefix + node && row === undefined) void tell().catch(failed);
    }
  };
  await tell();
  const stops = [store.onForeignCommit(follow), live.onChange(() => void tell().catch(failed))];
  return {
    async close() {
      for (const stop of stops) stop();
      await store.transact(async (tx) => tx.deleteRow("meta", prefix + node)).catch(() => undefined);
    },
  };
}
