// `/assets/*`: the style sheet, the script and the icon, made with the program and kept by browsers until it changes.
// Pages name them with their version, so that a new release is never shown with old files.

import { createHash } from "node:crypto";
import { isRead, type Route, sendDocument } from "../http/routes.js";
import { adminScript } from "./admin/script.js";
import { adminStyle } from "./admin/style.js";
import { script } from "./script.js";
import { styleSheet } from "./style.js";

const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#14568f"/><path d="M7 12h18M12 12v8a4 4 0 0 0 8 0v-8M16 24v3" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round"/></svg>`;

const assets = {
  style: { path: "/assets/holdfast.css", contentType: "text/css; charset=utf-8", body: styleSheet },
  script: { path: "/assets/holdfast.js", contentType: "text/javascript; charset=utf-8", body: script },
  adminStyle: { path: "/assets/admin.css", contentType: "text/css; charset=utf-8", body: adminStyle },
  adminScript: { path: "/assets/admin.js", contentType: "text/javascript; charset=utf-8", body: adminScript },
  icon: { path: "/assets/icon.svg", contentType: "image/svg+xml", body: icon },
} as const;

const versionOf = (body: string): string => createHash("sha256").update(body).digest("hex").slice(0, 10);

/** Below the service's base path. */
export const assetUrl = (name: keyof typeof assets, basePath: string): string =>
  `${basePath}${assets[name].path}?v=${versionOf(assets[name].body)}`;

const yearSeconds = 365 * 24 * 60 * 60;

export const assetRoutes = (): Route[] =>
  Object.values(assets).map(({ path, contentType, body }) => ({
    matches: (request) => isRead(request, path),
    handle(request, response) {
      const isThisVersion = request.query.get("v") === versionOf(body);
      const cacheControl = isThisVersion ? `public, max-age=${yearSeconds}, immutable` : "no-cache";
      sendDocument(request, response, { status: 200, contentType, body, cacheControl });
    },
  }));
