// git's smart HTTP (git-http.md, Serving): a route of the server that finds the repository, picks the service and frames the
// answer. Knows no Nostr policy: which repositories there are and who may push it asks of what it is given.

import type { ServerResponse } from "node:http";
import { ByteBudget, type ByteLimits } from "../base/budget/bytes.js";
import { ipGroup, perMinute, Rates } from "../base/budget/rates.js";
import { type TurnLimits, Turns } from "../base/budget/turns.js";
import { SharedLogError } from "../store/port.js";
import { type GitPath, parseGitPath } from "./address.js";
import { Advertiser, type GitService, LsRefsAnswers, type ProtocolVersion } from "./advertisement.js";
import { FetchCache } from "./fetch-cache.js";
import { BodyBrokenError, BodyCrowdedError, BodyReader, BodyTooLargeError, writeChunk } from "./http-body.js";
import { PushEndpoint } from "./http-push.js";
import {
  busy,
  type FoundRepository,
  type GitHttpConfig,
  type GitHttpOptions,
  type GitRequest,
  notAllowed,
  refuse,
  type UntimedOperation,
  unavailable,
} from "./http-types.js";
import { emptyTables, type RefTable } from "./ref-tables.js";
import type { GitRepository } from "./repository.js";
import { ObjectsUnavailableError } from "./run.js";
import { planUpload, runUpload, type UploadParts } from "./upload.js";

const isService = (text: string | null): text is GitService =>
  text === "git-upload-pack" || text === "git-receive-pack";

/** Names of git's own, in the smart protocol and in the one before it. */
const belongsToGit = /^(?:info|objects|refs|HEAD|git-[^/]*)(?:\/|$)/;

/** How long a client that holds a place others wait for may take for one chunk. */
const usualCrowdedMs = 5_000;

/** Unfinished fetch requests, in memory: one address may send one of the largest size at a time, or many usual ones. */
const uploadBodiesFor = ({ gitFetchRequestMaxBytes: most }: GitHttpConfig): ByteLimits => ({
  inAll: 4 * most,
  perAddress: most + 2 ** 20,
});

const fetchTurns = (config: GitHttpConfig): TurnLimits => ({
  total: config.gitPackConcurrent,
  perRepository: config.gitPackConcurrentPerRepository,
  perIp: config.gitPackConcurrentPerIp,
  maxQueued: config.gitPackQueue,
});

/** Anything but exactly this is dropped: it would end up in git's environment (threats.md row 13). */
function protocolVersion(header: string | string[] | undefined): ProtocolVersion {
  const match = typeof header === "string" ? /^version=([012])$/.exec(header) : null;
  return match ? (Number(match[1]) as ProtocolVersion) : 0;
}

function noCache(response: ServerResponse): void {
  response.setHeader("Expires", "Fri, 01 Jan 1980 00:00:00 GMT");
  response.setHeader("Pragma", "no-cache");
  response.setHeader("Cache-Control", "no-cache, max-age=0, must-revalidate");
}

export class GitHttp {
  readonly #advertiser: Advertiser;
  readonly #upload: UploadParts;
  readonly #pushes: PushEndpoint;
  /** What is held of fetch requests that have not come to their end. */
  readonly #bodies: ByteBudget;
  readonly #bodyBytes: Rates;

