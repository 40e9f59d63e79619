// LFS as a client of another server: one batch request, one download. What comes back was written by a stranger and is read
// strictly: only files that were asked for, only http and https addresses that the guard lets through, only a few headers.

import type { Clock } from "../base/clock.js";
import { isLargeFileId, type LargeFileId } from "../catalogue/large-files.js";
import type { Config } from "../config/config.js";
import { spellingsToTry } from "../hunt/core/fetch-plan.js";
import type { OwnAuthorization } from "../hunt/look-up.js";
import type { Guard } from "../net/guard.js";
import { followRedirects, type HttpOptions, httpRequest } from "../net/http.js";
import type { CloneUrl } from "../net/url.js";
import type { NextChunk } from "./files.js";
import type { Pointer } from "./pointer.js";

export interface ClientParts {
  readonly clock: Clock;
  readonly guard: Guard;
  readonly config: Pick<
    Config,
    "gitHuntTotalSecs" | "gitHuntSlowSecs" | "gitHuntMaxRedirects" | "gitHuntMinBytesPerSecond"
  >;
  readonly signal: AbortSignal;
  /** GRASP-08: who we are, for the hosts of the announcement. Absent on public servers. */
  readonly authorization?: OwnAuthorization | undefined;
}

/** Our own signature for a repository, at every hop anew; nothing where the address is none of LFS. */
function ownHeader({ authorization }: ClientParts, href: string): Readonly<Record<string, string>> {
  const root = /^(.*)\/info\/lfs\/[^?]*(?:\?|$)/.exec(href)?.[1];
  const value = root === undefined ? undefined : authorization?.(root);
  return value === undefined ? {} : { authorization: value };
}

/** Where a server says one file is. */
export interface Offer {
  readonly oid: LargeFileId;
  readonly href: string;
  readonly headers: Readonly<Record<string, string>>;
}

const contentType = "application/vnd.git-lfs+json";
const maxAnswerBytes = 2 ** 20;
const maxHeaders = 10;
const maxHeaderBytes = 4_096;
/** Ours to say, or the connection's. */
const keptHeaders = new Set([
  "host",
  "content-length",
  "transfer-encoding",
  "connection",
  "accept-encoding",
  "upgrade",
]);

const optionsOf = ({ clock, config, signal }: ClientParts): Pick<HttpOptions, "clock" | "idleMs" | "signal"> => ({
  clock,
  idleMs: config.gitHuntSlowSecs * 1_000,
  signal,
});

/** What of these a server offers; or why it could not be asked, as a code of ours. */
export async function askForFiles(
  cloneUrl: CloneUrl,
  files: readonly Pointer[],
  parts: ClientParts,
): Promise<readonly Offer[] | string> {
  const objects = files.map(({ oid, size }) => ({ oid, size }));
  const question = { operation: "download", transfers: ["basic"], hash_algo: "sha256", objects };
  const body = Buffer.from(JSON.stringify(question));
  let last = "bad-url";
  for (const spelling of spellingsToTry(cloneUrl)) {
    const answer = await followRedirects(`${spelling}/info/lfs/objects/batch`, {
      guard: parts.guard,
      maxRedirects: parts.config.gitHuntMaxRedirects,
      request: (url) =>
        httpRequest(url, {
          ...optionsOf(parts),
          totalMs: Math.min(60_000, parts.config.gitHuntTotalSecs * 1_000),
          maxBodyBytes: maxAnswerBytes,
          headers: { accept: contentType, "content-type": contentType, ...ownHeader(parts, url.href) },
          body,
        }),
    });
    if (!answer.ok) last = answer.code;
    else if (answer.status !== 200) last = answer.status === 404 ? "no-lfs" : "http-status";
    else return readOffers(answer.body, new Set(files.map(({ oid }) => oid)), answer.url.href) ?? "bad-response";
  }
  return last;
}

