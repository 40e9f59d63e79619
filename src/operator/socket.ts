// The admin socket: `<relay data path>/admin.sock`, mode 0600, so that whoever may read the data directory may operate
// the server. One JSON object a line, both ways (interop.md: none with the memory backend).
//   → {"id":1,"operation":"repos.fsck","parameters":{}}
//   ← {"id":1,"progress":{"done":3,"total":9,"label":"checking"}}      any number of times
//   ← {"id":1,"lines":["…","…"]}                                       any number of times, as fast as they are read
//   ← {"id":1,"ok":true,"result":{…}}   or   {"id":1,"ok":false,"code":"unknown","message":"…"}
// Requests of one connection are answered one after the other; a connection that ends aborts its request. The client's
// half is `askServer`.

import { once } from "node:events";
import { chmodSync, closeSync, openSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { sharedAbort } from "../base/shared-abort.js";
import { maxEventBytes } from "../nostr/event.js";
import { type Lines, type OperationContext, type Outcome, type Progress, refusal } from "./context.js";

export interface SocketRequest {
  readonly id: unknown;
  readonly operation: string;
  readonly parameters: unknown;
}

export interface SocketParts {
  readonly directory: string;
  readonly run: (
    request: Pick<SocketRequest, "operation" | "parameters">,
    context: Omit<OperationContext, "caller">,
  ) => Promise<Outcome<unknown>>;
  readonly onFault: (error: unknown) => void;
}

export interface AdminSocket {
  close(): Promise<void>;
}

const maxConnections = 16;
/** The largest event fits into a request. */
const maxRequestBytes = maxEventBytes + (1 << 18);

export async function openAdminSocket(parts: SocketParts): Promise<AdminSocket> {
  const file = join(parts.directory, socketFile);
  // We hold the data directory's lock: a socket that is there is a dead server's.
  rmSync(file, { force: true });
  const { path, close: closePath } = socketPathIn(parts.directory);
  const connections = new Set<Socket>();
  const server = createServer((socket) => serve(socket, parts, connections));
  server.maxConnections = maxConnections;
  await listenPrivately(server, path);
  chmodSync(file, 0o600);
  return {
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of connections) socket.destroy();
      await closed;
      closePath();
      rmSync(file, { force: true });
    },
  };
}

/** The file is made inside `listen`: nobody else may open it even for a moment. */
async function listenPrivately(server: Server, path: string): Promise<void> {
  const mask = process.umask(0o177);
  try {
    const listening = new Promise<void>((resolve, reject) => {
      server.once("listening", resolve);
      server.once("error", reject);
    });
    server.listen(path);
    await listening;
  } finally {
    process.umask(mask);
  }
}

function serve(socket: Socket, parts: SocketParts, connections: Set<Socket>): void {
  connections.add(socket);
  const gone = sharedAbort();
  // Whoever asked is gone: before anybody else hears of it, so that it is nobody's fault.
  socket.on("error", () => {
    gone.abort();
    socket.destroy();
  });
  socket.once("close", () => {
    connections.delete(socket);
    gone.abort();
  });
  answerLines(socket, parts, gone.signal).catch((error) => {
    if (!gone.signal.aborted) parts.onFault(error);
  });
}

