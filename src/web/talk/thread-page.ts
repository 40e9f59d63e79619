// An issue, a pull request or a patch: its text, what was said about it as a thread, what became of it and who may decide that.

import { repositoryAddress } from "../../catalogue/repositories.js";
import { type EventId, kinds, type Pubkey } from "../../nostr/event.js";
import { patchMailOf } from "../../nostr/patch-mail.js";
import type { Reader } from "../../store/port.js";
import { ciMarks, ciResultsOf } from "../ci-results.js";
import { repositoryFrame } from "../code/frame.js";
import { type Looking, oidLink, pageNumber, type Shown } from "../code/looking.js";
import { count, counted, foreign, type Html, type HtmlValue, html, time } from "../html.js";
import { cloneUrl, copyLine } from "../layout.js";
import { type Person, peopleOf, personLink, shortPersonLink } from "../people.js";
import { tag } from "../pieces.js";
import { type Body, bodiesOf, PageTexts } from "./body.js";
import { statusTag, threadPath } from "./list-page.js";
import { statusWord, type Thread } from "./thread.js";
import type { RepositoryThreads } from "./thread-index.js";
import { type Item, timelineOf } from "./timeline.js";
import { answerSection } from "./writing.js";

const itemsPerPage = 40;
const shownMaintainers = 10;

const mayHaveText: ReadonlySet<Item["type"]> = new Set(["comment", "note", "status"]);

/** What every page of a thread knows. */
export interface ThreadLooking extends Looking {
  readonly store: Reader;
  readonly threads: RepositoryThreads;
  readonly thread: Thread;
  /** Nobody said that it is merged, but the default branch has it. */
  readonly isMergedByGit: boolean;
}

export type ThreadTab = "talk" | "commits" | "files";

export const wholeTextPath = (root: string, id: EventId): string => `${root}/text/${id}`;

/** The frame of all pages of a thread: its title, its state, its tabs if it proposes something. */
export async function threadFrame(looking: ThreadLooking, tab: ThreadTab, main: Html): Promise<Shown> {
  const { site, found, root, thread, store, threads, visitor } = looking;
  const isIssue = thread.kind === kinds.issue;
  const address = threadPath(root, thread);
  const author = (await peopleOf(store, [thread.author])).get(thread.author);
  const ci = isIssue
    ? undefined
    : await ciResultsOf(
        store,
        {
          repositories: [repositoryAddress(found.name)],
          commits: thread.tip ? [thread.tip] : [],
          pullRequests: [thread.id],
          maintainers: threads.maintainers,
        },
        visitor.signal,
      );
  const results = ci?.byPullRequest.get(thread.id) ?? (thread.tip && ci?.byCommit.get(thread.tip));
  const tabLink = (name: ThreadTab, label: string): Html =>
    html`<a href="${name === "talk" ? address : `${address}/${name}`}"${tab === name && html` aria-current="page"`}>${label}</a>`;
  const about = [thread.id, ...threads.continuationsOf(thread.id).slice(0, 50)];
  return repositoryFrame(site, found, {
    tab: isIssue ? "issues" : "pulls",
    title: thread.title.slice(0, 120),
    description: thread.title,
    canWrite: tab === "talk",
    listenFor: [
      { "#e": about, kinds: [1, 1622, 1624, 1985, 1630, 1631, 1632, 1633] },
      { "#E": about, kinds: [kinds.comment, kinds.pullRequestUpdate] },
    ],
    main: html`<section class="thread" aria-labelledby="title"><h2 id="title">${foreign(thread.title, 240)}</h2>
<p class="bar" id="state" data-live data-status-at="${thread.word?.created_at ?? 0}">${statusTag(thread)}${thread.kind === kinds.patch && tag("patch")}<span class="quiet">${isIssue ? "Issue" : "Proposed"} by ${author && personLink(site, author)} ${time(thread.created_at)}${thread.tip && html`, at ${oidLink(root, thread.tip)}`}</span>${thread.labels.map(
      (label) =>
        html`<a class="tag" href="${root}/${isIssue ? "issues" : "pulls"}?${new URLSearchParams({ label }).toString()}">${foreign(label, 50)}</a>`,
    )}${ciMarks(results)}</p>
${!isIssue && html`<nav class="tabs small" aria-label="Pull request">${tabLink("talk", "Conversation")}${tabLink("commits", "Commits")}${tabLink("files", "Files changed")}</nav>`}
${main}</section>`,
  });
}

