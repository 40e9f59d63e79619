// The addresses of issues and proposals below a repository: `/issues`, `/issues/<id>`, `/pulls`, `/pulls/<id>` with its commits
// and files, `/text/<id>`. An id is an event's, in hex or as `nevent` and `note` write it; that of a comment, an update or a
// later patch leads to the thread it belongs to.

import { repositoryAddress } from "../../catalogue/repositories.js";
import type { Document } from "../../http/routes.js";
import { type EventId, isEventId, kinds, tagValue, tagValues } from "../../nostr/event.js";
import { parseNevent, parseNote } from "../../nostr/nip19.js";
import type { Reader } from "../../store/port.js";
import { ciResultsOf } from "../ci-results.js";
import type { Looking, Shown } from "../code/looking.js";
import { type ListKind, listPage, threadPath } from "./list-page.js";
import { proposalsOf } from "./proposals.js";
import { pullCommitsPage, pullFilesPage } from "./pull-pages.js";
import { isOpen, type Thread } from "./thread.js";
import type { RepositoryThreads } from "./thread-index.js";
import { type ThreadLooking, threadPage } from "./thread-page.js";

export interface Talk {
  readonly store: Reader;
  readonly threads: RepositoryThreads;
}

export async function talkPage(
  looking: Looking,
  talk: Talk,
  page: string,
  segments: readonly string[],
): Promise<Shown> {
  const [text, sub] = segments;
  if (page === "text") return segments.length === 1 ? await wholeText(talk, text ?? "") : "missing";
  const kind = page as ListKind;
  if (text === undefined) return await listOf(looking, talk, kind);
  if (segments.length > 2) return "missing";
  const id = eventIdIn(text);
  if (!id) return "missing";
  const thread = talk.threads.get(id);
  if (!thread) return await ledToThread(looking, talk, id);
  const address = threadPath(looking.root, thread);
  if (address !== `${looking.root}/${kind}/${text}`) return { redirect: address };
  const isMerged = thread.kind !== kinds.issue && (await statusByGit(looking, talk, thread)) !== thread.status;
  const shown: Thread = isMerged ? { ...thread, status: "done" } : thread;
  const within: ThreadLooking = { ...looking, ...talk, thread: shown, isMergedByGit: isMerged };
  if (sub === undefined) return await threadPage(within);
  if (thread.kind === kinds.issue) return "missing";
  if (sub === "commits") return await pullCommitsPage(within);
  return sub === "files" ? await pullFilesPage(within) : "missing";
}

async function statusByGit(looking: Looking, { threads }: Talk, thread: Thread): Promise<Thread["status"]> {
  if (!isOpen(thread)) return thread.status;
  return (await proposalsOf(looking, threads)).find(({ id }) => id === thread.id)?.status ?? thread.status;
}

async function listOf(looking: Looking, { store, threads }: Talk, kind: ListKind): Promise<Shown> {
  if (kind === "issues")
    return await listPage(looking, store, kind, threads.issues, threads.isCut, async () => undefined);
  const { found, visitor } = looking;
  const proposals = await proposalsOf(looking, threads);
  return await listPage(looking, store, kind, proposals, threads.isCut, (shown) =>
    ciResultsOf(
      store,
      {
        repositories: [repositoryAddress(found.name)],
        commits: shown.flatMap(({ tip }) => tip ?? []),
        pullRequests: shown.map(({ id }) => id),
        maintainers: threads.maintainers,
      },
      visitor.signal,
    ),
  );
}

const eventIdIn = (text: string): EventId | undefined =>
  isEventId(text) ? text : (parseNote(text) ?? parseNevent(text)?.id);

async function ledToThread({ root }: Looking, { store, threads }: Talk, id: EventId): Promise<Shown> {
  const continued = threads.rootOf(id);
  if (continued) return { redirect: `${threadPath(root, continued)}#c-${id.slice(0, 12)}` };
  const said = (await store.event(id))?.event;
  const about = said && threadOf(threads, said);
  return about ? { redirect: `${threadPath(root, about)}#c-${id.slice(0, 12)}` } : "missing";
}

const threadOf = (
  threads: RepositoryThreads,
  event: { readonly tags: readonly (readonly string[])[] },
): Thread | undefined => {
  const named = [tagValue(event, "E"), ...tagValues(event, "e")].filter(isEventId);
  for (const id of named.slice(0, 20)) {
    const root = threads.rootOf(id);
    if (root) return root;
  }
  return undefined;
};

/** The text of an event of a thread, as it was written. */
async function wholeText({ store, threads }: Talk, text: string): Promise<Document | "missing"> {
  const event = isEventId(text) ? (await store.event(text))?.event : undefined;
  if (!event || !(threads.rootOf(event.id) ?? threadOf(threads, event))) return "missing";
  return {
    status: 200,
    contentType: "text/plain; charset=utf-8",
    body: event.content,
    headers: { "Content-Security-Policy": "default-src 'none'; sandbox", "X-Robots-Tag": "noindex" },
  };
}
