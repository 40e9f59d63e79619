// The limit of pushes: git's own `git http-backend` behind nothing but Node's HTTP server, on a repository that takes them.

import { execFileSync, spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Readable } from "node:stream";

const env = { PATH: process.env.PATH ?? "/usr/bin:/bin", GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };

export interface HttpBackend {
  /** Of its one repository, which is empty. */
  readonly url: string;
  readonly close: () => void;
}

export async function httpBackend(root: string): Promise<HttpBackend> {
  mkdirSync(root);
  const git = (...args: string[]): void => void execFileSync("git", args, { cwd: root, env });
  git("init", "-q", "--bare", "r.git");
  const set = (name: string, value: string): void => git("--git-dir=r.git", "config", name, value);
  set("http.receivepack", "true");
  // The same safety as ours: objects checked, packs kept, data on disk.
  set("receive.fsckObjects", "true");
  set("receive.unpackLimit", "1");
  const server = createServer((request, response) => {
    const [path = "", query = ""] = (request.url ?? "").split("?");
    const child = spawn("git", ["http-backend"], {
      detached: true,
      env: {
        ...env,
        GIT_PROJECT_ROOT: root,
        GIT_HTTP_EXPORT_ALL: "1",
        PATH_INFO: path,
        QUERY_STRING: query,
        REQUEST_METHOD: request.method ?? "",
        CONTENT_TYPE: request.headers["content-type"] ?? "",
        REMOTE_USER: "a",
        REMOTE_ADDR: "127.0.0.1",
      },
    });
    request.pipe(child.stdin);
    answer(child.stdout, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/r.git`, close: () => server.close() };
}

/** What a CGI program says: lines of headers, an empty one, the body. */
function answer(said: Readable, response: ServerResponse): void {
  let head = Buffer.alloc(0);
  const take = (chunk: Buffer): void => {
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf("\r\n\r\n");
    if (end < 0) return;
    said.off("data", take);
    for (const line of head.toString("latin1", 0, end).split("\r\n")) {
      const [name = "", value = ""] = line.split(": ");
      if (name === "Status") response.statusCode = Number.parseInt(value, 10);
      else response.setHeader(name, value);
    }
    response.write(head.subarray(end + 4));
    said.pipe(response);
  };
  said.on("data", take);
}
