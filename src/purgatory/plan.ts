// What a release would do in one repository: which state decides there now, and what of it is here. Reads the store
// and asks git; changes nothing. (purgatory.md, "Release"; git-http.md, "Push" 3: mark, governing, partial.)

import { type CatalogueRow, catalogueRow, type RepositoryName, takesStates } from "../catalogue/repositories.js";
import { waitingAnnouncement, waitingEvent } from "../catalogue/waiting.js";
import type { RefTable } from "../git/ref-tables.js";
import type { GitRepository } from "../git/repository.js";
import { compareNewestFirst, expirationOf } from "../nostr/event.js";
import type { EventId, Oid, RefName } from "../nostr/ids.js";
import type { Reader } from "../store/port.js";
import { type Alignment, alignmentOf } from "./alignment.js";
import { canDecide, type DecidingState, decidingStates } from "./deciding-states.js";
import { partialPush } from "./journal.js";

/** Objects of a state that another repository has and this one lacks. */
export interface Loan {
  readonly from: GitRepository;
  readonly oids: readonly Oid[];
}

export interface RepositoryPlan {
  readonly name: RepositoryName;
  readonly repository: GitRepository;
  readonly row: CatalogueRow;
  /** The state that decides from now on, with what it changes; undefined when none can yet. */
  readonly governing:
    | { readonly state: DecidingState; readonly alignment: Alignment; readonly copy?: Loan }
    | undefined;
  /** States that wait and whose objects are all here though a newer one decides: stored, nothing moved. */
  readonly superseded: readonly DecidingState[];
}

export interface PlanParts {
  readonly reader: Reader;
  readonly nowSeconds: number;
  readonly partialGraceSeconds: number;
  /** Which of a state's objects a repository lacks; remembered while one release is at work. */
  readonly missingIn: (repository: GitRepository, state: DecidingState) => Promise<ReadonlySet<Oid>>;
  /** Repositories that may lend a state's objects to this one: where its author decides too, or its maintainers' own. */
  readonly lendersTo: (name: RepositoryName, state: DecidingState) => Promise<readonly GitRepository[]>;
  /** States whose missing objects are on no server that could be asked: what is here of them may be released. */
  readonly partial: ReadonlySet<EventId>;
  /** States that this release serves as partial, found so far. */
  readonly servedPartly: Set<EventId>;
}

const currentOids = (table: RefTable): Set<Oid> => new Set([...table.refs.values()].map((value) => value.oid));

type Completeness =
  | { readonly complete: true; readonly copy?: Loan }
  /** `copy`: the best of what others have; it is not all. */
  | { readonly complete: false; readonly missing: ReadonlySet<Oid>; readonly copy?: Loan };

async function completenessOf(
  state: DecidingState,
  repository: GitRepository,
  { missingIn }: PlanParts,
  lenders: () => Promise<readonly GitRepository[]>,
): Promise<Completeness> {
  const missing = await missingIn(repository, state);
  if (missing.size === 0) return (await headsAreCommits(state, repository)) ? { complete: true } : incomplete(state);
  let copy: Loan | undefined;
  for (const lender of await lenders()) {
    const lacking = await missingIn(lender, state);
    const oids = [...missing].filter((oid) => !lacking.has(oid));
    if (oids.length > (copy?.oids.length ?? 0)) copy = { from: lender, oids };
    if (oids.length < missing.size) continue;
    return (await headsAreCommits(state, lender))
      ? { complete: true, copy: { from: lender, oids } }
      : incomplete(state);
  }
  return { complete: false, missing, ...(copy ? { copy } : {}) };
}

const incomplete = (state: DecidingState): Completeness => ({ complete: false, missing: new Set(state.refs.values()) });

/** A branch that names a blob or a tag could be stored and never be checked out. */
async function headsAreCommits(state: DecidingState, repository: GitRepository): Promise<boolean> {
  const present = currentOids(await repository.refs());
  const heads = [...state.refs].filter(([ref, oid]) => ref.startsWith("refs/heads/") && !present.has(oid));
  const types = await repository.objectTypes(heads.map(([, oid]) => oid));
  return heads.every(([, oid]) => (types.get(oid) ?? "commit") === "commit");
}

