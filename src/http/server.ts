// The one port: HTTP requests go through the route table, WebSocket upgrades at `/` and the base path to the relay.
// Sets time-outs and CORS, answers what the parser refuses, closes gracefully. No logic of any room. Says who is asking: the
// peer's address, or what a trusted proxy says about it; a stranger's X-Forwarded-For is ignored.

import { createServer, IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import { type AddressInfo, BlockList, isIP, isIPv6, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../base/clock.js";
import type { Config } from "../config/config.js";
import { ObjectsUnavailableError } from "../git/run.js";
import type { Relay } from "../relay/relay.js";
import { SharedLogError } from "../store/port.js";
import { type Route, type RouteRequest, sendPlain } from "./routes.js";

export interface HttpParts {
  /** First match answers. */
  readonly routes: readonly Route[];
  readonly webSocket?: Pick<Relay, "accept">;
  /** A blocked network gets no route and no session. */
  readonly networks?: { isBlocked(ip: string): boolean };
  /** "" or `/base`: the path of the service's public URL. */
  readonly basePath: string;
  readonly trustedProxies: () => TrustedProxies;
  readonly clock: Clock;
  /** A handshake, or a request's headers, that take longer are ended (threats row 25). 10 s if not given. */
  readonly headersTimeoutMs?: number;
  /** A whole request that takes longer is ended, whatever the rooms' own timers say. An hour if not given. */
  readonly requestTimeoutMs?: () => number;
  /** A handler threw: the request has been answered with 500. */
  readonly onFault: (error: unknown) => void;
}

export type ListenAddress = { readonly host: string; readonly port: number } | { readonly fd: number };

export interface HttpServer {
  /** `fd`: a listening socket that is open already. */
  listen(address: ListenAddress): Promise<AddressInfo>;
  /** Ends every connection, idle or busy, WebSocket or not, whose client has such an address. */
  endConnections(isUnwanted: (ip: string) => boolean): void;
  /** Stops accepting, lets requests under way end, cuts the rest. */
  close(withinMs: number): Promise<void>;
}

/** What the server obeys of the settings; asked each time, because they change while it runs. */
export function httpLimits(live: {
  readonly current: Pick<Config, "trustedProxies" | "gitTotalSecs">;
}): Required<Pick<HttpParts, "trustedProxies" | "requestTimeoutMs">> {
  let known: { readonly from: Config["trustedProxies"]; readonly list: TrustedProxies } | undefined;
  return {
    trustedProxies() {
      const { trustedProxies: from } = live.current;
      if (known?.from !== from) {
        known = { from, list: trustedProxies(from.map((net) => `${net.address}/${net.prefixBits}`)).list };
      }
      return known.list;
    },
    // The git room ends its requests itself, after NGIT_GIT_TOTAL_SECS; node must not be earlier.
    requestTimeoutMs: () => Math.max(live.current.gitTotalSecs, 3_600) * 1_000 + 60_000,
  };
}

const defaultHeadersTimeoutMs = 10_000;
/** Rooms have idle timers of their own. */
const defaultRequestTimeoutMs = 60 * 60 * 1_000;
const keepAliveMs = 30_000;
const notWanted = "this address is not wanted here";
const closeStepMs = 50;

export function createHttpServer(parts: HttpParts): HttpServer {
  const headersTimeoutMs = parts.headersTimeoutMs ?? defaultHeadersTimeoutMs;
  const server = createServer({
    headersTimeout: headersTimeoutMs,
    requestTimeout: parts.requestTimeoutMs?.() ?? defaultRequestTimeoutMs,
    keepAliveTimeout: keepAliveMs,
    IncomingMessage: OfferingMessage,
    // Refused below: node's own answer would lack the headers a browser needs.
    requireHostHeader: false,
    // Node looks only this often: its own 30 s would let a handshake live that much longer.
    connectionsCheckingInterval: Math.ceil(headersTimeoutMs / 5),
  });
  // Whose each open connection is: its peer's until a request names a client behind a trusted proxy. WebSockets too.
  const clients = new Map<Socket, string>();
  const noteClient = (message: IncomingMessage): void => {
    if (clients.has(message.socket)) clients.set(message.socket, clientIp(message, parts.trustedProxies()));
  };
  server.on("connection", (socket: Socket) => {
    // Node compares with the value of the moment it looks: a reload counts from the next connection on.
    server.requestTimeout = parts.requestTimeoutMs?.() ?? defaultRequestTimeoutMs;
    clients.set(socket, peerIp({ socket }));
    socket.once("close", () => clients.delete(socket));
  });
  let requests = 0;
  server.on("request", (message, response) => {
    requests++;
    noteClient(message);
    response.once("close", () => requests--);
    answer(parts, message, response).catch(parts.onFault);
  });
  server.on("upgrade", (message, socket, head) => {
    noteClient(message);
    upgrade(parts, message, socket, head);
  });
  server.on("checkExpectation", (_message, response) => {
    setCorsHeaders(response);
    sendPlain(response, 417, "of expectations only 100-continue is known here");
  });
  server.on("clientError", refuseBadRequest);

  return {
    listen: (address) =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen({ ...address }, () => {
          server.off("error", reject);
          resolve(server.address() as AddressInfo);
        });
      }),
    endConnections(isUnwanted) {
      for (const [socket, ip] of clients) if (isUnwanted(ip)) socket.destroy();
    },
    close: (withinMs) => closeServer(server, parts.clock, () => requests, withinMs),
  };
}

