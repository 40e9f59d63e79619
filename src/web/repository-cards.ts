// Repositories as cards, for the front page, for searches and for people's pages: sorted, filtered by topic, so many a page.

import type { Pubkey } from "../nostr/event.js";
import { npubOf } from "../nostr/nip19.js";
import type { Reader } from "../store/port.js";
import type { Directory, DirectoryEntry } from "./directory.js";
import { activityOf } from "./directory.js";
import { bytes, count, foreign, type Html, html, shortNpub, time } from "./html.js";
import { ownerPath, repositoryPath, type Site } from "./layout.js";
import { type Person, peopleOf, shortPersonLink } from "./people.js";
import { tag } from "./pieces.js";

export const sorts = ["activity", "name", "size"] as const;
export type Sort = (typeof sorts)[number];

export interface CardChoice {
  readonly sort: Sort;
  readonly topic: string | undefined;
  readonly page: number;
}

const cardsPerPage = 24;
const shownTopics = 24;

export function cardChoiceIn(query: URLSearchParams): CardChoice {
  const page = query.get("page") ?? "1";
  return {
    sort: sorts.find((one) => one === query.get("sort")) ?? "activity",
    topic: query.get("topic")?.slice(0, 40) || undefined,
    page: /^\d{1,6}$/.test(page) ? Math.max(1, Number(page)) : 1,
  };
}

const addressOf = (home: string, { sort, topic, page }: CardChoice): string => {
  const query = new URLSearchParams();
  if (sort !== "activity") query.set("sort", sort);
  if (topic !== undefined) query.set("topic", topic);
  if (page > 1) query.set("page", String(page));
  const text = query.toString();
  return `${home}${text === "" ? "" : `?${text}`}`;
};

// Made once: a comparison of texts that makes its own takes a hundred times as long.
const byTitle = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

const sorted = new WeakMap<readonly DirectoryEntry[], Map<Sort, readonly DirectoryEntry[]>>();

/** Sorted once for each list, however many read it. */
export function sortEntries(
  entries: readonly DirectoryEntry[],
  sort: Sort,
  nowSeconds: number,
): readonly DirectoryEntry[] {
  const known = sorted.get(entries) ?? new Map<Sort, readonly DirectoryEntry[]>();
  sorted.set(entries, known);
  const kept = known.get(sort);
  if (kept) return kept;
  const compare: Readonly<Record<Sort, (a: DirectoryEntry, b: DirectoryEntry) => number>> = {
    activity: (a, b) => activityOf(b, nowSeconds) - activityOf(a, nowSeconds) || byTitle.compare(a.title, b.title),
    name: (a, b) => byTitle.compare(a.title, b.title),
    size: (a, b) => b.bytes - a.bytes || byTitle.compare(a.title, b.title),
  };
  const list = [...entries].sort(compare[sort]);
  known.set(sort, list);
  return list;
}

export interface Cards {
  readonly list: readonly DirectoryEntry[];
  readonly choice: CardChoice;
  readonly total: number;
  readonly pages: number;
  readonly isCut: boolean;
  readonly topics: readonly (readonly [topic: string, uses: number])[];
  readonly people: ReadonlyMap<Pubkey, Person>;
}

export async function cardsOf(
  store: Reader,
  directory: Directory,
  asked: CardChoice,
  nowSeconds: number,
): Promise<Cards> {
  const all = await directory.all();
  const { topic } = asked;
  const inOrder = sortEntries(all, asked.sort, nowSeconds);
  const fitting = topic === undefined ? inOrder : inOrder.filter(({ topics }) => topics.includes(topic));
  const pages = Math.max(1, Math.ceil(fitting.length / cardsPerPage));
  const choice = { ...asked, page: Math.min(asked.page, pages) };
  const list = fitting.slice((choice.page - 1) * cardsPerPage, choice.page * cardsPerPage);
  const people = await peopleOf(
    store,
    list.map(({ name }) => name.owner),
  );
  return { list, choice, total: fitting.length, pages, isCut: directory.isCut, topics: topicsOf(all), people };
}

const topicsKnown = new WeakMap<readonly DirectoryEntry[], readonly (readonly [string, number])[]>();

function topicsOf(all: readonly DirectoryEntry[]): readonly (readonly [string, number])[] {
  const known = topicsKnown.get(all);
  if (known) return known;
  const uses = new Map<string, number>();
  for (const { topics } of all) for (const topic of topics) uses.set(topic, (uses.get(topic) ?? 0) + 1);
  const most = [...uses].sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1)).slice(0, shownTopics);
  topicsKnown.set(all, most);
  return most;
}

/** With what leads to other orders, topics and pages; `home` is the address of the page they stand on. */
export function cardsView(site: Site, home: string, cards: Cards): Html {
  const { list, choice, pages, topics, isCut, people } = cards;
  const to = (changed: Partial<CardChoice>): string => addressOf(home, { ...choice, page: 1, ...changed });
  const order = (sort: Sort, label: string): Html =>
    html`<a href="${to({ sort })}"${choice.sort === sort && html` aria-current="true"`}>${label}</a>`;
  return html`<div class="bar states"><span class="quiet">Sort by</span>${order("activity", "activity")}${order("name", "name")}${order("size", "size")}${
    choice.topic !== undefined &&
    html`<span>${tag(foreign(choice.topic, 40))} <a href="${to({ topic: undefined })}">All topics</a></span>`
  }</div>
${list.length === 0 ? html`<p class="quiet">${choice.topic === undefined ? "No repository yet. Yours can be the first." : "No repository has this topic."}</p>` : cardList(site, list, people)}
${pages > 1 && html`<nav class="pager" aria-label="More">${choice.page > 1 && html`<a rel="prev" href="${to({ page: choice.page - 1 })}">Before</a>`}<span class="quiet">Page ${count(choice.page)} of ${count(pages)}</span>${choice.page < pages && html`<a rel="next" href="${to({ page: choice.page + 1 })}">More</a>`}</nav>`}${
  isCut && html`<p class="quiet small">Not all are listed; the search finds every one.</p>`
}
${topics.length > 0 && html`<p class="labels"><span class="quiet">Topics:</span> ${topics.map(([topic, uses]) => html`<a class="tag" href="${to({ topic })}">${foreign(topic, 40)} <span class="quiet">${count(uses)}</span></a> `)}</p>`}`;
}

export const cardList = (site: Site, list: readonly DirectoryEntry[], people: ReadonlyMap<Pubkey, Person>): Html =>
  html`<ul class="cards">${list.map((entry) => card(site, entry, people.get(entry.name.owner)))}</ul>`;

function card(
  site: Site,
  { name, title, description, topics, push, bytes: size, isMirror }: DirectoryEntry,
  owner: Person | undefined,
): Html {
  const npub = npubOf(name.owner);
  return html`<li><h3><a href="${repositoryPath(site, name)}">${foreign(title, 80)}</a>${isMirror && html` ${tag("mirror")}`}</h3>
<p class="small quiet">by ${owner ? shortPersonLink(site, owner) : html`<a class="mono" href="${ownerPath(site, name.owner)}">${shortNpub(npub)}</a>`}</p>
${description !== "" && html`<p>${foreign(description, 140)}</p>`}
${topics.length > 0 && html`<p>${topics.slice(0, 5).map((topic) => html`${tag(foreign(topic, 30))} `)}</p>`}
<p class="small quiet">${push ? html`pushed ${time(push.at)}` : "nothing pushed yet"} · ${bytes(size)}</p></li>\n`;
}
