// The commits of a proposal and the files it changes: of a pull request from git, against where it began; of a series of
// patches from their mails.

import { type EventId, kinds } from "../../nostr/event.js";
import { isOid, type Oid } from "../../nostr/nip34.js";
import { patchMailOf } from "../../nostr/patch-mail.js";
import { asksForSplit, diffView } from "../code/diff-view.js";
import { commitUrl } from "../code/frame.js";
import { oidLink, pageNumber, pager, type Shown } from "../code/looking.js";
import { startPlace } from "../code/paths.js";
import { count, counted, foreign, type Html, html, time } from "../html.js";
import { threadPath } from "./list-page.js";
import { diffOfPatch } from "./patch-diff.js";
import { proposedRange } from "./proposals.js";
import { type ThreadLooking, threadFrame, wholeTextPath } from "./thread-page.js";

const commitsPerPage = 50;
/** Of a series. */
const maxPatches = 200;

const notHere = html`<p class="note">Its commits are not here, or have nothing in common with the default branch, so that there is nothing to compare.</p>`;

/** The first parents of a pull request as its author names them, if so. */
async function saidBase({ store, thread }: ThreadLooking): Promise<Oid | undefined> {
  const said = (await store.event(thread.id))?.event.tags.find(([name]) => name === "merge-base")?.[1];
  return isOid(said) ? said : undefined;
}

export async function pullCommitsPage(looking: ThreadLooking): Promise<Shown> {
  const { room, found, visitor, root, query, thread } = looking;
  if (thread.kind === kinds.patch) return await threadFrame(looking, "commits", await patchList(looking));
  const range = thread.tip
    ? await proposedRange(looking, thread.tip, await saidBase(looking))
    : ({ ok: true, value: undefined } as const);
  if (!range.ok) return range.code;
  if (!range.value) return await threadFrame(looking, "commits", notHere);
  const { base, tip } = range.value;
  const page = pageNumber(query, 100);
  const question = {
    from: tip,
    without: base,
    path: Buffer.alloc(0),
    skip: (page - 1) * commitsPerPage,
    count: commitsPerPage,
  };
  const log = await room.log(found.repository, question, visitor);
  if (!log.ok) return log.code;
  const { lines, hasMore } = log.value;
  const address = `${threadPath(root, thread)}/commits`;
  return await threadFrame(
    looking,
    "commits",
    html`<div class="log"><ol class="list">${lines.map(
      ({ oid, subject, author, time: seconds }) =>
        html`<li><a class="title" href="${commitUrl(root, oid)}">${foreign(subject || "(no message)", 160)}</a>
<span class="meta">${foreign(author, 60)} ${time(seconds)} ${oidLink(root, oid)}</span></li>\n`,
    )}</ol>
<p class="quiet">Since ${oidLink(root, base)}, newest first.</p>${pager(address, page, hasMore, ["Newer", "Older"])}</div>`,
  );
}

/** The patches of a series, first one first: its author's alone, as with its tip. Anybody may answer with a patch. */
const seriesOf = ({ threads, thread }: ThreadLooking): EventId[] =>
  [thread.id, ...threads.continuationsOf(thread.id, thread.author)].slice(0, maxPatches);

async function patchList(looking: ThreadLooking): Promise<Html> {
  const { root, thread, store, visitor } = looking;
  const series = seriesOf(looking);
  const titles = new Map<EventId, string>();
  for await (const page of store.query([{ ids: series }], {
    pageRows: 20,
    passingRows: true,
    signal: visitor.signal,
  })) {
    for (const row of page) titles.set(row.id, patchMailOf(row.event.content.slice(0, 16_000)).title);
  }
  const lines = series.map(
    (id, index) =>
      html`<li><a class="title" href="${threadPath(root, thread)}/files?page=${index + 1}">${foreign(titles.get(id) ?? "(not here any more)", 160)}</a></li>`,
  );
  return html`<ol class="list">${lines}</ol><p class="quiet">${counted(series.length, "patch", "patches")}, first one first.</p>`;
}

export async function pullFilesPage(looking: ThreadLooking): Promise<Shown> {
  const { room, painter, found, visitor, root, thread, query } = looking;
  if (thread.kind === kinds.patch) return await patchFilesPage(looking);
  const range = thread.tip
    ? await proposedRange(looking, thread.tip, await saidBase(looking))
    : ({ ok: true, value: undefined } as const);
  if (!range.ok) return range.code;
  if (!range.value) return await threadFrame(looking, "files", notHere);
  const { base, tip } = range.value;
  const diff = await room.diff(found.repository, base, tip, visitor);
  if (!diff.ok) return diff.code;
  const address = `${threadPath(root, thread)}/files`;
  const words = await painter.wordsOf(diff.value);
  const shownAs = { root, before: base, after: tip, address, isSplit: asksForSplit(query), words };
  return await threadFrame(
    looking,
    "files",
    html`<p class="quiet">Against ${oidLink(root, base)}, where it began.</p>${await diffView(diff.value, shownAs)}`,
  );
}

async function patchFilesPage(looking: ThreadLooking): Promise<Shown> {
  const { store, root, thread, query, found, painter } = looking;
  const series = seriesOf(looking);
  const page = pageNumber(query, series.length);
  const id = series[page - 1] as EventId;
  const stored = await store.event(id);
  const address = `${threadPath(root, thread)}/files`;
  const { title, message, diff } = patchMailOf(stored?.event.content ?? "");
  const start = startPlace(found.table)?.inAddress;
  const changes = await diffOfPatch(diff);
  const words = await painter.wordsOf(changes);
  const view =
    changes.files.length === 0
      ? html`<p class="quiet">It changes no files: a cover letter.</p>`
      : await diffView(changes, { root, before: start, after: start ?? "HEAD", words });
  const main = html`${series.length > 1 && html`<p class="bar"><span class="quiet">Patch ${count(page)} of ${count(series.length)}</span> <b>${foreign(title || "(no title)", 200)}</b></p>`}
${message !== "" && page > 1 && html`<pre class="message" tabindex="0" role="group" aria-label="Message">${message.slice(0, 20_000)}</pre>`}
${view}
<p class="quiet small"><a href="${wholeTextPath(root, id)}">The patch as text</a>, for <code>git am</code>.</p>
${pager(address, page, page < series.length, ["Patch before", "Next patch"])}`;
  return await threadFrame(looking, "files", main);
}
