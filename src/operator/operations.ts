// The one table of what an operator can do. Each operation is described once: its parameters, its verb with help and
// examples, its address below /api, and whether it needs a running server. Verbs (cli/operator-verb.ts), /api (http/api.ts),
// the methods of relay management (nip86.ts) and the forms of the admin pages (web/admin/actions.ts) are made from it;
// run.ts holds what carries each out. Every verb loads this file: it must stay light.

import { z } from "zod";
import { keyNamed, placeNamedBy } from "./naming.js";
import {
  atMost,
  banTarget,
  banType,
  because,
  entry,
  filters,
  list,
  name,
  nameAnywhere,
  named,
  oneBanType,
  oneList,
  oneOrAll,
  oneRepository,
  reason,
  relay,
  repository,
  repositoryStatuses,
  typed,
} from "./parameter-values.js";
import { profileFields } from "./rules.js";

interface Description {
  /** What is typed after `holdfast`; absent where no verb does this and nothing else. */
  readonly verb?: string;
  readonly help?: string;
  readonly examples?: readonly string[];
  /** GET /api/<word>, or /api/<word>/<the parameter called name>; other parameters come in the query. */
  readonly api?: { readonly word: string; readonly name?: string };
  /** Said when no server runs. Operations without it work on the data alone. */
  readonly needsServer?: string;
}

const operation = <Shape extends z.ZodRawShape, const Rest extends Description>(parameters: Shape, rest: Rest) => ({
  parameters: z.object(parameters),
  ...rest,
});

