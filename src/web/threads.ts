// What people wrote, read from the store within bounds: issues, pull requests and patches of a repository with their
// status (NIP-34, kinds 1630–1633), and people's names. Of a status the newest word of the thread's author or of a
// maintainer counts; a stranger's never does, and is not even asked for.

import {
  compareNewestFirst,
  type EventId,
  kinds,
  type NostrEvent,
  type Pubkey,
  tagValue,
  tagValues,
} from "../nostr/event.js";
import type { Filter } from "../nostr/filter.js";
import { npubOf } from "../nostr/nip19.js";
import type { Reader, StoredRow } from "../store/port.js";
import { foreign, type Html, html, personUrl, shortNpub } from "./html.js";

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
/** Of each list: issues, pull requests, patches. */
const maxThreadBytes = 4 * 2 ** 20;
const maxStatuses = 3_000;
const maxStatusBytes = 4 * 2 ** 20;
/** A status has little to say; longer ones are not looked at. */
const longestStatus = 16 * 1024;
const maxTitleCharacters = 400;

export function titleOf(event: NostrEvent): string {
  return ownText(wholeTitle(event).slice(0, maxTitleCharacters));
}

function wholeTitle(event: NostrEvent): string {
  const subject = tagValue(event, "subject")?.slice(0, 4_000).trim();
  if (subject) return subject;
  const text = event.content.slice(0, 4_000);
  const mail = event.kind === kinds.patch ? /^Subject:(.*)$/m.exec(text)?.[1] : undefined;
  return (mail ?? text.split("\n").find((line) => line.trim() !== "") ?? "").trim() || "(no title)";
}

/** A patch that continues another one is part of that thread. */
const isRoot = (event: NostrEvent): boolean =>
  event.kind !== kinds.patch ||
  (tagValues(event, "t").includes("root") && !tagValues(event, "t").includes("root-revision"));

/** What is said of a thread's root; `isRoot` is false for a patch that continues another. */
type Root = Omit<Thread, "status"> & { readonly isRoot: boolean };

const maxKnownRoots = 10_000;

/** Roots that were read, by id: an event never changes, and each may be a megabyte. The ones asked for last are kept. */
export class KnownRoots {
  readonly #roots = new Map<EventId, Root>();

  of(row: StoredRow): Root {
    const known = this.#roots.get(row.id);
    if (known) this.#roots.delete(row.id);
    const root = known ?? rootOf(row.event);
    this.#roots.set(root.id, root);
    const [oldest] = this.#roots.size > maxKnownRoots ? this.#roots.keys() : [];
    if (oldest !== undefined) this.#roots.delete(oldest);
    return root;
  }
}

const rootOf = (event: NostrEvent): Root => ({
  id: event.id,
  author: event.pubkey,
  created_at: event.created_at,
  kind: event.kind,
  title: titleOf(event),
  isRoot: isRoot(event),
});

export async function threadsOf(
  reader: Reader,
  known: KnownRoots,
  repository: string,
  maintainers: ReadonlySet<Pubkey>,
  signal?: AbortSignal,
): Promise<Threads> {
  let isCut = false;
  const newest = async (kind: number): Promise<Root[]> => {
    const roots: Root[] = [];
    const about: Filter = { kinds: [kind], tags: new Map([["a", [repository]]]), limit: maxThreads };
    const hasMore = await readWithin(reader, [about], maxThreadBytes, (row) => roots.push(known.of(row)), signal);
    isCut ||= hasMore || roots.length >= maxThreads;
    return roots.filter((root) => root.isRoot);
  };
  const issues = await newest(kinds.issue);
  const proposals = [...(await newest(kinds.pullRequest)), ...(await newest(kinds.patch))];
  const statuses = await statusesOf(reader, [...issues, ...proposals], maintainers, signal);
  const withStatus = (root: Root): Thread => ({ ...root, status: statuses.get(root.id)?.status ?? "open" });
  return {
    issues: issues.map(withStatus),
    proposals: proposals.sort(compareNewestFirst).map(withStatus),
    isCut,
  };
}

interface Word {
  readonly status: ThreadStatus;
  readonly created_at: number;
  readonly id: EventId;
}

