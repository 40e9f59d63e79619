// What operators see over HTTP: relay management (NIP-86, POST at `/`) and `/api/*` (JSON). For admins only, by a
// NIP-98 token or the session of a browser; strangers get 401 with nothing in it, and counts (threats row 31).

import type { IncomingMessage, ServerResponse } from "node:http";
import { percentDecoded } from "../base/text.js";
import { npubOf } from "../nostr/nip19.js";
import type { Caller } from "../operator/context.js";
import { type Authorised, sessionLifeMs } from "../operator/login.js";
import { manage, type Run } from "../operator/nip86.js";
import { descriptionOf, type OperationName, operationNames } from "../operator/operations.js";
import { parametersOf } from "../operator/parameters.js";
import type { OperatorApi } from "../operator/running.js";
import {
  bodyOf,
  isRead,
  isReading,
  maxBodyBytes,
  type Route,
  type RouteRequest,
  sendPlain,
  sendText,
} from "./routes.js";

const managementType = "application/nostr+json+rpc";
const json = "application/json; charset=utf-8";

export const isManagement = ({ method, localPath, message }: RouteRequest): boolean =>
  method === "POST" && localPath === "/" && mediaType(message.headers["content-type"]) === managementType;

export function managementRoute(parts: OperatorApi): Route {
  return {
    matches: isManagement,
    async handle(request, response) {
      const body = await bodyOf(request.message, parts.clock);
      if (!body) {
        response.setHeader("Connection", "close");
        return sendPlain(response, 413, `a request may have at most ${maxBodyBytes} bytes`);
      }
      // No cookie counts here: another site's page could send one along.
      const authorised = await tokenOf(parts, request, body, true);
      if (!authorised.ok) return refuseStranger(response, authorised.reason);
      const caller: Caller = { who: npubOf(authorised.pubkey), via: "nip-86" };
      const run: Run = (operation, parameters) => parts.run(operation, parameters, caller);
      const answer = await manage(body, run);
      sendPrivate(response, 200, managementType, answer);
    },
  };
}

export function apiRoutes(parts: OperatorApi): Route[] {
  return [
    {
      matches: (request) => isRead(request, "/api/status"),
      async handle(request, response) {
        const caller = await callerOf(parts, request);
        if (caller.ok) return answer(parts, response, caller.caller, { operation: "status", parameters: {} });
        sendText(response, 200, json, JSON.stringify(await parts.publicStatus()));
      },
    },
    {
      matches: (request) => request.localPath === "/api" || request.localPath.startsWith("/api/"),
      async handle(request, response) {
        // Before anything is looked up: a stranger must not tell what exists from what does not.
        const caller = await callerOf(parts, request);
        if (!caller.ok) return refuseStranger(response, caller.reason);
        const question = isReading(request) ? questionOf(request) : undefined;
        if (!question) return sendPrivate(response, 404, json, { error: "there is no such address" });
        await answer(parts, response, caller.caller, question);
      },
    },
  ];
}

/** `/api/sync`: how the server keeps in step with other relays. For admins: it names every relay and why one fails. */
export function syncStatusRoute(
  status: () => unknown,
  isAdmin: (request: RouteRequest) => boolean | Promise<boolean>,
): Route {
  return {
    matches: (request) => isRead(request, "/api/sync"),
    async handle(request, response) {
      if (!(await isAdmin(request))) {
        sendText(response, 403, json, '{"error":"for admins of this server"}');
        return;
      }
      sendText(response, 200, json, JSON.stringify(status()));
    },
  };
}

interface Question {
  readonly operation: OperationName;
  readonly parameters: object;
}

/** The operation whose address this is, with what the path and the query say. */
function questionOf(request: RouteRequest): Question | undefined {
  const [, , word, ...rest] = request.localPath.split("/");
  const name = percentDecoded(rest.join("/"));
  if (name === undefined) return undefined;
  const operation = operationNames.find((one) => {
    const { api } = descriptionOf(one);
    return api !== undefined && api.word === word && (api.name !== undefined) === (name !== "");
  });
  if (!operation) return undefined;
  const inPath = descriptionOf(operation).api?.name;
  const parameters = parametersOf(operation).flatMap(({ name: field, type }) => {
    const value = field === inPath ? name : request.query.get(field);
    return value === null ? [] : [[field, type === "number" ? Number(value) : value]];
  });
  return { operation, parameters: Object.fromEntries(parameters) };
}

const statusOf = { "bad-request": 400, unknown: 404, "not-possible": 409 } as const;

async function answer(parts: OperatorApi, response: ServerResponse, caller: Caller, question: Question): Promise<void> {
  const outcome = await parts.run(question.operation, question.parameters, caller);
  if (outcome.ok) sendPrivate(response, 200, json, outcome.result);
  else sendPrivate(response, statusOf[outcome.code], json, { error: outcome.message, code: outcome.code });
}

function sendPrivate(response: ServerResponse, status: number, type: string, value: unknown): void {
  response.setHeader("Cache-Control", "no-store");
  sendText(response, status, type, JSON.stringify(value));
}

function refuseStranger(response: ServerResponse, reason: string): void {
  response.setHeader("WWW-Authenticate", "Nostr");
  sendPrivate(response, 401, json, { error: reason });
}

/** Whether a request comes from an admin of this server. */
export const isAdmin = async (parts: OperatorApi, request: RouteRequest): Promise<boolean> =>
  (await callerOf(parts, request)).ok;

async function callerOf(
  parts: OperatorApi,
  request: RouteRequest,
): Promise<{ readonly ok: true; readonly caller: Caller } | { readonly ok: false; readonly reason: string }> {
  const session = isReading(request) ? sessionOf(request.message) : undefined;
  const who = session === undefined ? undefined : await parts.sessionOwner(session);
  if (who !== undefined) return { ok: true, caller: { who, via: "api" } };
  const body = await bodyOf(request.message, parts.clock);
  if (!body) return { ok: false, reason: `a request may have at most ${maxBodyBytes} bytes` };
  const authorised = await tokenOf(parts, request, body, false);
  return authorised.ok ? { ok: true, caller: { who: npubOf(authorised.pubkey), via: "api" } } : authorised;
}

export function tokenOf(
  parts: Pick<OperatorApi, "nip98">,
  request: RouteRequest,
  body: Buffer,
  needsPayload: boolean,
): Promise<Authorised> {
  const target = request.message.url ?? "";
  const mark = target.indexOf("?");
  return parts.nip98.authorise({
    authorization: request.message.headers.authorization,
    method: request.method,
    path: request.localPath,
    query: mark < 0 ? "" : target.slice(mark + 1),
    body,
    needsPayload,
  });
}

const mediaType = (header: string | undefined): string => (header ?? "").split(";")[0]?.trim().toLowerCase() ?? "";

/** The cookie of an admin's browser: out of reach for script, never sent along by other sites' pages. */
const cookieName = "holdfast-admin";

export function sessionOf(message: IncomingMessage): string | undefined {
  for (const part of (message.headers.cookie ?? "").split(";")) {
    const [name, value] = part.trim().split("=");
    if (name === cookieName) return value;
  }
  return undefined;
}

/** Undefined ends it. */
export function setSessionCookie(response: ServerResponse, publicUrl: string, session: string | undefined): void {
  const secure = publicUrl.startsWith("https:") ? "; Secure" : "";
  const seconds = session === undefined ? 0 : Math.floor(sessionLifeMs / 1000);
  response.setHeader(
    "Set-Cookie",
    `${cookieName}=${session ?? ""}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${seconds}${secure}`,
  );
}
