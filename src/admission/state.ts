// Rule 3 of relay.md: states (30618). Facts are read first, then decided.

import { rememberedId } from "../catalogue/decisions.js";
import {
  announcersOf,
  repositoriesTrusting,
  storedAuthority,
  type TrustingRepository,
} from "../catalogue/maintainers.js";
import { fixedFormat, isReleased, repositoryAddress, takesStates, withStatus } from "../catalogue/repositories.js";
import {
  type WaitingEntry,
  type WaitingHint,
  waitingAnnouncement,
  waitingEntry,
  waitingHints,
  waitingKeys,
} from "../catalogue/waiting.js";
import { compareNewestFirst, type EventId, kinds, type VerifiedEvent } from "../nostr/event.js";
import {
  formatName,
  formatsNamed,
  isOid,
  isRefName,
  type ObjectFormat,
  type RepositoryState,
  stateOf,
} from "../nostr/nip34.js";
import type { AdmissionConfig, AdmissionSettings } from "./settings.js";
import {
  type AdmissionContext,
  type Change,
  held,
  known,
  purgatoryMessage,
  type RepositoryChange,
  refused,
  stored,
  type Verdict,
} from "./verdict.js";
import { newEntry, restarted, roomFor, usualDeadline, waitingRoomFull } from "./waiting-capacity.js";

export async function judgeState(
  event: VerifiedEvent,
  context: AdmissionContext,
  settings: AdmissionSettings,
): Promise<Verdict> {
  const state = stateOf(event);
  if (!state) return refused("state", "bad-state", "not a state");
  const facts = await readStateFacts(state, context, settings);
  return decideState({ event, state, facts, context, config: settings.config() });
}

interface StateFacts {
  readonly newest: { readonly id: EventId; readonly created_at: number } | undefined;
  /** This very event, if it waits already. */
  readonly self: WaitingEntry | undefined;
  readonly expired: boolean;
  readonly repositories: readonly TrustingRepository[];
  readonly isAnnounced: boolean;
  /** The author's other states for this identifier that wait. */
  readonly siblings: readonly (WaitingHint & { readonly id: EventId })[];
  /** Waiting and soft announcements of the repositories concerned: their clock restarts. */
  readonly announcements: readonly WaitingEntry[];
  readonly hasRoom: boolean;
  readonly giveWay: readonly EventId[];
}

async function readStateFacts(
  state: RepositoryState,
  { reader, nowSeconds, source }: AdmissionContext,
  settings: AdmissionSettings,
): Promise<StateFacts> {
  const config = settings.config();
  const { repositoryBlacklist } = settings.lists();
  const address = { kind: kinds.state, pubkey: state.author, identifier: state.identifier };
  const latest = await reader.latest(address);
  const repositories = await repositoriesTrusting(
    storedAuthority(reader),
    state.author,
    state.identifier,
    config.releaseMaxRepositories,
    (row) => takesStates(row) && !repositoryBlacklist.has(row),
  );
  const announcements: WaitingEntry[] = [];
  for (const repository of repositories) {
    const entry = isReleased(repository.row) ? undefined : await waitingAnnouncement(reader, repository);
    if (entry) announcements.push(entry);
  }
  const siblings = await waitingHints(reader, waitingKeys.address(address), config.purgatoryMaxStatesPerRepository * 4);
  const remembered = source.type === "sync" ? await rememberedId(reader, state.event.id, nowSeconds) : undefined;
  const room = await roomFor(reader, state.author, Buffer.byteLength(state.event.raw), config);
  return {
    newest: latest && { id: latest.event.id, created_at: latest.event.created_at },
    self: await waitingEntry(reader, state.event.id),
    expired: remembered?.reason === "expired",
    repositories,
    isAnnounced: (await announcersOf(reader, state.identifier, 1)).length > 0,
    siblings: siblings.filter((hint) => hint.id !== state.event.id),
    announcements,
    hasRoom: room.ok,
    giveWay: room.ok ? room.giveWay : [],
  };
}

interface StateCase {
  readonly event: VerifiedEvent;
  readonly state: RepositoryState;
  readonly facts: StateFacts;
  readonly context: Pick<AdmissionContext, "source" | "nowSeconds">;
  readonly config: AdmissionConfig;
}