export async function planFor(
  name: RepositoryName,
  repository: GitRepository,
  parts: PlanParts,
): Promise<RepositoryPlan | undefined> {
  const { reader } = parts;
  const row = await catalogueRow(reader, name);
  if (!row || !takesStates(row) || row.status === "soft") return undefined;
  if (row.status === "waiting" && (await isOver(reader, name, parts.nowSeconds))) return undefined;
  const table = await repository.refs();
  const states = (await decidingStates(reader, name)).filter(canDecide);
  const mark = row.mark;
  const eligible = mark ? states.filter((state) => compareNewestFirst(state.event, mark) <= 0) : states;
  let governing: RepositoryPlan["governing"];
  for (const state of eligible) {
    governing = await governingBy(state, { name, row, repository, table, parts });
    if (governing) break;
  }
  const superseded: DecidingState[] = [];
  for (const state of states) {
    if (!state.entry || state === governing?.state) continue;
    const isOld = governing
      ? compareNewestFirst(governing.state.event, state.event) < 0
      : mark !== null && compareNewestFirst(mark, state.event) < 0;
    if (isOld && (await completenessOf(state, repository, parts, async () => [])).complete) superseded.push(state);
  }
  return { name, repository, row, governing, superseded };
}

/** An announcement that its author let expire (NIP-40) is swept, not released. */
async function isOver(reader: Reader, name: RepositoryName, nowSeconds: number): Promise<boolean> {
  const announcement = await waitingAnnouncement(reader, name);
  const expiration = announcement && expirationOf(waitingEvent(announcement));
  return expiration !== undefined && expiration <= nowSeconds;
}

interface GoverningQuestion {
  readonly name: RepositoryName;
  readonly row: CatalogueRow;
  readonly repository: GitRepository;
  readonly table: RefTable;
  readonly parts: PlanParts;
}

async function governingBy(state: DecidingState, question: GoverningQuestion): Promise<RepositoryPlan["governing"]> {
  const { repository, table, parts } = question;
  const completeness = await completenessOf(state, repository, parts, () => parts.lendersTo(question.name, state));
  const align = (isHere: (oid: Oid) => boolean): Alignment =>
    alignmentOf(state.refs, state.headBranch, table.refs, isHere);
  if (completeness.complete) {
    return { state, alignment: align(() => true), ...(completeness.copy ? { copy: completeness.copy } : {}) };
  }
  const { copy } = completeness;
  const copied = new Set(copy?.oids);
  const missing = new Set([...completeness.missing].filter((oid) => !copied.has(oid)));
  if (!(await mayBePartial(state, missing, question))) return undefined;
  return { state, alignment: align((oid) => !missing.has(oid)), ...(copy ? { copy } : {}) };
}

/** A partial state that governs stays; one that waits may become one after its grace, if HEAD's branch is complete. */
async function mayBePartial(
  state: DecidingState,
  missing: ReadonlySet<Oid>,
  { name, row, table, parts }: GoverningQuestion,
): Promise<boolean> {
  if (row.governing === state.event.id) return true;
  if (parts.partial.has(state.event.id)) return [...state.refs.values()].some((oid) => !missing.has(oid));
  // Served already, or by this very release in another repository: wherever it decides, its refs are held as far as
  // they can be, and what is missing is recorded.
  const isServed = state.entry === undefined || parts.servedPartly.has(state.event.id);
  const push = isServed ? undefined : await partialPush(parts.reader, name, state.event.id);
  const isOver = push !== undefined && push.since + parts.partialGraceSeconds <= parts.nowSeconds;
  if (!isServed && !isOver) return false;
  const isHere = (oid: Oid): boolean => !missing.has(oid);
  const { head } = alignmentOf(state.refs, state.headBranch, new Map<RefName, { oid: Oid }>(), () => true);
  const headOid = head && state.refs.get(head);
  return headOid !== undefined && (isHere(headOid) || table.refs.get(head as RefName)?.oid === headOid);
}
