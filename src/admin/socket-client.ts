// Asks the running server over its admin socket. Undefined: no server listens there. What an answer stands for (a
// snapshot's folders) lasts until the connection ends: `meanwhile` works with it before that.

import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { type Outcome, refusal } from "./outcome.js";
import type { Progress } from "./parts.js";
import { type SocketPath, socketPathIn } from "./socket-path.js";

export async function askServer(
  directory: string,
  request: { readonly operation: string; readonly parameters: unknown },
  progress: Progress,
  meanwhile: (outcome: Outcome<unknown>) => Promise<void> = async () => undefined,
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
    return socket && (await exchange(socket, request, progress, meanwhile));
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

type Answer = Outcome<unknown> | { readonly progress: { done: number; total?: number; label: string } };

async function exchange(
  socket: Socket,
  request: object,
  progress: Progress,
  meanwhile: (outcome: Outcome<unknown>) => Promise<void>,
): Promise<Outcome<unknown>> {
  socket.on("error", () => undefined);
  socket.write(`${JSON.stringify({ id: 1, ...request })}\n`);
  try {
    for await (const line of createInterface({ input: socket, crlfDelay: Number.POSITIVE_INFINITY })) {
      const answer = JSON.parse(line) as Answer;
      if (!("progress" in answer)) {
        await meanwhile(answer);
        return answer;
      }
      progress(answer.progress.done, answer.progress.total, answer.progress.label);
    }
    return refusal("not-possible", "the server closed the admin socket before it answered");
  } finally {
    socket.destroy();
  }
}
