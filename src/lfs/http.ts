// LFS over HTTP (git-http.md, "Large files"): `info/lfs/objects/batch`, which says where each file may be brought or fetched, and
// these addresses themselves (the `basic` transfer). Nothing else of LFS is served: `locks` is 404, because git-lfs then is
// silent about locking, while an empty list makes it nag.

import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { ByteBudget } from "../base/budget/bytes.js";
import { Turns } from "../base/budget/turns.js";
import { unixSeconds } from "../base/clock.js";
import { sharedAbort } from "../base/shared-abort.js";
import { isLargeFileId, type LargeFileId, largeFile } from "../catalogue/large-files.js";
import type { RepositoryName } from "../catalogue/repositories.js";
import { type GitPath, parseGitPath } from "../git/address.js";
import { BodyBrokenError, BodyCrowdedError, BodyReader, BodyTooLargeError } from "../git/http-body.js";
import { busy, type FoundRepository, type GitRequest, usualPushTurns } from "../git/http-types.js";
import { ObjectsUnavailableError } from "../git/run.js";
import { SharedLogError } from "../store/port.js";
import type { Uploader, UploadGate } from "./access.js";
import { type BatchRequest, decideUpload, mayDownload, parseBatch, type WantedFile } from "./batch.js";
import { WrongContentError } from "./files.js";
import type { Holdings } from "./holdings.js";
import type { Scanner } from "./scanner.js";
import { sendFile } from "./serve.js";
import { type Ticket, Tickets, ticketSeconds } from "./tickets.js";

export interface LfsOperation {
  readonly operation: "batch" | "upload" | "download" | "other";
  readonly status: "ok" | "refused" | "bad-request" | "missing" | "busy" | "aborted" | "error";
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly fault?: unknown;
}

interface LfsHttpParts {
  readonly gate: UploadGate;
  readonly holdings: Holdings;
  readonly scanner: Scanner;
  /** One that should be here is not. */
  readonly missing: (name: RepositoryName) => void;
  readonly ticketKey: Uint8Array;
  /** `https://host/base` */
  readonly publicUrl: () => string;
  readonly observe: (operation: LfsOperation) => void;
}

const contentType = "application/vnd.git-lfs+json";
const maxBatchBytes = 2 ** 20;
/** git-lfs opens eight connections for a clone. */
const downloadTurns = { total: 64, perRepository: 64, perIp: 16, maxQueued: 128 };

type Done = Pick<LfsOperation, "status" | "bytesOut"> & Partial<Pick<LfsOperation, "bytesIn">>;

interface Asked {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: GitPath;
  readonly found: FoundRepository;
  readonly ip: string;
}

const isForLargeFiles = (rest: string): boolean => rest === "info/lfs" || rest.startsWith("info/lfs/");

export class LfsHttp {
  readonly #tickets: Tickets;
  readonly #bodies = new ByteBudget(() => ({ inAll: 16 * maxBatchBytes, perAddress: 2 * maxBatchBytes }));
  readonly #uploads = new Turns(() => usualPushTurns);
  readonly #downloads = new Turns(() => downloadTurns);

  constructor(private readonly parts: LfsHttpParts) {
    this.#tickets = new Tickets(parts.ticketKey);
  }

  /** Requests that wait for their turn. */
  get queued(): { readonly uploads: number; readonly downloads: number } {
    return { uploads: this.#uploads.queued, downloads: this.#downloads.queued };
  }

  /** Before git's own routes, which know nothing of LFS. */
  matches({ localPath }: Pick<GitRequest, "localPath">): boolean {
    const path = parseGitPath(localPath);
    return path !== undefined && isForLargeFiles(path.rest);
  }

  async handle({ message: request, localPath, query, ip }: GitRequest, response: ServerResponse): Promise<void> {
    const { gate, observe } = this.parts;
    const path = parseGitPath(localPath);
    if (!path) return void answer(response, 404, "this is no address of a repository");
    const oid = /^info\/lfs\/objects\/([0-9a-f]{64})$/.exec(path.rest)?.[1];
    const isBatch = path.rest === "info/lfs/objects/batch";
    const operation = isBatch
      ? "batch"
      : oid === undefined
        ? "other"
        : request.method === "PUT"
          ? "upload"
          : "download";
    let done: Done;
    let fault: unknown;
    try {
      const found = await gate.lookUp(path);
      if (!found) done = answer(response, 404, "this server has no such repository");
      else if (isBatch) done = await this.#batch({ request, response, path, found, ip });
      else if (isLargeFileId(oid)) done = await this.#transfer({ request, response, path, found, ip }, oid, query);
      else done = answer(response, 404, "only objects/batch and the basic transfer of LFS are served here");
    } catch (error) {
      const gone = error instanceof BodyBrokenError || response.destroyed;
      fault = gone ? undefined : error;
      if (response.headersSent || response.destroyed) response.destroy();
      else if (error instanceof ObjectsUnavailableError || error instanceof SharedLogError) {
        response.setHeader("Retry-After", "5");
        answer(response, 503, error.message);
      } else answer(response, gone ? 400 : 500, "the request failed");
      done = { status: gone ? "aborted" : "error", bytesOut: 0 };
    }
    observe({ operation, bytesIn: 0, ...done, ...(fault === undefined ? {} : { fault }) });
  }

  async #batch(asked: Asked): Promise<Done> {
    const { request, response, path, ip } = asked;
    if (request.method !== "POST") return notAllowed(response, "POST");
    const body = await this.#bodyOf(request, ip);
    if (typeof body === "string")
      return body === "busy" ? this.#busy(response) : answer(response, 413, "the batch is too large");
    const batch = parseBatch(body);
    if ("status" in batch) return answer(response, batch.status, batch.message);
    const { gate } = this.parts;
    const who = await gate.identify(request.headers.authorization, path, ip);
    if (who === "too-many") {
      response.setHeader("Retry-After", "60");
      return answer(response, 429, "too many wrong credentials came from your address: try again in a minute");
    }
    if (who === "unknown") return whoAreYou(response, "these credentials are not known here");
    return batch.operation === "download"
      ? await this.#batchDownload(asked, batch)
      : await this.#batchUpload(asked, batch, who);
  }

