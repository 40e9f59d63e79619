// Other people's git servers, on loopback: `git http-backend` behind a small HTTP server that counts what it is asked,
// and that can be made to misbehave in the ways of threats.md row 7.

import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { encodePkt, flushPkt } from "../../src/git/pkt-line.js";
import type { Oid } from "../../src/nostr/nip34.js";
import { emptyRepository, headOf, runProgram } from "./git-server.js";

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly command: "info/refs" | "ls-refs" | "fetch" | "other";
  readonly authorization: string | undefined;
  readonly atMs: number;
}

export type Misbehaviour =
  | { readonly type: "none" }
  /** Says it has these, and then that it has not. */
  | { readonly type: "not-our-ref"; readonly advertised: readonly string[] }
  | { readonly type: "one-byte-a-second" }
  | { readonly type: "redirect"; readonly to: (path: string) => string }
  | { readonly type: "corrupt-pack" }
  /** Smart to who asks first, dumb to git: its second look at the refs is a plain file. */
  | { readonly type: "dumb-to-git" }
  /** Sends this commit along with whatever is asked for. */
  | { readonly type: "stuffed-pack"; readonly with: string }
  /** Refs without end for who is not the first to ask. */
  | { readonly type: "endless-refs"; readonly bytes: number }
  | { readonly type: "hang-after-headers" }
  | { readonly type: "hang" }
  | { readonly type: "status"; readonly status: number };

export class HuntGitServer {
  behaviour: Misbehaviour = { type: "none" };
  readonly requests: SeenRequest[] = [];
  readonly connectionTimesMs: number[] = [];
  connectionsOpen = 0;
  mostConnectionsOpen = 0;
  #dripping = new Set<NodeJS.Timeout>();

  private constructor(
    readonly folder: string,
    readonly server: Server,
    readonly host: string,
  ) {}

