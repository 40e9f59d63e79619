// A page from another origin than the server under test, so that CORS is really asked for.

import { createReadStream } from "node:fs";
import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";

const require = createRequire(import.meta.url);
const packageFolder = (name: string): string => dirname(require.resolve(`${name}/package.json`));

const scripts: Readonly<Record<string, string>> = {
  "/git.js": join(packageFolder("isomorphic-git"), "index.umd.min.js"),
  "/http.js": join(packageFolder("isomorphic-git"), "http/web/index.umd.js"),
  "/fs.js": join(packageFolder("@isomorphic-git/lightning-fs"), "dist/lightning-fs.min.js"),
};

const page = `<!doctype html><meta charset="utf-8"><title>client</title>
${Object.keys(scripts)
  .map((path) => `<script src="${path}"></script>`)
  .join("\n")}`;

export async function servePage(): Promise<{ readonly url: string; readonly server: Server }> {
  const server = createServer((request, response) => {
    const file = scripts[request.url ?? ""];
    if (file) {
      response.setHeader("Content-Type", "text/javascript");
      createReadStream(file).pipe(response);
      return;
    }
    response.setHeader("Content-Type", "text/html; charset=utf-8");
    response.end(page);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, server };
}
