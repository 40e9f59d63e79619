// What a release would do in one repository: which state decides there now, and what of it is here. Reads the store
// and asks git; changes nothing. (purgatory.md, "Release"; git-http.md, "Push" 3: mark, governing, partial.)

import { maintainersOf } from "../catalogue/maintainers.js";
import {
  type CatalogueRow,
  catalogueRow,
  fixedFormat,
  isReleased,
  type RepositoryName,
  type StateStamp,
  takesStates,
} from "../catalogue/repositories.js";
import {
  partialPush,
  type WaitingEntry,
  waitingAnnouncement,
  waitingEntries,
  waitingEvent,
  waitingKeys,
} from "../catalogue/waiting.js";
import type { RefTable } from "../git/ref-tables.js";
import type { GitRepository } from "../git/repository.js";
import { compareNewestFirst, type EventId, expirationOf, kinds, type VerifiedEvent } from "../nostr/event.js";
import {
  formatOf,
  formatsNamed,
  isOid,
  isRefName,
  type ObjectFormat,
  type Oid,
  type RefName,
  type RepositoryState,
  stateOf,
} from "../nostr/nip34.js";
import type { Reader } from "../store/port.js";

/** Objects of a state that another repository has and this one lacks. */
interface ObjectCopy {
  readonly from: GitRepository;
  readonly oids: readonly Oid[];
}

export interface RepositoryPlan {
  readonly name: RepositoryName;
  readonly repository: GitRepository;
  readonly row: CatalogueRow;
  /** The state that decides from now on, with what it changes; undefined when none can yet. */
  readonly governing:
    | { readonly state: DecidingState; readonly alignment: Alignment; readonly copy?: ObjectCopy }
    | undefined;
  /** The state that governed is one whose author no longer decides here. */
  readonly isUngoverned: boolean;
  /** States that wait and whose objects are all here though a newer one decides: stored, nothing moved. */
  readonly superseded: readonly DecidingState[];
  /** States that wait and name objects by another hash than the repository: nothing of them can be held there. */
  readonly otherFormat: readonly DecidingState[];
}

export interface PlanParts {
  readonly reader: Reader;
  readonly nowSeconds: number;
  readonly partialGraceSeconds: number;
  /** The refs as the release will find them: those of a push that is written with it are there already. */
  readonly refsOf: (repository: GitRepository) => Promise<Pick<RefTable, "head" | "refs" | "format">>;
  /** Which of these a repository lacks, or has without all they reach. */
  readonly missingOf: (repository: GitRepository, oids: readonly Oid[]) => Promise<ReadonlySet<Oid>>;
  /** The state under which that push was decided. */
  readonly pushedUnder: (repository: GitRepository) => StateStamp | undefined;
  /** Which of a state's objects a repository lacks; remembered while one release is at work. */
  readonly missingIn: (repository: GitRepository, state: DecidingState) => Promise<ReadonlySet<Oid>>;
  /** Repositories from which a state's objects may be copied to this one: where its author decides too, or its maintainers' own. */
  readonly sourcesFor: (name: RepositoryName, state: DecidingState) => Promise<readonly GitRepository[]>;
  /** States whose missing objects are on no server that could be asked: what is here of them may be released. */
  readonly partial: ReadonlySet<EventId>;
  /** States that this release serves as partial, found so far. */
  readonly servedPartly: Set<EventId>;
}

export const oidsIn = ({ refs }: Pick<RefTable, "refs">): Set<Oid> => new Set([...refs.values()].map(({ oid }) => oid));

type Completeness =
  | { readonly complete: true; readonly copy?: ObjectCopy }
  /** `copy`: the best of what others have; it is not all. */
  | { readonly complete: false; readonly missing: ReadonlySet<Oid>; readonly copy?: ObjectCopy };

async function completenessOf(
  state: DecidingState,
  repository: GitRepository,
  parts: PlanParts,
  sources: () => Promise<readonly GitRepository[]>,
): Promise<Completeness> {
  const { missingIn } = parts;
  const missing = await missingIn(repository, state);
  if (missing.size === 0)
    return (await headsAreCommits(state, repository, parts)) ? { complete: true } : incomplete(state);
  let copy: ObjectCopy | undefined;
  for (const source of await sources()) {
    const lacking = await missingIn(source, state);
    const oids = [...missing].filter((oid) => !lacking.has(oid));
    if (oids.length > (copy?.oids.length ?? 0)) copy = { from: source, oids };
    if (oids.length < missing.size) continue;
    return (await headsAreCommits(state, source, parts))
      ? { complete: true, copy: { from: source, oids } }
      : incomplete(state);
  }
  return { complete: false, missing, ...(copy ? { copy } : {}) };
}

const incomplete = (state: DecidingState): Completeness => ({ complete: false, missing: new Set(state.refs.values()) });

