// What carries out each operation of the table (operations.ts). Parameters come from outside and are checked first.

import { previewBan } from "./ban-targets.js";
import { ban, bansOf, unban } from "./bans.js";
import { type AdminParts, auditRows, done, type OperationContext, type Outcome, refusal } from "./context.js";
import { deleteEvents, exportEvents, filtersNamed, importEvents, scanEvents } from "./events.js";
import { restoreRepository, unhostRepository } from "./hosting.js";
import { addToList, changeProfile, removeFromList, setKindTaken, showLists } from "./lists.js";
import { showMirror, startMirror } from "./mirror.js";
import { type CheckedOf, isOperation, type OperationName, operations } from "./operations.js";
import { askNow, dropWaiting, listWaiting } from "./purgatory.js";
import { ignoreRelay, listRelays, reconnectRelay, syncNamedRelay, unignoreRelay } from "./relays.js";
import { checkRepositories, housekeepRepositories, listRepositories, showRepository } from "./repositories.js";
import { beginSnapshot } from "./snapshot.js";
import { explain, recentRefusals, statusOf } from "./status.js";
import { addToken, listTokens, revokeToken } from "./tokens.js";
import { verifyRepository } from "./verify.js";

type Implementation<Asked> = (parts: AdminParts, asked: Asked, context: OperationContext) => Promise<Outcome<unknown>>;

const implementations = {
  status: async (parts) => done(await statusOf(parts)),
  "repos.list": async (parts, asked) => done(await listRepositories(parts, asked)),
  "repos.show": (parts, asked) => showRepository(parts, asked.repository),
  "repos.fsck": (parts, asked, { progress, signal }) => checkRepositories(parts, asked.repository, progress, signal),
  "repos.gc": (parts, { repository: name, cruft }, { caller, progress, signal }) =>
    housekeepRepositories(parts, caller, { name, cruft }, progress, signal),
  "repos.delete": (parts, asked, { caller }) => unhostRepository(parts, caller, asked.repository, asked.reason),
  "repos.restore": (parts, asked, { caller }) => restoreRepository(parts, caller, asked.repository),
  "purgatory.list": async (parts, asked) => done(await listWaiting(parts, asked)),
  "purgatory.ask": (parts, asked, { caller }) => askNow(parts, caller, asked.repository),
  "purgatory.drop": (parts, asked, { caller }) => dropWaiting(parts, caller, asked.event),
  why: (parts, asked) => explain(parts, asked.subject, asked.limit),
  "decisions.refused": (parts, asked) => recentRefusals(parts, asked.limit),
  "relays.list": async (parts) => done(listRelays(parts)),
  "relays.reconnect": (parts, asked, { caller }) => reconnectRelay(parts, caller, asked.relay),
  "relays.ignore": (parts, asked, { caller }) => ignoreRelay(parts, caller, asked),
  "relays.unignore": (parts, asked, { caller }) => unignoreRelay(parts, caller, asked.relay),
  "sync.relay": (parts, asked, context) => syncNamedRelay(parts, asked, context),
  "sync.verify": (parts, asked, context) => verifyRepository(parts, asked.repository, context),
  "mirror.start": (parts, asked, context) => startMirror(parts, asked, context),
  "mirror.show": (parts, asked) => showMirror(parts, asked.target),
  "lists.show": async (parts, asked) => done({ entries: showLists(parts, asked.list) }),
  "lists.add": (parts, asked, { caller }) => addToList(parts, caller, asked),
  "lists.remove": (parts, asked, { caller }) => removeFromList(parts, caller, asked),
  "bans.list": async (parts, asked) => done({ bans: await bansOf(parts, asked.type) }),
  ban: (parts, asked, { caller, progress }) => ban(parts, caller, asked, progress),
  "ban.preview": (parts, asked) => previewBan(parts, asked),
  unban: (parts, asked, { caller, progress }) => unban(parts, caller, asked, progress),
  "tokens.add": (parts, asked, { caller }) => addToken(parts, caller, asked),
  "tokens.list": async (parts) => done({ tokens: await listTokens(parts) }),
  "tokens.revoke": (parts, asked, { caller }) => revokeToken(parts, caller, asked.id),
  "kinds.refused": async ({ rules }) => done({ refusedKinds: [...rules.refusedKinds] }),
  "kinds.set": (parts, asked, { caller }) => setKindTaken(parts, caller, asked),
  "profile.change": (parts, asked, { caller }) => changeProfile(parts, caller, asked),
  "events.import": (parts, asked) => importEvents(parts, asked.events),
  "events.export": async (parts, asked, context) => {
    const read = filtersNamed(asked.filters);
    return read.ok ? exportEvents(parts, read.result, context) : read;
  },
  "events.scan": async (parts, asked, context) => {
    const read = filtersNamed(asked.filters);
    return read.ok ? scanEvents(parts, read.result, context) : read;
  },
  "events.delete": async (parts, asked, context) => {
    const read = filtersNamed(asked.filters);
    if (!read.ok) return read;
    const named = JSON.stringify(asked.filters).slice(0, 1_000);
    return deleteEvents(parts, { filters: read.result, really: asked.really, named }, context);
  },
  "backup.begin": (parts, _, { caller, progress, signal }) => beginSnapshot(parts, caller, progress, signal),
  "admin.link": async ({ running }) => {
    if (!running) return refusal("not-possible", operations["admin.link"].needsServer);
    return done({ url: `${running.publicUrl}/admin/login?token=${await running.links.issue()}`, minutes: 10 });
  },
  "audit.list": async ({ store }, asked) => done({ changes: await auditRows(store, asked.limit) }),
} satisfies { readonly [Name in OperationName]: Implementation<CheckedOf<Name>> };

/** What an operation answers when it was done. */
export type ResultOf<Name extends OperationName> = Extract<
  Awaited<ReturnType<(typeof implementations)[Name]>>,
  { readonly ok: true }
>["result"];

export async function runOperation(
  parts: AdminParts,
  { operation, parameters }: { readonly operation: string; readonly parameters: unknown },
  context: OperationContext,
): Promise<Outcome<unknown>> {
  if (!isOperation(operation)) {
    return refusal("bad-request", `${JSON.stringify(operation.slice(0, 100))} is not an operation`);
  }
  const checked = operations[operation].parameters.safeParse(parameters ?? {});
  if (checked.success) return (implementations[operation] as Implementation<unknown>)(parts, checked.data, context);
  const issue = checked.error.issues[0];
  const place = issue?.path.join(".") ?? "";
  return refusal("bad-request", `${place === "" ? "" : `${place}: `}${issue?.message ?? "wrong parameters"}`);
}
