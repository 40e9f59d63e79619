// Pages that cannot be shown: a repository nobody announced (soft and deleted ones look the same), one that waits (its
// page says only that), any other address; and what keeps readers from asking too much: rates, turns, damage.

import { ipGroup, perMinute, Rates } from "../base/budget/rates.js";
import { Turns } from "../base/budget/turns.js";
import type { Clock } from "../base/clock.js";
import { LauncherError } from "../git/launcher.js";
import { GitError } from "../git/run.js";
import { type Document, type Route, sendDocument, untilClosed } from "../http/routes.js";
import { html } from "./html.js";
import { copyLine, ngitLine, pageDocument, type Site } from "./layout.js";

export function missingRepositoryPage(site: Site): Document {
  return pageDocument(site, {
    status: 404,
    title: `No such repository · ${site.name}`,
    main: html`<h1>No repository here</h1>
<p class="lead">This server has no repository at this address.</p>
<section><h2>What would make it exist</h2>
<p>Its owner announces it with a Nostr event of kind 30617 that names this server twice:</p>
<pre tabindex="0" role="group" aria-label="Tags of an announcement"><code>["clone", "${site.httpUrl}/&lt;npub&gt;/&lt;identifier&gt;.git"]
["relays", "${site.relayUrl}"]</code></pre>
<p>Then a maintainer signs a state (kind 30618) and pushes what it lists. <a href="https://gitworkshop.dev/ngit">ngit</a> does all of it:</p>
${copyLine("Announce a repository with ngit", ngitLine(site))}
</section>
<section><h2>If you expected one</h2>
<p>Look whether the address is complete, or <a href="${site.basePath}/">search the repositories</a>. If it was here before: its owner or the operator took it away, or nothing was pushed in time.</p></section>`,
  });
}

/** Nothing of the announcement is shown: it is not served yet. */
export function waitingRepositoryPage(site: Site): Document {
  return pageDocument(site, {
    title: `Waiting · ${site.name}`,
    everySeconds: 30,
    main: html`<div id="waiting" data-live><h1>This repository is waiting</h1>
<p class="lead">It has been announced here and waits for its data. When a maintainer has pushed, it will be shown.</p>
<p>If it is yours: sign a state that lists your branches, and push them to this address. This page looks again by itself.</p></div>`,
  });
}

export function missingPage(site: Site): Document {
  return pageDocument(site, {
    status: 404,
    title: `Not found · ${site.name}`,
    main: html`<h1>Nothing here</h1>
<p class="lead">This server has no page at this address.</p>
<p>Repositories are at <code>/&lt;npub&gt;/&lt;identifier&gt;.git</code>. <a href="${site.basePath}/">Search the repositories</a>.</p>`,
  });
}

export function tryLaterPage(site: Site, status: 429 | 503, retryAfterSeconds: number): Document {
  return pageDocument(site, {
    status,
    title: `Try again soon · ${site.name}`,
    headers: { "Retry-After": String(retryAfterSeconds) },
    main: html`<h1>Try again soon</h1>
<p class="lead">${status === 429 ? "Too many pages were asked for from your address." : "The server is busy with other pages."} Try again in ${retryAfterSeconds} seconds.</p>
<p>Cloning is not affected.</p>`,
  });
}

/** git was asked and had no time: what it would have said is not known, and nothing is said in its place. */
export function tookTooLongPage(site: Site): Document {
  return pageDocument(site, {
    status: 503,
    title: `This took too long · ${site.name}`,
    headers: { "Retry-After": String(afterLateSeconds) },
    main: html`<h1>This took too long</h1>
<p class="lead">git did not find the answer in the time a page may take. Try again in ${afterLateSeconds} seconds.</p>
<p>Cloning is not affected: in a clone <code>git log</code> and <code>git diff</code> have all the time they need.</p>`,
  });
}

// How often one address may ask for pages: a crawler must not make the server stand still for everybody else. Pages
// that start git are dearer than those that read the store.

export interface PageRates {
  readonly pagesPerMinute: number;
  readonly gitPagesPerMinute: number;
  readonly archivesPerMinute: number;
}

export const defaultPageRates: PageRates = { pagesPerMinute: 240, gitPagesPerMinute: 60, archivesPerMinute: 6 };

export const retryAfterSeconds = 10;
/** A question that was late is not put to git again sooner (git/reading/reading-room.ts). */
const afterLateSeconds = 30;

export class VisitorRates {
  readonly #pages: Rates;
  readonly #gitPages: Rates;
  readonly #archives: Rates;

  constructor(
    readonly clock: Clock,
    rates: PageRates = defaultPageRates,
  ) {
    this.#pages = new Rates(() => perMinute(rates.pagesPerMinute));
    this.#gitPages = new Rates(() => perMinute(rates.gitPagesPerMinute));
    this.#archives = new Rates(() => perMinute(rates.archivesPerMinute));
  }

  takePage(ip: string): boolean {
    return this.#pages.take(ipGroup(ip), this.clock.monotonicMs());
  }

  takeGitPage(ip: string): boolean {
    return this.#gitPages.take(ipGroup(ip), this.clock.monotonicMs());
  }

  takeArchive(ip: string): boolean {
    return this.#archives.take(ipGroup(ip), this.clock.monotonicMs());
  }
}

// So many pages are made at a time, and a few for one address (threats row 33): what a page needs while it is made is
// bounded, and so is all of them together. Who finds the queue full is told to come back.

const limits = { total: 6, perRepository: 6, perIp: 3, maxQueued: 200, keptForOthers: 2 };

export function inTurns(routes: readonly Route[], site: () => Site): Route[] {
  const turns = new Turns(() => limits);
  return routes.map((route) => ({
    matches: (request) => route.matches(request),
    async handle(request, response) {
      const release = await turns.acquire({ ip: request.ip }, untilClosed(response));
      if (!release) return sendDocument(request, response, tryLaterPage(site(), 503, retryAfterSeconds));
      try {
        await route.handle(request, response);
      } finally {
        release();
      }
    },
  }));
}

// A repository that is damaged, or that git had no time or files for, costs its own pages and not the server.

const isUnreadable = (error: unknown): error is Error =>
  error instanceof GitError || error instanceof LauncherError || (error instanceof Error && "syscall" in error);

export const despiteDamage = (
  routes: readonly Route[],
  site: () => Site,
  unreadable: (error: Error) => void,
): Route[] =>
  routes.map((route) => ({
    matches: (request) => route.matches(request),
    async handle(request, response) {
      try {
        await route.handle(request, response);
      } catch (error) {
        if (!isUnreadable(error)) throw error;
        unreadable(error);
        sendDocument(request, response, tryLaterPage(site(), 503, retryAfterSeconds));
      }
    },
  }));
