// `/api/sync`: how the server keeps in step with other relays. For admins: it names every relay we talk to and why
// one fails.

import { isRead, type Route, type RouteRequest, sendText } from "./routes.js";

export function syncStatusRoute(
  status: () => unknown,
  isAdmin: (request: RouteRequest) => boolean | Promise<boolean>,
): Route {
  const json = "application/json; charset=utf-8";
  return {
    matches: (request) => isRead(request, "/api/sync"),
    async handle(request, response) {
      if (!(await isAdmin(request))) {
        sendText(response, 403, json, '{"error":"for admins of this server"}');
        return;
      }
      sendText(response, 200, json, JSON.stringify(status()));
    },
  };
}
