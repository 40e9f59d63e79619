// What stands before every route of a private service (GRASP-08). Strangers get the information document, preflights, the
// health of the process, robots.txt, nostr.json and the sign-in page with its files; for everything else one answer, the same
// bytes whatever was asked for, given before anything is looked up. Members come with a browser's session or a signed
// request (NIP-98), git with `Authorization: Nostr` or a machine token. What members are sent is kept by nobody.

import type { ServerResponse } from "node:http";
import type { GitAccess, GitPlace } from "../access/git-access.js";
import type { CredentialRefused } from "../access/metrics.js";
import { ipGroup, perMinute, Rates } from "../base/budget/rates.js";
import { meantGitPath } from "../git/address.js";
import { withoutTrailing } from "../net/url.js";
import type { Pubkey } from "../nostr/event.js";
import { npubOf } from "../nostr/nip19.js";
import type { OperatorApi } from "../operator/running.js";
import { isManagement, sessionOf, setSessionCookie, tokenOf } from "./api.js";
import { wantsRelayInformation } from "./nip11.js";
import {
  bodyOf,
  type Document,
  isRead,
  isReading,
  type Route,
  type RouteRequest,
  sendDocument,
  sendPlain,
} from "./routes.js";

export interface PrivateParts {
  readonly api: OperatorApi;
  readonly git: GitAccess;
  readonly refused: CredentialRefused;
  /** Whether this reader may have /metrics. */
  readonly mayReadMetrics: (request: RouteRequest) => boolean;
  /** The page strangers see, and the paths of the files it needs. */
  readonly signInPage: (status: number) => Promise<Document>;
  readonly signInFiles: () => Promise<readonly string[]>;
}

/** Answered to everybody, whoever asks. */
const openPaths: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/robots.txt", "/.well-known/nostr.json"]);

/** Signed requests of one address that opened nothing, and all for management: more are not looked at for a while. */
const failuresPerMinute = 600;

interface Gate extends PrivateParts {
  readonly failures: Rates;
}

export function privateRoute(parts: PrivateParts, table: readonly Route[]): Route {
  const gate: Gate = { ...parts, failures: new Rates(() => perMinute(failuresPerMinute)) };
  return {
    matches: () => true,
    async handle(request, response) {
      if (!(await isLetThrough(gate, request, response))) return;
      const route = table.find((one) => one.matches(request));
      if (route) await route.handle(request, response);
      else sendPlain(response, 404, "not found");
    },
  };
}

/** False: the request has had its answer. */
async function isLetThrough(parts: Gate, request: RouteRequest, response: ServerResponse): Promise<boolean> {
  if (isReading(request) && (openPaths.has(request.localPath) || isInformation(request))) return true;
  if (isReading(request) && (await parts.signInFiles()).includes(request.localPath)) return true;
  if (request.localPath === "/metrics" && parts.mayReadMetrics(request)) return true;
  keepFromCaches(response);
  if (isForGit(request)) return isGitLetThrough(parts, request, response);
  // Relay management reads the body its token is for, and tells strangers as little. Each look at a signature is counted.
  if (isManagement(request) && parts.failures.take(ipGroup(request.ip), parts.api.clock.monotonicMs())) return true;
  if (request.localPath === "/sign-in") return answerSignIn(parts, request, response);
  if (request.localPath === "/sign-out" && request.method === "POST") return signOut(parts, request, response);
  if ((await isOneTimeLink(parts, request)) || (await isMember(parts, request))) return true;
  const isHome = isRead(request, "/");
  if (!isHome && !wantsPage(request)) return refuseStranger(parts, request, response);
  sendDocument(request, response, await parts.signInPage(isHome ? 200 : 401));
  return false;
}

const isInformation = (request: RouteRequest): boolean => request.localPath === "/" && wantsRelayInformation(request);

const wantsPage = (request: RouteRequest): boolean =>
  isReading(request) && (request.message.headers.accept ?? "").includes("text/html");