export const operations = {
  status: operation({}, {}),

  "repos.list": operation(
    {
      status: typed(z.enum(repositoryStatuses).optional(), "--status <status>", "only repositories in this status"),
      owner: typed(named(keyNamed, "an npub or hex key").optional(), "--owner <npub>", "only repositories of this key"),
      limit: atMost(1_000),
    },
    {
      verb: "repos list",
      help: "list repositories with their status and governing state",
      examples: ["holdfast repos list", "holdfast repos list --status leaving --json"],
      api: { word: "repos" },
    },
  ),
  "repos.show": operation(
    { repository: oneRepository },
    {
      verb: "repos show",
      help: "show one repository: status, mark, governing state, size, and its refs beside what was signed",
      examples: ["holdfast repos show npub1…/my-project", "holdfast repos show naddr1… --json"],
      api: { word: "repos", name: "repository" },
    },
  ),
  "repos.fsck": operation(
    { repository: oneOrAll },
    {
      verb: "repos fsck",
      help: "check objects, config, hooks, alternates, and refs against the governing state; exit 1 if unsound",
      examples: ["holdfast repos fsck", "holdfast repos fsck npub1…/my-project --json"],
    },
  ),
  "repos.gc": operation(
    {
      repository: oneOrAll,
      cruft: typed(z.boolean().default(false), "--cruft", "also drop garbage older than two weeks"),
    },
    {
      verb: "repos gc",
      help: "repack now instead of in the background",
      examples: ["holdfast repos gc", "holdfast repos gc npub1…/my-project --cruft"],
    },
  ),
  "repos.delete": operation(
    { repository: oneRepository, reason: because("why, for the audit log") },
    {
      verb: "repos delete",
      help: "stop serving a repository; its data is kept for the grace period and can be restored",
      examples: [
        'holdfast repos delete npub1…/my-project --reason "asked by its owner"',
        "holdfast ban repository npub1…/my-project     to keep it out for good",
      ],
    },
  ),
  "repos.restore": operation(
    { repository: oneRepository },
    {
      verb: "repos restore",
      help: "serve a leaving or deleted repository again while its data is kept",
      examples: ["holdfast repos restore npub1…/my-project"],
    },
  ),

  "purgatory.list": operation(
    {
      repository: typed(repository.optional(), "--repository <npub/identifier>", "only what concerns this repository"),
      limit: atMost(100),
    },
    {
      verb: "purgatory list",
      help: "list what waits, why, what is missing, where it came from and when it expires",
      examples: [
        "holdfast purgatory list",
        "holdfast purgatory list --repository npub1…/my-project",
        "holdfast purgatory list --limit 1000 --json",
      ],
      api: { word: "purgatory" },
    },
  ),
  "purgatory.ask": operation(
    { repository: typed(repository, "<npub/identifier>", "the repository") },
    {
      verb: "purgatory ask",
      help: "ask the git servers of a repository again now for what is missing",
      examples: ["holdfast purgatory ask npub1…/my-project"],
      needsServer: "no server runs that could ask",
    },
  ),
  "purgatory.drop": operation(
    { event: typed(name, "<event>", "event id, note or nevent") },
    {
      verb: "purgatory drop",
      help: "take a waiting event out; it may come again (to keep it away: ban event)",
      examples: ["holdfast purgatory drop nevent1…"],
    },
  ),
  why: operation(
    {
      subject: typed(name, "<subject>", "event id (hex, note, nevent) or repository (npub/identifier, naddr)"),
      limit: atMost(20, "decisions about a repository, newest first; 20 if left out"),
    },
    {
      verb: "why",
      help: "tell which rule accepted, held or refused an event, or the events of a repository",
      examples: [
        "holdfast why nevent1…",
        "holdfast why npub1…/my-project --limit 50",
        "holdfast why <event id> --json",
      ],
      api: { word: "why", name: "subject" },
    },
  ),

  "relays.list": operation(
    {},
    {
      verb: "relays list",
      help: "list followed relays with state, last failure and next attempt, and those that are ignored",
      examples: ["holdfast relays list", "holdfast relays list --json"],
      api: { word: "relays" },
    },
  ),
  "relays.reconnect": operation(
    { relay },
    {
      verb: "relays reconnect",
      help: "dial a relay now, whatever its back-off",
      examples: ["holdfast relays reconnect wss://relay.example.com"],
      needsServer: "no server runs that could reconnect",
    },
  ),
  "relays.ignore": operation(
    { relay, reason: because() },
    {
      verb: "relays ignore",
      help: "leave a relay alone, at once and after a restart",
      examples: ['holdfast relays ignore wss://relay.example.com --reason "sends nothing but spam"'],
    },
  ),
  "relays.unignore": operation(
    { relay },
    {
      verb: "relays unignore",
      help: "follow a relay again",
      examples: ["holdfast relays unignore wss://relay.example.com"],
    },
  ),
  "sync.relay": operation(
    {
      relay: typed(name, "<relay>", "wss://host[:port][/path]; the scheme may be left out"),
      filters,
      direction: typed(
        z.enum(["up", "down", "both"]),
        "--dir <direction>",
        "down: fetch what we lack; up: send what it lacks",
        "down",
      ),
    },
    {
      verb: "sync",
      help: "compare the store with a relay once, and bring over what is missing",
      examples: [
        "holdfast sync wss://relay.example.com",
        `holdfast sync relay.example.com --dir both --filter '{"kinds":[30617]}' --json`,
      ],
    },
  ),
  "sync.verify": operation(
    { repository: oneRepository },
    {
      verb: "sync verify",
      help: "compare a repository's events with every relay it lists and its refs with every clone URL; exit 1 if any differ",
      examples: ["holdfast sync verify npub1…/my-project", "holdfast sync verify naddr1… --json"],
    },
  ),
  "mirror.start": operation({ target: name, relays: z.array(name).max(50), reason }, {}),
  "mirror.show": operation({ target: name }, {}),

  "lists.show": operation(
    { list: typed(list.optional(), "[list]", "which list") },
    {
      verb: "lists show",
      help: "show the lists: what is configured and what was added at run time",
      examples: ["holdfast lists show", "holdfast lists show repository-whitelist --json"],
      api: { word: "lists" },
    },
  ),
  "lists.add": operation(
    { list: oneList, entry, reason: because() },
    {
      verb: "lists add",
      help: "add an entry; the first entry of the repository-whitelist closes the server to everybody else",
      examples: [
        'holdfast lists add repository-blacklist npub1… --reason "spam"',
        "holdfast lists add repository-whitelist npub1…/my-project",
        "holdfast lists add archive-grasp-services git.example.com",
        "holdfast lists add private-members npub1…",
      ],
    },
  ),
  "lists.remove": operation(
    { list: oneList, entry },
    {
      verb: "lists remove",
      help: "remove an entry that was added at run time",
      examples: ["holdfast lists remove repository-blacklist npub1…"],
    },
  ),
  "bans.list": operation(
    { type: banType.optional() },
    {
      verb: "lists bans",
      help: "show what `holdfast ban` banned",
      examples: ["holdfast lists bans", "holdfast lists bans --json"],
      api: { word: "bans" },
    },
  ),
  ban: operation(
    { type: oneBanType, target: banTarget, reason: because("why, shown in the list of bans") },
    {
      verb: "ban",
      help: "remove what is stored of a key, event or repository and keep it out; refuse a network",
      examples: [
        'holdfast ban key npub1… --reason "spam"',
        "holdfast ban event nevent1…",
        "holdfast ban repository npub1…/my-project",
        "holdfast ban ip 203.0.113.0/24 --yes",
      ],
    },
  ),
  "ban.preview": operation({ type: banType, target: name }, {}),
  unban: operation(
    {
      type: oneBanType,
      target: banTarget,
      restore: typed(z.boolean().default(false), "--restore", "bring back what the ban removed, while it is kept"),
    },
    {
      verb: "unban",
      help: "lift a ban; with --restore what it removed comes back, within NGIT_UNHOST_GRACE_DAYS of the ban",
      examples: ["holdfast unban key npub1… --restore", "holdfast unban ip 203.0.113.0/24 --yes"],
    },
  ),
  "tokens.add": operation(
    {
      member: typed(named(keyNamed, "an npub or hex key"), "<member>", "npub of the member whose token it is"),
      push: typed(z.boolean().default(false), "--push", "it may push too; it can only read if left out"),
      repository: typed(
        named(placeNamedBy, nameAnywhere).optional(),
        "--repository <npub/identifier>",
        "only for this repository; for all if left out",
      ),
      days: typed(
        z.number().int().min(1).max(3_650).optional(),
        "--days <count>",
        "it ends after so many days; never if left out",
      ),
      note: typed(z.string().max(200).default(""), "--note <text>", "what it is for, shown in the list"),
    },
    {
      verb: "tokens add",
      help: "make a token with which a program of a member fetches or pushes; it is shown this once",
      examples: [
        'holdfast tokens add npub1… --repository npub1…/my-project --days 90 --note "CI"',
        "holdfast tokens add npub1… --push",
      ],
    },
  ),
  "tokens.list": operation(
    {},
    {
      verb: "tokens list",
      help: "list tokens: whose they are, what they open and when they end; the tokens themselves are not kept",
      examples: ["holdfast tokens list", "holdfast tokens list --json"],
      api: { word: "tokens" },
    },
  ),
  "tokens.revoke": operation(
    { id: typed(name, "<id>", "its id, as `tokens list` shows it") },
    {
      verb: "tokens revoke",
      help: "end a token at once",
      examples: ["holdfast tokens revoke 1f2e3d4c5b6a"],
    },
  ),
  "decisions.refused": operation({ limit: atMost(50) }, {}),
  "kinds.refused": operation({}, {}),
  "kinds.set": operation({ kind: z.number(), taken: z.boolean(), reason }, {}),
  "profile.change": operation({ field: z.enum(profileFields), value: name }, {}),

  "events.import": operation({ events: z.array(z.unknown()).max(1_000) }, {}),
  "events.export": operation({ filters }, {}),
  "events.scan": operation(
    { filters },
    {
      verb: "events scan",
      help: "count events by kind",
      examples: [`holdfast events scan --filter '{"since":1700000000}'`],
    },
  ),
  "events.delete": operation(
    { filters, really: typed(z.boolean(), "--yes", "really remove them") },
    {
      verb: "events delete",
      help: "remove events; without --yes only say how many",
      examples: [`holdfast events delete --filter '{"authors":["…"]}' --yes`],
    },
  ),
  "backup.begin": operation({}, {}),

  "admin.link": operation(
    {},
    {
      verb: "admin link",
      help: "print a link that logs one browser in as operator, once, within ten minutes",
      examples: ["holdfast admin link"],
      needsServer: "a link is for a running server, and none runs",
    },
  ),
  "audit.list": operation(
    { limit: atMost(100) },
    {
      verb: "admin audit",
      help: "show what operators changed, newest first",
      examples: ["holdfast admin audit", "holdfast admin audit --limit 1000 --json"],
      api: { word: "audit" },
    },
  ),
} as const;

export type OperationName = keyof typeof operations;
/** What a caller sends. */
export type ParametersOf<Name extends OperationName> = z.input<(typeof operations)[Name]["parameters"]>;
/** What is left of it when it was checked. */
export type CheckedOf<Name extends OperationName> = z.output<(typeof operations)[Name]["parameters"]>;

export const operationNames = Object.keys(operations) as OperationName[];

export const isOperation = (text: string): text is OperationName => Object.hasOwn(operations, text);

export const descriptionOf = (operation: OperationName) => operations[operation] as Description;
