// `/assets/*`: style sheets, scripts and the icon, read from src/web/assets when pages are first made and kept by
// browsers for ever: their names hold a digest of what is in them, so that a new release is never shown with old files. By their
// plain names they are there too, and are asked about again each time.
//   holdfast.css  all pages: light and dark by the reader's choice, readable from 320 pixels up, fonts the machine has
//   holdfast.js   times in words, buttons that copy, fresh content when the relay tells of something new (the same page
//                 asked for again, so that the server's escaping is the only one); every page is complete without it
//   code.css      repositories: sources, changes, history, Markdown
//   code.js       repositories: chosen lines, finding files, `t` and `y`
//   admin.css     tabs, cards, forms and the log of the admin pages
//   admin.js      the log as it is written, put in as text only
//   sign-in.js    signing in with a browser's extension (NIP-07)
//   write.js      comments, issues and statuses, signed by a browser's extension and sent to the relay

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { isRead, type Route, sendDocument } from "../http/routes.js";

/** Seen from the compiled file: they are not copied anywhere. */
const folder = new URL("../../../src/web/assets/", import.meta.url);

function asset(file: string, contentType: string) {
  const body = readFileSync(new URL(file, folder), "utf8");
  const version = createHash("sha256").update(body).digest("hex").slice(0, 10);
  const [name, suffix] = file.split(".");
  return { path: `/assets/${file}`, lasting: `/assets/${name}-${version}.${suffix}`, contentType, body };
}

const readAssets = () => ({
  style: asset("holdfast.css", "text/css; charset=utf-8"),
  script: asset("holdfast.js", "text/javascript; charset=utf-8"),
  codeStyle: asset("code.css", "text/css; charset=utf-8"),
  codeScript: asset("code.js", "text/javascript; charset=utf-8"),
  adminStyle: asset("admin.css", "text/css; charset=utf-8"),
  adminScript: asset("admin.js", "text/javascript; charset=utf-8"),
  signInScript: asset("sign-in.js", "text/javascript; charset=utf-8"),
  writeScript: asset("write.js", "text/javascript; charset=utf-8"),
  icon: asset("icon.svg", "image/svg+xml"),
});

let read: ReturnType<typeof readAssets> | undefined;

/** Not while the module is loaded: a module that failed for want of descriptors could never be loaded again. */
function assets(): ReturnType<typeof readAssets> {
  read ??= readAssets();
  return read;
}

/** What the sign-in page of a private service needs: the only files that strangers get there. */
export function signInFiles(): string[] {
  const { style, script, signInScript, icon } = assets();
  return [style, script, signInScript, icon].map(({ lasting }) => lasting);
}

/** Below the service's base path. */
export const assetUrl = (name: keyof ReturnType<typeof readAssets>, basePath: string): string =>
  basePath + assets()[name].lasting;

const yearSeconds = 365 * 24 * 60 * 60;

export const assetRoutes = (): Route[] =>
  Object.values(assets()).map(({ path, lasting, contentType, body }) => ({
    matches: (request) => isRead(request, lasting) || isRead(request, path),
    handle(request, response) {
      const isLasting = request.localPath === lasting;
      const cacheControl = isLasting ? `public, max-age=${yearSeconds}, immutable` : "no-cache";
      sendDocument(request, response, { status: 200, contentType, body, cacheControl });
    },
  }));
