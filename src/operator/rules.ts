// The rules an operator set at run time, read from the store and kept in memory for look-up: entries of white- and
// blacklists, blocked networks, kinds that are not taken, relays left alone, the relay's name. Laid over the configuration;
// no file is changed. Whoever writes one of these rows calls `refresh` afterwards; then it is in force.
// Banned events are read where events are judged; here is only known whether there are any. Banned keys are known here too: a
// private service lets none of them in.
//   lists: <list>:<a|r|i|s>:<key> → ListRow      bans: ip:<network>, kind:<number>, relay:<key> → BanRow
//   meta:  profile:<field>        → text

import { BlockList, isIP, isIPv6 } from "node:net";
import { Members } from "../access/members.js";
import { policyOfOperator, policyWithImports } from "../admission/policy.js";
import { type AdmissionSettings, admissionSettings } from "../admission/settings.js";
import type { AdmissionPolicy } from "../admission/verdict.js";
import { type BanRow, bannedAuthorKey } from "../catalogue/bans-and-lists.js";
import type { Config } from "../config/config.js";
import type { ListEntry, ServiceEntry } from "../config/value-kinds.js";
import type { ServiceName } from "../net/url.js";
import type { Pubkey } from "../nostr/event.js";
import type { Commit, TableReader } from "../store/port.js";
import { networkNamed } from "./naming.js";

export const listNames = [
  "repository-whitelist",
  "repository-blacklist",
  "event-blacklist",
  "archive-whitelist",
  "archive-grasp-services",
  "private-members",
] as const;
export type ListName = (typeof listNames)[number];

export const banTypes = ["key", "event", "repository", "ip"] as const;
export type BanType = (typeof banTypes)[number];

export interface ListRow {
  readonly entry: ListEntry | ServiceEntry;
  readonly since: number;
  readonly reason: string;
  readonly by: string;
}

export const profileFields = ["relayName", "relayDescription", "relayIcon"] as const;
export type ProfileField = (typeof profileFields)[number];
export const profileKey = (field: ProfileField): string => `profile:${field}`;

const keyPrefix = "key:";
export const networkPrefix = "ip:";
export const kindPrefix = "kind:";
export const relayPrefix = "relay:";

export class RunTimeRules {
  readonly #reader: TableReader;
  #lists: Readonly<Record<ListName, readonly ListRow[]>> = emptyLists();
  #profile: Partial<Record<ProfileField, string>> = {};
  #networks = new BlockList();
  #kinds: ReadonlySet<number> = new Set();
  #ignoredRelays: ReadonlyMap<string, BanRow> = new Map();
  #bannedKeys: ReadonlySet<string> = new Set();
  #keepsOut = false;
  readonly #listeners = new Set<() => void>();
  #laidOver: { readonly from: Config; readonly config: Config } | undefined;

  constructor(reader: TableReader) {
    this.#reader = reader;
  }

