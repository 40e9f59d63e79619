// The frame of a repository's pages: what it is called, whose it is, its tabs; and where its pages are.

import { repositoryAddress } from "../../catalogue/repositories.js";
import type { Document } from "../../http/routes.js";
import { kinds } from "../../nostr/event.js";
import { npubOf } from "../../nostr/nip19.js";
import { count, foreign, type Html, type HtmlValue, html, shortNpub } from "../html.js";
import { ownerPath, type PageParts, pageDocument, repositoryPath, type Site } from "../layout.js";
import { tag } from "../pieces.js";
import type { FoundRepository } from "../repository-facts.js";
import { codeUrl, startPlace } from "./paths.js";

export type Tab = "code" | "issues" | "pulls" | "commits" | "branches" | "copies";

export const commitUrl = (root: string, oid: string): string => `${root}/commit/${oid}`;

export const titleOfRepository = ({ announcement, name }: Pick<FoundRepository, "announcement" | "name">): string =>
  announcement.name.trim() || name.identifier;

interface FrameParts extends Omit<PageParts, "title" | "main" | "below" | "isWide"> {
  readonly tab: Tab;
  /** Of the page within the repository; nothing for its first page. */
  readonly title?: string;
  /** The ref that code and commits go on with; as in addresses. */
  readonly ref?: string | undefined;
  /** Small words beside the name. */
  readonly marks?: HtmlValue;
  readonly main: Html;
}

export function repositoryFrame(site: Site, found: FoundRepository, parts: FrameParts): Document {
  const root = repositoryPath(site, found.name);
  const name = titleOfRepository(found);
  const { tab: current, title, ref, marks, main, ...page } = parts;
  const link = (tab: Tab, label: string, url: string, open = 0): Html =>
    html`<a href="${url}"${tab === current && html` aria-current="page"`}>${label}${open > 0 && html` <span class="number">${count(open)}</span>`}</a>`;
  const { talk } = found;
  const logged = ref ?? startPlace(found.table)?.inAddress;
  return pageDocument(site, {
    feed: `${root}/activity.atom`,
    ...(talk && { listenFor: repositoryFilters(found, talk) }),
    ...page,
    isWide: true,
    ...(logged !== undefined && { findUrl: codeUrl(root, "find", logged) }),
    title: `${title === undefined ? "" : `${title} · `}${name} · ${site.name}`.slice(0, 200),
    main: html`<div class="repository"><p class="whose"><a class="mono" href="${ownerPath(site, found.name.owner)}" title="${npubOf(found.name.owner)}">${shortNpub(npubOf(found.name.owner))}</a> /</p>
<div class="heading-line" id="marks" data-live><h1>${html`<a href="${root}">${foreign(name, 120)}</a>`}</h1>${marks}${found.status === "archived" && html` ${tag("mirror")}`}</div>
<nav class="tabs" id="tabs" data-live aria-label="Repository">${[
      link("code", "Code", ref === undefined ? root : codeUrl(root, "tree", ref)),
      link("issues", "Issues", `${root}/issues`, talk?.openIssues),
      link("pulls", "Pull requests", `${root}/pulls`, talk?.openProposals),
      link("commits", "Commits", logged === undefined ? `${root}/commits` : codeUrl(root, "commits", logged)),
      link("branches", "Branches", `${root}/branches`),
      link("copies", "Copies", `${root}/copies`),
    ]}</nav></div>
${main}`,
  });
}

/** Pushes (states that are served because their data is here), and what is said about the repository. */
const repositoryFilters = (
  { name }: FoundRepository,
  { maintainers }: NonNullable<FoundRepository["talk"]>,
): readonly Readonly<Record<string, unknown>>[] => [
  { kinds: [kinds.state, kinds.announcement], authors: maintainers, "#d": [name.identifier] },
  {
    kinds: [kinds.issue, kinds.pullRequest, kinds.pullRequestUpdate, kinds.patch, 1630, 1631, 1632, 1633],
    "#a": [repositoryAddress(name)],
  },
];
