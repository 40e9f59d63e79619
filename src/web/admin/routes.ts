// Everything below /admin. A browser that is not logged in gets the login page, whatever it asks for. A browser that is
// gets the page; a form's action is done by the one table of operations, and the browser returns to the page it came from.

import type { ServerResponse } from "node:http";
import { type Clock, unixSeconds } from "../../base/clock.js";
import type { LogRing } from "../../config/logging.js";
import { type Document, type Route, type RouteRequest, sendDocument, sendPlain } from "../../http/routes.js";
import type { Caller, Outcome } from "../../operator/context.js";
import { formToken } from "../../operator/login.js";
import type { OperationName, ParametersOf } from "../../operator/operations.js";
import { repositoryStatuses } from "../../operator/parameter-values.js";
import type { ResultOf } from "../../operator/run.js";
import type { OperatorApi } from "../../operator/running.js";
import { type Html, html } from "../html.js";
import type { Site } from "../layout.js";
import { retryAfterSeconds, tryLaterPage, type VisitorRates } from "../page-limits.js";
import { closeToOthers, formOf, logIn, loginPage, logOut, redirect, type Session, sessionIn } from "./access.js";
import { actionNamed } from "./actions.js";
import { bansPage, confirmPage } from "./bans.js";
import { adminPage, type View } from "./frame.js";
import { isTrouble, LogStreams, logPage } from "./log.js";
import { auditPage, overviewPage, relaysPage } from "./overview.js";
import { decisionsPage, purgatoryPage } from "./purgatory.js";
import { repositoriesPage, repositoryAdminPage } from "./repositories.js";
import { tokensPage } from "./tokens.js";

export interface AdminPagesParts {
  readonly api: OperatorApi;
  readonly site: () => Site;
  readonly clock: Clock;
  readonly log: LogRing;
  readonly rates: VisitorRates;
  readonly ownerQuotaBytes: () => number;
  /** Pictures of the last day and month. */
  readonly busy: () => Promise<Html>;
}

export interface AdminPages {
  readonly route: Route;
  /** Ends streams of the log; before the server waits for its requests. */
  close(): void;
}

type Ask = <Name extends OperationName>(
  operation: Name,
  parameters: ParametersOf<Name>,
) => Promise<Outcome<ResultOf<Name>>>;

export function createAdminPages(parts: AdminPagesParts): AdminPages {
  const streams = new LogStreams(parts.log, parts.clock);
  return {
    route: {
      matches: ({ localPath }) => localPath === "/admin" || localPath.startsWith("/admin/"),
      handle: (request, response) => answer(parts, streams, request, response),
    },
    close: () => streams.close(),
  };
}

async function answer(
  parts: AdminPagesParts,
  streams: LogStreams,
  request: RouteRequest,
  response: ServerResponse,
): Promise<void> {
  closeToOthers(response);
  const { api, rates } = parts;
  const site = parts.site();
  const session = await sessionIn(api, request);
  if (!session && !rates.takePage(request.ip)) {
    return sendDocument(request, response, tryLaterPage(site, 429, retryAfterSeconds));
  }
  const path = request.localPath.slice("/admin".length).replace(/\/$/, "");
  if (path === "/login") return logIn(api, site, request, response);
  if (!session) return sendDocument(request, response, loginPage(site, 401));
  if (request.method === "POST") return act(parts, site, session, path, request, response);
  if (request.method !== "GET" && request.method !== "HEAD") return sendPlain(response, 405, "GET or POST");
  if (path === "/log/stream") {
    const after = Number(request.message.headers["last-event-id"] ?? request.query.get("after")) || 0;
    return streams.serve(response, after, async () => (await api.sessionOwner(session.token)) !== undefined);
  }
  sendDocument(
    request,
    response,
    await pageOf(parts, await viewOf(parts, site, session, request), session, path, request),
  );
}

async function viewOf(parts: AdminPagesParts, site: Site, session: Session, request: RouteRequest): Promise<View> {
  const query = request.query.toString();
  return {
    site,
    who: session.who,
    formToken: formToken(session.token),
    notice: await session.links.takeNotice(session.token),
    here: `${request.localPath}${query === "" ? "" : `?${query}`}`,
    nowSeconds: unixSeconds(parts.clock),
  };
}

const callerOf = ({ who }: Session): Caller => ({ who, via: "page" });

