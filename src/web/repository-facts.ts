// What a repository's page says, read from the store and from git. Public facts only: what waits (announcements,
// states, people only a waiting announcement lists) is never read here (purgatory.md "Visible"; threats row 31).

import { type CatalogueRow, catalogueRow } from "../admission/catalogue.js";
import { maintainerSet } from "../admission/maintainers.js";
import { type RepositoryName, repositoryAddress } from "../admission/names.js";
import type { Browser, CommitView } from "../git/browse.js";
import type { Repositories } from "../git/repositories.js";
import { tagValue } from "../nostr/event.js";
import type { Oid, Pubkey } from "../nostr/ids.js";
import { kinds } from "../nostr/kinds.js";
import { type Announcement, announcementOf, type RepositoryState, stateOf } from "../nostr/nip34.js";
import { diskAddress } from "../purgatory/repository-address.js";
import type { Reader } from "../store/port.js";
import { type Person, peopleOf } from "./people.js";
import { type Comparison, compareRefs } from "./ref-comparison.js";
import { type Threads, threadsOf } from "./threads.js";

export interface Maintainer extends Person {
  /** Has a repository of this name on this server as well. */
  readonly isHostedHere: boolean;
}

export interface RepositoryFacts {
  readonly name: RepositoryName;
  readonly npub: string;
  readonly status: CatalogueRow["status"];
  readonly announcement: Announcement;
  readonly maintainers: readonly Maintainer[];
  readonly people: ReadonlyMap<Pubkey, Person>;
  readonly state: RepositoryState | undefined;
  readonly comparison: Comparison;
  readonly partialSince: number | undefined;
  readonly headBranch: string;
  readonly pushes: number;
  readonly threads: Threads;
  /** Undefined: no commit is there to look at. */
  readonly view: CommitView | undefined;
}

export type RepositoryLook =
  | { readonly type: "unknown" }
  | { readonly type: "waiting" }
  | { readonly type: "found"; readonly facts: RepositoryFacts };

export interface RepositorySources {
  readonly store: Reader;
  readonly repositories: Repositories;
  readonly browser: Browser;
}

/** Asks before a process is started; false ends the look. */
export type MayStartGit = () => boolean;

export type Looked = RepositoryLook | { readonly type: "too-many" } | { readonly type: "busy" };

/** The catalogue decides what exists; a released repository whose announcement is gone is not shown either. */
export async function releasedRow(store: Reader, name: RepositoryName): Promise<CatalogueRow | "waiting" | undefined> {
  const row = await catalogueRow(store, name);
  if (!row || row.status === "soft" || row.status === "deleted") return undefined;
  return row.status === "waiting" ? "waiting" : row;
}

export async function governingState(store: Reader, row: CatalogueRow): Promise<RepositoryState | undefined> {
  const governing = row.governing === null ? undefined : await store.event(row.governing);
  return governing && stateOf(governing.event);
}

export async function lookAtRepository(
  sources: RepositorySources,
  name: RepositoryName,
  visitor: { readonly ip: string; readonly signal: AbortSignal; readonly mayStartGit: MayStartGit },
): Promise<Looked> {
  const { store, repositories, browser } = sources;
  const row = await releasedRow(store, name);
  if (row === "waiting") return { type: "waiting" };
  const stored =
    row && (await store.latest({ kind: kinds.announcement, pubkey: name.owner, identifier: name.identifier }));
  const announcement = stored && announcementOf(stored.event);
  if (!row || !announcement) return { type: "unknown" };

  const repository = repositories.open(diskAddress(name));
  const { refs, head } = await repository.refs();
  const state = await governingState(store, row);
  const tip = refs.get(head)?.oid ?? [...refs].find(([ref]) => ref.startsWith("refs/heads/"))?.[1].oid;
  let view: CommitView | undefined;
  if (tip) {
    if (!browser.knows(repository, tip) && !visitor.mayStartGit()) return { type: "too-many" };
    const result = await browser.view(repository, tip as Oid, visitor.ip, visitor.signal);
    if (!result.ok) return { type: "busy" };
    view = result.view;
  }
  const members = await publicMaintainers(store, name);
  const threads = await threadsOf(store, repositoryAddress(name), members, visitor.signal);
  const people = await peopleOf(store, [
    ...members,
    ...(state ? [state.author] : []),
    ...openOf(threads).map(({ author }) => author),
  ]);
  const maintainers: Maintainer[] = [];
  for (const pubkey of members) {
    const person = people.get(pubkey);
    const sibling =
      pubkey === name.owner ? undefined : await releasedRow(store, { owner: pubkey, identifier: name.identifier });
    if (person) maintainers.push({ ...person, isHostedHere: sibling !== undefined && sibling !== "waiting" });
  }
  return {
    type: "found",
    facts: {
      name,
      npub: diskAddress(name).npub,
      status: row.status,
      announcement,
      maintainers,
      people,
      state,
      comparison: compareRefs(state?.refs, refs, head),
      partialSince: row.partial?.since,
      headBranch: head,
      pushes: row.counters.pushes,
      threads,
      view,
    },
  };
}

/** The directed set as everybody can work it out: by served announcements alone. */
async function publicMaintainers(store: Reader, name: RepositoryName): Promise<ReadonlySet<Pubkey>> {
  return await maintainerSet(name.owner, name.identifier, async (pubkey, identifier) => {
    const stored = await store.latest({ kind: kinds.announcement, pubkey, identifier });
    return stored && tagValue(stored.event, "d") === identifier ? [stored.event] : [];
  });
}

export const openOf = ({ issues, proposals }: Threads) =>
  [...issues, ...proposals].filter(({ status }) => status === "open" || status === "draft");
