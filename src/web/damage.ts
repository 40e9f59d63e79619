// A repository that is damaged, or that git had no time or files for, costs its own pages and not the server.

import { LauncherError } from "../git/launcher.js";
import { GitError } from "../git/run.js";
import type { Route } from "../http/routes.js";
import { sendDocument } from "../http/routes.js";
import type { Site } from "./layout.js";
import { tryLaterPage } from "./missing-page.js";
import { retryAfterSeconds } from "./visitor-rates.js";

const isUnreadable = (error: unknown): error is Error =>
  error instanceof GitError || error instanceof LauncherError || (error instanceof Error && "syscall" in error);

export const despiteDamage = (
  routes: readonly Route[],
  site: () => Site,
  unreadable: (error: Error) => void,
): Route[] =>
  routes.map((route) => ({
    matches: (request) => route.matches(request),
    async handle(request, response) {
      try {
        await route.handle(request, response);
      } catch (error) {
        if (!isUnreadable(error)) throw error;
        unreadable(error);
        sendDocument(request, response, tryLaterPage(site(), 503, retryAfterSeconds));
      }
    },
  }));
