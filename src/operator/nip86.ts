// NIP-86: relay management as a table from method to operation. `supportedmethods` lists this table, so only what
// works is listed. Beside the standard methods there are some for repositories and kinds (docs/reference/management.md
// lists them). Parameters are positional; what they mean is checked by the operations.

import type { EventId } from "../nostr/ids.js";
import { npubOf } from "../nostr/nip19.js";
import type { Banned } from "./bans.js";
import { done, type Outcome, refusal } from "./context.js";
import type { ListedEntry } from "./lists.js";
import { keyNamed } from "./naming.js";
import type { OperationName } from "./operations.js";

export type Run = (operation: OperationName, parameters: object) => Promise<Outcome<unknown>>;

interface Method {
  readonly parameters: string;
  readonly does: string;
  readonly call: (parameters: readonly unknown[], run: Run) => Promise<Outcome<unknown>>;
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** An operation whose own result is not part of NIP-86: the answer is `true`. */
async function asTrue(outcome: Promise<Outcome<unknown>>): Promise<Outcome<unknown>> {
  const answer = await outcome;
  return answer.ok ? done(true) : answer;
}

/** Lifting what is not there is no error in NIP-86: clients repeat themselves. */
async function lifted(outcome: Promise<Outcome<unknown>>): Promise<Outcome<unknown>> {
  const answer = await outcome;
  return answer.ok || answer.code === "unknown" ? done(true) : answer;
}

async function mapped<T>(outcome: Promise<Outcome<unknown>>, map: (result: T) => unknown): Promise<Outcome<unknown>> {
  const answer = await outcome;
  return answer.ok ? done(map(answer.result as T)) : answer;
}

const hexOf = (npub: string): string => keyNamed(npub) ?? npub;

const banning = (type: Banned["type"]) => (parameters: readonly unknown[], run: Run) =>
  asTrue(run("ban", { type, target: text(parameters[0]), reason: text(parameters[1]) }));

const unbanning = (type: Banned["type"]) => (parameters: readonly unknown[], run: Run) =>
  lifted(run("unban", { type, target: text(parameters[0]) }));

const listing = (type: Banned["type"], field: string, shown: (target: string) => string) => ({
  parameters: "none",
  does: `what is banned: a list of {${field}, reason}`,
  call: (_: readonly unknown[], run: Run) =>
    mapped<{ bans: readonly Banned[] }>(run("bans.list", { type }), ({ bans }) =>
      bans.map(({ target, reason }) => ({ [field]: shown(target), ...(reason === "" ? {} : { reason }) })),
    ),
});

const changing = (field: string, what: string): Method => ({
  parameters: "text",
  does: `changes the relay's ${what} at once; an empty text brings the configured one back`,
  call: (parameters, run) => asTrue(run("profile.change", { field, value: parameters[0] })),
});

const same = (target: string): string => target;

/** Unbans a key; on a server with a repository whitelist the key is also put on it, elsewhere that would close it. */
async function allowKey(parameters: readonly unknown[], run: Run): Promise<Outcome<unknown>> {
  const key = keyNamed(text(parameters[0]));
  if (!key) return refusal("bad-request", "the first parameter must be a public key");
  const unbanned = await lifted(run("unban", { type: "key", target: key }));
  if (!unbanned.ok) return unbanned;
  const lists = await run("lists.show", { list: "repository-whitelist" });
  if (!lists.ok || (lists.result as { entries: readonly ListedEntry[] }).entries.length === 0) return done(true);
  return asTrue(run("lists.add", { list: "repository-whitelist", entry: npubOf(key), reason: text(parameters[1]) }));
}

async function unallowKey(parameters: readonly unknown[], run: Run): Promise<Outcome<unknown>> {
  const key = keyNamed(text(parameters[0]));
  if (!key) return refusal("bad-request", "the first parameter must be a public key");
  return lifted(run("lists.remove", { list: "repository-whitelist", entry: npubOf(key) }));
}

export const methods: Readonly<Record<string, Method>> = {
  supportedmethods: {
    parameters: "none",
    does: "the names of all methods",
    call: async () => done(Object.keys(methods)),
  },
  banpubkey: {
    parameters: "public key, reason",
    does: "removes all events of a key, stored and waiting, un-hosts its repositories and refuses it from now on",
    call: banning("key"),
  },
  allowpubkey: {
    parameters: "public key, reason",
    does: "lifts the ban of a key; where a repository whitelist is in force, adds the key to it",
    call: allowKey,
  },
  unbanpubkey: { parameters: "public key, reason", does: "lifts the ban of a key", call: unbanning("key") },
  unallowpubkey: {
    parameters: "public key, reason",
    does: "takes a key off the repository whitelist; with its last entry gone everybody may host",
    call: unallowKey,
  },
  listbannedpubkeys: listing("key", "pubkey", hexOf),
  listallowedpubkeys: {
    parameters: "none",
    does: "keys on the repository whitelist: a list of {pubkey, reason}; empty when everybody may host",
    call: (_, run) =>
      mapped<{ entries: readonly ListedEntry[] }>(run("lists.show", { list: "repository-whitelist" }), ({ entries }) =>
        entries
          .filter(({ entry }) => keyNamed(entry) !== undefined)
          .map(({ entry, reason }) => ({ pubkey: hexOf(entry), ...(reason === "" ? {} : { reason }) })),
      ),
  },
  banevent: {
    parameters: "event id, reason",
    does: "removes an event and refuses it from now on",
    call: banning("event"),
  },
  allowevent: { parameters: "event id, reason", does: "lifts the ban of an event", call: unbanning("event") },
  listbannedevents: listing("event", "id", (id) => id as EventId),
  listeventsneedingmoderation: {
    parameters: "none",
    does: "always empty: nothing here waits for a moderator",
    call: async () => done([]),
  },
  changerelayname: changing("relayName", "name"),
  changerelaydescription: changing("relayDescription", "description"),
  changerelayicon: changing("relayIcon", "icon"),
  allowkind: {
    parameters: "kind",
    does: "takes events of a kind again, if they are related to a repository",
    call: (parameters, run) => asTrue(run("kinds.set", { kind: parameters[0], taken: true })),
  },
  disallowkind: {
    parameters: "kind",
    does: "refuses new events of a kind; stored ones stay",
    call: (parameters, run) => asTrue(run("kinds.set", { kind: parameters[0], taken: false })),
  },
  listdisallowedkinds: {
    parameters: "none",
    does: "kinds that are refused; every other kind is taken if it is related to a repository",
    call: (_, run) =>
      mapped<{ refusedKinds: readonly number[] }>(run("kinds.refused", {}), ({ refusedKinds }) => refusedKinds),
  },
  blockip: {
    parameters: "IP address or CIDR network, reason",
    does: "refuses connections and requests from there",
    call: banning("ip"),
  },
  unblockip: { parameters: "IP address or CIDR network", does: "lifts that", call: unbanning("ip") },
  listblockedips: listing("ip", "ip", same),
  stats: { parameters: "none", does: "counts of everything", call: (_, run) => run("status", {}) },
  listrelays: {
    parameters: "none",
    does: "the relays sync follows with state, last failure and next attempt, and those that are ignored",
    call: (_, run) => run("relays.list", {}),
  },
  reconnectrelay: {
    parameters: "relay URL",
    does: "dials a followed relay now, whatever its back-off",
    call: (parameters, run) => asTrue(run("relays.reconnect", { relay: text(parameters[0]) })),
  },
  ignorerelay: {
    parameters: "relay URL, reason",
    does: "has sync leave a relay alone: closed at once and not dialled until that is taken back",
    call: (parameters, run) =>
      asTrue(run("relays.ignore", { relay: text(parameters[0]), reason: text(parameters[1]) })),
  },
  unignorerelay: {
    parameters: "relay URL",
    does: "takes that back",
    call: (parameters, run) => lifted(run("relays.unignore", { relay: text(parameters[0]) })),
  },
  listrepositories: {
    parameters: "status (optional)",
    does: "repositories with their status, mark and governing state",
    call: (parameters, run) =>
      mapped<{ repositories: unknown }>(
        run("repos.list", parameters[0] === undefined ? {} : { status: parameters[0] }),
        ({ repositories }) => repositories,
      ),
  },
  banrepository: {
    parameters: "npub/identifier or naddr, reason",
    does: "un-hosts a repository and keeps it out",
    call: banning("repository"),
  },
  unbanrepository: {
    parameters: "npub/identifier or naddr",
    does: "takes it off the blacklist; its data is brought back by restorerepository",
    call: unbanning("repository"),
  },
  listbannedrepositories: listing("repository", "repository", same),
  unhostrepository: {
    parameters: "npub/identifier or naddr, reason",
    does: "stops serving a repository; its data is kept for the grace period",
    call: (parameters, run) =>
      asTrue(run("repos.delete", { repository: text(parameters[0]), reason: text(parameters[1]) })),
  },
  restorerepository: {
    parameters: "npub/identifier or naddr",
    does: "serves a leaving or deleted repository again while its data is kept",
    call: (parameters, run) => asTrue(run("repos.restore", { repository: text(parameters[0]) })),
  },
};

export interface ManagementAnswer {
  readonly result?: unknown;
  readonly error?: string;
}

export async function manage(body: Buffer, run: Run): Promise<ManagementAnswer> {
  let value: unknown;
  try {
    value = JSON.parse(body.toString("utf8"));
  } catch {
    return { error: "the body is not JSON" };
  }
  const { method, params = [] } = (value ?? {}) as { readonly method?: unknown; readonly params?: unknown };
  if (typeof method !== "string" || !Array.isArray(params)) return { error: "method and params are needed" };
  const found = Object.hasOwn(methods, method) ? methods[method] : undefined;
  if (!found) return { error: "there is no such method: supportedmethods lists them" };
  const outcome = await found.call(params, run);
  return outcome.ok ? { result: outcome.result } : { error: outcome.message };
}
