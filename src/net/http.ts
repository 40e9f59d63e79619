// One HTTP request to a checked address: for NIP-11 and for git's info/refs and ls-refs. Answers are limited in size
// and time; redirects are answers like any other (`followRedirects` decides). Never decompresses what it did not ask for.

import { type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { Clock } from "../base/clock.js";
import { GatheredBytes } from "../base/collections.js";
import { type DialFailure, failure, failureOf } from "./failure.js";
import { type Guard, type GuardedUrl, pinnedConnection } from "./guard.js";

export interface HttpOptions {
  readonly clock: Clock;
  /** From the first byte sent to the last received. */
  readonly totalMs: number;
  /** Without a byte received. */
  readonly idleMs: number;
  readonly maxBodyBytes: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Makes it a POST. */
  readonly body?: Uint8Array;
  readonly signal?: AbortSignal;
  /** Extra trusted certificates (PEM), for private networks and tests. */
  readonly ca?: string | Buffer;
  /** Takes the body of a 200 chunk by chunk; the next is read when it resolves. The answer's own body is empty then. */
  readonly into?: (chunk: Buffer) => Promise<void>;
}

interface HttpAnswer {
  readonly ok: true;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export function httpRequest(url: GuardedUrl, options: HttpOptions): Promise<HttpAnswer | DialFailure> {
  if (url.scheme !== "http" && url.scheme !== "https") {
    return Promise.resolve(failure("bad-scheme", "an HTTP request needs http or https"));
  }
  if (options.signal?.aborted) return Promise.resolve(failure("aborted", "not wanted any more"));
  return new Promise((settle) => {
    const { clock } = options;
    const request = (url.scheme === "https" ? requestHttps : requestHttp)(url.href, {
      method: options.body ? "POST" : "GET",
      agent: false,
      ...pinnedConnection(url),
      headers: {
        ...options.headers,
        "accept-encoding": "identity",
        ...(options.body ? { "content-length": String(options.body.length) } : {}),
      },
      ...(options.ca === undefined ? {} : { ca: options.ca }),
    });
    let cancelIdle = (): void => undefined;
    let settled = false;
    const finish = (result: HttpAnswer | DialFailure): void => {
      if (settled) return;
      settled = true;
      cancelTotal();
      cancelIdle();
      options.signal?.removeEventListener("abort", onAbort);
      request.destroy();
      settle(result);
    };
    // One timer, not one a chunk: a body may come byte by byte.
    let heardAtMs = clock.monotonicMs();
    const watchIdle = (afterMs: number): void => {
      cancelIdle = clock.after(afterMs, () => {
        const restMs = options.idleMs - (clock.monotonicMs() - heardAtMs);
        if (restMs > 0) watchIdle(restMs);
        else finish(failure("timeout", `silent for ${options.idleMs} ms`));
      });
    };
    const onData = (): void => {
      heardAtMs = clock.monotonicMs();
    };
    const onAbort = (): void => finish(failure("aborted", "not wanted any more"));
    const cancelTotal = clock.after(options.totalMs, () =>
      finish(failure("timeout", `longer than ${options.totalMs} ms`)),
    );
    watchIdle(options.idleMs);
    options.signal?.addEventListener("abort", onAbort, { once: true });
    request.on("error", (error) => finish(failureOf(error)));
    // A server may answer 101 to anything; without a listener that socket would stay open.
    request.on("upgrade", (_response, socket) => {
      socket.destroy();
      finish(failure("bad-response", "switched protocols"));
    });
    request.on("response", (response) => {
      const { into, maxBodyBytes } = options;
      if (into && response.statusCode === 200) void passOn(response, maxBodyBytes, onData, into).then(finish);
      else readBody(response, maxBodyBytes, onData, finish);
    });
    request.end(options.body);
  });
}

const wrongEncoding = ({ headers }: IncomingMessage): DialFailure | undefined =>
  (headers["content-encoding"] ?? "identity") === "identity"
    ? undefined
    : failure("bad-response", "an encoding that was not asked for");

async function passOn(
  response: IncomingMessage,
  maxBodyBytes: number,
  onData: () => void,
  into: (chunk: Buffer) => Promise<void>,
): Promise<HttpAnswer | DialFailure> {
  const wrong = wrongEncoding(response);
  if (wrong) return wrong;
  let bytes = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      onData();
      bytes += chunk.length;
      if (bytes > maxBodyBytes) return failure("too-large", `more than ${maxBodyBytes} bytes`);
      await into(chunk);
      // Our own slowness is not the server's silence.
      onData();
    }
  } catch (error) {
    return failureOf(error);
  }
  if (!response.complete) return failure("reset", "ended before its end");
  return { ok: true, status: response.statusCode ?? 0, headers: response.headers, body: Buffer.alloc(0) };
}

function readBody(
  response: IncomingMessage,
  maxBodyBytes: number,
  onData: () => void,
  finish: (result: HttpAnswer | DialFailure) => void,
): void {
  const wrong = wrongEncoding(response);
  if (wrong) {
    finish(wrong);
    return;
  }
  const body = new GatheredBytes();
  response.on("data", (chunk: Buffer) => {
    onData();
    if (body.length + chunk.length > maxBodyBytes) {
      return finish(failure("too-large", `more than ${maxBodyBytes} bytes`));
    }
    body.add(chunk);
  });
  response.on("error", (error) => finish(failureOf(error)));
  response.on("close", () => {
    if (!response.complete) return finish(failure("reset", "ended before its end"));
    finish({ ok: true, status: response.statusCode ?? 0, headers: response.headers, body: body.all });
  });
}

interface RedirectOptions {
  readonly guard: Guard;
  readonly request: (url: GuardedUrl) => Promise<HttpAnswer | DialFailure>;
  /** Asked before every hop after the first; "no" ends with `aborted`. */
  readonly mayConnect?: (url: GuardedUrl) => Promise<boolean>;
  readonly maxRedirects?: number;
}

type FollowedAnswer = HttpAnswer & { readonly url: GuardedUrl; readonly redirects: number };

/**
 * Follows redirects the careful way: at most `maxRedirects`, to https or to the same host, every hop through the outbound
 * guard. Each hop is a connection, so the caller is asked before it (purgatory.md "Hunting", Fetch).
 */
export async function followRedirects(start: string, options: RedirectOptions): Promise<FollowedAnswer | DialFailure> {
  const { guard, request, mayConnect, maxRedirects = 3 } = options;
  let target = start;
  for (let redirects = 0; ; redirects++) {
    const guarded = await guard(target);
    if (!guarded.ok) return failure(guarded.code, guarded.message);
    if (redirects > 0 && mayConnect && !(await mayConnect(guarded.url))) {
      return failure("aborted", "no further connection allowed");
    }
    const answer = await request(guarded.url);
    if (!answer.ok) return answer;
    if (!isRedirect(answer.status)) return { ...answer, url: guarded.url, redirects };
    if (redirects === maxRedirects) return failure("bad-redirect", `more than ${maxRedirects} redirects`);
    const next = nextTarget(guarded.url, answer.headers.location);
    if (next === undefined) return failure("bad-redirect", "neither to https nor to the same host");
    target = next;
  }
}

const isRedirect = (status: number): boolean => [301, 302, 303, 307, 308].includes(status);

function nextTarget(from: GuardedUrl, location: string | undefined): string | undefined {
  if (location === undefined || !URL.canParse(location, from.href)) return undefined;
  const to = new URL(location, from.href);
  const sameHost = to.hostname === new URL(from.href).hostname;
  if (to.protocol === "https:" || (to.protocol === "http:" && sameHost)) return to.href;
  return undefined;
}