  async refresh(): Promise<void> {
    const lists = emptyLists();
    for await (const [key, row] of this.#reader.rows<ListRow>("lists")) {
      const name = listNames.find((list) => key.startsWith(`${list}:`));
      if (name) lists[name].push(row);
    }
    const networks = new BlockList();
    for await (const [key] of this.#reader.rows<BanRow>("bans", { prefix: networkPrefix })) {
      const net = networkNamed(key.slice(networkPrefix.length));
      if (net) networks.addSubnet(net.address, net.prefixBits, isIPv6(net.address) ? "ipv6" : "ipv4");
    }
    const kinds = new Set<number>();
    for await (const [key] of this.#reader.rows<BanRow>("bans", { prefix: kindPrefix })) {
      kinds.add(Number(key.slice(kindPrefix.length)));
    }
    const ignoredRelays = new Map<string, BanRow>();
    for await (const [key, row] of this.#reader.rows<BanRow>("bans", { prefix: relayPrefix })) {
      ignoredRelays.set(key.slice(relayPrefix.length), row);
    }
    const bannedKeys = new Set<string>();
    for await (const [key] of this.#reader.rows<BanRow>("bans", { prefix: keyPrefix })) bannedKeys.add(key);
    const profile: Partial<Record<ProfileField, string>> = {};
    for (const field of profileFields) {
      const text = await this.#reader.row<string>("meta", profileKey(field));
      if (text !== undefined) profile[field] = text;
    }
    this.#lists = lists;
    this.#networks = networks;
    this.#kinds = kinds;
    this.#ignoredRelays = ignoredRelays;
    this.#profile = profile;
    this.#bannedKeys = bannedKeys;
    this.#keepsOut = kinds.size > 0 || bannedKeys.size > 0 || (await this.#hasBan("event:"));
    this.#laidOver = undefined;
    for (const listener of this.#listeners) listener();
  }

  /** For `Store.onForeignCommit`: rules that were set on another machine are in force before anything is judged here. */
  follow(commit: Commit): Promise<void> | undefined {
    for (const table of ["lists", "bans"] as const) for (const _ of commit.changedKeys(table)) return this.refresh();
    const profile: ReadonlySet<string> = new Set(profileFields.map(profileKey));
    for (const key of commit.changedKeys("meta")) if (profile.has(key)) return this.refresh();
    return undefined;
  }

  async #hasBan(prefix: string): Promise<boolean> {
    for await (const _ of this.#reader.rows("bans", { prefix, limit: 1 })) return true;
    return false;
  }

  /** Keys, events or kinds are refused beside what the lists say. */
  get keepsOut(): boolean {
    return this.#keepsOut;
  }

  /** Called after every refresh: something may be in force that was not before. Answers how to stop. */
  onRefresh(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  rowsOf(list: ListName): readonly ListRow[] {
    return this.#lists[list];
  }

  get refusedKinds(): ReadonlySet<number> {
    return this.#kinds;
  }

  /** By key: host, port and path. */
  get ignoredRelays(): ReadonlyMap<string, BanRow> {
    return this.#ignoredRelays;
  }

  isBanned(pubkey: Pubkey): boolean {
    return this.#bannedKeys.has(bannedAuthorKey(pubkey));
  }

  isBlocked(ip: string): boolean {
    return isIP(ip) !== 0 && this.#networks.check(ip, isIPv6(ip) ? "ipv6" : "ipv4");
  }

  /** The configuration with these rules in it; the same object until one of the two changes. */
  over(config: Config): Config {
    if (this.#laidOver?.from !== config) this.#laidOver = { from: config, config: this.#layOver(config) };
    return this.#laidOver.config;
  }

  #layOver(config: Config): Config {
    const entries = (list: ListName): ListEntry[] =>
      this.#lists[list].flatMap(({ entry }) => (entry.type === "service" ? [] : [entry]));
    const services = this.#lists["archive-grasp-services"].flatMap(({ entry }) =>
      entry.type === "service" ? [entry.host] : [],
    );
    const keys = (list: ListName): Pubkey[] =>
      entries(list).flatMap((entry) => (entry.type === "author" ? [entry.pubkey] : []));
    return {
      ...config,
      ...this.#profile,
      repositoryWhitelist: [...config.repositoryWhitelist, ...entries("repository-whitelist")],
      repositoryBlacklist: [...config.repositoryBlacklist, ...entries("repository-blacklist")],
      eventBlacklist: [...config.eventBlacklist, ...keys("event-blacklist")],
      archiveWhitelist: [...config.archiveWhitelist, ...entries("archive-whitelist")],
      archiveGraspServices: [...config.archiveGraspServices, ...services],
      privateMembers: [...config.privateMembers, ...keys("private-members")],
    };
  }
}

function emptyLists(): Record<ListName, ListRow[]> {
  return Object.fromEntries(listNames.map((name) => [name, []])) as unknown as Record<ListName, ListRow[]>;
}

/** The rules for events as this server has them, running or not: settings with the run-time rules over them. */
export interface PolicyInForce {
  readonly inForce: () => Config;
  readonly members: Members;
  readonly settings: AdmissionSettings;
  readonly policy: AdmissionPolicy;
  /** For moving a whole server here (`repos import`): the operator's bounds, and what is nothing to us is refused. */
  readonly movingPolicy: AdmissionPolicy;
}

export function policyInForce(
  live: { readonly current: Config },
  rules: RunTimeRules,
  serverKey: Pubkey,
  services: readonly ServiceName[],
): PolicyInForce {
  const inForce = (): Config => rules.over(live.current);
  const settings = admissionSettings(inForce, serverKey, services, () => rules.refusedKinds);
  const members = new Members({
    inForce,
    serverKey,
    adminKeys: settings.adminKeys,
    isBanned: (pubkey) => rules.isBanned(pubkey),
  });
  rules.onRefresh(() => members.changed());
  return { inForce, settings, members, policy: policyWithImports(settings), movingPolicy: policyOfOperator(settings) };
}