async function statusesOf(
  reader: Reader,
  roots: readonly Root[],
  maintainers: ReadonlySet<Pubkey>,
  signal?: AbortSignal,
): Promise<Map<EventId, Word>> {
  const found = new Map<EventId, Word>();
  const byId = new Map<string, Root>(roots.map((root) => [root.id, root]));
  const authors = new Set(roots.map(({ author }) => author).filter((author) => !maintainers.has(author)));
  const note = (row: StoredRow): void => {
    if (row.size > longestStatus) return;
    const { event } = row;
    const status = statusKinds.get(event.kind);
    if (!status) return;
    for (const id of tagValues(event, "e")) {
      const root = byId.get(id);
      if (!root || (event.pubkey !== root.author && !maintainers.has(event.pubkey))) continue;
      const before = found.get(root.id);
      const word = { status, created_at: event.created_at, id: event.id };
      if (!before || compareNewestFirst(word, before) < 0) found.set(root.id, word);
    }
  };
  // What authors say about their own threads must not crowd out what maintainers say.
  for (const said of [maintainers, authors]) {
    if (roots.length === 0 || said.size === 0) continue;
    const filter: Filter = {
      kinds: [...statusKinds.keys()],
      authors: [...said],
      tags: new Map([["e", [...byId.keys()]]]),
      limit: maxStatuses,
    };
    await readWithin(reader, [filter], maxStatusBytes, note, signal);
  }
  return found;
}

// Who somebody is, as far as this server has their profile. A name is what its owner claims: the key stands beside it.

export interface Person {
  readonly pubkey: Pubkey;
  readonly npub: string;
  /** From the profile (kind 0), if one is stored here. */
  readonly name: string | undefined;
}

const maxProfileBytes = 2 * 2 ** 20;
/** Longer profiles are not looked into for a name. */
const longestProfile = 64 * 1024;
const maxNameCharacters = 100;

/** Each key once, in order. */
export async function peopleOf(reader: Reader, pubkeys: Iterable<Pubkey>): Promise<Map<Pubkey, Person>> {
  const people = new Map<Pubkey, Person>();
  for (const pubkey of pubkeys) people.set(pubkey, { pubkey, npub: npubOf(pubkey), name: undefined });
  const profiles = { kinds: [kinds.profile], authors: [...people.keys()] };
  await readWithin(reader, [profiles], maxProfileBytes, (row) => {
    if (row.size > longestProfile) return;
    const { pubkey, content } = row.event;
    const person = people.get(pubkey);
    if (person) people.set(pubkey, { ...person, name: nameIn(content) });
  });
  return people;
}

function nameIn(content: string): string | undefined {
  let profile: unknown;
  try {
    profile = JSON.parse(content);
  } catch {
    return undefined; // A profile may hold anything; one that is not JSON has no name.
  }
  const { name, display_name: displayName } = (profile ?? {}) as Record<string, unknown>;
  for (const text of [displayName, name]) {
    if (typeof text === "string" && text.trim() !== "") return ownText(text.trim().slice(0, maxNameCharacters));
  }
  return undefined;
}

export const personLink = ({ pubkey, npub, name }: Person): Html =>
  html`<a href="${personUrl(pubkey)}" title="${npub}">${name !== undefined && html`${foreign(name, 40)} `}<span class="mono">${shortNpub(npub)}</span></a>`;

// Events for a page: only so many bytes of them, because strangers decide how long they are and how many there are
// (threats row 33). Whoever reads takes small facts along; texts are gone when the next page of rows is read.

const pageRows = 50;

/** Visits the newest matches until `maxBytes` of text were read; true when there were more. */
export async function readWithin(
  reader: Reader,
  filters: readonly Filter[],
  maxBytes: number,
  visit: (row: StoredRow) => void,
  signal?: AbortSignal,
): Promise<boolean> {
  let bytes = 0;
  for await (const page of reader.query(filters, { pageRows, passingRows: true, ...(signal && { signal }) })) {
    for (const row of page) {
      if (bytes > maxBytes) return true;
      bytes += row.size;
      visit(row);
    }
  }
  return false;
}

/** The text by itself: a part of a long one keeps all of it in memory. */
export const ownText = (text: string): string => Buffer.from(text, "utf16le").toString("utf16le");