/** `holdfast admin link` lets an operator in who has no key at hand. */
const isOneTimeLink = async ({ api }: PrivateParts, request: RouteRequest): Promise<boolean> =>
  request.method === "GET" &&
  request.localPath === "/admin/login" &&
  api.links.isLink(request.query.get("token") ?? "");

async function isMember(gate: Gate, request: RouteRequest): Promise<boolean> {
  if (await hasSession(gate, request)) return true;
  if (!isReading(request) || request.message.headers.authorization === undefined) return false;
  return (await signerOf(gate, request, Buffer.alloc(0))) !== undefined;
}

async function hasSession({ api }: PrivateParts, { message }: RouteRequest): Promise<boolean> {
  const session = sessionOf(message);
  return session !== undefined && (await api.sessionMember(session)) !== undefined;
}

async function signerOf(
  { api, failures, refused }: Gate,
  request: RouteRequest,
  body: Buffer,
): Promise<Pubkey | undefined> {
  const address = ipGroup(request.ip);
  if (failures.waitMs(address, api.clock.monotonicMs()) > 0) {
    refused("signature", "too-many");
    return undefined;
  }
  const authorised = await tokenOf({ nip98: api.memberNip98 }, request, body, false);
  if (authorised.ok) return authorised.pubkey;
  failures.spend(address, api.clock.monotonicMs(), 1);
  return undefined;
}

const keptBy = /^(?:cache-control|etag|expires|last-modified)$/i;

/** No browser, proxy or search engine keeps what a member was shown, whatever the route itself says. */
function keepFromCaches(response: ServerResponse): void {
  const writeHead = response.writeHead.bind(response) as (...given: unknown[]) => ServerResponse;
  const closed = (...given: unknown[]): ServerResponse => {
    for (const name of response.getHeaderNames()) if (keptBy.test(name)) response.removeHeader(name);
    response.setHeader("Cache-Control", "private, no-store");
    return writeHead(
      ...given.map((one) =>
        typeof one === "object" && one !== null
          ? Object.fromEntries(Object.entries(one).filter(([name]) => !keptBy.test(name)))
          : one,
      ),
    );
  };
  response.writeHead = closed as typeof response.writeHead;
}

/** Node reads what is left of a request to its end, however long that takes, unless the connection ends. */
function leaveBody({ message }: RouteRequest, response: ServerResponse): void {
  const { "transfer-encoding": transfer, "content-length": length = "0" } = message.headers;
  if (transfer !== undefined || length !== "0") response.setHeader("Connection", "close");
}

/** A sentence for programs; a page would only be in their way. */
function refuseStranger({ api }: PrivateParts, request: RouteRequest, response: ServerResponse): false {
  response.setHeader("WWW-Authenticate", "Nostr");
  leaveBody(request, response);
  sendPlain(
    response,
    401,
    `this server is private: sign the request with a member's key (NIP-98), or sign in at ${api.publicUrl}/sign-in`,
  );
  return false;
}

async function answerSignIn(parts: Gate, request: RouteRequest, response: ServerResponse): Promise<false> {
  if (isReading(request) && (await hasSession(parts, request))) redirect(parts, response, "/");
  else if (isReading(request)) sendDocument(request, response, await parts.signInPage(200));
  else if (request.method === "POST") await signIn(parts, request, response);
  else sendPlain(response, 405, "GET or POST");
  return false;
}

async function signIn(gate: Gate, request: RouteRequest, response: ServerResponse): Promise<void> {
  const { api } = gate;
  const body = await bodyOf(request.message, api.clock);
  if (!body || request.message.headers.origin !== new URL(api.publicUrl).origin) {
    return sendPlain(response, 403, "the request does not come from our page");
  }
  const member = await signerOf(gate, request, body);
  if (member === undefined) {
    response.setHeader("WWW-Authenticate", "Nostr");
    return sendPlain(
      response,
      401,
      "this key is not a member's, or its signature is not for this page and this minute",
    );
  }
  setSessionCookie(response, api.publicUrl, await api.links.open(npubOf(member)));
  sendPlain(response, 200, "signed in");
}

