// What everybody sees at any address below /admin who is not logged in: the same page whatever was asked for, so that
// it tells nothing (threats.md row 31). A one-time link works without script; signing needs the browser's extension.

import type { Document } from "../../http/routes.js";
import { type Html, html } from "../html.js";
import { copyLine, pageDocument, type Site } from "../layout.js";
import { adminFooter, privately } from "./frame.js";

export function loginPage(site: Site, status: number, said?: string): Document {
  return privately(
    pageDocument(site, {
      status,
      title: `Log in · ${site.name}`,
      current: "admin",
      isAdmins: true,
      footer: adminFooter,
      ...(status === 401 && { headers: { "WWW-Authenticate": "Nostr" } }),
      main: html`<h1>Log in</h1>
<p class="lead">These pages are for the operators of this server.</p>
${said !== undefined && html`<p class="said bad" role="status">${said}</p>`}
<section aria-labelledby="by-link"><h2 id="by-link">With a one-time link</h2>
<p>On the machine the server runs on, as its user:</p>
${copyLine("Make a login link", "holdfast admin link")}
<p>Open the link it prints in this browser. It works once, within ten minutes.</p></section>
${byExtension(site)}`,
    }),
  );
}

const byExtension = (site: Site): Html => html`<section aria-labelledby="by-key"><h2 id="by-key">With your key</h2>
<p>If your key is in <code>NGIT_ADMIN_NPUBS</code>, a Nostr extension of your browser (NIP-07) can sign you in.</p>
<div id="nip07" hidden data-url="${site.httpUrl}/admin/login" data-path="${site.basePath}/admin/login"><button type="button">Sign in with Nostr</button> <span role="status" class="quiet"></span></div>
<noscript><p class="quiet">This way needs JavaScript; the link above does not.</p></noscript></section>`;
