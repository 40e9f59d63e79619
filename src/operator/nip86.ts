// NIP-86: relay management as a table from method to operation (operations.ts). `supportedmethods` lists this table, so only what
// works is listed. Beside the standard methods there are some for repositories and kinds (docs/reference/management.md
// lists them). Parameters are positional; what they mean is checked by the operations.

import { npubOf } from "../nostr/nip19.js";
import { done, type Outcome, refusal } from "./context.js";
import { keyNamed } from "./naming.js";
import type { OperationName, ParametersOf } from "./operations.js";
import type { BanType, ProfileField } from "./rules.js";
import type { ResultOf } from "./run.js";

export type Run = <Name extends OperationName>(operation: Name, parameters: object) => Promise<Outcome<ResultOf<Name>>>;

interface Method {
  readonly parameters: string;
  readonly does: string;
  readonly call: (parameters: readonly unknown[], run: Run) => Promise<Outcome<unknown>>;
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** An operation of the table: the method's positional parameters by name, as texts, beside fixed ones. */
const asks =
  <Name extends OperationName>(
    operation: Name,
    names: readonly (keyof ParametersOf<Name> & string)[],
    fixed: Partial<ParametersOf<Name>>,
    answer: (outcome: Outcome<ResultOf<Name>>) => Outcome<unknown> = asTrue,
  ): Method["call"] =>
  async (parameters, run) => {
    const positional = names.map((name, index) => [name, text(parameters[index])]);
    return answer(await run(operation, { ...fixed, ...Object.fromEntries(positional) }));
  };

/** An operation whose own result is not part of NIP-86: the answer is `true`. */
const asTrue = (outcome: Outcome<unknown>): Outcome<unknown> => (outcome.ok ? done(true) : outcome);

const asIs = (outcome: Outcome<unknown>): Outcome<unknown> => outcome;

/** Lifting what is not there is no error in NIP-86: clients repeat themselves. */
const lifted = (outcome: Outcome<unknown>): Outcome<unknown> =>
  outcome.ok || outcome.code === "unknown" ? done(true) : outcome;

const mapped =
  <Result>(map: (result: Result) => unknown) =>
  (outcome: Outcome<Result>): Outcome<unknown> =>
    outcome.ok ? done(map(outcome.result)) : outcome;

const hexOf = (npub: string): string => keyNamed(npub) ?? npub;
const asked = (target: string): string => target;
const withReason = (reason: string): object => (reason === "" ? {} : { reason });

const banning = (type: BanType) => asks("ban", ["target", "reason"], { type });
const unbanning = (type: BanType) => asks("unban", ["target"], { type }, lifted);

const listing = (type: BanType, field: string, shown: (target: string) => string = asked): Method => ({
  parameters: "none",
  does: `what is banned: a list of {${field}, reason}`,
  call: asks(
    "bans.list",
    [],
    { type },
    mapped(({ bans }) => bans.map(({ target, reason }) => ({ [field]: shown(target), ...withReason(reason) }))),
  ),
});

const changing = (field: ProfileField, what: string): Method => ({
  parameters: "text",
  does: `changes the relay's ${what} at once; an empty text brings the configured one back`,
  call: async ([value], run) => asTrue(await run("profile.change", { field, value })),
});

const settingKind =
  (taken: boolean): Method["call"] =>
  async ([kind], run) =>
    asTrue(await run("kinds.set", { kind, taken }));

/** Unbans a key; on a server with a repository whitelist the key is also put on it, elsewhere that would close it. */
async function allowKey(parameters: readonly unknown[], run: Run): Promise<Outcome<unknown>> {
  const key = keyNamed(text(parameters[0]));
  if (!key) return refusal("bad-request", "the first parameter must be a public key");
  const unbanned = lifted(await run("unban", { type: "key", target: key }));
  if (!unbanned.ok) return unbanned;
  const lists = await run("lists.show", { list: "repository-whitelist" });
  if (!lists.ok || lists.result.entries.length === 0) return done(true);
  const entry = { list: "repository-whitelist", entry: npubOf(key), reason: text(parameters[1]) };
  return asTrue(await run("lists.add", entry));
}

async function unallowKey(parameters: readonly unknown[], run: Run): Promise<Outcome<unknown>> {
  const key = keyNamed(text(parameters[0]));
  if (!key) return refusal("bad-request", "the first parameter must be a public key");
  return lifted(await run("lists.remove", { list: "repository-whitelist", entry: npubOf(key) }));
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
    call: asks(
      "lists.show",
      [],
      { list: "repository-whitelist" },
      mapped(({ entries }) =>
        entries
          .filter(({ entry }) => keyNamed(entry) !== undefined)
          .map(({ entry, reason }) => ({ pubkey: hexOf(entry), ...withReason(reason) })),
      ),
    ),
  },
  banevent: {
    parameters: "event id, reason",
    does: "removes an event and refuses it from now on",
    call: banning("event"),
  },
  allowevent: { parameters: "event id, reason", does: "lifts the ban of an event", call: unbanning("event") },
  listbannedevents: listing("event", "id"),
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
    call: settingKind(true),
  },
  disallowkind: {
    parameters: "kind",
    does: "refuses new events of a kind; stored ones stay",
    call: settingKind(false),
  },
  listdisallowedkinds: {
    parameters: "none",
    does: "kinds that are refused; every other kind is taken if it is related to a repository",
    call: asks(
      "kinds.refused",
      [],
      {},
      mapped(({ refusedKinds }) => refusedKinds),
    ),
  },
  blockip: {
    parameters: "IP address or CIDR network, reason",
    does: "refuses connections and requests from there",
    call: banning("ip"),
  },
  unblockip: { parameters: "IP address or CIDR network", does: "lifts that", call: unbanning("ip") },
  listblockedips: listing("ip", "ip"),
  stats: { parameters: "none", does: "counts of everything", call: asks("status", [], {}, asIs) },
  listrelays: {
    parameters: "none",
    does: "the relays sync follows with state, last failure and next attempt, and those that are ignored",
    call: asks("relays.list", [], {}, asIs),
  },
  reconnectrelay: {
    parameters: "relay URL",
    does: "dials a followed relay now, whatever its back-off",
    call: asks("relays.reconnect", ["relay"], {}),
  },
  ignorerelay: {
    parameters: "relay URL, reason",
    does: "has sync leave a relay alone: closed at once and not dialled until that is taken back",
    call: asks("relays.ignore", ["relay", "reason"], {}),
  },
  unignorerelay: {
    parameters: "relay URL",
    does: "takes that back",
    call: asks("relays.unignore", ["relay"], {}, lifted),
  },
  listrepositories: {
    parameters: "status (optional)",
    does: "repositories with their status, mark and governing state",
    call: async ([status], run) => {
      const outcome = await run("repos.list", status === undefined ? {} : { status });
      return outcome.ok ? done(outcome.result.repositories) : outcome;
    },
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
  listbannedrepositories: listing("repository", "repository"),
  unhostrepository: {
    parameters: "npub/identifier or naddr, reason",
    does: "stops serving a repository; its data is kept for the grace period",
    call: asks("repos.delete", ["repository", "reason"], {}),
  },
  restorerepository: {
    parameters: "npub/identifier or naddr",
    does: "serves a leaving or deleted repository again while its data is kept",
    call: asks("repos.restore", ["repository"], {}),
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