function decideState({ event, state, facts, context, config }: StateCase): Verdict {
  const { nowSeconds, source } = context;
  const fault = state.identifier === "" ? "the d tag lacks an identifier" : refsFault(state);
  if (fault !== undefined) return refused("state", "bad-state", fault);
  const [format, other] = formatsNamed(state);
  if (other) {
    const mixed = "the state mixes SHA-1 and SHA-256 object ids: a repository has ids of one format";
    return refused("state", "object-format", mixed, { refs: state.refs.length });
  }
  const able = facts.repositories.filter((repository) => canHold(repository, format));
  const [unable] = facts.repositories;
  if (format && unable && able.length === 0) {
    const here = formatName(fixedFormat(unable.row) ?? "sha1");
    const reason = `the state names objects by ${formatName(format)}, the repository has ${here} ones: publish a state of a ${here} clone`;
    return refused("state", "object-format", reason, { repositories: facts.repositories.map(repositoryAddress) });
  }
  const addresses = able.map(repositoryAddress);
  const record = { repositories: addresses, refs: state.refs.length };
  if (addresses.length === 0) {
    return facts.isAnnounced
      ? refused("state", "not-a-maintainer", "author not authorized for this repository", record)
      : refused("state", "no-announcement", "no announcement exists for this repository", record);
  }
  if (facts.newest && compareNewestFirst(facts.newest, event) < 0) {
    return known("state", "superseded", "duplicate: a newer version is stored", record);
  }
  if (facts.self?.phase === "waiting" || (facts.self && source.type !== "client")) {
    return known("state", "waiting", purgatoryMessage, record);
  }
  if (facts.expired) return known("remembered", "superseded", "duplicate: its git data was looked for in vain", record);
  const served = able.some(({ row }) => isReleased(row));
  // Without refs there is nothing to wait for and nothing it may start: it neither releases nor prolongs a wait.
  if (state.refs.length === 0 && served) return stored("state", { ...record, empty: true });
  const evicted = ownOldestThatGivesWay(event, facts, config);
  if (evicted === "none") {
    const count = config.purgatoryMaxStatesPerRepository;
    return refused("waiting-room", "too-many-waiting", `${count} newer states of this repository wait already`, record);
  }
  if (!facts.hasRoom) return waitingRoomFull(record);
  const entry = newEntry({
    kind: "state",
    event,
    source,
    nowSeconds,
    deadline: usualDeadline(nowSeconds, config),
    repositories: addresses,
    releasable: hasOnlyObjectIds(state) && state.refs.length > 0,
  });
  const wake =
    state.refs.length === 0
      ? { changes: [], repositories: [] }
      : restartWaits({ ...facts, repositories: able }, nowSeconds, config);
  return held(
    "state",
    entry,
    facts.self === undefined,
    { ...record, releasable: entry.releasable },
    {
      changes: [...facts.giveWay, ...evicted].map((id) => ({ type: "unhold", id, cause: "evicted" }) as const),
      after: wake.changes,
      repositories: wake.repositories,
    },
  );
}

/** A format is fixed by the first state that was released or pushed under; until then the newest state decides it. */
function canHold({ row }: TrustingRepository, format: ObjectFormat | undefined): boolean {
  const fixed = fixedFormat(row);
  return format === undefined || fixed === undefined || fixed === format;
}

/**
 * Ten states per author and identifier: a newer one takes the place of the author's own oldest, so that somebody who
 * publishes often is not stuck with his old ones; one older than all ten has no place.
 */
function ownOldestThatGivesWay(
  event: VerifiedEvent,
  facts: StateFacts,
  config: AdmissionConfig,
): readonly EventId[] | "none" {
  const excess = facts.siblings.length + 1 - config.purgatoryMaxStatesPerRepository;
  if (excess <= 0) return [];
  const oldestFirst = [...facts.siblings].sort((a, b) => compareNewestFirst(b, a));
  const victims = oldestFirst.slice(0, excess);
  return victims.every((victim) => compareNewestFirst(event, victim) < 0) ? victims.map(({ id }) => id) : "none";
}

/** An authorised state restarts the clock of the waiting announcements and brings soft ones back. */
function restartWaits(
  facts: StateFacts,
  nowSeconds: number,
  config: AdmissionConfig,
): { readonly changes: Change[]; readonly repositories: RepositoryChange[] } {
  const changes: Change[] = [];
  const repositories: RepositoryChange[] = [];
  for (const { owner, identifier, row } of facts.repositories) {
    const announcement = facts.announcements.find((entry) => entry.pubkey === owner);
    if (!announcement) continue;
    const entry = restarted(announcement, nowSeconds, config);
    if (entry.phase !== "waiting") continue;
    changes.push({ type: "hold", entry });
    if (row.status === "soft") {
      changes.push({ type: "catalogue", row: withStatus(row, "waiting", nowSeconds) });
      repositories.push({ name: { owner, identifier }, to: "create" });
    }
  }
  return { changes, repositories };
}

const shown = (name: string): string => JSON.stringify(name.slice(0, 100));

/**
 * Could git ever apply this list of refs (purgatory.md, "Sanity at admission")? One sentence about the first thing wrong,
 * or undefined. Reads names only; object ids that are no object ids are not a fault here: such a state waits and expires
 * (threats.md row 1).
 */
function refsFault(state: RepositoryState): string | undefined {
  const names = new Set<string>();
  for (const { name } of state.refs) {
    if (!isRefName(name)) return `${shown(name)} is not a name git allows for a ref`;
    if (names.has(name)) return `${shown(name)} is listed twice`;
    names.add(name);
  }
  for (const name of names) {
    for (let slash = name.lastIndexOf("/"); slash > 0; slash = name.lastIndexOf("/", slash - 1)) {
      const directory = name.slice(0, slash);
      if (names.has(directory)) return `${shown(directory)} and ${shown(name)} cannot exist together in git`;
    }
  }
  return undefined;
}

/** Whether every object it names could be one. */
const hasOnlyObjectIds = (state: RepositoryState): boolean => state.refs.every((ref) => isOid(ref.value));