/** A branch that names a blob or a tag could be stored and never be checked out. */
async function headsAreCommits(state: DecidingState, repository: GitRepository, parts: PlanParts): Promise<boolean> {
  return (await headsThatAreNone(state, repository, parts)).size === 0;
}

/** What branches of the state name, and is here, and is no commit. */
async function headsThatAreNone(
  state: DecidingState,
  repository: GitRepository,
  { refsOf }: PlanParts,
): Promise<ReadonlySet<Oid>> {
  const present = oidsIn(await refsOf(repository));
  const heads = [...state.refs].filter(([ref, oid]) => ref.startsWith("refs/heads/") && !present.has(oid));
  const types = await repository.objectTypes(heads.map(([, oid]) => oid));
  return new Set(heads.map(([, oid]) => oid).filter((oid) => (types.get(oid) ?? "commit") !== "commit"));
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
  const table = await parts.refsOf(repository);
  const all = await decidingStates(reader, name);
  const able = all.filter(canDecide);
  const states = able.filter((state) => formatOfState(state) === table.format);
  const otherFormat = able.filter((state) => state.entry && !states.includes(state));
  const isUngoverned = row.governing !== null && !all.some(({ event }) => event.id === row.governing);
  const pushed = parts.pushedUnder(repository);
  const mark = pushed && (!row.mark || compareNewestFirst(pushed, row.mark) < 0) ? pushed : row.mark;
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
  return { name, repository, row, governing, isUngoverned, superseded, otherFormat };
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
  readonly table: Pick<RefTable, "refs">;
  readonly parts: PlanParts;
}

async function governingBy(state: DecidingState, question: GoverningQuestion): Promise<RepositoryPlan["governing"]> {
  const { repository, table, parts } = question;
  const completeness = await completenessOf(state, repository, parts, () => parts.sourcesFor(question.name, state));
  const align = (isHere: (oid: Oid) => boolean): Alignment =>
    alignmentOf(state.refs, state.headBranch, table.refs, isHere);
  if (completeness.complete) {
    return { state, alignment: align(() => true), ...(completeness.copy ? { copy: completeness.copy } : {}) };
  }
  const { copy } = completeness;
  const copied = new Set(copy?.oids);
  const missing = new Set([...completeness.missing].filter((oid) => !copied.has(oid)));
  if (!(await mayBePartial(state, missing, question))) return undefined;
  // git would hold none of the refs for the sake of one branch that is no commit.
  for (const oid of await headsThatAreNone(state, repository, parts)) missing.add(oid);
  return { state, alignment: align((oid) => !missing.has(oid)), ...(copy ? { copy } : {}) };
}

/**
 * Whether a state may govern although some of its objects are missing. A state that governs already may. A waiting state may
 * when its grace period is over and HEAD's branch is complete.
 */
async function mayBePartial(
  state: DecidingState,
  missing: ReadonlySet<Oid>,
  { name, row, repository, table, parts }: GoverningQuestion,
): Promise<boolean> {
  if (row.governing === state.event.id) return true;
  if (parts.partial.has(state.event.id)) return [...state.refs.values()].some((oid) => !missing.has(oid));
  // Served already, or by this very release in another repository: wherever it decides, its refs are held as far as
  // they can be, and what is missing is recorded.
  const isServed = state.entry === undefined || parts.servedPartly.has(state.event.id);
  const push = isServed ? undefined : await partialPush(parts.reader, name, state.event.id);
  const isPushed = parts.pushedUnder(repository)?.id === state.event.id;
  const since = push?.since ?? (isPushed ? parts.nowSeconds : undefined);
  const isOver = since !== undefined && since + parts.partialGraceSeconds <= parts.nowSeconds;
  if (!isServed && !isOver) return false;
  const isHere = (oid: Oid): boolean => !missing.has(oid);
  const { head } = alignmentOf(state.refs, state.headBranch, new Map<RefName, { oid: Oid }>(), () => true);
  const headOid = head && state.refs.get(head);
  return headOid !== undefined && (isHere(headOid) || table.refs.get(head as RefName)?.oid === headOid);
}

// ---- what a state asks of refs: pure. Only refs/heads/* and refs/tags/* are a state's to decide -------------------

interface WantedRefs {
  readonly refs: ReadonlyMap<RefName, Oid>;
  /** False: it names something git could never hold; such a state waits and expires (threats.md row 1). */
  readonly wellFormed: boolean;
}

/** The refs a state names, as values that may be handed to git. */
export function wantedRefs(state: RepositoryState): WantedRefs {
  const refs = new Map<RefName, Oid>();
  let wellFormed = true;
  for (const { name, value } of state.refs) {
    if (isRefName(name) && isOid(value)) refs.set(name, value);
    else wellFormed = false;
  }
  return { refs, wellFormed: wellFormed && formatsNamed(state).size <= 1 };
}

const isStatesToDecide = (ref: string): boolean => ref.startsWith("refs/heads/") || ref.startsWith("refs/tags/");

