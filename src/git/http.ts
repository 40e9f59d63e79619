// git's smart HTTP (git-http.md, Serving): finds the repository, picks the service, frames the answer. Knows no Nostr
// policy: which repositories there are and who may push is asked of the functions it is given.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../base/clock.js";
import type { Npub, RepositoryAddress, RepositoryArea } from "./address.js";
import { Advertiser, type Capabilities, type GitService, type ProtocolVersion } from "./advertisement.js";
import { BodyBrokenError, BodyReader, BodyTooLargeError, writeChunk } from "./http-body.js";
import { LsRefsAnswers } from "./ls-refs.js";
import { type PushCapabilities, PushHeadParser } from "./push-commands.js";
import { PushResponder } from "./push-report.js";
import { type PushHooks, receivePush } from "./receive.js";
import { emptyTable } from "./ref-tables.js";
import type { Repositories } from "./repositories.js";
import { SharedAnswers } from "./shared-answers.js";
import type { PackBudgets, PushRefusalCode } from "./types.js";
import { planUpload, runUpload, type UploadParts } from "./upload.js";
import { type GitPath, parseGitPath } from "./url-path.js";
import { WorkLimiter, type WorkLimits } from "./work-limiter.js";

export interface FoundRepository {
  readonly address: RepositoryAddress;
  /** Fetches are served, pushes are refused with this reason. */
  readonly readOnlyReason?: string;
  /** Acts as an empty repository until the first accepted push makes it (`/prs/`). */
  readonly createOnPush?: boolean;
}

export interface GitOperation {
  readonly operation: "advertise" | "ls-refs" | "fetch" | "push" | "probe" | "unknown";
  readonly status: "ok" | "refused" | "bad-request" | "busy" | "aborted" | "error" | "missing";
  readonly code?: PushRefusalCode;
  readonly address?: RepositoryAddress;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly durationMs: number;
  readonly fault?: unknown;
}

export interface GitHttpLimits {
  readonly idleMs: number;
  readonly totalMs: number;
  readonly maxUploadRequestBytes: number;
  readonly maxUploadLines: number;
  readonly fetches: WorkLimits;
  readonly pushes: WorkLimits;
  readonly maxSharedBytes: number;
  readonly retryAfterSeconds: number;
}

export const defaultBudgets: PackBudgets = {
  maxPackBytes: 2 * 2 ** 30,
  maxObjects: 5_000_000,
  maxObjectBytes: 100 * 2 ** 20,
};

export const defaultLimits = (cores: number): GitHttpLimits => ({
  idleMs: 60_000,
  totalMs: 60 * 60_000,
  maxUploadRequestBytes: 4 * 2 ** 20,
  maxUploadLines: 65_536,
  fetches: { total: Math.max(2, cores), perRepository: Math.max(2, cores), perIp: Math.max(2, cores), maxQueued: 64 },
  pushes: { total: 32, perRepository: 8, perIp: 8, maxQueued: 32 },
  maxSharedBytes: 2 * 2 ** 30,
  retryAfterSeconds: 5,
});

export interface GitHttpOptions extends PushHooks {
  readonly repositories: Repositories;
  readonly capabilities: Capabilities;
  readonly clock: Clock;
  /** The catalogue: what is not in it is not served. */
  readonly lookUp: (
    npub: Npub,
    identifier: string,
    area: RepositoryArea,
  ) => FoundRepository | undefined | Promise<FoundRepository | undefined>;
  readonly ipOf: (request: IncomingMessage) => string;
  readonly budgets: PackBudgets;
  readonly limits: GitHttpLimits;
  /** For shared fetch answers; made when needed, removed by close. */
  readonly cacheDirectory: string;
  readonly basePath?: string;
  readonly observe?: (operation: GitOperation) => void;
}

type Outcome = Pick<GitOperation, "operation" | "status" | "bytesIn" | "bytesOut"> &
  Partial<Pick<GitOperation, "code" | "fault">>;

const isService = (text: string | null): text is GitService =>
  text === "git-upload-pack" || text === "git-receive-pack";

/** Anything but exactly this is dropped: it would end up in git's environment (threats.md row 13). */
export function protocolVersion(header: string | string[] | undefined): ProtocolVersion {
  const match = typeof header === "string" ? /^version=([012])$/.exec(header) : null;
  return match ? (Number(match[1]) as ProtocolVersion) : 0;
}

const overBudgetGraceMs = 1_000;

export class GitHttp {
  readonly #advertiser: Advertiser;
  readonly #upload: UploadParts;
  readonly #pushLimiter: WorkLimiter;