  static async start(host = "127.0.0.1"): Promise<HuntGitServer> {
    const folder = await mkdtemp(join(tmpdir(), "hunt-remote-"));
    const server = createServer();
    const it = new HuntGitServer(folder, server, host);
    server.on("request", (request, response) => void it.#handle(request, response));
    server.on("connection", (socket) => {
      it.connectionTimesMs.push(performance.now());
      it.connectionsOpen++;
      it.mostConnectionsOpen = Math.max(it.mostConnectionsOpen, it.connectionsOpen);
      socket.on("error", () => undefined);
      socket.on("close", () => it.connectionsOpen--);
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    return it;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  url(name: string): string {
    return `http://${this.host}:${this.port}/${name}.git`;
  }

  counts(): Readonly<Record<SeenRequest["command"], number>> {
    const count = (command: SeenRequest["command"]): number =>
      this.requests.filter((request) => request.command === command).length;
    return {
      "info/refs": count("info/refs"),
      "ls-refs": count("ls-refs"),
      fetch: count("fetch"),
      other: count("other"),
    };
  }

  /** A bare repository; refs are values of `from`, a working clone. */
  async publish(name: string, from: string, refs: Readonly<Record<string, string>>): Promise<void> {
    const path = join(this.folder, `${name}.git`);
    await emptyRepository(path, true);
    const specs = Object.entries(refs).map(([ref, oid]) => `${oid}:${ref}`);
    if (specs.length > 0) await mustGit(["push", "-q", path, ...specs], from);
  }

  /** An empty repository that takes pushes. */
  async takePushes(name: string): Promise<void> {
    const path = join(this.folder, `${name}.git`);
    await mkdir(dirname(path), { recursive: true });
    await emptyRepository(path, true);
    await mustGit(["-C", path, "config", "http.receivepack", "true"]);
  }

  async close(): Promise<void> {
    for (const timer of this.#dripping) clearInterval(timer);
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
    await rm(this.folder, { recursive: true, force: true });
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const path = request.url ?? "";
    const command = commandOf(path, body);
    const { authorization } = request.headers;
    this.requests.push({ method: request.method ?? "", path, command, authorization, atMs: performance.now() });
    response.on("error", () => undefined);
    const { behaviour } = this;
    if (behaviour.type === "redirect") {
      response.writeHead(302, { location: behaviour.to(path) }).end();
    } else if (behaviour.type === "status") response.writeHead(behaviour.status).end();
    else if (behaviour.type === "hang") return;
    else if (behaviour.type === "not-our-ref" && command !== "info/refs") this.#deny(command, body, response);
    else if (behaviour.type === "endless-refs" && isGit(request)) await endlessRefs(response, behaviour.bytes);
    else if (behaviour.type === "dumb-to-git" && isGit(request)) await this.#dumb(path, response);
    else await this.#serve(request, body, command, response);
  }

  /** The repository's files, as any web server would give them. */
  async #dumb(path: string, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(path, "http://x");
    const repository = join(this.folder, pathname.split("/")[1] ?? "");
    await mustGit([`--git-dir=${repository}`, "update-server-info"]);
    const file = await readFile(join(this.folder, pathname)).catch(() => undefined);
    response.writeHead(file ? 200 : 404, { "content-type": "text/plain" }).end(file);
  }

  #deny(command: SeenRequest["command"], body: Buffer, response: ServerResponse): void {
    response.writeHead(200, { "content-type": "application/x-git-upload-pack-result" });
    if (command === "ls-refs" && this.behaviour.type === "not-our-ref") {
      const lines = this.behaviour.advertised.map((oid, index) => encodePkt(`${oid} refs/heads/b${index}\n`));
      response.end(Buffer.concat([...lines, flushPkt]));
      return;
    }
    const wanted = /want ([0-9a-f]{40})/.exec(body.toString("latin1"))?.[1] ?? "0".repeat(40);
    response.end(encodePkt(`ERR upload-pack: not our ref ${wanted}`));
  }

  async #serve(
    request: IncomingMessage,
    body: Buffer,
    command: SeenRequest["command"],
    response: ServerResponse,
  ): Promise<void> {
    const { behaviour } = this;
    const asked = behaviour.type === "stuffed-pack" ? alsoWanting(body, behaviour.with) : body;
    const answer = await this.#backend(request, asked);
    response.writeHead(answer.status, answer.headers);
    if (
      command !== "fetch" ||
      behaviour.type === "none" ||
      behaviour.type === "not-our-ref" ||
      behaviour.type === "stuffed-pack"
    )
      response.end(answer.body);
    else if (behaviour.type === "corrupt-pack") response.end(corrupted(answer.body));
    else if (behaviour.type === "hang-after-headers") response.flushHeaders();
    else this.#drip(answer.body, response);
  }

  #drip(body: Buffer, response: ServerResponse): void {
    let at = 0;
    const timer = setInterval(() => {
      if (at < body.length && !response.destroyed) response.write(body.subarray(at, ++at));
      else {
        clearInterval(timer);
        this.#dripping.delete(timer);
      }
    }, 1_000);
    this.#dripping.add(timer);
  }

  #backend(
    request: IncomingMessage,
    body: Buffer,
  ): Promise<{ readonly status: number; readonly headers: Record<string, string>; readonly body: Buffer }> {
    const { pathname, search } = new URL(request.url ?? "/", "http://x");
    const child = spawn("git", ["http-backend"], {
      env: {
        PATH: process.env.PATH ?? "",
        GIT_CONFIG_NOSYSTEM: "1",
        GIT_CONFIG_GLOBAL: "/nonexistent/gitconfig",
        GIT_PROJECT_ROOT: this.folder,
        GIT_HTTP_EXPORT_ALL: "1",
        PATH_INFO: pathname,
        QUERY_STRING: search.slice(1),
        REQUEST_METHOD: request.method ?? "GET",
        CONTENT_TYPE: request.headers["content-type"] ?? "",
        CONTENT_LENGTH: String(body.length),
        GIT_PROTOCOL: String(request.headers["git-protocol"] ?? ""),
        HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "",
      },
    });
    child.stdin.on("error", () => undefined);
    child.stdin.end(body);
    const out: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
    return new Promise((resolve) => {
      child.once("close", () => {
        const all = Buffer.concat(out);
        const end = all.indexOf("\r\n\r\n");
        const headers: Record<string, string> = {};
        let status = 200;
        for (const line of all.toString("latin1", 0, Math.max(0, end)).split("\r\n")) {
          const [name = "", value = ""] = line.split(": ");
          if (name === "Status") status = Number.parseInt(value, 10);
          else if (name !== "") headers[name] = value;
        }
        resolve({ status, headers, body: all.subarray(end + 4) });
      });
    });
  }
}