  async #bodyOf(request: IncomingMessage, ip: string): Promise<Buffer | "busy" | "too-large"> {
    const { clock, gitIdleSecs } = this.parts.gate.limits;
    const held = this.#bodies.open(ip);
    try {
      return await new BodyReader(request, clock, gitIdleSecs * 1_000).all(maxBatchBytes, held);
    } catch (error) {
      if (error instanceof BodyTooLargeError) return "too-large";
      if (error instanceof BodyCrowdedError) return "busy";
      throw error;
    } finally {
      held.close();
    }
  }

  async #batchDownload(asked: Asked, { files }: BatchRequest): Promise<Done> {
    const { found, response, ip } = asked;
    const { gate, scanner } = this.parts;
    await scanner.caughtUp(found.address, ip);
    const objects = [];
    for (const file of files) {
      const row = await largeFile(gate.store, found.address, file.oid);
      if (mayDownload(row)) {
        objects.push({ ...file, size: row.size, ...this.#actions(asked, "download", { ...file, size: row.size }) });
      } else {
        const message = row ? "this file is not here yet: it is looked for on other servers" : "this file is not here";
        objects.push({ ...file, error: { code: 404, message } });
      }
    }
    return json(response, 200, { transfer: "basic", objects });
  }

  async #batchUpload(asked: Asked, { files }: BatchRequest, who: Uploader): Promise<Done> {
    const { found, response, ip } = asked;
    const { gate, holdings } = this.parts;
    if (!who.mayPush) return answer(response, 403, "this token may only read: ask the operator for one that may push");
    const closed = await gate.closedReason(found);
    if (closed) return answer(response, closed.status, closed.message);
    // One request counts like one push, however often it is repeated.
    const request = createHash("sha256")
      .update(files.map(({ oid }) => oid).join())
      .digest("hex");
    const decide = gate.uploadsTo(found.address, who, () => gate.strangersBytes(found.address, ip, request));
    const objects: object[] = [];
    for (const file of files) {
      const decision = decideUpload(await decide(file));
      if (decision.type === "who-are-you") {
        if (!who.isKnown) return whoAreYou(response, decision.message);
        objects.push({ ...file, error: { code: 413, message: decision.message } });
      } else if (decision.type === "refused") {
        objects.push({ ...file, error: { code: decision.status, message: decision.message } });
      } else if (decision.type === "upload") {
        objects.push({ ...file, ...this.#actions(asked, `upload-${decision.as}`, file) });
      } else {
        if (decision.type === "claim") await holdings.claim(found.address, file.oid);
        objects.push(file);
      }
    }
    return json(response, 200, { transfer: "basic", objects });
  }

  #actions({ path, found }: Asked, use: Ticket["use"], file: WantedFile): object {
    const { publicUrl, gate } = this.parts;
    const ends = unixSeconds(gate.limits.clock) + ticketSeconds;
    const ticket = this.#tickets.write({ use, name: found.address, ...file, ends });
    const { area, npub, identifier } = path;
    const place = `${area === "prs" ? "/prs" : ""}/${npub}/${encodeURIComponent(identifier)}.git`;
    const href = `${publicUrl()}${place}/info/lfs/objects/${file.oid}?${ticket}`;
    return {
      // A private server asks for credentials here too.
      ...(gate.isPrivate ? {} : { authenticated: true }),
      actions: { [use === "download" ? use : "upload"]: { href, expires_in: ticketSeconds } },
    };
  }

  async #transfer(asked: Asked, oid: LargeFileId, query: URLSearchParams): Promise<Done> {
    const { request, response, found } = asked;
    const isReading = request.method === "GET" || request.method === "HEAD";
    if (!isReading && request.method !== "PUT") return notAllowed(response, "GET, HEAD, PUT");
    const ticket = this.#tickets.read(query, found.address, oid, unixSeconds(this.parts.gate.limits.clock));
    if (!ticket || isReading !== (ticket.use === "download")) {
      return answer(response, 403, "this address is over, or not for this: ask for a new one with objects/batch");
    }
    return isReading ? await this.#download(asked, oid) : await this.#upload(asked, ticket);
  }

  async #download({ request, response, found, ip }: Asked, oid: LargeFileId): Promise<Done> {
    const { gate, holdings } = this.parts;
    const { clock, gitIdleSecs } = gate.limits;
    const row = await largeFile(gate.store, found.address, oid);
    if (!mayDownload(row)) return answer(response, 404, "this file is not here");
    const leave = await this.#downloads.acquire({ repository: found.address.key, ip }, closedSignal(response));
    if (!leave) return this.#busy(response);
    try {
      const path = await holdings.pathOf(found.address, oid);
      const options = { clock, idleMs: gitIdleSecs * 1_000, etag: oid };
      const sent = path && (await sendFile(request, response, path, options));
      if (sent) return { status: sent.isWhole ? "ok" : "aborted", bytesOut: sent.bytes };
      await holdings.lost(found.address, oid);
      this.parts.missing(found.address);
      return answer(response, 404, "this file is not here");
    } finally {
      leave();
    }
  }

  async #upload(asked: Asked, ticket: Ticket): Promise<Done> {
    const { request, response, found } = asked;
    const { gate } = this.parts;
    const { clock, gitIdleSecs } = gate.limits;
    const body = new BodyReader(request, clock, gitIdleSecs * 1_000);
    const refuse = async (status: number, message: string): Promise<Done> => {
      if (!(await body.drain())) response.setHeader("Connection", "close");
      return { ...answer(response, status, message), bytesIn: body.bytes };
    };
    const closed = await gate.closedReason(found);
    if (closed) return await refuse(closed.status, closed.message);
    const announced = request.headers["content-length"];
    if (announced !== undefined && Number(announced) !== ticket.size) {
      return await refuse(422, `the request has ${Number(announced)} bytes, ${ticket.size} were announced`);
    }
    const isOwners = ticket.use === "upload-owners";
    const giveBack = isOwners ? await gate.roomFor(found.address, ticket) : () => undefined;
    if (typeof giveBack === "string") return await refuse(413, giveBack);
    try {
      return await this.#receive(asked, ticket, body, refuse);
    } finally {
      giveBack();
    }
  }

  async #receive(
    { response, found, ip }: Asked,
    ticket: Ticket,
    body: BodyReader,
    refuse: (status: number, message: string) => Promise<Done>,
  ): Promise<Done> {
    const { gate, holdings } = this.parts;
    const isOwners = ticket.use === "upload-owners";
    const turn = { repository: found.address.key, ip, trusted: isOwners };
    const leave = await this.#uploads.acquire(turn, closedSignal(response));
    if (!leave) return this.#busy(response);
    try {
      await gate.during(found, async () => {
        const row = await largeFile(gate.store, found.address, ticket.oid);
        if (row?.isHere) return void (await body.drain());
        const next = () => body.next();
        if (isOwners) await holdings.take(found.address, ticket, next);
        else await holdings.takeAside(found.address, ticket, next, ip);
      });
      return { ...json(response, 200, {}), bytesIn: body.bytes };
    } catch (error) {
      if (error instanceof WrongContentError) return await refuse(422, `${error.message}: send it again`);
      if ((error as NodeJS.ErrnoException).code === "ENOSPC") return await refuse(507, "the server's disk is full");
      throw error;
    } finally {
      leave();
    }
  }

  #busy(response: ServerResponse): Done {
    const { bytesOut } = busy(response);
    return { status: "busy", bytesOut };
  }
}