/** `localPath` is "/" for the base path itself, with or without its slash. */
function routeRequest(parts: HttpParts, message: IncomingMessage): RouteRequest {
  const { basePath } = parts;
  const target = message.url ?? "/";
  const mark = target.indexOf("?");
  const path = mark < 0 ? target : target.slice(0, mark);
  const isUnderBase = basePath !== "" && (path === basePath || path.startsWith(`${basePath}/`));
  return {
    message,
    method: message.method ?? "GET",
    path,
    localPath: isUnderBase ? path.slice(basePath.length) || "/" : path,
    query: new URLSearchParams(mark < 0 ? "" : target.slice(mark + 1)),
    ip: clientIp(message, parts.trustedProxies()),
  };
}

async function answer(parts: HttpParts, message: IncomingMessage, response: ServerResponse): Promise<void> {
  setCorsHeaders(response);
  // A client that goes away is not an error of ours; handlers that stream see it by themselves.
  response.on("error", () => undefined);
  if (message.method === "OPTIONS") return answerPreflight(response);
  if (message.headers.host === undefined && message.httpVersion === "1.1") {
    return sendPlain(response, 400, "the Host header is missing");
  }
  const request = routeRequest(parts, message);
  if (parts.networks?.isBlocked(request.ip)) {
    response.setHeader("Connection", "close");
    return sendPlain(response, 403, notWanted);
  }
  const route = parts.routes.find((one) => one.matches(request));
  if (!route) return sendPlain(response, 404, "not found");
  try {
    await route.handle(request, response);
  } catch (error) {
    if (isClientLeaving(error, message, response)) return void response.destroy();
    // The database or the pack store that a cluster's machines share is away: whoever asks may ask again, or ask another machine.
    const isAway = error instanceof SharedLogError || error instanceof ObjectsUnavailableError;
    if (response.headersSent) response.destroy();
    else if (isAway) sendPlain(response, 503, error.message);
    else sendPlain(response, 500, "the server failed at this: it was logged");
    if (!isAway) parts.onFault(error);
  }
}

/**
 * Who goes away in the middle of his request is no fault of ours, and must not end the server (threats row 25): his body
 * breaks off, or what was being done for him is called off.
 */
function isClientLeaving(error: unknown, message: IncomingMessage, response: ServerResponse): boolean {
  if (error === message.errored) return true;
  return response.destroyed && !response.writableFinished && error instanceof Error && error.name === "AbortError";
}

function upgrade(parts: HttpParts, message: IncomingMessage, socket: Duplex, head: Buffer): void {
  socket.on("error", () => socket.destroy());
  const request = routeRequest(parts, message);
  const target = request.localPath === "/" ? parts.webSocket : undefined;
  const fault = handshakeFault(message);
  if (!target) refuseUpgrade(socket, 404, "not found");
  else if (fault !== undefined) refuseUpgrade(socket, 400, fault);
  else if (parts.networks?.isBlocked(request.ip)) refuseUpgrade(socket, 503, notWanted);
  else {
    const accepted = target.accept(message, socket, head, request.ip);
    if (!accepted.ok) refuseUpgrade(socket, accepted.code === "rate-limited" ? 429 : 503, accepted.message);
  }
}

/** The parser refused before any handler ran: say so, with the headers a browser needs to show it. */
function refuseBadRequest(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const status =
    error.code === "HPE_HEADER_OVERFLOW"
      ? "431 Request Header Fields Too Large"
      : error.code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? "408 Request Timeout"
        : "400 Bad Request";
  socket.end(`HTTP/1.1 ${status}\r\n${corsHeaderLines}Content-Length: 0\r\nConnection: close\r\n\r\n`);
}

async function closeServer(server: Server, clock: Clock, requests: () => number, withinMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const deadlineMs = clock.monotonicMs() + withinMs;
  server.closeIdleConnections();
  while (requests() > 0 && clock.monotonicMs() < deadlineMs) {
    await new Promise<void>((resolve) => clock.after(closeStepMs, resolve));
  }
  server.closeAllConnections();
  await closed;
}

/**
 * A request that offers another protocol than WebSocket (git and curl offer HTTP/2 that way on plain http) is a request
 * as any other: the offer is not taken up (RFC 9110, 7.8). Node takes every request as an upgrade whose message says so.
 */
class OfferingMessage extends IncomingMessage {
  declare private offers: unknown;

  get upgrade(): boolean {
    if (this.method === "CONNECT") return true;
    return this.offers === true && /websocket/i.test(this.headers.upgrade ?? "");
  }

  set upgrade(value: unknown) {
    this.offers = value;
  }
}

/**
 * Why this is no WebSocket handshake (RFC 6455, 4.2.1), if it is none. Node has looked at `Connection` already,
 * whatever else that lists. Said here, because the codec would answer without the headers a browser needs.
 */
