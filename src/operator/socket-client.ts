// Asks the running server over its admin socket. Undefined: no server listens there. What an answer stands for (a
// snapshot's folders) lasts until the connection ends: `meanwhile` works with it before that. A large answer comes in
// lines, read as fast as they are taken.

import { connect, type Socket } from "node:net";
import { type Outcome, refusal } from "./outcome.js";
import type { Lines, Progress } from "./parts.js";
import { type SocketPath, socketPathIn } from "./socket-path.js";

export interface Taking {
  readonly lines?: Lines | undefined;
  readonly meanwhile?: (outcome: Outcome<unknown>) => Promise<void>;
}

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
