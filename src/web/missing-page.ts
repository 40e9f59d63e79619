// Pages for what is not there: a repository nobody announced (soft and deleted ones look the same), one that waits
// (it says only that), any other address, and a reader who asks too much.

import type { Document } from "../http/routes.js";
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
