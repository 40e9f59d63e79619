// A page from another origin than the server under test, so that CORS is really asked for.

import { createReadStream, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";

// Files for browsers that the packages ship but do not export to Node.
const shipped = (path: string): string => fileURLToPath(new URL(`../../../node_modules/${path}`, import.meta.url));

const scripts: Readonly<Record<string, string>> = {
  "/git.js": shipped("isomorphic-git/index.umd.min.js"),
  "/http.js": shipped("isomorphic-git/http/web/index.umd.js"),
  "/fs.js": shipped("@isomorphic-git/lightning-fs/dist/lightning-fs.min.js"),
};

/** isomorphic-git wants Node's Buffer in the page: the package made for that, with its two dependencies. */
function bufferScript(): string {
  const modules = ["base64-js", "ieee754", "buffer"].map((name) => {
    const text = readFileSync(shipped(`${name}/index.js`), "utf8");
    return `${JSON.stringify(name)}: (module, exports, require) => {${text}\n}`;
  });
  return `{
  const sources = {${modules.join(",\n")}};
  const load = (name) => { const module = { exports: {} }; sources[name](module, module.exports, load); return module.exports; };
  globalThis.Buffer = load("buffer").Buffer;
}`;
}

const page = `<!doctype html><meta charset="utf-8"><title>client</title>
<script src="/buffer.js"></script>
${Object.keys(scripts)
  .map((path) => `<script src="${path}"></script>`)
  .join("\n")}`;

export async function servePage(): Promise<{ readonly url: string; readonly server: Server }> {
  const server = createServer((request, response) => {
    if (request.url === "/buffer.js") {
      response.setHeader("Content-Type", "text/javascript");
      response.end(bufferScript());
      return;
    }
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
