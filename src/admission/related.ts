// Rule 5 of relay.md: what an event is related to, in both directions, and what follows for everything that has no
// rule of its own. Transitive by construction: whatever was accepted can be pointed at.
//
// Profiles, grasp lists, deletions and vanish requests carry no relation: anybody may have them here, so that what
// merely points at one, or is pointed at by one, is not about a repository.

import { repositoriesWithTip } from "../catalogue/refs.js";
import { catalogueRow, type RepositoryName, repositoryAddress, repositoryNamed } from "../catalogue/repositories.js";
import { type WaitingEntry, waitingEntries, waitingEntry, waitingHints, waitingKeys } from "../catalogue/waiting.js";
import {
  type Address,
  addressOf,
  addressText,
  ciKinds,
  isAddressable,
  kinds,
  type NostrEvent,
  tagValues,
  targetsOf,
  type VerifiedEvent,
} from "../nostr/event.js";
import type { Filter } from "../nostr/filter.js";
import { isOid, repositoriesTagged } from "../nostr/nip34.js";
import type { Reader } from "../store/port.js";
import type { AdmissionConfig, AdmissionSettings } from "./settings.js";
import { type AdmissionContext, held, known, purgatoryMessage, refused, stored, type Verdict } from "./verdict.js";
import { newEntry, roomFor, usualDeadline, waitingRoomFull } from "./waiting-capacity.js";

export interface Relation {
  /** Related to something served: the tag value or `tagged by <id>` that shows it. */
  readonly servedVia: string | undefined;
  /** Repositories it belongs to, served ones and waiting ones, as addresses. */
  readonly repositories: readonly string[];
  /** Those of them that wait, or that belong to a waiting event it points at. */
  readonly waiting: readonly string[];
}

const carriesNoRelation = new Set<number>([
  kinds.profile,
  kinds.contacts,
  kinds.relayList,
  kinds.graspList,
  kinds.deletion,
  kinds.vanish,
]);

/** Tags of one event that are looked up to find what it is related to. */
const maxRelationTargets = 1_000;
const maxTaggersRead = 200;
const maxRepositories = 20;
const maxCommits = 20;

interface Found {
  servedVia: string | undefined;
  readonly repositories: Set<string>;
  readonly waiting: Set<string>;
}

export async function readRelation(
  event: NostrEvent,
  reader: Reader,
  isBlocked: (name: RepositoryName) => boolean,
): Promise<Relation> {
  const found: Found = { servedVia: undefined, repositories: new Set(), waiting: new Set() };
  const { ids, addresses } = targetsOf(event, maxRelationTargets);
  for (const address of addresses) await lookAtAddress(address, reader, isBlocked, found);
  for (const id of ids) {
    if (id === event.id) continue;
    const target = await reader.event(id);
    if (target && !carriesNoRelation.has(target.event.kind))
      await addServed(target.event, id, reader, isBlocked, found);
    const entry = target ? undefined : await waitingEntry(reader, id);
    if (entry) addWaiting(entry, isBlocked, found);
  }
  if (found.servedVia === undefined) await lookForTaggers(event, reader, isBlocked, found);
  if (found.servedVia === undefined && ciKinds.has(event.kind)) await lookForCommits(event, reader, isBlocked, found);
  return {
    servedVia: found.servedVia,
    repositories: [...found.repositories].slice(0, maxRepositories),
    waiting: [...found.waiting].slice(0, maxRepositories),
  };
}

async function lookAtAddress(
  address: Address,
  reader: Reader,
  isBlocked: (name: RepositoryName) => boolean,
  found: Found,
): Promise<void> {
  // Author and identifier are looked up together: a stranger's repository of the same name is another repository.
  if (!isAddressable(address.kind)) return;
  const target = await reader.latest(address);
  if (address.kind !== kinds.announcement) {
    if (target) await addServed(target.event, addressText(address), reader, isBlocked, found);
    return;
  }
  const name = { owner: address.pubkey, identifier: address.identifier };
  if (isBlocked(name)) return;
  const row = await catalogueRow(reader, name);
  if (target) {
    found.servedVia ??= addressText(address);
    if (row && row.status !== "deleted") found.repositories.add(addressText(address));
  }
  if (row?.status === "waiting") {
    found.repositories.add(addressText(address));
    if (!target) found.waiting.add(addressText(address));
  }
}

async function addServed(
  target: NostrEvent,
  via: string,
  reader: Reader,
  isBlocked: (name: RepositoryName) => boolean,
  found: Found,
): Promise<void> {
  found.servedVia ??= via;
  for (const address of repositoriesTagged(target).slice(0, maxRepositories)) {
    const name = { owner: address.pubkey, identifier: address.identifier };
    if (!isBlocked(name) && (await catalogueRow(reader, name)) !== undefined)
      found.repositories.add(addressText(address));
  }
}

function addWaiting(entry: WaitingEntry, isBlocked: (name: RepositoryName) => boolean, found: Found): void {
  // A soft announcement has no repository to wait with.
  if (entry.phase === "soft" && entry.kind === "announcement") return;
  for (const address of entry.repositories) {
    const name = repositoryNamed(address);
    if (!name || isBlocked(name)) continue;
    found.repositories.add(repositoryAddress(name));
    found.waiting.add(repositoryAddress(name));
  }
}

