// Issues, pull requests and patches of a repository with their status (NIP-34, kinds 1630–1633): the newest word of
// the thread's author or of a maintainer counts; a stranger's never does, and is not even asked for.

import { type NostrEvent, tagValue, tagValues } from "../nostr/event.js";
import type { Filter } from "../nostr/filter.js";
import type { EventId, Pubkey } from "../nostr/ids.js";
import { kinds } from "../nostr/kinds.js";
import type { Reader } from "../store/port.js";

export type ThreadStatus = "open" | "done" | "closed" | "draft";

export const statusKinds: ReadonlyMap<number, ThreadStatus> = new Map([
  [1630, "open"],
  [1631, "done"],
  [1632, "closed"],
  [1633, "draft"],
]);

export interface Thread {
  readonly id: EventId;
  readonly author: Pubkey;
  readonly created_at: number;
  readonly kind: number;
  readonly title: string;
  readonly status: ThreadStatus;
}

export interface Threads {
  readonly issues: readonly Thread[];
  /** Pull requests and patches. */
  readonly proposals: readonly Thread[];
  /** There are more than were looked at: numbers are of the newest ones. */
  readonly isCut: boolean;
}

const maxThreads = 300;
const maxStatuses = 3_000;

export function titleOf(event: NostrEvent): string {
  const subject = tagValue(event, "subject")?.trim();
  if (subject) return subject;
  const text = event.content.slice(0, 4_000);
  const mail = event.kind === kinds.patch ? /^Subject:(.*)$/m.exec(text)?.[1] : undefined;
  return (mail ?? text.split("\n").find((line) => line.trim() !== "") ?? "").trim() || "(no title)";
}

/** A patch that continues another one is part of that thread. */
const isRoot = (event: NostrEvent): boolean =>
  event.kind !== kinds.patch ||
  (tagValues(event, "t").includes("root") && !tagValues(event, "t").includes("root-revision"));

export async function threadsOf(
  reader: Reader,
  repository: string,
  maintainers: ReadonlySet<Pubkey>,
  signal?: AbortSignal,
): Promise<Threads> {
  const about = (...wanted: number[]): Filter => ({
    kinds: wanted,
    tags: new Map([["a", [repository]]]),
    limit: maxThreads,
  });
  const roots = (await all(reader, [about(kinds.issue), about(kinds.pullRequest), about(kinds.patch)], signal)).filter(
    isRoot,
  );
  const statuses = await statusesOf(reader, roots, maintainers, signal);
  const threads = roots.map(
    (event): Thread => ({
      id: event.id,
      author: event.pubkey,
      created_at: event.created_at,
      kind: event.kind,
      title: titleOf(event),
      status: statuses.get(event.id) ?? "open",
    }),
  );
  const issues = threads.filter(({ kind }) => kind === kinds.issue);
  const proposals = threads.filter(({ kind }) => kind !== kinds.issue);
  return { issues, proposals, isCut: issues.length >= maxThreads || proposals.length >= maxThreads };
}

async function statusesOf(
  reader: Reader,
  roots: readonly NostrEvent[],
  maintainers: ReadonlySet<Pubkey>,
  signal?: AbortSignal,
): Promise<Map<EventId, ThreadStatus>> {
  const found = new Map<EventId, ThreadStatus>();
  if (roots.length === 0) return found;
  const byId = new Map<string, NostrEvent>(roots.map((root) => [root.id, root]));
  const filter: Filter = {
    kinds: [...statusKinds.keys()],
    authors: [...new Set([...maintainers, ...roots.map(({ pubkey }) => pubkey)])],
    tags: new Map([["e", [...byId.keys()]]]),
    limit: maxStatuses,
  };
  // Newest first: the first word about a thread is the one that counts.
  for (const event of await all(reader, [filter], signal)) {
    const status = statusKinds.get(event.kind);
    for (const id of tagValues(event, "e")) {
      const root = byId.get(id);
      if (!root || !status || found.has(root.id)) continue;
      if (event.pubkey === root.pubkey || maintainers.has(event.pubkey)) found.set(root.id, status);
    }
  }
  return found;
}

async function all(reader: Reader, filters: readonly Filter[], signal?: AbortSignal): Promise<NostrEvent[]> {
  const events: NostrEvent[] = [];
  for await (const page of reader.query(filters, signal ? { signal } : {}))
    events.push(...page.map(({ event }) => event));
  return events;
}
