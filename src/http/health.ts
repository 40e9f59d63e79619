// `/healthz`: the process answers. `/readyz`: everything it needs is there. Checks are handed in; strangers learn
// which one failed, not why.

import { type Keeping, remembered } from "./remembered.js";
import { isRead, type Route, sendText } from "./routes.js";

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
  const readiness = remembered(keeping, () => Promise.all(checks.map(outcome)));
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
