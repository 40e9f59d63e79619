// Every operation an operator has, by name, with the shape of its parameters: the one table behind the command line's
// verbs (socket and offline), relay management (NIP-86) and `/api`. Parameters come from outside and are checked here.

import { z } from "zod";
import { ban, bansOf, banTypes, unban } from "./bans.js";
import type { AdminParts, OperationContext } from "./context.js";
import { auditRows, done, type Outcome, refusal } from "./context.js";
import { deleteEvents, exportEvents, filtersNamed, importEvents, scanEvents } from "./events.js";
import { restoreRepository, unhostRepository } from "./hosting.js";
import { addToList, changeProfile, removeFromList, setKindTaken, showLists } from "./lists.js";
import { showMirror, startMirror } from "./mirror.js";
import { keyNamed, placeNamedBy, repositoryNamedBy } from "./naming.js";
import { askNow, dropWaiting, listWaiting } from "./purgatory.js";
import { ignoreRelay, listRelays, reconnectRelay, syncNamedRelay, unignoreRelay } from "./relays.js";
import { checkRepositories, housekeepRepositories, listRepositories, showRepository } from "./repositories.js";
import { listNames, profileFields } from "./rules.js";
import { beginSnapshot } from "./snapshot.js";
import { explain, statusOf } from "./status.js";
import { verifyRepository } from "./verify.js";

interface Operation<T> {
  readonly parameters: z.ZodType<T>;
  run(parts: AdminParts, parameters: T, context: OperationContext): Promise<Outcome<unknown>>;
}

const operation = <T>(parameters: z.ZodType<T>, run: Operation<T>["run"]): Operation<T> => ({ parameters, run });

const name = z.string().max(5_000);
const reason = z.string().max(500).default("");
const limit = z.number().int().min(1).max(10_000);
const named = <T>(read: (text: string) => T | undefined, what: string) =>
  name.transform((text, context) => {
    const found = read(text);
    if (found === undefined) context.addIssue({ code: "custom", message: `${JSON.stringify(text)} is not ${what}` });
    return found ?? z.NEVER;
  });
const repository = named(repositoryNamedBy, "npub/identifier or naddr");
const place = named(placeNamedBy, "npub/identifier, naddr or prs/npub/identifier");
const owner = named(keyNamed, "an npub or hex key");
const status = z.enum(["waiting", "soft", "served", "archived", "leaving", "deleted"]);
const list = z.enum(listNames);
const banType = z.enum(banTypes);
const filters = z.array(z.unknown()).max(100);

/** Leaves out what was not given, as exact optional properties want it. */
function given<T extends object>(value: T): { [Key in keyof T]: Exclude<T[Key], undefined> } {
  const entries = Object.entries(value).filter(([, one]) => one !== undefined);
  return Object.fromEntries(entries) as { [Key in keyof T]: Exclude<T[Key], undefined> };
}