/** Undefined: this is no batch answer. */
export function readOffers(body: Buffer, wanted: ReadonlySet<LargeFileId>, base: string): readonly Offer[] | undefined {
  let answer: unknown;
  try {
    answer = JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
  const { objects, transfer } = (answer ?? {}) as Record<string, unknown>;
  if (!Array.isArray(objects) || (transfer !== undefined && transfer !== "basic")) return undefined;
  const offers = new Map<LargeFileId, Offer>();
  for (const object of objects as unknown[]) {
    const { oid, actions } = (object ?? {}) as Record<string, unknown>;
    const { download } = (actions ?? {}) as Record<string, unknown>;
    const { href, header } = (download ?? {}) as Record<string, unknown>;
    if (!isLargeFileId(oid) || !wanted.has(oid) || typeof href !== "string" || !URL.canParse(href, base)) continue;
    const target = new URL(href, base);
    if (target.protocol !== "https:" && target.protocol !== "http:") continue;
    offers.set(oid, { oid, href: target.href, headers: headersIn(header) });
  }
  return [...offers.values()];
}

function headersIn(header: unknown): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries((header ?? {}) as Record<string, unknown>).slice(0, maxHeaders)) {
    const isHeader = /^[A-Za-z0-9-]{1,100}$/.test(name) && typeof value === "string" && value.length <= maxHeaderBytes;
    // No control bytes: they would write headers of their own (threats.md row 5).
    if (isHeader && /^[\x20-\x7e]*$/.test(value) && !keptHeaders.has(name.toLowerCase())) kept[name] = value;
  }
  return kept;
}

/** `ok`, or a code of ours. What `take` throws is thrown. */
export async function fetchFile(
  { href, headers }: Offer,
  size: number,
  parts: ClientParts,
  take: (next: NextChunk) => Promise<void>,
): Promise<string> {
  const pipe = new ChunkPipe();
  const slowestMs = (size / Math.max(1, parts.config.gitHuntMinBytesPerSecond)) * 1_000;
  const fetching = followRedirects(href, {
    guard: parts.guard,
    maxRedirects: parts.config.gitHuntMaxRedirects,
    request: (url) =>
      httpRequest(url, {
        ...optionsOf(parts),
        totalMs: Math.max(parts.config.gitHuntTotalSecs * 1_000, slowestMs),
        maxBodyBytes: size,
        // What one host asked for is not told to another.
        headers: new URL(url.href).host === new URL(href).host ? { ...ownHeader(parts, url.href), ...headers } : {},
        into: (chunk) => pipe.put(chunk),
      }),
  }).then((answer) => {
    const code = answer.ok ? (answer.status === 200 ? "ok" : "http-status") : answer.code;
    pipe.end(code === "ok" ? undefined : new FetchBroken(code));
    return code;
  });
  try {
    await take(() => pipe.next());
  } catch (error) {
    pipe.giveUp();
    const code = await fetching;
    if (error instanceof FetchBroken) return code;
    throw error;
  }
  return await fetching;
}

class FetchBroken extends Error {
  override readonly name = "FetchBroken";
}

/** Hands chunks over one at a time: who puts waits until the chunk is taken. */
class ChunkPipe {
  #chunk: Buffer | undefined;
  #isTaken: (() => void) | undefined;
  #wake: (() => void) | undefined;
  #end: { readonly error: Error | undefined } | undefined;
  #isGivenUp = false;

  put(chunk: Buffer): Promise<void> {
    if (this.#isGivenUp) return Promise.reject(new FetchBroken("not wanted any more"));
    this.#chunk = chunk;
    this.#wake?.();
    return new Promise((resolve, reject) => {
      this.#isTaken = () => (this.#isGivenUp ? reject(new FetchBroken("not wanted any more")) : resolve());
    });
  }

  end(error: Error | undefined): void {
    this.#end = { error };
    this.#wake?.();
  }

  giveUp(): void {
    this.#isGivenUp = true;
    this.#isTaken?.();
  }

  async next(): Promise<Buffer | undefined> {
    while (this.#chunk === undefined && !this.#end) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const chunk = this.#chunk;
    this.#chunk = undefined;
    if (chunk) {
      this.#isTaken?.();
      return chunk;
    }
    if (this.#end?.error) throw this.#end.error;
    return undefined;
  }
}
