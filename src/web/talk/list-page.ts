// `/issues` and `/pulls`: open or settled, by label, by words of their titles, so many a page.

import { othersFirst } from "../../base/others-first.js";
import { kinds, type Pubkey } from "../../nostr/event.js";
import { searchWords } from "../../nostr/filter.js";
import type { Reader } from "../../store/port.js";
import { type CiResults, ciMarks } from "../ci-results.js";
import { repositoryFrame } from "../code/frame.js";
import { type Looking, pageNumber, type Shown } from "../code/looking.js";
import { count, counted, foreign, type Html, html, time } from "../html.js";
import { type Person, peopleOf, shortPersonLink } from "../people.js";
import { listLine, tag } from "../pieces.js";
import { isOpen, statusWord, type Thread } from "./thread.js";
import { startWriting } from "./writing.js";

const perPage = 30;
const threadsATime = 100;
const maxQueryCharacters = 100;
const shownLabels = 30;

export type ListKind = "issues" | "pulls";

interface Choice {
  readonly state: "open" | "closed";
  readonly words: string;
  readonly label: string | undefined;
}

function choiceIn(query: URLSearchParams): Choice {
  const label = query.get("label")?.slice(0, maxQueryCharacters);
  return {
    state: query.get("state") === "closed" ? "closed" : "open",
    words: (query.get("q") ?? "").trim().slice(0, maxQueryCharacters),
    label: label || undefined,
  };
}

/** All words must be in the title, whole or as the beginning of one: pure. */
export function titleMatcher(words: string): (title: string) => boolean {
  const wanted = searchWords(words);
  if (wanted.length === 0) return () => true;
  return (title) => {
    const there = searchWords(title.replace(/:/g, " "));
    return wanted.every((word) => there.some((other) => other.startsWith(word)));
  };
}

const addressOf = (root: string, kind: ListKind, { state, words, label }: Choice, page = 1): string => {
  const query = new URLSearchParams();
  if (state === "closed") query.set("state", state);
  if (words !== "") query.set("q", words);
  if (label !== undefined) query.set("label", label);
  if (page > 1) query.set("page", String(page));
  const text = query.toString();
  return `${root}/${kind}${text === "" ? "" : `?${text}`}`;
};

export const threadPath = (root: string, { kind, id }: Pick<Thread, "kind" | "id">): string =>
  `${root}/${kind === kinds.issue ? "issues" : "pulls"}/${id}`;

/** `ciOf` is asked for those that are shown. */
export async function listPage(
  looking: Looking,
  store: Reader,
  kind: ListKind,
  all: readonly Thread[],
  isCut: boolean,
  ciOf: (shown: readonly Thread[]) => Promise<CiResults | undefined>,
): Promise<Shown> {
  const { site, found, root, query } = looking;
  const choice = choiceIn(query);
  const matches = titleMatcher(choice.words);
  const fitting: Thread[] = [];
  for (const [index, thread] of all.entries()) {
    if (index % threadsATime === 0) await othersFirst();
    const isLabelled = choice.label === undefined || thread.labels.includes(choice.label);
    if (isLabelled && matches(thread.title)) fitting.push(thread);
  }
  const open = fitting.filter(isOpen);
  const chosen = choice.state === "open" ? open : fitting.filter((one) => !isOpen(one));
  const pages = Math.max(1, Math.ceil(chosen.length / perPage));
  const page = pageNumber(query, pages);
  const shown = chosen.slice((page - 1) * perPage, page * perPage);
  const people = await peopleOf(
    store,
    shown.map(({ author }) => author),
  );
  const ci = await ciOf(shown);
  const heading = kind === "issues" ? "Issues" : "Pull requests";
  const state = (one: Choice["state"], number: number): Html =>
    html`<a href="${addressOf(root, kind, { ...choice, state: one })}"${choice.state === one && html` aria-current="true"`}>${count(number)} ${one === "open" ? "open" : "closed"}</a>`;
  return repositoryFrame(site, found, {
    tab: kind,
    title: heading,
    canWrite: kind === "issues",
    main: html`<section aria-labelledby="list"><h2 id="list">${heading}</h2>
<form class="search" role="search" method="get" action="${root}/${kind}">${choice.state === "closed" && html`<input type="hidden" name="state" value="closed">`}${choice.label !== undefined && html`<input type="hidden" name="label" value="${choice.label}">`}
<label for="q">Search in titles</label>
<input type="search" id="q" name="q" maxlength="${maxQueryCharacters}" value="${choice.words}" autocomplete="off">
<button type="submit">Search</button></form>
<div id="threads" data-live><div class="bar states">${state("open", open.length)}${state("closed", fitting.length - open.length)}${
      choice.label !== undefined &&
      html`<span>${tag(foreign(choice.label, 50))} <a href="${addressOf(root, kind, { ...choice, label: undefined })}">All labels</a></span>`
    }</div>
${shown.length === 0 ? nothingFound(kind, choice, all.length) : html`<ul class="list">${shown.map((thread) => line(looking, kind, choice, thread, people, ci))}</ul>`}
${pages > 1 && pagerOf(root, kind, choice, page, pages)}${isCut && html`<p class="note">There are more than can be listed: these are the newest ${counted(all.length, "one", "ones")}.</p>`}
${labelList(root, kind, choice, all)}</div></section>
${startWriting(site, found, kind)}`,
  });
}