async function act(
  parts: AdminPagesParts,
  site: Site,
  session: Session,
  path: string,
  request: RouteRequest,
  response: ServerResponse,
): Promise<void> {
  const { api } = parts;
  const form = await formOf(api, request, session);
  if (!form.ok) return sendDocument(request, response, loginPage(site, form.status, form.message));
  if (path === "/logout") return logOut(api, site, session, response);
  const action = path.startsWith("/do/") ? actionNamed(path.slice("/do/".length)) : undefined;
  if (!action) return sendPlain(response, 404, "there is no such action");
  const { back: asked = "/admin", sure: isSure, ...fields } = form.fields;
  // Only to a page of ours: the field came with the request.
  const back = /^\/admin(?:[/?][\w/?&=.%~+!*'():@-]*)?$/.test(asked) ? asked : "/admin";
  const { operation } = action;
  if ((operation === "ban" || operation === "unban") && isSure !== "yes") {
    const would = await api.run("ban.preview", { type: fields.type, target: fields.target }, callerOf(session));
    // What cannot be done is told by the operation itself.
    if (would.ok && (operation === "ban" || would.result.isBanned || would.result.restorable > 0)) {
      const view = { ...(await viewOf(parts, site, session, request)), here: back };
      return sendDocument(request, response, confirmPage(view, operation, would.result, fields));
    }
  }
  const outcome = await api.run(action.operation, action.parameters(fields), callerOf(session));
  const text = outcome.ok ? action.said(outcome.result) : `Not done: ${outcome.message}.`;
  await session.links.notice(session.token, { isGood: outcome.ok, text });
  redirect(response, site.basePath + back);
}

async function pageOf(
  parts: AdminPagesParts,
  view: View,
  session: Session,
  path: string,
  { query }: RouteRequest,
): Promise<Document> {
  const ask: Ask = (operation, parameters) => parts.api.run(operation, parameters, callerOf(session));
  const asked = (name: string): string => query.get(name)?.trim() ?? "";
  switch (path) {
    case "": {
      const [status, relays, audit] = [
        await sure(ask, "status", {}),
        await sure(ask, "relays.list", {}),
        await sure(ask, "audit.list", { limit: 5 }),
      ];
      const trouble = parts.log.after().filter(isTrouble).slice(-5);
      return overviewPage(view, { status, relays, changes: audit.changes, trouble, busy: await parts.busy() });
    }
    case "/purgatory": {
      const repository = asked("repository");
      const list = await ask("purgatory.list", repository === "" ? {} : { repository });
      return list.ok ? purgatoryPage(view, list.result, { repository }) : refusedPage(view, list.message);
    }
    case "/relays":
      return relaysPage(view, await sure(ask, "relays.list", {}));
    case "/repositories": {
      const [owner, word] = [asked("owner"), asked("status")];
      const status = repositoryStatuses.find((one) => one === word) ?? "";
      const question = { ...(owner !== "" && { owner }), ...(status !== "" && { status }) };
      const lines = await ask("repos.list", question);
      if (!lines.ok) return refusedPage(view, lines.message);
      const shown = { status, owner, onlyPartial: asked("show") === "partial" };
      return repositoriesPage(view, lines.result, shown, parts.ownerQuotaBytes());
    }
    case "/repository": {
      const details = await ask("repos.show", { repository: asked("name") });
      return details.ok ? repositoryAdminPage(view, details.result) : refusedPage(view, details.message);
    }
    case "/bans": {
      const { bans } = await sure(ask, "bans.list", {});
      const { entries } = await sure(ask, "lists.show", {});
      const { refusedKinds } = await sure(ask, "kinds.refused", {});
      return bansPage(view, { bans, entries, refusedKinds });
    }
    case "/tokens":
      return tokensPage(view, (await sure(ask, "tokens.list", {})).tokens);
    case "/decisions": {
      const subject = asked("subject");
      if (subject !== "") return decisionsPage(view, subject, await ask("why", { subject }), []);
      const { decisions } = await sure(ask, "decisions.refused", {});
      return decisionsPage(view, subject, undefined, decisions);
    }
    case "/audit":
      return auditPage(view, (await sure(ask, "audit.list", { limit: 200 })).changes);
    case "/log":
      return logPage(view, parts.log.after());
    default:
      return refusedPage(view, "there is no such page");
  }
}

/** Questions without parameters are always answered. */
async function sure<Name extends OperationName>(
  ask: Ask,
  operation: Name,
  parameters: ParametersOf<Name>,
): Promise<ResultOf<Name>> {
  const outcome = await ask(operation, parameters);
  if (!outcome.ok) throw new Error(`${operation}: ${outcome.message}`);
  return outcome.result;
}

const refusedPage = (view: View, message: string): Document =>
  adminPage(view, "", { status: 404, title: "Not found", main: html`<p class="note">${message}.</p>` });