export async function threadPage(looking: ThreadLooking): Promise<Shown> {
  const { site, found, root, store, threads, thread, query, visitor } = looking;
  const { items, isCut } = await timelineOf(store, threads, thread, visitor.signal);
  const pages = Math.max(1, Math.ceil(items.length / itemsPerPage));
  const page = pageNumber(query, pages);
  const shown = items.slice((page - 1) * itemsPerPage, page * itemsPerPage);
  const withText = shown.filter(({ type }) => mayHaveText.has(type)).map(({ id }) => id);
  const bodies = await bodiesOf(store, [thread.id, ...withText], visitor.signal);
  const maintainers = [...threads.maintainers].slice(0, shownMaintainers);
  const people = await peopleOf(store, [...shown.map(({ author }) => author), ...maintainers, thread.author]);
  const texts = new PageTexts(root, looking.painter.thread);
  const opening = await texts.markup(
    thread.id,
    openingOf(thread, bodies.get(thread.id)),
    wholeTextPath(root, thread.id),
  );
  const lines: Html[] = [];
  for (const item of shown) {
    const author = people.get(item.author) as Person;
    if (item.type === "comment" || item.type === "note") {
      const markup = await texts.markup(item.id, bodies.get(item.id), wholeTextPath(root, item.id));
      lines.push(comment(looking, item, author, markup));
    } else lines.push(eventLine(looking, item, author));
    // Closing with a reason is one event: the status and its text.
    const reason = item.type === "status" ? bodies.get(item.id) : undefined;
    if (reason && reason.text.trim() !== "") {
      const markup = await texts.markup(item.id, reason, wholeTextPath(root, item.id));
      lines.push(html`<article class="comment" aria-label="Reason"><div class="readme">${markup}</div></article>\n`);
    }
  }
  const may = [...new Set([thread.author, ...threads.maintainers])];
  const address = threadPath(root, thread);
  const to = (number: number): string => (number === 1 ? address : `${address}?page=${number}`);
  return await threadFrame(
    looking,
    "talk",
    html`<div class="talk" id="talk" data-live>
<article class="comment" aria-label="What it is about"><div class="readme">${opening}</div></article>
${isCut && html`<p class="note">Much was said: the newest ${count(items.length)} are here.</p>`}${lines}
${looking.isMergedByGit && html`<p class="event">${tag("merged", "good")} Its commit is in the default branch.</p>`}
${pages > 1 && html`<nav class="pager" aria-label="More">${page > 1 && html`<a rel="prev" href="${to(page - 1)}">Before</a>`}<span class="quiet">Page ${count(page)} of ${count(pages)}</span>${page < pages && html`<a rel="next" href="${to(page + 1)}">What followed</a>`}</nav>`}</div>
<p class="quiet small">${whoMay(looking, maintainers, people)}</p>
${thread.kind !== kinds.issue && fetchLine(looking)}
${answerSection(site, found, thread, may)}`,
  );
}

/** Of a patch the message alone: what it changes has a page of its own. */
function openingOf(thread: Thread, body: Body | undefined): Body | undefined {
  if (thread.kind !== kinds.patch || !body) return body;
  const { message } = patchMailOf(body.text);
  return { ...body, text: message, isCut: false };
}

const shortId = (id: EventId): string => id.slice(0, 12);

function comment({ site, root, thread, threads }: ThreadLooking, item: Item, author: Person, markup: Html): Html {
  const depth = item.type === "comment" ? item.depth : 0;
  const address = threadPath(root, thread);
  const role =
    item.author === thread.author ? "author" : threads.maintainers.has(item.author) ? "maintainer" : undefined;
  return html`<article class="comment${depth > 0 && ` depth-${depth}`}" id="c-${shortId(item.id)}" aria-label="Comment"><p class="said">${personLink(site, author)} ${role && tag(role)} ${item.type === "note" && tag("note")} <a class="quiet" href="${address}#c-${shortId(item.id)}">${time(item.created_at)}</a></p>
<div class="readme">${markup}</div></article>\n`;
}

function eventLine({ site, root, thread }: ThreadLooking, item: Item, author: Person): Html {
  const who = shortPersonLink(site, author);
  const said = (text: HtmlValue): Html =>
    html`<p class="event" id="c-${shortId(item.id)}">${text} <span class="quiet">${time(item.created_at)}</span></p>\n`;
  switch (item.type) {
    case "status": {
      if (item.status === "open") return said(html`${tag("open", "good")} ${who} opened it again`);
      if (item.status === "draft") return said(html`${tag("draft")} ${who} made it a draft`);
      const word = statusWord({ kind: thread.kind, status: item.status });
      return said(
        html`${tag(word, item.status === "done" ? "good" : undefined)} ${who} ${word === "merged" ? "said that it is merged" : `${word} it`}`,
      );
    }
    case "labels":
      return said(html`${who} added ${item.labels.map((label) => html`${tag(foreign(label, 50))} `)}`);
    case "update":
      return said(html`${who} pushed ${item.tip ? oidLink(root, item.tip) : "an update"}`);
    case "patch":
      // A stranger's patch is no part of the series: it can be read as what it is.
      return item.author === thread.author
        ? said(html`${who} added the patch ${foreign(item.title, 160)}`)
        : said(
            html`${who} answered with the patch <a href="${wholeTextPath(root, item.id)}">${foreign(item.title, 160)}</a>`,
          );
    default:
      return html``;
  }
}

/** The author and the maintainers decide; nobody else's word counts. */
function whoMay(
  { site, thread, threads }: ThreadLooking,
  shown: readonly Pubkey[],
  people: ReadonlyMap<Pubkey, Person>,
): Html {
  const names = [thread.author, ...shown.filter((key) => key !== thread.author)].flatMap(
    (key) => people.get(key) ?? [],
  );
  const total = new Set([thread.author, ...threads.maintainers]).size;
  const more = total - names.length;
  return html`Its author and the maintainers may close it or open it again: ${names.map(
    (person, index) => html`${index > 0 && ", "}${shortPersonLink(site, person)}`,
  )}${more > 0 && ` and ${counted(more, "other", "others")}`}.`;
}

function fetchLine({ site, found, thread }: ThreadLooking): Html | undefined {
  if (thread.kind !== kinds.pullRequest || !found.table.refs.has(`refs/nostr/${thread.id}` as never)) return undefined;
  return html`<details class="clone"><summary>Fetch it with git</summary>${copyLine("Fetch the pull request with git", `git fetch ${cloneUrl(site, found.name)} refs/nostr/${thread.id}`)}</details>`;
}
