// The frame of every page: head, landmarks, navigation, complete without script; and the addresses pages link to.

import type { RepositoryName } from "../catalogue/repositories.js";
import type { Document } from "../http/routes.js";
import { type EventId, kinds, type Pubkey } from "../nostr/event.js";
import { naddrOf, neventOf, npubOf } from "../nostr/nip19.js";
import { assetUrl } from "./assets.js";
import { type Html, html } from "./html.js";

/** What all pages know of the server. */
export interface Site {
  readonly name: string;
  /** "" or `/base`. */
  readonly basePath: string;
  /** `https://host/base` */
  readonly httpUrl: string;
  /** `wss://host/base` */
  readonly relayUrl: string;
  readonly version: string;
  /** GRASP-08: members only. */
  readonly isPrivate: boolean;
}

export interface PageParts {
  readonly status?: number;
  readonly title: string;
  readonly description?: string;
  readonly main: Html;
  readonly current?: "home" | "status" | "admin";
  /** Code and tables need room. */
  readonly isWide?: boolean;
  /** Where files are found by their names. */
  readonly findUrl?: string;
  /** A second row of the header. */
  readonly below?: Html;
  readonly footer?: string;
  /** Style and script of the admin pages, beside those of all. */
  readonly isAdmins?: boolean;
  /** The script with which a browser's extension signs somebody in. */
  readonly canSignIn?: boolean;
  /** The script with which a browser's extension signs what is written on the page. */
  readonly canWrite?: boolean;
  /** Nobody is signed in yet: there is nothing to go to. */
  readonly isForStrangers?: boolean;
  /** Nostr filters: elements marked `data-live` (each with an id) are renewed when the relay sends a match. */
  readonly listenFor?: readonly Readonly<Record<string, unknown>>[];
  /** Instead: they are renewed as time goes by. */
  readonly everySeconds?: number;
  /** Where its Atom feed is. */
  readonly feed?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const privatelyEverySeconds = 60;

export function pageDocument(site: Site, page: PageParts): Document {
  const { basePath } = site;
  const home = basePath === "" ? "/" : `${basePath}/`;
  const marked = (name: PageParts["current"]): Html | undefined =>
    page.current === name ? html` aria-current="page"` : undefined;
  // A private relay answers nobody who has not authenticated: the page is renewed as time goes by.
  const listenFor = site.isPrivate ? undefined : page.listenFor;
  const everySeconds = page.everySeconds ?? (site.isPrivate && page.listenFor ? privatelyEverySeconds : undefined);
  const hasMembers = site.isPrivate && !page.isForStrangers;
  const body = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${page.title}</title>
${page.description !== undefined && html`<meta name="description" content="${page.description.slice(0, 300)}">\n`}<link rel="stylesheet" href="${assetUrl("style", basePath)}">
<link rel="icon" type="image/svg+xml" href="${assetUrl("icon", basePath)}">
<script src="${assetUrl("script", basePath)}" defer></script>
${page.isWide && html`<link rel="stylesheet" href="${assetUrl("codeStyle", basePath)}">\n<script src="${assetUrl("codeScript", basePath)}" defer></script>\n`}${page.isAdmins && html`<link rel="stylesheet" href="${assetUrl("adminStyle", basePath)}">\n<script src="${assetUrl("adminScript", basePath)}" defer></script>\n`}${
  page.canSignIn && html`<script src="${assetUrl("signInScript", basePath)}" defer></script>\n`
}${page.canWrite && html`<script src="${assetUrl("writeScript", basePath)}" defer></script>\n`}${
  page.feed !== undefined && html`<link rel="alternate" type="application/atom+xml" href="${page.feed}">\n`
}</head>
<body${page.isWide && html` class="wide"`} data-base="${basePath}"${page.findUrl !== undefined && html` data-find="${page.findUrl}"`}${listenFor && html` data-listen-for="${JSON.stringify(listenFor)}"`}${
    everySeconds !== undefined && html` data-every-seconds="${everySeconds}"`
  }>
<a class="skip" href="#main">Skip to the content</a>
<header class="top">
<a class="brand" href="${home}">${site.name}</a>
<nav aria-label="Pages">${page.isForStrangers ? html`<a href="${basePath}/sign-in" aria-current="page">Sign in</a>` : html`<a href="${home}"${marked("home")}>Home</a><a href="${basePath}/status"${marked("status")}>Status</a>`}${
    page.current === "admin" && html`<a href="${basePath}/admin"${marked("admin")}>Admin</a>`
  }</nav>
</header>
${page.below}
<main id="main">
${page.main}
</main>
<footer class="bottom"><p>Holdfast ${site.version}: a Nostr relay and git host. ${page.footer ?? (site.isPrivate ? "One cookie keeps you signed in; no tracking." : "No cookies, no tracking.")}</p>${
    hasMembers && html`<form method="post" action="${basePath}/sign-out"><button type="submit">Sign out</button></form>`
  }</footer>
<div id="said" role="status" class="skip"></div>
</body>
</html>
`;
  return {
    status: page.status ?? 200,
    contentType: "text/html; charset=utf-8",
    body: body.toString(),
    ...(page.headers && { headers: page.headers }),
  };
}

/** How a repository is announced here with the usual client. */
export const ngitLine = (site: Site): string => `ngit init --grasp-server ${site.httpUrl.replace(/^https?:\/\//, "")}`;

/** A line to be copied; the button comes with the script. */
export const copyLine = (what: string, line: string): Html =>
  html`<div class="copy" data-what="${what}"><pre tabindex="0" role="group" aria-label="${what}"><code>${line}</code></pre></div>`;

// Where a repository can be found: here, by git, by ngit, and in clients for git over Nostr.

const pathOf = ({ owner, identifier }: RepositoryName): string =>
  `/${npubOf(owner)}/${encodeURIComponent(identifier)}.git`;

/** A person's page. */
export const ownerPath = (site: Site, owner: Pubkey): string => `${site.basePath}/${npubOf(owner)}`;

/** For links on this server's pages. */
export const repositoryPath = (site: Site, name: RepositoryName): string => site.basePath + pathOf(name);

export const cloneUrl = (site: Site, name: RepositoryName): string => site.httpUrl + pathOf(name);

/** No repository's path begins with `badge`: that is not an npub. */
export const badgePath = (name: RepositoryName): string => `/badge${pathOf(name).replace(/\.git$/, ".svg")}`;

/** What ngit's remote helper reads: `nostr://<npub>/<relay>/<identifier>`; the relay is wss unless it says otherwise. */
export function nostrUrl(site: Site, { owner, identifier }: RepositoryName): string {
  const relay = /^wss:\/\/[^/]+$/.test(site.relayUrl)
    ? site.relayUrl.slice("wss://".length)
    : encodeURIComponent(site.relayUrl);
  return `nostr://${npubOf(owner)}/${relay}/${encodeURIComponent(identifier)}`;
}

export function naddr(site: Site, { owner, identifier }: RepositoryName): string | undefined {
  const address = { kind: kinds.announcement, pubkey: owner, identifier };
  return naddrOf({ address, relays: [site.relayUrl] });
}

const client = "https://gitworkshop.dev";

/** Undefined for names too long for NIP-19, and on a private service, whose repositories others shall not hear of. */
export function clientUrl(site: Site, name: RepositoryName): string | undefined {
  const address = site.isPrivate ? undefined : naddr(site, name);
  return address === undefined ? undefined : `${client}/${address}`;
}

export function threadUrl(site: Site, thread: { id: EventId; author: Pubkey; kind: number }): string | undefined {
  const pointer = site.isPrivate ? undefined : neventOf({ ...thread, relays: [site.relayUrl] });
  return pointer === undefined ? undefined : `${client}/${pointer}`;
}
