// What everybody sees of a private service (GRASP-08) who is not signed in: the same page whatever was asked for, so that it
// tells nothing. A browser's extension (NIP-07) signs; programs sign their requests themselves (NIP-98).

import type { Document } from "../http/routes.js";
import { type Html, html } from "./html.js";
import { pageDocument, type Site } from "./layout.js";

export const signInPage = (site: Site, status: number): Document =>
  pageDocument(site, {
    status,
    title: `Sign in · ${site.name}`,
    canSignIn: true,
    isForStrangers: true,
    ...(status === 401 && { headers: { "WWW-Authenticate": "Nostr" } }),
    main: html`<h1>Sign in</h1>
<p class="lead">This server is private. Its repositories and everything about them are for its members.</p>
<section aria-labelledby="by-key"><h2 id="by-key">With your key</h2>
<p>If your key is a member's, a Nostr extension of your browser (NIP-07) can sign you in.</p>
${signInButton(`${site.httpUrl}/sign-in`, `${site.basePath}/sign-in`)}
<noscript><p class="quiet">Signing in needs JavaScript. Programs sign their requests themselves (NIP-98).</p></noscript></section>
<section aria-labelledby="by-git"><h2 id="by-git">With git</h2>
<p>git takes a token from the operator as password, with any user name; ngit and helpers for Nostr sign with your key.</p></section>`,
  });

/** Shown by the script: without it, it could do nothing. */
export const signInButton = (url: string, path: string): Html =>
  html`<div id="nip07" hidden data-url="${url}" data-path="${path}"><button type="button">Sign in with Nostr</button> <span role="status" class="quiet"></span></div>`;
