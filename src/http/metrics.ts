// `/metrics` and who may read it (spec/configuration.md): this machine, whoever has the token, or everybody.
// A server on its own address is a second HttpServer with this route and `isPublic`.

import { createHash, timingSafeEqual } from "node:crypto";
import type { Registry } from "prom-client";
import { isLocalPeer } from "./client-ip.js";
import { type Keeping, remembered } from "./remembered.js";
import { isRead, type Route, type RouteRequest, sendPlain, sendText } from "./routes.js";

export interface MetricsAccess {
  readonly isPublic: boolean;
  readonly token?: string;
}

export function metricsRoute(registry: Registry, keeping: Keeping, access: () => MetricsAccess): Route {
  const metrics = remembered(keeping, () => registry.metrics());
  return {
    matches: (request) => isRead(request, "/metrics"),
    async handle(request, response) {
      if (!mayRead(request, access())) {
        response.setHeader("WWW-Authenticate", "Bearer");
        return sendPlain(response, 401, "metrics are for this machine or with the operator's token");
      }
      sendText(response, 200, registry.contentType, await metrics());
    },
  };
}

function mayRead(request: RouteRequest, access: MetricsAccess): boolean {
  if (access.isPublic || isLocalPeer(request.message)) return true;
  const given = /^Bearer +(\S+)$/i.exec(request.message.headers.authorization ?? "")?.[1];
  return access.token !== undefined && access.token !== "" && given !== undefined && sameText(given, access.token);
}

/** Takes the same time wherever the two differ. */
function sameText(a: string, b: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