/** The cookie is SameSite=Strict: no page of others can send it along. */
async function signOut({ api }: PrivateParts, { message }: RouteRequest, response: ServerResponse): Promise<false> {
  const session = sessionOf(message);
  if (session !== undefined) await api.links.end(session);
  setSessionCookie(response, api.publicUrl, undefined);
  redirect({ api }, response, "/sign-in");
  return false;
}

function redirect({ api }: Pick<PrivateParts, "api">, response: ServerResponse, localPath: string): void {
  response.writeHead(303, { Location: `${withoutTrailing(new URL(api.publicUrl).pathname, "/")}${localPath}` });
  response.end();
}

const packPath = /^git-(upload|receive)-pack$/;

/**
 * What is asked of git, by the text of the path alone; a path that names no repository gets the same answer as one that does.
 * Below a repository the name stands right behind it: a folder `info/lfs` among its files belongs to the pages.
 */
function askedOfGit({ localPath }: RouteRequest): string {
  const path = meantGitPath(localPath);
  if (path) return path.rest;
  return /\/(info\/refs|info\/lfs\/.*|git-(?:upload|receive)-pack)\/*$/.exec(localPath)?.[1] ?? "";
}

function isForGit(request: RouteRequest): boolean {
  const asked = askedOfGit(request);
  if (packPath.test(asked) || asked.startsWith("info/lfs/")) return true;
  return asked === "info/refs" && request.query.has("service");
}

const isForPush = (request: RouteRequest): boolean =>
  packPath.exec(askedOfGit(request))?.[1] === "receive" || request.query.get("service") === "git-receive-pack";

async function isGitLetThrough(parts: PrivateParts, request: RouteRequest, response: ServerResponse): Promise<boolean> {
  const { authorization } = request.message.headers;
  if (authorization === undefined) {
    if (await isProbe(parts, request)) answerProbe(request, response);
    else askForCredentials(request, response);
    return false;
  }
  const place: GitPlace | undefined = meantGitPath(request.localPath);
  const identity = await parts.git.identify(authorization, place, request.ip);
  if (identity.ok && (identity.caller.mayPush || !isForPush(request))) return true;
  if (identity.ok) {
    parts.refused("token", "read-only");
    leaveBody(request, response);
    sendPlain(response, 403, "this token may only read: ask the operator for one that may push");
  } else if (identity.reason === "too-many") {
    response.writeHead(429, { "Retry-After": "60", "Content-Length": "0", Connection: "close" });
    response.end();
  } else askForCredentials(request, response);
  return false;
}

/**
 * Two lines, because a list in one line is read by few: git takes up Basic for a token, and its helpers for Nostr the other. The
 * body of a refused request is not read.
 */
function askForCredentials(request: RouteRequest, response: ServerResponse): void {
  response.setHeader("WWW-Authenticate", ['Nostr method="GET"', 'Basic realm="holdfast"']);
  leaveBody(request, response);
  response.writeHead(401, { "Content-Length": "0" });
  response.end();
}

/**
 * Before a large push git asks with an empty request whether it would be heard, and does so without its credentials: a 401
 * there would end every push over 1 MiB of git with a helper for Nostr. The answer is the same for every path.
 */
async function isProbe({ api }: PrivateParts, request: RouteRequest): Promise<boolean> {
  const { message, method } = request;
  const { "content-length": length, "content-encoding": encoding, "transfer-encoding": transfer } = message.headers;
  if (method !== "POST" || !packPath.test(askedOfGit(request))) return false;
  if (length !== "4" || encoding !== undefined || transfer !== undefined) return false;
  // Its four bytes have ten seconds.
  return (await bodyOf(message, api.clock))?.toString("latin1") === "0000";
}

function answerProbe(request: RouteRequest, response: ServerResponse): void {
  const service = packPath.exec(askedOfGit(request))?.[1] ?? "upload";
  response.writeHead(200, { "Content-Type": `application/x-git-${service}-pack-result`, "Content-Length": "0" });
  response.end();
}
