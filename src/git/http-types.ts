// What git's HTTP side is given and what it tells: the catalogue's answer, limits, one record for each operation. And the
// few answers that are plain HTTP.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { ByteLimits } from "../base/budget/bytes.js";
import type { TurnLimits } from "../base/budget/turns.js";
import type { Clock } from "../base/clock.js";
import type { RepositoryArea } from "../catalogue/repositories.js";
import type { Config } from "../config/config.js";
import type { Npub, RepositoryAddress } from "./address.js";
import type { Capabilities } from "./advertisement.js";
import type { PackBudgets, PushRefusalCode, PushSessions } from "./push-types.js";
import type { Repositories } from "./repositories.js";

export interface FoundRepository {
  readonly address: RepositoryAddress;
  /** Fetches are served, pushes are refused with this reason. */
  readonly readOnlyReason?: string;
  /** Acts as an empty repository until the first accepted push makes it (`/prs/`). */
  readonly createOnPush?: boolean;
}

export interface GitOperation {
  readonly operation: "advertise" | "ls-refs" | "fetch" | "clone" | "push" | "probe" | "unknown";
  readonly status: "ok" | "refused" | "bad-request" | "busy" | "aborted" | "error" | "missing";
  readonly code?: PushRefusalCode;
  readonly address?: RepositoryAddress;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly durationMs: number;
  readonly fault?: unknown;
}

export type GitHttpConfig = PackBudgets &
  Pick<
    Config,
    | "gitFetchRequestMaxBytes"
    | "gitIdleSecs"
    | "gitPackCacheBytes"
    | "gitPackConcurrent"
    | "gitPackConcurrentPerIp"
    | "gitPackConcurrentPerRepository"
    | "gitPackQueue"
    | "gitProgressIntervalSecs"
    | "gitTotalSecs"
    | "pushMaxCommandBytes"
    | "pushMaxCommands"
  >;

/** `want`, `have` and `shallow` lines of one fetch together. */
export const maxUploadLines = 65_536;
/** One address never takes a repository's last places, strangers' data never the server's. */
export const usualPushTurns: TurnLimits = {
  total: 32,
  perRepository: 8,
  perIp: 6,
  maxQueued: 32,
  keptForOthers: 4,
  keptForTrusted: 8,
};
const retryAfterSeconds = 5;

/** Which repositories there are, and who may push. */
export interface ServedRepositories extends PushSessions {
  /** What is not found is not served. */
  lookUp(
    npub: Npub,
    identifier: string,
    area: RepositoryArea,
  ): FoundRepository | undefined | Promise<FoundRepository | undefined>;
}

/** A request, as far as git needs it. */
export interface GitRequest {
  readonly message: IncomingMessage;
  /** Undecoded, without the base path and the query. */
  readonly localPath: string;
  readonly query: URLSearchParams;
  /** The client's address, through trusted proxies. */
  readonly ip: string;
}

export interface GitHttpOptions {
  readonly served: ServedRepositories;
  readonly repositories: Repositories;
  readonly capabilities: Capabilities;
  readonly clock: Clock;
  /** Read anew for each request: settings may change while the server runs. */
  readonly live: { readonly current: GitHttpConfig };
  /** Instead of the usual ones; for tests and benchmarks. */
  readonly pushTurns?: TurnLimits;
  readonly uploadBodies?: ByteLimits;
  readonly crowdedMs?: number;
  /** For shared fetch answers; made when needed, removed by close. */
  readonly cacheDirectory: string;
  readonly observe?: (operation: GitOperation) => void;
}

/** An operation before its time is taken. */
export type UntimedOperation = Pick<GitOperation, "operation" | "status" | "bytesIn" | "bytesOut"> &
  Partial<Pick<GitOperation, "code" | "fault">>;

export function refuse(
  response: ServerResponse,
  statusCode: number,
  text: string,
  status: GitOperation["status"],
): UntimedOperation {
  const body = Buffer.from(`${text}\n`);
  response.statusCode = statusCode;
  response.setHeader("Content-Type", "text/plain; charset=utf-8");
  response.setHeader("Content-Length", body.length);
  response.end(body);
  return { operation: "unknown", status, bytesIn: 0, bytesOut: body.length };
}

export function notAllowed(response: ServerResponse, allow: string): UntimedOperation {
  response.setHeader("Allow", allow);
  return refuse(response, 405, "this method is not served here", "bad-request");
}

/** Not an empty repository, and not one that is unknown: what it holds is elsewhere and cannot be had now. */
export function unavailable(response: ServerResponse, text: string): UntimedOperation {
  response.setHeader("Retry-After", retryAfterSeconds);
  return refuse(response, 503, text, "error");
}

export function busy(response: ServerResponse): UntimedOperation {
  response.setHeader("Retry-After", retryAfterSeconds);
  return refuse(response, 503, "too many requests at once: try again in a moment", "busy");
}