async function answerLines(socket: Socket, parts: SocketParts, signal: AbortSignal): Promise<void> {
  let sinceLine = 0;
  socket.on("data", (chunk: Buffer) => {
    sinceLine = chunk.includes(0x0a) ? chunk.length - chunk.lastIndexOf(0x0a) : sinceLine + chunk.length;
    if (sinceLine > maxRequestBytes) socket.destroy();
  });
  for await (const line of createInterface({ input: socket, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (signal.aborted) return;
    if (line.trim() !== "") await answerLine(line, socket, parts, signal);
  }
  socket.end();
}

async function answerLine(line: string, socket: Socket, parts: SocketParts, signal: AbortSignal): Promise<void> {
  const write = (value: object): void => {
    if (socket.writable) socket.write(`${JSON.stringify(value)}\n`);
  };
  const request = requestOf(line);
  if (!request) {
    write({ id: null, ...refusal("bad-request", "a request is one JSON object with id, operation and parameters") });
    return;
  }
  const { id } = request;
  try {
    const progress = (done: number, total: number | undefined, label: string): void => {
      // A reader that does not read is not sent more: progress may be skipped, the answer may not.
      if (!socket.writableNeedDrain) {
        write({ id, progress: { done, ...(total === undefined ? {} : { total }), label } });
      }
    };
    const lines = async (texts: readonly string[]): Promise<void> => {
      write({ id, lines: texts });
      if (socket.writableNeedDrain) await once(socket, "drain", { signal });
    };
    write({ id, ...(await parts.run(request, { progress, signal, lines })) });
  } catch (error) {
    if (signal.aborted) return;
    write({ id, ...refusal("not-possible", "the server failed at this: it was logged") });
    parts.onFault(error);
  }
}

function requestOf(line: string): SocketRequest | undefined {
  try {
    const value = JSON.parse(line) as Record<string, unknown> | null;
    if (typeof value !== "object" || value === null || typeof value.operation !== "string") return undefined;
    return { id: value.id ?? null, operation: value.operation, parameters: value.parameters ?? {} };
  } catch {
    return undefined;
  }
}

export interface Taking {
  /** Takes an answer that is too large for one message, as fast as it is read. */
  readonly lines?: Lines | undefined;
  /** What an answer stands for (a snapshot's folders) lasts until the connection ends: this works with it before that. */
  readonly meanwhile?: (outcome: Outcome<unknown>) => Promise<void>;
}

/** Undefined: no server listens there. */
export async function askServer(
  directory: string,
  request: { readonly operation: string; readonly parameters: unknown },
  progress: Progress,
  more: Taking = {},
): Promise<Outcome<unknown> | undefined> {
  let place: SocketPath;
  try {
    place = socketPathIn(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  try {
    const socket = await connected(place.path);
    return socket && (await exchange(socket, request, progress, more));
  } finally {
    place.close();
  }
}

function connected(path: string): Promise<Socket | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once("connect", () => resolve(socket));
    socket.once("error", (error: NodeJS.ErrnoException) => {
      // A file nobody listens on is what a killed server leaves.
      if (error.code === "ENOENT" || error.code === "ECONNREFUSED") resolve(undefined);
      else reject(error);
    });
  });
}

type Answer =
  | Outcome<unknown>
  | { readonly progress: { done: number; total?: number; label: string } }
  | { readonly lines: readonly string[] };

async function exchange(
  socket: Socket,
  request: object,
  progress: Progress,
  { lines, meanwhile }: Taking,
): Promise<Outcome<unknown>> {
  socket.on("error", () => undefined);
  socket.write(`${JSON.stringify({ id: 1, ...request })}\n`);
  try {
    for await (const line of linesFrom(socket)) {
      const answer = JSON.parse(line) as Answer;
      if ("progress" in answer) progress(answer.progress.done, answer.progress.total, answer.progress.label);
      else if ("lines" in answer) await lines?.(answer.lines);
      else {
        await meanwhile?.(answer);
        return answer;
      }
    }
    return refusal("not-possible", "the server closed the admin socket before it answered");
  } finally {
    socket.destroy();
  }
}

/** Not readline: that reads on while nobody takes its lines. */
async function* linesFrom(socket: Socket): AsyncGenerator<string> {
  let rest = "";
  try {
    for await (const chunk of socket.setEncoding("utf8") as AsyncIterable<string>) {
      // A line of megabytes comes in many pieces: it is not looked through again with each.
      if (!chunk.includes("\n")) {
        rest += chunk;
        continue;
      }
      const lines = `${rest}${chunk}`.split("\n");
      rest = lines.pop() ?? "";
      yield* lines;
    }
  } catch {
    // The other side is gone in the middle of something: the same as an early end.
  }
}

const socketFile = "admin.sock";
const maxPathBytes = 100;

interface SocketPath {
  /** To be given to listen or connect. */
  readonly path: string;
  /** Must be called when the path is no longer used. */
  close(): void;
}

/**
 * A Unix socket's path may have 107 bytes at most; a longer one is reached on Linux through an open descriptor of its
 * directory. Throws as `open` does when the directory is not there.
 */
function socketPathIn(directory: string): SocketPath {
  const plain = join(directory, socketFile);
  if (Buffer.byteLength(plain) <= maxPathBytes) return { path: plain, close: () => undefined };
  const descriptor = openSync(directory, "r");
  return { path: `/proc/self/fd/${descriptor}/${socketFile}`, close: () => closeSync(descriptor) };
}