  constructor(readonly options: GitHttpOptions) {
    this.#advertiser = new Advertiser(options.capabilities);
    this.#pushes = new PushEndpoint(options);
    const uploadBodies = (): ByteLimits => options.uploadBodies ?? uploadBodiesFor(options.live.current);
    this.#bodies = new ByteBudget(uploadBodies);
    this.#bodyBytes = new Rates(() => perMinute(4 * uploadBodies().perAddress));
    this.#upload = {
      live: options.live,
      limiter: new Turns(() => fetchTurns(options.live.current)),
      answers: new FetchCache(options.cacheDirectory, () => options.live.current.gitPackCacheBytes, options.clock),
      lsRefs: new LsRefsAnswers(),
    };
  }

  /** Requests that wait for their turn. */
  get queued(): { readonly fetches: number; readonly pushes: number } {
    return { fetches: this.#upload.limiter.queued, pushes: this.#pushes.queued };
  }

  close(): Promise<void> {
    return this.#upload.answers.close();
  }

  /** What git asks for below a repository; the repository alone and everything else below it are pages. */
  matches({ localPath }: Pick<GitRequest, "localPath">): boolean {
    const path = parseGitPath(localPath);
    return path !== undefined && path.rest !== "" && (path.area === "prs" || belongsToGit.test(path.rest));
  }

  async handle(request: GitRequest, response: ServerResponse): Promise<void> {
    const path = parseGitPath(request.localPath);
    if (!path) return void refuse(response, 404, "this is no address of a repository", "missing");
    const begun = this.options.clock.monotonicMs();
    // What another machine has acknowledged is served here.
    await this.options.repositories.upToDate();
    const found = await this.options.served.lookUp(path.npub, path.identifier, path.area);
    let outcome: UntimedOperation;
    try {
      outcome = found
        ? await this.#serve(request, response, path, found)
        : refuse(response, 404, "this server has no such repository", "missing");
    } catch (fault) {
      outcome = this.#failed(response, fault);
    }
    const durationMs = this.options.clock.monotonicMs() - begun;
    this.options.observe?.({ ...outcome, durationMs, ...(found ? { address: found.address } : {}) });
  }

  #failed(response: ServerResponse, fault: unknown): UntimedOperation {
    // Whoever waited for a place and left is no fault of ours.
    const gone = fault instanceof BodyBrokenError || (response.destroyed && (fault as Error).name === "AbortError");
    if (response.headersSent || response.destroyed) response.destroy();
    else if (fault instanceof ObjectsUnavailableError || fault instanceof SharedLogError)
      unavailable(response, fault.message);
    else refuse(response, gone ? 400 : 500, "the request failed", "error");
    return { operation: "unknown", status: gone ? "aborted" : "error", bytesIn: 0, bytesOut: 0, fault };
  }

  async #serve(
    request: GitRequest,
    response: ServerResponse,
    { rest }: GitPath,
    found: FoundRepository,
  ): Promise<UntimedOperation> {
    const { message } = request;
    noCache(response);
    if (rest === "info/refs") {
      if (message.method !== "GET" && message.method !== "HEAD") return notAllowed(response, "GET, HEAD");
      return await this.#advertise(request, response, found);
    }
    if (!isService(rest)) return refuse(response, 404, "only git's smart protocol is served", "missing");
    if (message.method !== "POST") return notAllowed(response, "POST");
    if (!BodyReader.understands(message)) return refuse(response, 415, "only gzip is understood", "bad-request");
    const aborter = new AbortController();
    const gone = (): void => aborter.abort();
    response.once("close", gone);
    const { gitTotalSecs, gitIdleSecs } = this.options.live.current;
    const cancelTotal = this.options.clock.after(gitTotalSecs * 1_000, () => response.destroy());
    try {
      const body = new BodyReader(message, this.options.clock, gitIdleSecs * 1_000);
      if (rest === "git-upload-pack") return await this.#fetch(request, response, body, found, aborter.signal);
      return await this.#pushes.serve(request, response, body, found, aborter.signal);
    } finally {
      cancelTotal();
      response.removeListener("close", gone);
    }
  }

  async #advertise(
    { message, query }: GitRequest,
    response: ServerResponse,
    found: FoundRepository,
  ): Promise<UntimedOperation> {
    const service = query.get("service");
    if (!isService(service)) return refuse(response, 404, "only git's smart protocol is served", "missing");
    const table = await this.#table(found, await this.#onDisk(found), service);
    const answer = this.#advertiser.answer(table, service, protocolVersion(message.headers["git-protocol"]));
    response.statusCode = 200;
    response.setHeader("Content-Type", `application/x-${service}-advertisement`);
    response.setHeader("Content-Length", answer.length);
    response.end(message.method === "HEAD" ? undefined : answer);
    return { operation: "advertise", status: "ok", bytesIn: 0, bytesOut: answer.length };
  }

  async #onDisk({ address, createOnPush }: FoundRepository): Promise<GitRepository | undefined> {
    const { repositories } = this.options;
    if (createOnPush && !(await repositories.exists(address))) return undefined;
    return repositories.open(address);
  }

  async #table(
    { address }: FoundRepository,
    repository: GitRepository | undefined,
    service: GitService,
  ): Promise<RefTable> {
    if (!repository) return emptyTables[await this.options.repositories.formatFor(address)];
    // Who pushes builds on what is here for good: unclaimed data counts as here for nothing.
    return await (service === "git-upload-pack" ? repository.fetchableRefs() : repository.refs());
  }

  async #fetch(
    { message, ip }: GitRequest,
    response: ServerResponse,
    body: BodyReader,
    found: FoundRepository,
    signal: AbortSignal,
  ): Promise<UntimedOperation> {
    const { clock, crowdedMs = usualCrowdedMs } = this.options;
    const { gitFetchRequestMaxBytes, gitIdleSecs } = this.options.live.current;
    const turnAway = (): UntimedOperation => {
      response.setHeader("Connection", "close");
      return { ...busy(response), operation: "fetch", bytesIn: body.bytes };
    };
    // Requests to fetch are small. Whoever sends megabytes of them again and again is not read.
    if (this.#bodyBytes.waitMs(ipGroup(ip), clock.monotonicMs()) > 0) return turnAway();
    const held = this.#bodies.open(ip);
    let bytes: Buffer;
    try {
      bytes = await body.all(gitFetchRequestMaxBytes, held);
    } catch (error) {
      if (!(error instanceof BodyTooLargeError || error instanceof BodyCrowdedError)) throw error;
      held.close();
      if (error instanceof BodyCrowdedError) return turnAway();
      response.setHeader("Connection", "close");
      await body.drain();
      return { ...refuse(response, 413, error.message, "bad-request"), operation: "fetch", bytesIn: body.bytes };
    } finally {
      held.close();
      this.#bodyBytes.spend(ipGroup(ip), clock.monotonicMs(), body.bytes);
    }
    const version = protocolVersion(message.headers["git-protocol"]);
    const repository = await this.#onDisk(found);
    const table = await this.#table(found, repository, "git-upload-pack");
    const plan = planUpload(bytes, version, repository, table, this.#upload);
    if (plan.type === "bad-request")
      return { ...refuse(response, 400, plan.reason, "bad-request"), operation: "fetch" };
    response.setHeader("Content-Type", "application/x-git-upload-pack-result");
    if (plan.type === "answer") {
      response.setHeader("Content-Length", plan.body.length);
      response.end(plan.body);
      return { operation: plan.operation, status: "ok", bytesIn: body.bytes, bytesOut: plan.body.length };
    }
    if (!repository) throw new Error("a fetch was planned without a repository");
    const { limiter } = this.#upload;
    const giveWay = { afterMs: crowdedMs, isAskedFor: () => limiter.queued > 0 };
    const send = (chunk: Buffer, holdsPlace = false): Promise<boolean> =>
      writeChunk(response, chunk, clock, gitIdleSecs * 1_000, holdsPlace ? giveWay : undefined);
    const result = await runUpload(repository, bytes, version, ip, this.#upload, send, signal);
    const common = { operation: plan.operation, bytesIn: body.bytes } as const;
    switch (result.status) {
      case "sent":
        response.end();
        return { ...common, status: "ok", bytesOut: result.bytes };
      case "broken":
        response.destroy();
        return { ...common, status: "aborted", bytesOut: result.bytes };
      case "busy":
        if (signal.aborted) return { ...common, status: "aborted", bytesOut: 0 };
        return { ...busy(response), ...common };
      case "failed":
        return { ...refuse(response, 500, "git could not answer", "error"), ...common, fault: result.stderr };
    }
  }
}
