// So many pages are made at a time, and a few for one address (threats row 33): what a page needs while it is made is
// bounded, and so is all of them together. Who finds the queue full is told to come back.

import { Turns } from "../base/budget/turns.js";
import type { Route } from "../http/routes.js";
import { sendDocument } from "../http/routes.js";
import type { Site } from "./layout.js";
import { tryLaterPage } from "./missing-page.js";
import { retryAfterSeconds } from "./visitor-rates.js";

const limits = { total: 6, perRepository: 6, perIp: 3, maxQueued: 200, keptForOthers: 2 };

export function inTurns(routes: readonly Route[], site: () => Site): Route[] {
  const turns = new Turns(() => limits);
  return routes.map((route) => ({
    matches: (request) => route.matches(request),
    async handle(request, response) {
      const gone = new AbortController();
      response.once("close", () => gone.abort());
      const release = await turns.acquire({ ip: request.ip }, gone.signal);
      if (!release) return sendDocument(request, response, tryLaterPage(site(), 503, retryAfterSeconds));
      try {
        await route.handle(request, response);
      } finally {
        release();
      }
    },
  }));
}
