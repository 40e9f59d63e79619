// Small documents other programs look for: `/robots.txt` and NIP-05's `/.well-known/nostr.json` for `_`.

import type { Pubkey } from "../nostr/ids.js";
import { isRead, type Route, sendText } from "./routes.js";

/** Pages may be indexed; machine addresses cost work and say nothing to a reader. */
const robots = ["User-agent: *", "Disallow: /api/", "Disallow: /admin", "Disallow: /metrics", "Disallow: /*.git/", ""];

export function wellKnownRoutes(ownKey: Pubkey, relayUrl: string): Route[] {
  return [
    {
      matches: (request) => isRead(request, "/robots.txt"),
      handle: (_request, response) => sendText(response, 200, "text/plain; charset=utf-8", robots.join("\n")),
    },
    {
      matches: (request) => isRead(request, "/.well-known/nostr.json"),
      handle(request, response) {
        const isAsked = (request.query.get("name") ?? "_") === "_";
        const body = isAsked ? { names: { _: ownKey }, relays: { [ownKey]: [relayUrl] } } : { names: {} };
        sendText(response, 200, "application/json; charset=utf-8", JSON.stringify(body));
      },
    },
  ];
}