interface Alignment {
  /** Creations and moves first read, deletions after; the git room orders them. */
  readonly updates: readonly { readonly ref: RefName; readonly to: Oid | undefined }[];
  readonly head: RefName | undefined;
  /** Refs the state names whose objects are not here: they are neither set nor deleted. */
  readonly missing: readonly RefName[];
}

/**
 * The changes that make `current` equal to the state, as far as the objects are here.
 * A ref whose new objects are missing keeps its old value: a pushed branch is never rolled back for incompleteness.
 */
export function alignmentOf(
  wanted: ReadonlyMap<RefName, Oid>,
  headBranch: string | undefined,
  current: ReadonlyMap<RefName, { readonly oid: Oid }>,
  isHere: (oid: Oid) => boolean,
): Alignment {
  const updates: { ref: RefName; to: Oid | undefined }[] = [];
  const missing: RefName[] = [];
  for (const [ref, oid] of wanted) {
    if (current.get(ref)?.oid === oid) continue;
    if (isHere(oid)) updates.push({ ref, to: oid });
    else missing.push(ref);
  }
  for (const ref of current.keys()) {
    if (isStatesToDecide(ref) && !wanted.has(ref)) updates.push({ ref, to: undefined });
  }
  const absent = new Set<RefName>(missing.filter((ref) => !current.has(ref)));
  const branches = [...wanted.keys()].filter((ref) => ref.startsWith("refs/heads/") && !absent.has(ref));
  return { updates, head: headOf(branches, headBranch), missing };
}

/** The branch the state names if it has it, else its only branch, else main, master, the first. */
export function headOf(branches: readonly RefName[], named: string | undefined): RefName | undefined {
  const has = (name: string | undefined): RefName | undefined => branches.find((branch) => branch === name);
  if (branches.length === 1) return branches[0];
  return has(named) ?? has("refs/heads/main") ?? has("refs/heads/master") ?? [...branches].sort()[0];
}

// ---- the states that may decide in one repository: by members of its owner's directed set, stored or waiting -----

interface DecidingState extends WantedRefs {
  readonly event: VerifiedEvent;
  readonly headBranch: string | undefined;
  /** Set while it waits. */
  readonly entry: WaitingEntry | undefined;
}

// More than an author may have waiting, so that a change of that cap loses nothing.
const maxWaitingPerMember = 40;

function decidingState(event: VerifiedEvent, entry: WaitingEntry | undefined): DecidingState | undefined {
  const state = stateOf(event);
  return state && { event, headBranch: state.headBranch, entry, ...wantedRefs(state) };
}

/** Newest first (NIP-01 order), empty ones included. */
export async function decidingStates(reader: Reader, name: RepositoryName): Promise<DecidingState[]> {
  const { identifier } = name;
  const found: DecidingState[] = [];
  for (const member of await maintainersOf(reader, name)) {
    const address = { kind: kinds.state, pubkey: member, identifier };
    // Waiting ones first: a release between the two looks must not hide a state from both.
    const waiting = await waitingEntries(reader, waitingKeys.address(address), maxWaitingPerMember);
    const stored = await reader.latest(address);
    const candidates = [
      stored && decidingState(stored.event, undefined),
      ...waiting
        .filter((entry) => entry.id !== stored?.event.id)
        .map((entry) => decidingState(waitingEvent(entry), entry)),
    ];
    for (const state of candidates) if (state) found.push(state);
  }
  return found.sort((a, b) => compareNewestFirst(a.event, b.event));
}

/** Of a state that can decide: all its ids have one format. */
export function formatOfState({ refs }: Pick<DecidingState, "refs">): ObjectFormat | undefined {
  const [oid] = refs.values();
  return oid && formatOf(oid);
}

/** The format of a waiting repository's newest state, where that is not its own and it may still change. */
export async function otherFormat(reader: Reader, name: RepositoryName): Promise<ObjectFormat | undefined> {
  const row = name.area === "prs" ? undefined : await catalogueRow(reader, name);
  if (row?.status !== "waiting" || fixedFormat(row) !== undefined) return undefined;
  const newest = (await decidingStates(reader, name)).find(canDecide);
  const format = newest && formatOfState(newest);
  return format === (row.format ?? "sha1") ? undefined : format;
}

/** Names at least one branch or tag, and nothing git could never hold: only such a state moves refs. */
export const canDecide = (state: DecidingState): boolean => state.wellFormed && state.refs.size > 0;

/** Nothing to store or change: the state that governs already does. */
export function isQuiet(plan: RepositoryPlan): boolean {
  const { governing, row, superseded } = plan;
  // A repository that was announced again has its state already and waits all the same.
  if (governing && !isReleased(row)) return false;
  if (superseded.some((state) => state.entry)) return false;
  if (!governing) return !(plan.isUngoverned && isReleased(row));
  const partialNow = governing.alignment.missing.length > 0;
  return row.governing === governing.state.event.id && !governing.state.entry && partialNow === (row.partial !== null);
}
