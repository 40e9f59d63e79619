// `purgatory list`: what waits, why, which objects are missing, where it came from, when it expires; for the operator
// only (purgatory.md, "Visible"): held events must not leak. `purgatory ask` and `purgatory drop`: git servers asked
// again at once, and a waiting event taken out. A dropped event may come again; what is to stay away is banned.

import {
  catalogueRow,
  isReleased,
  type RepositoryName,
  repositoryKey,
  repositoryNamed,
} from "../catalogue/repositories.js";
import {
  type EntryKind,
  type EntrySource,
  type PlaceholderRow,
  placesOf,
  type WaitingEntry,
  type WaitingPhase,
  type WaitingTotals,
  waitingEntry,
  waitingEvent,
  waitingTip,
  waitingTotals,
} from "../catalogue/waiting.js";
import { diskAddress } from "../git/address.js";
import type { Repositories } from "../git/repositories.js";
import type { EventId } from "../nostr/event.js";
import { npubOf } from "../nostr/nip19.js";
import { type Oid, stateOf } from "../nostr/nip34.js";
import { wantedRefs } from "../purgatory/plan.js";
import type { Reader } from "../store/port.js";
import { type AdminParts, type AskedServer, type Caller, done, noteChange, type Outcome, refusal } from "./context.js";
import { followInGit, takeAway } from "./hosting.js";
import { eventNamed, repositoryText } from "./naming.js";
import { type CheckedOf, operations } from "./operations.js";

export interface WaitingLine {
  readonly id: EventId;
  readonly kind: EntryKind | "placeholder";
  readonly author: string | null;
  readonly repositories: readonly string[];
  readonly phase: WaitingPhase;
  readonly source: EntrySource["type"] | "push";
  readonly relay: string | null;
  readonly entered: number;
  readonly expires: number;
  readonly bytes: number;
  readonly why: string;
  /** Objects that are not here with all they reach; null where nobody looked. */
  readonly missing: readonly Oid[] | null;
  readonly asked: readonly AskedServer[];
}

export interface WaitingList {
  readonly totals: WaitingTotals;
  readonly waiting: readonly WaitingLine[];
  readonly more: boolean;
}

/** Each look may start git; beyond this many, `missing` is null. */
const maxObjectLooks = 50;

export async function listWaiting(
  parts: AdminParts,
  { repository, limit }: CheckedOf<"purgatory.list">,
): Promise<WaitingList> {
  const { store } = parts;
  const wanted = repository && repositoryKey(repository);
  const concerns = (address: string): boolean => {
    const name = repositoryNamed(address);
    return wanted === undefined || (name !== undefined && repositoryKey({ ...name, area: "main" }) === wanted);
  };
  const entries: WaitingEntry[] = [];
  let more = false;
  for await (const [, entry] of store.rows<WaitingEntry>("purgatory", { prefix: "e:" })) {
    if (!entry.repositories.some(concerns)) continue;
    if (entries.length === limit) {
      more = true;
      break;
    }
    entries.push(entry);
  }
  const lines: WaitingLine[] = [];
  let looks = 0;
  for (const entry of entries.sort((a, b) => a.expires - b.expires)) {
    const isLooked = hasObjects(entry) && looks++ < maxObjectLooks;
    lines.push(await lineOf(parts, entry, isLooked ? await missingOf(parts, entry) : null));
  }
  for await (const [, row] of store.rows<PlaceholderRow>("purgatory", { prefix: "g:" })) {
    if (lines.length >= limit) more = true;
    else if (concerns(row.repository)) lines.push(placeholderLine(row));
  }
  return { totals: await waitingTotals(store), waiting: lines, more };
}

const namesOf = (entry: WaitingEntry): RepositoryName[] =>
  entry.repositories.flatMap((address) => repositoryNamed(address) ?? []);

const hasObjects = (entry: WaitingEntry): boolean =>
  entry.releasable && (entry.kind === "state" || entry.kind === "pull-request");

function namedObjects(entry: WaitingEntry): Oid[] {
  if (entry.kind === "pull-request") return [waitingTip(entry)].filter((oid) => oid !== undefined);
  const state = stateOf(waitingEvent(entry));
  return state ? [...new Set(wantedRefs(state).refs.values())] : [];
}

