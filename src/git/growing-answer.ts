// An answer that git is writing into a file, and those who read it meanwhile. Blocks that several want are read once.
// Knows nothing of git or of where the file may be: that is shared-answers.ts.

import type { FileHandle } from "node:fs/promises";

/** Where an answer goes. Resolves when the chunk has left us: false when the client is gone. */
export type Send = (chunk: Buffer) => Promise<boolean>;

export type ShareResult =
  | { readonly status: "sent"; readonly bytes: number }
  /** git failed before it said anything. */
  | { readonly status: "failed"; readonly stderr: string }
  | { readonly status: "busy" }
  /** The client went away, or git failed midway: the connection must be cut, the answer is not whole. */
  | { readonly status: "broken"; readonly bytes: number };

export interface Answer {
  readonly key: string;
  readonly path: string;
  file: FileHandle | undefined;
  expectedBytes: number;
  bytes: number;
  /** `unshared`: there is no place for it, everybody runs git for himself. */
  state: "growing" | "whole" | "failed" | "cut" | "busy" | "unshared";
  stderr: string;
  /** Requests that still want it. Nobody left: git is ended. */
  clients: number;
  readonly nobodyLeft: AbortController;
  readonly wake: Set<() => void>;
  /** What was read last, by where it begins, for those who are near the same place. */
  readonly blocks: Map<number, { readonly to: number; readonly bytes: Promise<Buffer> }>;
}

export const blockBytes = 256 * 1024;
/** In memory for each answer that is being read. */
const maxBlocks = 16;
export /** Undefined when the answer is not shared. One block is read while the one before it is on its way. */
async function follow(answer: Answer, send: Send, signal: AbortSignal): Promise<ShareResult | undefined> {
  let at = 0;
  let sending = Promise.resolve(true);
  while (!signal.aborted && answer.state !== "cut") {
    if (at < answer.bytes) {
      const piece = await pieceAt(answer, at);
      if (!piece || !(await sending)) break;
      sending = send(piece);
      at += piece.length;
    } else if (answer.state === "growing") await changeOf(answer);
    else if (await sending) return outcomeOf(answer, at);
    else break;
  }
  return { status: "broken", bytes: at };
}

async function pieceAt(answer: Answer, at: number): Promise<Buffer | undefined> {
  if (!answer.file) return undefined;
  const from = at - (at % blockBytes);
  const to = Math.min(answer.bytes, from + blockBytes);
  let block = answer.blocks.get(from);
  if (!block || block.to < to) {
    block = { to, bytes: readBlock(answer.file, from, to) };
    answer.blocks.set(from, block);
    const [oldest] = answer.blocks.keys();
    if (answer.blocks.size > maxBlocks && oldest !== undefined) answer.blocks.delete(oldest);
  }
  const bytes = await block.bytes.catch(() => undefined);
  return bytes && bytes.length > at - from ? bytes.subarray(at - from) : undefined;
}

async function readBlock(file: FileHandle, from: number, to: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(to - from);
  const { bytesRead } = await file.read(buffer, 0, buffer.length, from);
  return buffer.subarray(0, bytesRead);
}

const changeOf = ({ wake }: Answer): Promise<void> => new Promise((resolve) => void wake.add(resolve));

export function wakeAll({ wake }: Answer): void {
  for (const woken of wake) woken();
  wake.clear();
}

export async function closeFile(answer: Answer): Promise<void> {
  const { file } = answer;
  answer.file = undefined;
  answer.blocks.clear();
  await file?.close();
}

function outcomeOf(answer: Answer, bytes: number): ShareResult | undefined {
  if (answer.state === "unshared") return undefined;
  if (answer.state === "busy") return { status: "busy" };
  if (answer.state === "failed" && answer.bytes === 0) return { status: "failed", stderr: answer.stderr };
  return { status: "sent", bytes };
}
