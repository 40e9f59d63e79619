// What programs that watch the server ask. `/healthz`: the process answers. `/readyz`: everything it needs is there;
// checks are handed in, and strangers learn which one failed, not why. `/metrics`: for this machine, for a reader with the
// token, or for everybody (spec/configuration.md); on an address of its own it is a second HttpServer with `isPublic`.

import { createHash, timingSafeEqual } from "node:crypto";
import type { Registry } from "prom-client";
import { type Keeping, keptFor } from "../base/clock.js";
import { isRead, type Route, type RouteRequest, sendPlain, sendText } from "./routes.js";
import { isLocalPeer } from "./server.js";

export interface ReadinessCheck {
  /** `store`, `git`, `disk`. */
  readonly name: string;
  readonly isReady: () => boolean | Promise<boolean>;
}

const json = "application/json; charset=utf-8";

export function healthRoutes(
  checks: readonly ReadinessCheck[],
  keeping: Keeping,
  onFault: (error: unknown) => void,
): Route[] {
  const outcome = async (check: ReadinessCheck): Promise<readonly [string, boolean]> => {
    try {
      return [check.name, await check.isReady()];
    } catch (error) {
      onFault(error);
      return [check.name, false];
    }
  };
  const readiness = keptFor(keeping, () => Promise.all(checks.map(outcome)));
  return [
    {
      matches: (request) => isRead(request, "/healthz"),
      handle: (_request, response) => sendText(response, 200, json, '{"status":"ok"}'),
    },
    {
      matches: (request) => isRead(request, "/readyz"),
      async handle(_request, response) {
        const results = await readiness();
        const ready = results.every(([, ok]) => ok);
        const body = JSON.stringify({ status: ready ? "ready" : "not ready", checks: Object.fromEntries(results) });
        sendText(response, ready ? 200 : 503, json, body);
      },
    },
  ];
}

export interface MetricsAccess {
  readonly isPublic: boolean;
  /** Whether programs of this machine need the token too: a proxy that adds no header makes everybody one of them. */
  readonly needsToken?: boolean;
  readonly token?: string;
}

export function metricsRoute(registry: Registry, keeping: Keeping, access: () => MetricsAccess): Route {
  const metrics = keptFor(keeping, () => registry.metrics());
  return {
    matches: (request) => isRead(request, "/metrics"),
    async handle(request, response) {
      if (!mayReadMetrics(request, access())) {
        response.setHeader("WWW-Authenticate", "Bearer");
        return sendPlain(response, 401, "metrics are for this machine or with the operator's token");
      }
      sendText(response, 200, registry.contentType, await metrics());
    },
  };
}

export function mayReadMetrics(request: RouteRequest, access: MetricsAccess): boolean {
  if (access.isPublic || (access.needsToken !== true && isLocalPeer(request.message))) return true;
  const given = /^Bearer +(\S+)$/i.exec(request.message.headers.authorization ?? "")?.[1];
  return access.token !== undefined && access.token !== "" && given !== undefined && sameText(given, access.token);
}

/** Takes the same time wherever the two differ. */
function sameText(a: string, b: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