/** In the repository that lacks least of it. */
async function missingOf(parts: AdminParts, entry: WaitingEntry): Promise<readonly Oid[]> {
  const repositories = await parts.repositories();
  const named = namedObjects(entry);
  let least: readonly Oid[] = named;
  for (const name of placesOf(entry)) {
    const missing = await missingIn(repositories, name, named);
    if (missing.length < least.length) least = missing;
  }
  return least;
}

async function missingIn(
  repositories: Repositories,
  name: RepositoryName,
  oids: readonly Oid[],
): Promise<readonly Oid[]> {
  const address = diskAddress(name);
  if (!(await repositories.exists(address))) return oids;
  return [...(await repositories.open(address).missingObjects(oids))];
}

async function lineOf(parts: AdminParts, entry: WaitingEntry, missing: readonly Oid[] | null): Promise<WaitingLine> {
  const names = namesOf(entry);
  return {
    id: entry.id,
    kind: entry.kind,
    author: npubOf(entry.pubkey),
    repositories: names.map(repositoryText),
    phase: entry.phase,
    source: entry.source.type,
    relay: entry.source.type === "sync" ? entry.source.relay : null,
    entered: entry.entered,
    expires: entry.expires,
    bytes: entry.bytes,
    why: await whyWaiting(parts.store, entry, missing, names),
    missing,
    asked: names.flatMap((name) => parts.running?.askedServers(name) ?? []),
  };
}

async function whyWaiting(
  reader: Reader,
  entry: WaitingEntry,
  missing: readonly Oid[] | null,
  names: readonly RepositoryName[],
): Promise<string> {
  if (!entry.releasable) return "names object ids that cannot exist: it can only expire";
  switch (entry.kind) {
    case "announcement":
      return entry.phase === "soft"
        ? "no state with git data came in time; its directory is gone, a state revives it"
        : "no state of its own with all its git data is here yet";
    case "related":
      return "its repository waits";
    case "state":
    case "pull-request": {
      const objects =
        missing === null
          ? "its git data is not complete"
          : `${missing.length} of its objects ${missing.length === 1 ? "is" : "are"} missing`;
      if (missing?.length !== 0) return objects;
      for (const name of names) {
        if (isReleased(await catalogueRow(reader, name))) return "its objects are here: it is about to be released";
      }
      return "its objects are here, but no repository it is about is served yet";
    }
  }
}

function placeholderLine(row: PlaceholderRow): WaitingLine {
  const name = repositoryNamed(row.repository);
  return {
    id: row.id,
    kind: "placeholder",
    author: null,
    repositories: name ? [repositoryText(name)] : [],
    phase: "waiting",
    source: "push",
    relay: null,
    entered: row.entered,
    expires: row.expires,
    bytes: row.bytes,
    why: `data was pushed from ${row.ip} and its event has not come`,
    missing: null,
    asked: [],
  };
}

export async function askNow(
  { running, store, clock }: AdminParts,
  caller: Caller,
  name: RepositoryName,
): Promise<Outcome<{ readonly repository: string }>> {
  const target = repositoryText(name);
  if (!running) return refusal("not-possible", operations["purgatory.ask"].needsServer);
  if (!running.askNow(name)) return refusal("unknown", `nothing of ${target} is looked for`);
  await store.transact((tx) => noteChange(tx, clock, caller, { what: "ask for git data", target }));
  return done({ repository: target });
}

export async function dropWaiting(
  parts: AdminParts,
  caller: Caller,
  text: string,
): Promise<Outcome<{ readonly event: string }>> {
  const id = eventNamed(text);
  if (!id) return refusal("bad-request", `${JSON.stringify(text)} is not an event id, note or nevent`);
  const withdrawn = await parts.store.transact(async (tx) => {
    const entry = await waitingEntry(tx, id);
    if (!entry) return undefined;
    await noteChange(tx, parts.clock, caller, { what: "drop waiting event", target: id });
    return takeAway(parts, tx, { stored: [], waiting: [entry] }, "operator");
  });
  if (!withdrawn) return refusal("unknown", `no event ${id} waits`);
  await followInGit(parts, withdrawn);
  return done({ event: id });
}
