// NIP-86: relay management. A method asks for one operation of the table (operations.ts), which also says what its
// parameters are; a few methods need more than one. Beside the standard methods there are some for repositories and kinds
// (docs/reference/management.md lists all).

import { npubOf } from "../nostr/nip19.js";
import { done, type Outcome, refusal } from "./context.js";
import { keyNamed } from "./naming.js";
import type { OperationName } from "./operations.js";
import { parametersOf } from "./parameters.js";
import { type BanType, listNames } from "./rules.js";
import type { ResultOf } from "./run.js";

export type Run = <Name extends OperationName>(operation: Name, parameters: object) => Promise<Outcome<ResultOf<Name>>>;
type Call = (parameters: readonly unknown[], run: Run) => Promise<Outcome<unknown>>;

/** With the operation the method asks for, and the parameters it fixes: the others are positional, in their order. */
type Method = readonly [parameters: string, does: string, operation?: OperationName, fixed?: object];

/** What `supportedmethods` lists, in this order. */
export const methods: Readonly<Record<string, Method>> = {
  supportedmethods: ["none", "the names of all methods"],
  banpubkey: [
    "public key, reason",
    "removes all events of a key, stored and waiting, un-hosts its repositories and refuses it from now on",
    "ban",
    { type: "key" },
  ],
  allowpubkey: [
    "public key, reason",
    "lifts the ban of a key; where a repository whitelist is in force, adds the key to it",
  ],
  unbanpubkey: ["public key, reason", "lifts the ban of a key", "unban", { type: "key" }],
  unallowpubkey: [
    "public key, reason",
    "takes a key off the repository whitelist; with its last entry gone everybody may host",
  ],
  listbannedpubkeys: ["none", "what is banned: a list of {pubkey, reason}", "bans.list", { type: "key" }],
  listallowedpubkeys: [
    "none",
    "keys on the repository whitelist: a list of {pubkey, reason}; empty when everybody may host",
  ],
  assignrole: [
    "public key, name of a list",
    "puts a key on a list: the roles of this relay are its lists, and none can be made or renamed",
  ],
  unassignrole: ["public key, name of a list", "takes a key off a list"],
  banevent: ["event id, reason", "removes an event and refuses it from now on", "ban", { type: "event" }],
  allowevent: ["event id, reason", "lifts the ban of an event", "unban", { type: "event" }],
  unbanevent: ["event id, reason", "lifts the ban of an event", "unban", { type: "event" }],
  listbannedevents: ["none", "what is banned: a list of {id, reason}", "bans.list", { type: "event" }],
  listeventsneedingmoderation: ["none", "always empty: nothing here waits for a moderator"],
  changerelayname: ["text", changing("name"), "profile.change", { field: "relayName" }],
  changerelaydescription: ["text", changing("description"), "profile.change", { field: "relayDescription" }],
  changerelayicon: ["text", changing("icon"), "profile.change", { field: "relayIcon" }],
  allowkind: [
    "kind",
    "takes events of a kind again, if they are related to a repository",
    "kinds.set",
    { taken: true },
  ],
  disallowkind: ["kind", "refuses new events of a kind; stored ones stay", "kinds.set", { taken: false }],
  listdisallowedkinds: [
    "none",
    "kinds that are refused; every other kind is taken if it is related to a repository",
    "kinds.refused",
  ],
  blockip: ["IP address or CIDR network, reason", "refuses connections and requests from there", "ban", { type: "ip" }],
  unblockip: ["IP address or CIDR network", "lifts that", "unban", { type: "ip" }],
  listblockedips: ["none", "what is banned: a list of {ip, reason}", "bans.list", { type: "ip" }],
  stats: ["none", "counts of everything", "status"],
  listrelays: [
    "none",
    "the relays sync follows with state, last failure and next attempt, and those that are ignored",
    "relays.list",
  ],
  reconnectrelay: ["relay URL", "dials a followed relay now, whatever its back-off", "relays.reconnect"],
  ignorerelay: [
    "relay URL, reason",
    "has sync leave a relay alone: closed at once and not dialled until that is taken back",
    "relays.ignore",
  ],
  unignorerelay: ["relay URL", "takes that back", "relays.unignore"],
  listrepositories: ["status (optional)", "repositories with their status, mark and governing state", "repos.list"],
  banrepository: [
    "npub/identifier or naddr, reason",
    "un-hosts a repository and keeps it out",
    "ban",
    { type: "repository" },
  ],
  unbanrepository: [
    "npub/identifier or naddr",
    "takes it off the blacklist; its data is brought back by restorerepository",
    "unban",
    { type: "repository" },
  ],
  listbannedrepositories: [
    "none",
    "what is banned: a list of {repository, reason}",
    "bans.list",
    { type: "repository" },
  ],
  unhostrepository: [
    "npub/identifier or naddr, reason",
    "stops serving a repository; its data is kept for the grace period",
    "repos.delete",
  ],
  restorerepository: [
    "npub/identifier or naddr",
    "serves a leaving or deleted repository again while its data is kept",
    "repos.restore",
  ],
};

function changing(what: string): string {
  return `changes the relay's ${what} at once; an empty text brings the configured one back`;
}

