// Who may see the admin pages: a browser with a session, opened by a one-time link or by a signed request (NIP-98,
// made by the browser's extension), and a form only when it was made for that session and sent by our own page.

import type { ServerResponse } from "node:http";
import { sessionOf, setSessionCookie, tokenOf } from "../../http/api.js";
import { bodyOf, type Document, type RouteRequest, sendDocument, sendPlain } from "../../http/routes.js";
import { npubOf } from "../../nostr/nip19.js";
import { isFormToken, type LoginLinks } from "../../operator/login.js";
import type { OperatorApi } from "../../operator/running.js";
import { type Html, html } from "../html.js";
import { copyLine, pageDocument, type Site } from "../layout.js";
import { signInButton } from "../sign-in.js";
import type { Fields } from "./actions.js";
import { adminFooter, privately } from "./frame.js";

export type AccessParts = Pick<OperatorApi, "nip98" | "links" | "sessionOwner" | "publicUrl" | "clock">;

export interface Session {
  readonly token: string;
  readonly who: string;
  readonly links: LoginLinks;
}

export async function sessionIn(parts: AccessParts, request: RouteRequest): Promise<Session | undefined> {
  const token = sessionOf(request.message);
  const who = token === undefined ? undefined : await parts.sessionOwner(token);
  return token === undefined || who === undefined ? undefined : { token, who, links: parts.links };
}

/** GET with a link's token, POST with a signed event; anything else is told what to do. */
export async function logIn(
  parts: AccessParts,
  site: Site,
  request: RouteRequest,
  response: ServerResponse,
): Promise<void> {
  if (request.method === "POST") return logInSigned(parts, request, response);
  const token = request.query.get("token");
  // A HEAD, as link previews send it, uses nothing up.
  if (request.method !== "GET") return sendPlain(response, 405, "open this link in a browser");
  const session = token === null ? undefined : await parts.links.redeem(token);
  if (session === undefined) {
    const said = token === null ? undefined : "This link was used or is too old: ask for a new one.";
    return sendDocument(request, response, loginPage(site, 401, said));
  }
  setSessionCookie(response, parts.publicUrl, session);
  redirect(response, `${site.basePath}/admin`);
}

async function logInSigned(parts: AccessParts, request: RouteRequest, response: ServerResponse): Promise<void> {
  const body = await bodyOf(request.message, parts.clock);
  if (!body || !isOurOrigin(parts, request)) return sendPlain(response, 403, "the request does not come from our page");
  const authorised = await tokenOf(parts, request, body, false);
  if (!authorised.ok) {
    response.setHeader("WWW-Authenticate", "Nostr");
    return sendPlain(response, 401, authorised.reason);
  }
  setSessionCookie(response, parts.publicUrl, await parts.links.open(npubOf(authorised.pubkey)));
  sendPlain(response, 200, "logged in");
}

export async function logOut(
  parts: AccessParts,
  site: Site,
  { token }: Session,
  response: ServerResponse,
): Promise<void> {
  await parts.links.end(token);
  setSessionCookie(response, parts.publicUrl, undefined);
  redirect(response, `${site.basePath}/admin`);
}

type CheckedForm =
  | { readonly ok: true; readonly fields: Fields }
  | { readonly ok: false; readonly status: 403 | 413; readonly message: string };

/** Browsers tell where a form was sent from; the token inside it only our own pages have. */
export async function formOf(parts: AccessParts, request: RouteRequest, session: Session): Promise<CheckedForm> {
  const body = await bodyOf(request.message, parts.clock);
  if (!body) return { ok: false, status: 413, message: "The form is too long." };
  if (!isOurOrigin(parts, request)) {
    return { ok: false, status: 403, message: `Nothing was done: open these pages at ${parts.publicUrl}/admin.` };
  }
  const { form = "", ...fields } = Object.fromEntries(new URLSearchParams(body.toString("utf8")));
  if (isFormToken(form, session.token)) return { ok: true, fields };
  return { ok: false, status: 403, message: "Nothing was done: the form is of another login. Load the page again." };
}

const isOurOrigin = (parts: AccessParts, { message }: RouteRequest): boolean =>
  message.headers.origin === new URL(parts.publicUrl).origin;

export function redirect(response: ServerResponse, location: string): void {
  response.writeHead(303, { Location: location, "Cache-Control": "no-store" });
  response.end();
}

/** Nothing of these pages is for other origins, and nothing of them is kept. */
export function closeToOthers(response: ServerResponse): void {
  for (const name of response.getHeaderNames()) {
    if (name.startsWith("access-control-")) response.removeHeader(name);
  }
  response.setHeader("Cache-Control", "no-store");
  response.setHeader("Referrer-Policy", "same-origin");
}

// What everybody sees at any address below /admin who is not logged in: the same page whatever was asked for, so that
// it tells nothing (threats.md row 31). A one-time link works without script; signing needs the browser's extension.

export function loginPage(site: Site, status: number, said?: string): Document {
  return privately(
    pageDocument(site, {
      status,
      title: `Log in · ${site.name}`,
      current: "admin",
      isAdmins: true,
      canSignIn: true,
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
${signInButton(`${site.httpUrl}/admin/login`, `${site.basePath}/admin/login`)}
<noscript><p class="quiet">This way needs JavaScript; the link above does not.</p></noscript></section>`;
