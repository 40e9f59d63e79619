// What was said about an issue or a proposal, in order: comments (NIP-22, and the older kinds), statuses and labels by those
// whose word counts, updates and further patches. Only small facts are kept of each; the texts of those a page shows are read then.

import { compareNewestFirst, type EventId, isEventId, kinds, type Pubkey, tagValue } from "../../nostr/event.js";
import type { Filter } from "../../nostr/filter.js";
import { isOid, type Oid } from "../../nostr/nip34.js";
import { beginningOf, type EventBeginning } from "../../store/event-beginning.js";
import type { Reader } from "../../store/port.js";
import { ownText } from "../read-within.js";
import { labelsGiven, statusKinds, type Thread, type ThreadStatus, titleOf } from "./thread.js";
import type { RepositoryThreads } from "./thread-index.js";

interface Said {
  readonly id: EventId;
  readonly author: Pubkey;
  readonly created_at: number;
}

export type Item = Said &
  (
    | { readonly type: "comment"; readonly parent: EventId | undefined; readonly depth: number }
    | { readonly type: "note" }
    | { readonly type: "status"; readonly status: ThreadStatus }
    | { readonly type: "labels"; readonly labels: readonly string[] }
    | { readonly type: "update"; readonly tip: Oid | undefined }
    | { readonly type: "patch"; readonly title: string }
  );

/** Kind 1 and 1622 answered before there was 1111. */
const olderComments = [1, 1622];
const maxItems = 1_500;
const maxDepth = 4;

/** Oldest first, answers below what they answer. `isCut`: the oldest ones are not here. */
export async function timelineOf(
  reader: Reader,
  threads: RepositoryThreads,
  thread: Thread,
  signal: AbortSignal,
): Promise<{ readonly items: readonly Item[]; readonly isCut: boolean }> {
  const continuations = threads.continuationsOf(thread.id);
  // What is said of a later patch of a series is said in its thread.
  const about = [thread.id, ...continuations].slice(0, 200);
  const entitled = [...new Set([thread.author, ...threads.maintainers])];
  const tagged = (name: string, of: readonly string[], more: Filter): Filter => ({
    ...more,
    tags: new Map([[name, of]]),
    limit: maxItems,
  });
  const filters: Filter[] = [
    tagged("E", about, { kinds: [kinds.comment] }),
    tagged("e", about, { kinds: [...olderComments, kinds.coverNote] }),
    tagged("e", [thread.id], { kinds: [...statusKinds.keys(), kinds.label], authors: entitled }),
    ...(continuations.length > 0 ? [{ ids: continuations.slice(0, 200) }] : []),
  ];
  const found: Item[] = [];
  for await (const page of reader.query(filters, { pageRows: 100, passingRows: true, limit: maxItems, signal })) {
    for (const row of page) {
      const event = beginningOf(row);
      const item = event && itemOf(event, thread, threads);
      if (item) found.push(item);
    }
  }
  return { items: inOrder(found), isCut: found.length >= maxItems };
}

function itemOf(event: EventBeginning, thread: Thread, threads: RepositoryThreads): Item | undefined {
  const { id, pubkey: author, created_at, kind } = event;
  const said = { id, author, created_at };
  const status = statusKinds.get(kind);
  if (status) return { ...said, type: "status", status };
  if (kind === kinds.label) {
    const labels = labelsGiven(event);
    return labels.length > 0 ? { ...said, type: "labels", labels } : undefined;
  }
  if (kind === kinds.coverNote) return threads.maySay(thread, author) ? { ...said, type: "note" } : undefined;
  if (kind === kinds.pullRequestUpdate) {
    const tip = tagValue(event, "c");
    if (author !== thread.author) return undefined;
    return { ...said, type: "update", tip: isOid(tip) ? (ownText(tip) as Oid) : undefined };
  }
  if (kind === kinds.patch) return { ...said, type: "patch", title: titleOf(event) };
  const replied = event.tags.filter(([name, value]) => name === "e" && isEventId(value));
  const parent = (replied.find((tag) => tag[3] === "reply") ?? replied.at(-1))?.[1] as EventId | undefined;
  return { ...said, type: "comment", parent: parent && (ownText(parent) as EventId), depth: 0 };
}

/** Pure: oldest first, an answer right below what it answers, further in. */
export function inOrder(items: readonly Item[]): Item[] {
  // Within one second what was said comes before what was done.
  const isDeed = ({ type }: Item): number => (type === "comment" || type === "note" ? 0 : 1);
  const oldestFirst = [...items].sort(
    (a, b) => a.created_at - b.created_at || isDeed(a) - isDeed(b) || compareNewestFirst(b, a),
  );
  const comments = new Set(items.flatMap(({ type, id }) => (type === "comment" ? [id] : [])));
  const answers = new Map<EventId, Item[]>();
  const first: Item[] = [];
  for (const item of oldestFirst) {
    const parent = item.type === "comment" && item.parent !== item.id ? item.parent : undefined;
    if (parent === undefined || !comments.has(parent)) first.push(item);
    else answers.set(parent, [...(answers.get(parent) ?? []), item]);
  }
  const ordered: Item[] = [];
  const waiting = first.map((item) => ({ item, depth: 0 })).reverse();
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { item, depth } = next;
    ordered.push(item.type === "comment" ? { ...item, depth: Math.min(depth, maxDepth) } : item);
    for (const answer of (answers.get(item.id) ?? []).reverse()) waiting.push({ item: answer, depth: depth + 1 });
    answers.delete(item.id);
  }
  return ordered;
}