/** What a method answers of an operation's result; `true` where nothing is said here. */
const answers: { readonly [Name in OperationName]?: (result: ResultOf<Name>, fixed: object) => unknown } = {
  status: (result) => result,
  "relays.list": (result) => result,
  "repos.list": ({ repositories }) => repositories,
  "kinds.refused": ({ refusedKinds }) => refusedKinds,
  "bans.list": ({ bans }, fixed) => {
    const { type } = fixed as { readonly type: BanType };
    return bans.map(({ target, reason }) => ({
      [banFields[type]]: type === "key" ? hexOf(target) : target,
      ...withReason(reason),
    }));
  },
};

const banFields: Readonly<Record<BanType, string>> = { key: "pubkey", event: "id", repository: "repository", ip: "ip" };
const hexOf = (npub: string): string => keyNamed(npub) ?? npub;
const withReason = (reason: string): object => (reason === "" ? {} : { reason });

/** Lifting what is not there is no error in NIP-86: clients repeat themselves. */
const lifting: ReadonlySet<OperationName> = new Set<OperationName>(["unban", "relays.unignore", "lists.remove"]);

async function ask(run: Run, operation: OperationName, parameters: object, fixed = {}): Promise<Outcome<unknown>> {
  const outcome: Outcome<unknown> = await run(operation, { ...fixed, ...parameters });
  if (!outcome.ok) return outcome.code === "unknown" && lifting.has(operation) ? done(true) : outcome;
  const answer = answers[operation] as ((result: unknown, fixed: object) => unknown) | undefined;
  return done(answer ? answer(outcome.result, fixed) : true);
}

function positional(operation: OperationName, fixed: object = {}, values: readonly unknown[]): object {
  const open = parametersOf(operation).filter(({ name }) => !Object.hasOwn(fixed, name));
  const given = open.flatMap(({ name, type, isOptional }, index): [string, unknown][] => {
    const value = values[index];
    if (type !== "text" || typeof value === "string") return [[name, value]];
    // A reason that is no text is left out; anything else that was given is for the operation to judge.
    if (isOptional && name !== "reason" && value !== undefined && value !== null) return [[name, value]];
    // An empty text brings a configured one back: never because a client forgot it.
    return isOptional || operation === "profile.change" ? [] : [[name, ""]];
  });
  return Object.fromEntries(given);
}

const methodsOfTheirOwn: Readonly<Record<string, Call>> = {
  supportedmethods: async () => done(Object.keys(methods)),
  listeventsneedingmoderation: async () => done([]),
  /** On a server with a repository whitelist the key is also put on it; elsewhere that would close the server. */
  async allowpubkey([text, reason], run) {
    const key = keyNamed(String(text ?? ""));
    if (!key) return noKey;
    const unbanned = await ask(run, "unban", { type: "key", target: key });
    if (!unbanned.ok) return unbanned;
    const lists = await run("lists.show", { list: "repository-whitelist" });
    if (!lists.ok || lists.result.entries.length === 0) return done(true);
    const entry = { list: "repository-whitelist", entry: npubOf(key) };
    return ask(run, "lists.add", { ...entry, reason: typeof reason === "string" ? reason : "" });
  },
  async unallowpubkey([text], run) {
    const key = keyNamed(String(text ?? ""));
    if (!key) return noKey;
    return ask(run, "lists.remove", { list: "repository-whitelist", entry: npubOf(key) });
  },
  assignrole: (parameters, run) => onList("lists.add", parameters, run),
  unassignrole: (parameters, run) => onList("lists.remove", parameters, run),
  async listallowedpubkeys(_, run) {
    const lists = await run("lists.show", { list: "repository-whitelist" });
    if (!lists.ok) return lists;
    const keys = lists.result.entries.filter(({ entry }) => keyNamed(entry) !== undefined);
    return done(keys.map(({ entry, reason }) => ({ pubkey: hexOf(entry), ...withReason(reason) })));
  },
};

/** Lists of this relay that keys are put on. */
const roles: ReadonlySet<unknown> = new Set(listNames.filter((list) => list !== "archive-grasp-services"));

async function onList(
  operation: "lists.add" | "lists.remove",
  [text, list]: readonly unknown[],
  run: Run,
): Promise<Outcome<unknown>> {
  const key = keyNamed(String(text ?? ""));
  if (!key) return noKey;
  if (!roles.has(list)) return refusal("bad-request", `the second parameter must be one of ${[...roles].join(", ")}`);
  return ask(run, operation, { list, entry: npubOf(key), ...(operation === "lists.add" && { reason: "" }) });
}

const noKey = refusal("bad-request", "the first parameter must be a public key");

export interface ManagementAnswer {
  readonly result?: unknown;
  readonly error?: string;
}

/**
 * Done at once, a ban too: the protocol knows no question, and a client that got an error for an answer would take the ban
 * for refused. What a ban removed can be brought back for a while.
 */
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
  const [, , operation, fixed] = found;
  const outcome = operation
    ? await ask(run, operation, positional(operation, fixed, params), fixed)
    : await (methodsOfTheirOwn[method] as Call)(params, run);
  return outcome.ok ? { result: outcome.result } : { error: outcome.message };
}