function nothingFound(kind: ListKind, { words, label, state }: Choice, total: number): Html {
  const what = kind === "issues" ? "issue" : "pull request";
  if (words !== "" || label !== undefined) return html`<p class="quiet">No ${state} ${what} fits.</p>`;
  return html`<p class="quiet">${total === 0 ? `No ${what} yet.` : `No ${state} ${what}.`}</p>`;
}

function line(
  { site, root }: Looking,
  kind: ListKind,
  choice: Choice,
  thread: Thread,
  people: ReadonlyMap<Pubkey, Person>,
  ci: CiResults | undefined,
): Html {
  const author = people.get(thread.author);
  const labels = thread.labels.map(
    (label) => html` <a class="tag" href="${addressOf(root, kind, { ...choice, label })}">${foreign(label, 50)}</a>`,
  );
  return listLine(
    html`<a href="${threadPath(root, thread)}">${foreign(thread.title, 200)}</a>`,
    [
      thread.status !== "open" && html` ${statusTag(thread)}`,
      thread.kind === kinds.patch && html` ${tag("patch")}`,
      labels,
      ciMarks(ci?.byPullRequest.get(thread.id) ?? (thread.tip && ci?.byCommit.get(thread.tip))),
    ],
    html`opened ${time(thread.created_at)}${author && html` by ${shortPersonLink(site, author)}`}`,
  );
}

export const statusTag = (thread: Pick<Thread, "status" | "kind">): Html =>
  tag(statusWord(thread), thread.status === "done" || thread.status === "open" ? "good" : undefined);

function pagerOf(root: string, kind: ListKind, choice: Choice, page: number, pages: number): Html {
  const to = (number: number): string => addressOf(root, kind, choice, number);
  return html`<nav class="pager" aria-label="More">${page > 1 && html`<a rel="prev" href="${to(page - 1)}">Newer</a>`}<span class="quiet">Page ${count(page)} of ${count(pages)}</span>${page < pages && html`<a rel="next" href="${to(page + 1)}">Older</a>`}${page < pages && html`<a href="${to(pages)}">Oldest</a>`}</nav>`;
}

/** The labels that are used most. */
function labelList(root: string, kind: ListKind, choice: Choice, all: readonly Thread[]): Html | undefined {
  const uses = new Map<string, number>();
  for (const { labels } of all) for (const label of labels) uses.set(label, (uses.get(label) ?? 0) + 1);
  if (uses.size === 0) return undefined;
  const most = [...uses].sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1)).slice(0, shownLabels);
  return html`<p class="labels"><span class="quiet">Labels:</span> ${most.map(
    ([label, number]) =>
      html`<a class="tag" href="${addressOf(root, kind, { ...choice, label })}">${foreign(label, 50)} <span class="quiet">${count(number)}</span></a> `,
  )}</p>`;
}
