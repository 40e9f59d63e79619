// The page at `/`: what this server is and how to use it. Rendered here, without script, readable in light and dark.

import { escapeHtml, type Page, sendPage } from "../http/page.js";
import { isRead, type Route } from "../http/routes.js";

export interface LandingFacts {
  readonly name: string;
  readonly description: string;
  /** `wss://host/base` */
  readonly relayUrl: string;
  /** `https://host/base` */
  readonly baseUrl: string;
  readonly version: string;
  readonly repositories: number;
  readonly events: number;
  readonly repoAcceptanceCriteria: string;
  readonly supportedGrasps: readonly string[];
}

const styleSheet = `
:root { color-scheme: light dark; --ink: #1c2126; --paper: #fcfcfa; --quiet: #5a636b; --line: #d9dcdf; --link: #0b57a4; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8ea; --paper: #15181b; --quiet: #a3abb2; --line: #363c42; --link: #8abbf2; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1.0625rem/1.6 system-ui, sans-serif; }
main { max-width: 42rem; margin: 0 auto; padding: 3rem 1.25rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 0.5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 0.5rem; }
.lead, footer { color: var(--quiet); }
a { color: var(--link); }
a:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
code, pre { font: 0.95em/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; padding: 0.75rem 1rem; border: 1px solid var(--line); border-radius: 0.4rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.3rem 1.25rem; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 1rem; font-size: 0.95rem; }
`;

const number = (value: number): string => value.toLocaleString("en");

export function landingPage(facts: LandingFacts): Page {
  const safe = (text: string) => escapeHtml(text);
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="${safe(facts.description)}">
<title>${safe(facts.name)}</title>
<style>${styleSheet}</style>
</head>
<body>
<main>
<h1>${safe(facts.name)}</h1>
<p class="lead">${safe(facts.description)}</p>
<p>This is a GRASP server: git repositories that are announced and authorised over Nostr. The relay and the git host
share one address.</p>
<h2>Addresses</h2>
<dl>
<dt>Relay</dt><dd><code>${safe(facts.relayUrl)}</code></dd>
<dt>Git</dt><dd><code>${safe(facts.baseUrl)}/&lt;npub&gt;/&lt;repository&gt;.git</code></dd>
</dl>
<h2>Host a repository here</h2>
<p>Announce it with a Nostr git client and name this server in the announcement:</p>
<pre tabindex="0" aria-label="Tags of an announcement"><code>["clone", "${safe(facts.baseUrl)}/&lt;npub&gt;/&lt;repository&gt;.git"]
["relays", "${safe(facts.relayUrl)}"]</code></pre>
<p>${safe(facts.repoAcceptanceCriteria)}</p>
<h2>Now</h2>
<dl>
<dt>Repositories</dt><dd>${number(facts.repositories)}</dd>
<dt>Events</dt><dd>${number(facts.events)}</dd>
<dt>Supports</dt><dd>${safe(facts.supportedGrasps.join(", "))}</dd>
</dl>
<footer>Holdfast ${safe(facts.version)}</footer>
</main>
</body>
</html>
`;
  return { html, styleSheet };
}

export function landingRoute(facts: () => LandingFacts): Route {
  return {
    matches: (request) => isRead(request, "/"),
    handle: (_request, response) => sendPage(response, 200, landingPage(facts())),
  };
}