export function handshakeFault(request: IncomingMessage): string | undefined {
  const { upgrade, "sec-websocket-key": key, "sec-websocket-version": version } = request.headers;
  if (upgrade?.trim().toLowerCase() !== "websocket") return "only WebSocket upgrades are known here";
  if (request.method !== "GET") return "a WebSocket handshake is a GET";
  if (version !== "13" && version !== "8") return "this version of WebSocket is not known here";
  if (typeof key !== "string" || !/^[+/0-9A-Za-z]{22}==$/.test(key)) return "Sec-WebSocket-Key is missing or not a key";
  return undefined;
}

function refuseUpgrade(socket: Duplex, status: number, sentence: string): void {
  const body = `${sentence}\n`;
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${corsHeaderLines}Connection: close\r\n` +
      `Content-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}

/**
 * Browsers may use everything here (spec/interop.md "CORS"). The headers are set before any handler runs, so each
 * response has them once, errors included; OPTIONS is answered on every path.
 */
const corsHeaders: Readonly<Record<string, string>> = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Allow-Headers":
    "Authorization, Content-Type, Git-Protocol, Accept, Content-Encoding, X-Requested-With",
  "Access-Control-Allow-Methods": "GET, POST, PUT, OPTIONS",
  "Access-Control-Expose-Headers":
    "Content-Type, Content-Length, Content-Encoding, ETag, Retry-After, WWW-Authenticate",
};

const preflightSeconds = 24 * 60 * 60;

function setCorsHeaders(response: ServerResponse): void {
  for (const [name, value] of Object.entries(corsHeaders)) response.setHeader(name, value);
}

function answerPreflight(response: ServerResponse): void {
  response.writeHead(204, { "Access-Control-Max-Age": String(preflightSeconds) });
  response.end();
}

/** For answers written to a bare socket, where there is no response object. */
const corsHeaderLines = Object.entries(corsHeaders)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join("");

export type TrustedProxies = BlockList;

/** `10.0.0.0/8`, `::1/128` or a single address each; the texts that are none of these are returned. */
export function trustedProxies(cidrs: readonly string[]): { readonly list: TrustedProxies; readonly bad: string[] } {
  const list = new BlockList();
  const bad: string[] = [];
  for (const cidr of cidrs) {
    const [address = "", bits, ...rest] = cidr.trim().split("/");
    const family = isIP(address);
    const most = family === 6 ? 128 : 32;
    const prefix = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : -1;
    if (family === 0 || prefix < 0 || prefix > most || rest.length > 0) bad.push(cidr);
    else list.addSubnet(address, prefix, family === 6 ? "ipv6" : "ipv4");
  }
  return { list, bad };
}

export const loopbackCidrs = ["127.0.0.0/8", "::1/128"];

const loopback = trustedProxies(loopbackCidrs).list;

/** IPv4 arrives as `::ffff:192.0.2.1` on a dual-stack socket; zones and brackets are not part of an address. */
function plainIp(text: string): string | undefined {
  const bare = text.trim().replace(/^\[(.*)\](?::\d+)?$/, "$1");
  const ip = bare.replace(/^::ffff:(\d+\.\d+\.\d+\.\d+)$/i, "$1").replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, "$1");
  return isIP(ip) === 0 ? undefined : ip;
}

const isIn = (list: BlockList, ip: string): boolean => list.check(ip, isIPv6(ip) ? "ipv6" : "ipv4");

export function peerIp(request: { readonly socket: { readonly remoteAddress?: string | undefined } }): string {
  return plainIp(request.socket.remoteAddress ?? "") ?? "unknown";
}

/** What proxies add, and what a browser adds that asks for another site's page: every answer allows that (CORS). */
const signsOfOthers = ["x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via", "origin"];

/**
 * A program on this machine that nobody forwarded (threats row 31). It calls us by a local name: a proxy that adds no
 * header passes the public one on, and a stranger's page reaches us under a name of his that resolves to loopback.
 */
export const isLocalPeer = (request: IncomingMessage): boolean => {
  const ip = peerIp(request);
  if (isIP(ip) === 0 || !isIn(loopback, ip)) return false;
  if (signsOfOthers.some((name) => request.headers[name] !== undefined)) return false;
  const host = (request.headers.host ?? "localhost").replace(/:\d*$/, "").toLowerCase();
  const literal = plainIp(host);
  return host === "localhost" || (literal !== undefined && isIn(loopback, literal));
};

/** Each trusted proxy vouches for the entry before it: from the right, the first that is not trusted is the client. */
export function clientIp(request: IncomingMessage, trusted: TrustedProxies): string {
  let ip = peerIp(request);
  const header = request.headers["x-forwarded-for"];
  const forwarded = (Array.isArray(header) ? header.join(",") : (header ?? "")).split(",");
  while (isIP(ip) !== 0 && isIn(trusted, ip)) {
    const next = plainIp(forwarded.pop() ?? "");
    if (next === undefined) break;
    ip = next;
  }
  return ip;
}