  constructor(readonly options: GitHttpOptions) {
    const { limits } = options;
    this.#advertiser = new Advertiser(options.capabilities);
    this.#pushLimiter = new WorkLimiter(limits.pushes);
    this.#upload = {
      limits: {
        maxRequestBytes: limits.maxUploadRequestBytes,
        maxLines: limits.maxUploadLines,
        totalMs: limits.totalMs,
      },
      limiter: new WorkLimiter(limits.fetches),
      answers: new SharedAnswers(options.cacheDirectory, limits.maxSharedBytes),
      lsRefs: new LsRefsAnswers(),
    };
  }

  close(): Promise<void> {
    return this.#upload.answers.close();
  }

  /** `pathname` undecoded, without the query. False: not a git URL (or only a repository's page); nothing was written. */
  async handle(
    request: IncomingMessage,
    response: ServerResponse,
    pathname: string,
    query: URLSearchParams,
  ): Promise<boolean> {
    const path = parseGitPath(pathname, this.options.basePath);
    if (!path || path.rest === "") return false;
    const begun = this.options.clock.monotonicMs();
    const found = await this.options.lookUp(path.npub, path.identifier, path.area);
    let outcome: Outcome;
    try {
      outcome = found
        ? await this.#serve(request, response, path, query, found)
        : refuse(response, 404, "this server has no such repository", "missing");
    } catch (fault) {
      const gone = fault instanceof BodyBrokenError;
      if (!response.headersSent && !response.destroyed)
        refuse(response, gone ? 400 : 500, "the request failed", "error");
      else response.destroy();
      outcome = { operation: "unknown", status: gone ? "aborted" : "error", bytesIn: 0, bytesOut: 0, fault };
    }
    const durationMs = this.options.clock.monotonicMs() - begun;
    this.options.observe?.({ ...outcome, durationMs, ...(found ? { address: found.address } : {}) });
    return true;
  }

  async #serve(
    request: IncomingMessage,
    response: ServerResponse,
    { rest }: GitPath,
    query: URLSearchParams,
    found: FoundRepository,
  ): Promise<Outcome> {
    noCache(response);
    if (rest === "info/refs") {
      if (request.method !== "GET" && request.method !== "HEAD") return notAllowed(response, "GET, HEAD");
      return await this.#advertise(request, response, query.get("service"), found);
    }
    if (!isService(rest)) return refuse(response, 404, "only git's smart protocol is served", "missing");
    if (request.method !== "POST") return notAllowed(response, "POST");
    if (!BodyReader.understands(request)) return refuse(response, 415, "only gzip is understood", "bad-request");
    const aborter = new AbortController();
    const gone = (): void => aborter.abort();
    response.once("close", gone);
    const cancelTotal = this.options.clock.after(this.options.limits.totalMs, () => response.destroy());
    try {
      const body = new BodyReader(request, this.options.clock, this.options.limits.idleMs);
      const serve = rest === "git-upload-pack" ? this.#fetch : this.#push;
      return await serve.call(this, request, response, body, found, aborter.signal);
    } finally {
      cancelTotal();
      response.removeListener("close", gone);
    }
  }

  async #advertise(
    request: IncomingMessage,
    response: ServerResponse,
    service: string | null,
    found: FoundRepository,
  ): Promise<Outcome> {
    if (!isService(service)) return refuse(response, 404, "only git's smart protocol is served", "missing");
    const repository = await this.#onDisk(found);
    const table = repository ? await repository.shownRefs() : emptyTable;
    const answer = this.#advertiser.answer(table, service, protocolVersion(request.headers["git-protocol"]));
    response.statusCode = 200;
    response.setHeader("Content-Type", `application/x-${service}-advertisement`);
    response.setHeader("Content-Length", answer.length);
    response.end(request.method === "HEAD" ? undefined : answer);
    return { operation: "advertise", status: "ok", bytesIn: 0, bytesOut: answer.length };
  }

  async #onDisk({ address, createOnPush }: FoundRepository) {
    const { repositories } = this.options;
    if (createOnPush && !(await repositories.exists(address))) return undefined;
    return repositories.open(address);
  }

  async #fetch(
    request: IncomingMessage,
    response: ServerResponse,
    body: BodyReader,
    found: FoundRepository,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { clock, limits } = this.options;
    let bytes: Buffer;
    try {
      bytes = await body.all(limits.maxUploadRequestBytes);
    } catch (error) {
      if (!(error instanceof BodyTooLargeError)) throw error;
      response.setHeader("Connection", "close");
      return { ...refuse(response, 413, error.message, "bad-request"), operation: "fetch", bytesIn: body.bytes };
    }
    const version = protocolVersion(request.headers["git-protocol"]);
    const repository = await this.#onDisk(found);
    const plan = await planUpload(bytes, version, repository, this.#upload);
    if (plan.type === "bad-request")
      return { ...refuse(response, 400, plan.reason, "bad-request"), operation: "fetch" };
    response.setHeader("Content-Type", "application/x-git-upload-pack-result");
    if (plan.type === "answer") {
      response.setHeader("Content-Length", plan.body.length);
      response.end(plan.body);
      return { operation: plan.operation, status: "ok", bytesIn: body.bytes, bytesOut: plan.body.length };
    }
    if (!repository) throw new Error("a fetch was planned without a repository");
    const send = (chunk: Buffer): Promise<boolean> => writeChunk(response, chunk, clock, limits.idleMs);
    const result = await runUpload(repository, bytes, version, this.options.ipOf(request), this.#upload, send, signal);
    const common = { operation: "fetch", bytesIn: body.bytes } as const;
    switch (result.status) {
      case "sent":
        response.end();
        return { ...common, status: "ok", bytesOut: result.bytes };
      case "broken":
        response.destroy();
        return { ...common, status: "aborted", bytesOut: result.bytes };
      case "busy":
        if (signal.aborted) return { ...common, status: "aborted", bytesOut: 0 };
        return { ...this.#busy(response), ...common };
      case "failed":
        return { ...refuse(response, 500, "git could not answer", "error"), ...common, fault: result.stderr };
    }
  }

  #busy(response: ServerResponse): Outcome {
    response.setHeader("Retry-After", this.options.limits.retryAfterSeconds);
    return refuse(response, 503, "too many requests at once: try again in a moment", "busy");
  }

  async #push(
    request: IncomingMessage,
    response: ServerResponse,
    body: BodyReader,
    found: FoundRepository,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const ip = this.options.ipOf(request);
    const parser = new PushHeadParser();
    response.setHeader("Content-Type", "application/x-git-receive-pack-result");
    for (;;) {
      const chunk = await body.next();
      if (!chunk) return { ...refuse(response, 400, "the push ended early", "bad-request"), operation: "push" };
      const result = parser.push(chunk);
      if (result.status === "more") continue;
      if (result.status === "probe") {
        response.end();
        return { operation: "probe", status: "ok", bytesIn: body.bytes, bytesOut: 0 };
      }
      if (result.status === "refused") {
        return await this.#refusePush(response, body, result.capabilities, result.code, result.reason);
      }
      const release = await this.#pushLimiter.acquire({ repository: found.address.key, ip }, signal);
      if (!release) return { ...this.#busy(response), operation: "push" };
      try {
        const { commands, capabilities } = result.head;
        const responder = new PushResponder(response, capabilities, this.options.clock);
        return await this.#runPush(responder, body, found, { commands, capabilities, first: parser.rest, ip, signal });
      } finally {
        release();
      }
    }
  }

  async #runPush(
    responder: PushResponder,
    body: BodyReader,
    found: FoundRepository,
    push: {
      readonly commands: Parameters<PushHooks["authority"]>[1];
      readonly capabilities: PushCapabilities;
      readonly first: Buffer;
      readonly ip: string;
      readonly signal: AbortSignal;
    },
  ): Promise<Outcome> {
    const { repositories, budgets, limits } = this.options;
    try {
      const result = await receivePush(repositories, this.options, {
        address: found.address,
        readOnlyReason: found.readOnlyReason,
        createOnPush: found.createOnPush ?? false,
        commands: push.commands,
        atomic: push.capabilities.atomic,
        ip: push.ip,
        budgets,
        first: push.first,
        next: () => body.next(),
        bodyRead: () => responder.begin(),
        wallClockMs: limits.totalMs,
        signal: push.signal,
      });
      responder.stop();
      const isDrained = await body.drain(budgets.maxPackBytes);
      const bytesOut = await responder.end(result);
      if (!isDrained) this.#cutSoon(responder.response);
      return {
        operation: "push",
        status: result.code === "ok" ? "ok" : "refused",
        bytesIn: body.bytes,
        bytesOut,
        ...(result.code === "ok" ? {} : { code: result.code }),
        ...(result.fault === undefined ? {} : { fault: result.fault }),
      };
    } finally {
      responder.stop();
    }
  }

  async #refusePush(
    response: ServerResponse,
    body: BodyReader,
    capabilities: PushCapabilities,
    code: PushRefusalCode,
    reason: string,
  ): Promise<Outcome> {
    const isDrained = await body.drain(this.options.budgets.maxPackBytes);
    const outcome = { operation: "push", status: "refused", code, bytesIn: body.bytes } as const;
    if (!capabilities.reportStatus) {
      const { bytesOut } = refuse(response, 400, reason, "bad-request");
      return { ...outcome, bytesOut };
    }
    const responder = new PushResponder(response, capabilities, this.options.clock);
    const bytesOut = await responder.end({ unpack: reason, verdicts: [], messages: [reason] });
    if (!isDrained) this.#cutSoon(response);
    return { ...outcome, bytesOut };
  }

  /** The body is over every budget: the client gets a moment to read why, then the connection goes. */
  #cutSoon(response: ServerResponse): void {
    const { socket } = response.req;
    this.options.clock.after(overBudgetGraceMs, () => socket.destroy());
  }
}

function noCache(response: ServerResponse): void {
  response.setHeader("Expires", "Fri, 01 Jan 1980 00:00:00 GMT");
  response.setHeader("Pragma", "no-cache");
  response.setHeader("Cache-Control", "no-cache, max-age=0, must-revalidate");
}

function refuse(response: ServerResponse, statusCode: number, text: string, status: GitOperation["status"]): Outcome {
  const body = Buffer.from(`${text}\n`);
  response.statusCode = statusCode;
  response.setHeader("Content-Type", "text/plain; charset=utf-8");
  response.setHeader("Content-Length", body.length);
  response.end(body);
  return { operation: "unknown", status, bytesIn: 0, bytesOut: body.length };
}

function notAllowed(response: ServerResponse, allow: string): Outcome {
  response.setHeader("Allow", allow);
  return refuse(response, 405, "this method is not served here", "bad-request");
}