export const operations = {
  status: operation(z.object({}), async (parts) => done(await statusOf(parts))),
  "purgatory.list": operation(
    z.object({ repository: repository.optional(), limit: limit.default(100) }),
    async (parts, question) => done(await listWaiting(parts, given(question))),
  ),
  "purgatory.ask": operation(z.object({ repository }), (parts, asked, { caller }) =>
    askNow(parts, caller, asked.repository),
  ),
  "purgatory.drop": operation(z.object({ event: name }), (parts, asked, { caller }) =>
    dropWaiting(parts, caller, asked.event),
  ),
  "relays.list": operation(z.object({}), async (parts) => done(listRelays(parts))),
  "relays.reconnect": operation(z.object({ relay: name }), (parts, asked, { caller }) =>
    reconnectRelay(parts, caller, asked.relay),
  ),
  "relays.ignore": operation(z.object({ relay: name, reason }), (parts, asked, { caller }) =>
    ignoreRelay(parts, caller, asked),
  ),
  "relays.unignore": operation(z.object({ relay: name }), (parts, asked, { caller }) =>
    unignoreRelay(parts, caller, asked.relay),
  ),
  "repos.list": operation(
    z.object({ status: status.optional(), owner: owner.optional(), limit: limit.default(1_000) }),
    async (parts, question) => done(await listRepositories(parts, given(question))),
  ),
  "repos.show": operation(z.object({ repository }), (parts, asked) => showRepository(parts, asked.repository)),
  "repos.fsck": operation(z.object({ repository: place.optional() }), (parts, asked, { progress, signal }) =>
    checkRepositories(parts, asked.repository, progress, signal),
  ),
  "repos.gc": operation(
    z.object({ repository: place.optional(), cruft: z.boolean().default(false) }),
    (parts, asked, { caller, progress, signal }) =>
      housekeepRepositories(parts, caller, { name: asked.repository, cruft: asked.cruft }, progress, signal),
  ),
  "repos.delete": operation(z.object({ repository, reason }), (parts, asked, { caller }) =>
    unhostRepository(parts, caller, asked.repository, asked.reason),
  ),
  "repos.restore": operation(z.object({ repository }), (parts, asked, { caller }) =>
    restoreRepository(parts, caller, asked.repository),
  ),
  why: operation(z.object({ subject: name, limit: limit.default(20) }), (parts, asked) =>
    explain(parts, asked.subject, asked.limit),
  ),
  "lists.show": operation(z.object({ list: list.optional() }), async (parts, asked) =>
    done({ entries: showLists(parts, asked.list) }),
  ),
  "lists.add": operation(z.object({ list, entry: name, reason }), (parts, asked, { caller }) =>
    addToList(parts, caller, asked),
  ),
  "lists.remove": operation(z.object({ list, entry: name }), (parts, asked, { caller }) =>
    removeFromList(parts, caller, asked),
  ),
  ban: operation(z.object({ type: banType, target: name, reason }), (parts, asked, { caller, progress }) =>
    ban(parts, caller, asked, progress),
  ),
  unban: operation(z.object({ type: banType, target: name }), (parts, asked, { caller }) =>
    unban(parts, caller, asked),
  ),
  "bans.list": operation(z.object({ type: banType.optional() }), async (parts, asked) =>
    done({ bans: await bansOf(parts, asked.type) }),
  ),
  "events.import": operation(z.object({ events: z.array(z.unknown()).max(1_000) }), (parts, asked) =>
    importEvents(parts, asked.events),
  ),
  "events.export": operation(z.object({ filters }), async (parts, asked, context) => {
    const read = filtersNamed(asked.filters);
    return read.ok ? exportEvents(parts, read.result, context) : read;
  }),
  "events.scan": operation(z.object({ filters }), async (parts, asked, context) => {
    const read = filtersNamed(asked.filters);
    return read.ok ? scanEvents(parts, read.result, context) : read;
  }),
  "events.delete": operation(z.object({ filters, really: z.boolean() }), async (parts, asked, context) => {
    const read = filtersNamed(asked.filters);
    if (!read.ok) return read;
    const named = JSON.stringify(asked.filters).slice(0, 1_000);
    return deleteEvents(parts, { filters: read.result, really: asked.really, named }, context);
  }),
  "sync.relay": operation(
    z.object({ relay: name, direction: z.enum(["up", "down", "both"]), filters }),
    (parts, asked, context) => syncNamedRelay(parts, asked, context),
  ),
  "sync.verify": operation(z.object({ repository }), (parts, asked, context) =>
    verifyRepository(parts, asked.repository, context),
  ),
  "mirror.start": operation(
    z.object({ target: name, relays: z.array(name).max(50), reason }),
    (parts, asked, context) => startMirror(parts, asked, context),
  ),
  "mirror.show": operation(z.object({ target: name }), (parts, asked) => showMirror(parts, asked.target)),
  "profile.change": operation(
    z.object({ field: z.enum(profileFields), value: z.string().max(5_000) }),
    (parts, asked, { caller }) => changeProfile(parts, caller, asked),
  ),
  "kinds.set": operation(z.object({ kind: z.number(), taken: z.boolean(), reason }), (parts, asked, { caller }) =>
    setKindTaken(parts, caller, asked),
  ),
  "kinds.refused": operation(z.object({}), async ({ rules }) => done({ refusedKinds: [...rules.refusedKinds] })),
  "audit.list": operation(z.object({ limit: limit.default(100) }), async ({ store }, asked) =>
    done({ changes: await auditRows(store, asked.limit) }),
  ),
  "backup.begin": operation(z.object({}), (parts, _, { caller, progress, signal }) =>
    beginSnapshot(parts, caller, progress, signal),
  ),
  "admin.link": operation(z.object({}), async ({ running }) => {
    if (!running) return refusal("not-possible", "a link is for a running server, and none runs");
    return done({ url: `${running.publicUrl}/admin/login?token=${running.links.issue()}`, minutes: 10 });
  }),
} as const;

export type OperationName = keyof typeof operations;

export const isOperation = (text: string): text is OperationName => Object.hasOwn(operations, text);

export async function runOperation(
  parts: AdminParts,
  request: { readonly operation: string; readonly parameters: unknown },
  context: OperationContext,
): Promise<Outcome<unknown>> {
  if (!isOperation(request.operation)) {
    return refusal("bad-request", `${JSON.stringify(request.operation.slice(0, 100))} is not an operation`);
  }
  const { parameters, run } = operations[request.operation] as Operation<unknown>;
  const checked = parameters.safeParse(request.parameters ?? {});
  if (checked.success) return run(parts, checked.data, context);
  const issue = checked.error.issues[0];
  const place = issue?.path.join(".") ?? "";
  return refusal("bad-request", `${place === "" ? "" : `${place}: `}${issue?.message ?? "wrong parameters"}`);
}
