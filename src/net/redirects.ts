// Follows redirects the careful way: at most `maxRedirects`, to https or to the same host, every hop through the
// outbound guard. Each hop is a connection, so the caller is asked before it (purgatory.md "Hunting", Fetch).

import { type DialFailure, failure } from "./failure.js";
import type { Guard, GuardedUrl } from "./guard.js";
import type { HttpAnswer } from "./http.js";

export interface RedirectOptions {
  readonly guard: Guard;
  readonly request: (url: GuardedUrl) => Promise<HttpAnswer | DialFailure>;
  /** Asked before every hop after the first; "no" ends with `aborted`. */
  readonly mayConnect?: (url: GuardedUrl) => Promise<boolean>;
  readonly maxRedirects?: number;
}

export type FollowedAnswer = HttpAnswer & { readonly url: GuardedUrl; readonly redirects: number };

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