/** Aborted when the client is gone. */
function closedSignal(response: ServerResponse): AbortSignal {
  const closed = sharedAbort();
  response.once("close", () => closed.abort());
  return closed.signal;
}

function json(response: ServerResponse, statusCode: number, value: object): Done {
  const body = Buffer.from(JSON.stringify(value));
  response.writeHead(statusCode, {
    "Content-Type": contentType,
    "Content-Length": body.length,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
  });
  response.end(body);
  return { status: statusOf(statusCode), bytesOut: body.length };
}

const answer = (response: ServerResponse, statusCode: number, message: string): Done =>
  json(response, statusCode, { message });

function statusOf(statusCode: number): LfsOperation["status"] {
  if (statusCode < 300) return "ok";
  if (statusCode === 404) return "missing";
  return [401, 403, 413, 429, 507].includes(statusCode) ? "refused" : "bad-request";
}

function notAllowed(response: ServerResponse, allow: string): Done {
  response.setHeader("Allow", allow);
  return answer(response, 405, "this method is not served here");
}

/** With this git-lfs asks its user for a name and a password: a machine token may stand as either. */
function whoAreYou(response: ServerResponse, message: string): Done {
  response.setHeader("LFS-Authenticate", 'Basic realm="holdfast"');
  response.setHeader("WWW-Authenticate", ['Nostr method="GET"', 'Basic realm="holdfast"']);
  return answer(response, 401, message);
}