/** What is run on a commit may name nothing but the commit: related to what is here of it, or has it on a branch or tag. */
async function lookForCommits(
  event: NostrEvent,
  reader: Reader,
  isBlocked: (name: RepositoryName) => boolean,
  found: Found,
): Promise<void> {
  const commits = [...new Set(tagValues(event, "c").filter(isOid))].slice(0, maxCommits);
  if (commits.length === 0) return;
  const about = [kinds.pullRequest, kinds.pullRequestUpdate, kinds.ciJob, kinds.ciResult, kinds.ciProgress];
  const filter: Filter = { kinds: about, tags: new Map([["c", commits]]), limit: maxTaggersRead };
  for await (const page of reader.query([filter], { limit: maxTaggersRead })) {
    // What is here is here for a repository; so is what is said of the same commit.
    const one = page.find(({ id }) => id !== event.id);
    if (one) return addServed(one.event, `commit of ${one.id}`, reader, isBlocked, found);
  }
  for (const commit of commits) {
    for (const { owner, identifier } of await repositoriesWithTip(reader, commit, maxRepositories)) {
      await lookAtAddress({ kind: kinds.announcement, pubkey: owner, identifier }, reader, isBlocked, found);
    }
  }
}

/** The other direction: something here points at this event, by id or by the address it lives at. */
async function lookForTaggers(
  event: NostrEvent,
  reader: Reader,
  isBlocked: (name: RepositoryName) => boolean,
  found: Found,
): Promise<void> {
  const address = addressOf(event);
  const tagFilter = (name: string, value: string): Filter => ({
    tags: new Map([[name, [value]]]),
    limit: maxTaggersRead,
  });
  const filters = [
    ...["e", "E", "q"].map((name) => tagFilter(name, event.id)),
    ...(address ? ["a", "A", "q"].map((name) => tagFilter(name, addressText(address))) : []),
  ];
  for await (const page of reader.query(filters, { limit: maxTaggersRead })) {
    const tagger = page.find((row) => !carriesNoRelation.has(row.event.kind) && row.id !== event.id);
    if (!tagger) continue;
    await addServed(tagger.event, `tagged by ${tagger.id}`, reader, isBlocked, found);
    return;
  }
  const prefixes = [waitingKeys.tagsEvent(event.id), ...(address ? [waitingKeys.tagsAddress(address)] : [])];
  for (const prefix of prefixes) {
    for (const entry of await waitingEntries(reader, prefix, maxRepositories)) {
      if (entry.id !== event.id) addWaiting(entry, isBlocked, found);
    }
  }
}

/** Stored when related to something served, held when related to something waiting, else refused. */
export async function judgeRelated(
  event: VerifiedEvent,
  { reader, source, nowSeconds }: AdmissionContext,
  settings: AdmissionSettings,
): Promise<Verdict> {
  const { repositoryBlacklist } = settings.lists();
  const config = settings.config();
  const relation = await readRelation(event, reader, (name) => repositoryBlacklist.has(name));
  if (relation.servedVia !== undefined) return stored("related", { via: relation.servedVia });
  if (relation.waiting.length === 0) {
    const sentence =
      "it is not about anything here: no a, A or q tag names a repository of this server and no e, E or q tag an event of it";
    const commits = ciKinds.has(event.kind) ? ", nor does a c tag name the commit of one" : "";
    return refused("related", "unrelated", `${sentence}${commits}`, {});
  }
  return holdRelated(event, relation.waiting, { reader, source, nowSeconds }, config);
}

/** Held with waiting repositories that still have a place for it (100 each). */
export async function holdRelated(
  event: VerifiedEvent,
  waiting: readonly string[],
  { reader, source, nowSeconds }: AdmissionContext,
  config: AdmissionConfig,
): Promise<Verdict> {
  if (await waitingEntry(reader, event.id)) return known("related", "waiting", purgatoryMessage, { waiting });
  const withPlace: string[] = [];
  for (const address of waiting) {
    const name = repositoryNamed(address);
    if (!name) continue;
    const prefix = waitingKeys.repositoryKind(name, "related");
    const held = await waitingHints(reader, prefix, config.purgatoryMaxRelatedPerRepository);
    if (held.length < config.purgatoryMaxRelatedPerRepository) withPlace.push(address);
  }
  if (withPlace.length === 0) {
    const sentence = `${config.purgatoryMaxRelatedPerRepository} events wait with this repository already: try again when it is here`;
    return refused("waiting-room", "waiting-room-full", sentence, { waiting });
  }
  const room = await roomFor(reader, event.pubkey, Buffer.byteLength(event.raw), config);
  if (!room.ok) return waitingRoomFull({ waiting });
  const entry = newEntry({
    kind: "related",
    event,
    source,
    nowSeconds,
    deadline: usualDeadline(nowSeconds, config),
    repositories: withPlace,
  });
  return held(
    "related",
    entry,
    true,
    { waiting: withPlace },
    {
      changes: room.giveWay.map((id) => ({ type: "unhold", id, cause: "evicted" }) as const),
    },
  );
}
