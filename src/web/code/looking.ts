// What every code page is given, what it may answer, and the pieces they share: the branch picker, the path above a file,
// the line of a commit.

import type { ReadingRoom } from "../../git/reading/reading-room.js";
import type { Refused, Visitor } from "../../git/reading/visitor.js";
import type { Document } from "../../http/routes.js";
import { foreign, type Html, html, time } from "../html.js";
import type { Site } from "../layout.js";
import type { FoundRepository } from "../repository-facts.js";
import type { Painter } from "./colours/painted.js";
import { commitUrl, repositoryFrame, type Tab } from "./frame.js";
import { codeUrl, type Place, refInAddress, shortName, textOfName } from "./paths.js";

export interface Looking {
  readonly site: Site;
  readonly found: FoundRepository;
  /** The repository's own address, for links. */
  readonly root: string;
  readonly room: ReadingRoom;
  readonly painter: Painter;
  readonly visitor: Visitor;
  readonly query: URLSearchParams;
}

/** A page, an address to go to instead, or why there is none. */
export type Shown = Document | { readonly redirect: string } | Refused | "missing";

/** A reason in one sentence, in the repository's frame. */
export function sorryPage(
  { site, found }: Looking,
  tab: Tab,
  ref: string | undefined,
  status: number,
  heading: string,
  sentence: Html,
): Document {
  return repositoryFrame(site, found, {
    status,
    tab,
    ref,
    title: heading,
    main: html`<section><h2>${heading}</h2>\n<p class="lead">${sentence}</p></section>`,
  });
}

const pickedRefs = 25;

/** Works without script: a list that opens. */
export function branchPicker({ found: { table }, root }: Looking, place: Place, page: string): Html {
  const items: Html[] = [];
  for (const ref of table.refs.keys()) {
    if (items.length >= pickedRefs) break;
    if (!ref.startsWith("refs/heads/")) continue;
    const isHere = ref === place.ref;
    const url = codeUrl(root, page, refInAddress(table, ref), place.path);
    items.push(
      html`<li><a href="${url}"${isHere && html` aria-current="true"`}>${foreign(shortName(ref), 60)}</a></li>`,
    );
  }
  const kind = place.kind === "commit" ? "commit" : place.kind === "tag" ? "tag" : "branch";
  const label = place.kind === "commit" ? place.label.slice(0, 10) : place.label;
  return html`<details class="picker"><summary><span class="quiet">${kind}</span> ${foreign(label, 60)}</summary><ul>${items}<li><a href="${root}/branches">All branches and tags</a></li></ul></details>`;
}

/** The folders above, each a link; the last is where we are. */
export function pathLine({ root, found }: Looking, place: Place): Html {
  const { path, inAddress } = place;
  const parts = path.map((name, index) => {
    const isLast = index === path.length - 1;
    const label = foreign(textOfName(name), 120);
    if (isLast) return html` / <b>${label}</b>`;
    return html` / <a href="${codeUrl(root, "tree", inAddress, path.slice(0, index + 1))}">${label}</a>`;
  });
  const top = foreign(found.name.identifier, 60);
  return html`<span class="path">${path.length === 0 ? html`<b>${top}</b>` : html`<a href="${codeUrl(root, "tree", inAddress)}">${top}</a>`}${parts}</span>`;
}

export const oidLink = (root: string, oid: string): Html =>
  html`<a class="mono" href="${commitUrl(root, oid)}" title="${oid}">${oid.slice(0, 8)}</a>`;

/** One commit in a line: what, who, when, which. */
export const commitLine = (
  root: string,
  { oid, subject, author, time: seconds }: { oid: string; subject: string; author: string; time: number },
): Html =>
  html`<a class="subject" href="${commitUrl(root, oid)}">${foreign(subject || "(no message)", 120)}</a> <span class="quiet">${foreign(author, 60)}</span> <span class="quiet">${time(seconds)}</span> ${oidLink(root, oid)}`;

/** A page's number from its address, from 1. */
export function pageNumber(query: URLSearchParams, most: number): number {
  const text = query.get("page") ?? "1";
  return /^\d{1,6}$/.test(text) ? Math.min(most, Math.max(1, Number(text))) : 1;
}

export function pager(address: string, page: number, hasMore: boolean, words: readonly [string, string]): Html | false {
  if (page === 1 && !hasMore) return false;
  const to = (number: number): string =>
    number === 1 ? address : `${address}${address.includes("?") ? "&" : "?"}page=${number}`;
  return html`<nav class="pager" aria-label="More">${page > 1 && html`<a rel="prev" href="${to(page - 1)}">${words[0]}</a>`}${hasMore && html`<a rel="next" href="${to(page + 1)}">${words[1]}</a>`}</nav>`;
}

/** Commits that only a pull request reaches are nobody's branch. */
export const proposalNote = (which = "this commit"): Html =>
  html`<p class="note">No branch and no tag has ${which}: it comes from a pull request.</p>`;