function alsoWanting(body: Buffer, id: string): Buffer {
  const at = body.indexOf("0032want ");
  return at < 0 ? body : Buffer.concat([body.subarray(0, at), Buffer.from(`0032want ${id}\n`), body.subarray(at)]);
}

/** Our own look says who it is; git's says something else. */
const isGit = (request: IncomingMessage): boolean => !String(request.headers["user-agent"]).includes("holdfast");

async function endlessRefs(response: ServerResponse, bytes: number): Promise<void> {
  response.setMaxListeners(0);
  response.writeHead(200, { "content-type": "application/x-git-upload-pack-advertisement" });
  response.write(Buffer.concat([encodePkt("# service=git-upload-pack\n"), flushPkt]));
  const first = encodePkt(`${"1".repeat(40)} refs/heads/a\0side-band-64k\n`);
  response.write(first);
  const chunk = Buffer.concat(
    Array.from({ length: 1_000 }, (_, count) => encodePkt(`${"1".repeat(40)} refs/heads/${"x".repeat(200)}${count}\n`)),
  );
  for (let sent = 0; sent < bytes && !response.destroyed; sent += chunk.length) {
    if (!response.write(chunk))
      await Promise.race(["drain", "close"].map((event) => new Promise((go) => response.once(event, go))));
  }
  response.end(flushPkt);
}

function commandOf(path: string, body: Buffer): SeenRequest["command"] {
  if (path.includes("/info/refs")) return "info/refs";
  const text = body.toString("latin1");
  if (text.includes("command=ls-refs")) return "ls-refs";
  return text.includes("command=fetch") || text.includes("want ") ? "fetch" : "other";
}

/** A byte in the middle of the pack is another. */
function corrupted(body: Buffer): Buffer {
  const start = body.indexOf("PACK");
  const copy = Buffer.from(body);
  const at = start + 12 + Math.floor((copy.length - start - 12) / 2);
  copy.writeUInt8(copy.readUInt8(at) ^ 0xff, at);
  return copy;
}

export async function mustGit(args: readonly string[], cwd?: string): Promise<string> {
  const result = await runProgram("git", args, cwd === undefined ? {} : { cwd });
  if (result.code !== 0) throw new Error(`git ${args.join(" ")}: ${result.stderr}`);
  return result.stdout.trim();
}

/** A working clone with commits in a row, each with a file of its own. */
export class WorkingClone {
  private constructor(readonly path: string) {}

  static async make(): Promise<WorkingClone> {
    const path = await mkdtemp(join(tmpdir(), "hunt-work-"));
    await emptyRepository(join(path, ".git"), false);
    return new WorkingClone(path);
  }

  async commit(message: string): Promise<Oid> {
    await mustGit(["commit", "-q", "--allow-empty", "-m", message], this.path);
    return headOf(this.path);
  }

  async commitFile(name: string, content: string | Buffer): Promise<Oid> {
    await writeFile(join(this.path, name), content);
    await mustGit(["add", name], this.path);
    return this.commit(`add ${name}`);
  }

  async orphan(message: string): Promise<Oid> {
    await mustGit(["checkout", "-q", "--orphan", `o${Math.random().toString(36).slice(2)}`], this.path);
    return this.commit(message);
  }

  remove(): Promise<void> {
    return rm(this.path, { recursive: true, force: true });
  }
}
