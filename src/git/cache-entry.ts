// An answer that git is writing into a file, and those who read it meanwhile. Blocks that several want are read once.
// Knows nothing of git or of where the file may be: that is fetch-cache.ts.

import type { FileHandle } from "node:fs/promises";

/**
 * Where an answer goes. Resolves when the chunk has left us: false when the client is gone. `holdsPlace`: git waits for
 * the client, in a place that others may wait for.
 */
export type Send = (chunk: Buffer, holdsPlace?: boolean) => Promise<boolean>;

export type SendResult =
  | { readonly status: "sent"; readonly bytes: number }
  /** git failed before it said anything. */
  | { readonly status: "failed"; readonly stderr: string }
  | { readonly status: "busy" }
  /** The client went away, or git failed midway: the connection must be cut, the answer is not whole. */
  | { readonly status: "broken"; readonly bytes: number };

export interface CacheEntry {
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
  readonly blocks: Map<number, Block>;
}

interface Block {
  readonly to: number;
  readonly buffer: Buffer;
  /** How many bytes of it the file had. */
  readonly filled: Promise<number>;
  /** The answer while it keeps it, and everybody who reads or sends it. */
  users: number;
}

export const blockBytes = 512 * 1024;
/** In memory for each answer that is being read. */
const maxBlocks = 8;

/** Of blocks that nobody uses. A clone is hundreds of blocks: made anew, they keep the collector at work all the time. */
const freeBuffers: Buffer[] = [];
const maxFreeBuffers = 8;

/** Undefined when the answer is not shared. One block is read while the one before it is on its way. */
export async function follow(answer: CacheEntry, send: Send, signal: AbortSignal): Promise<SendResult | undefined> {
  let at = 0;
  let sending = Promise.resolve(true);
  while (!signal.aborted && answer.state !== "cut") {
    if (at < answer.bytes) {
      const block = blockAt(answer, at);
      const piece = block && (await pieceOf(block, at));
      if (!piece || !(await sending)) break;
      sending = sendBlock(block, piece, send);
      at += piece.length;
    } else if (answer.state === "growing") await changeOf(answer);
    else if (await sending) return outcomeOf(answer, at);
    else break;
  }
  return { status: "broken", bytes: at };
}

/** The block around a place, in use by the caller from now on. */
function blockAt(answer: CacheEntry, at: number): Block | undefined {
  if (!answer.file) return undefined;
  const from = at - (at % blockBytes);
  const to = Math.min(answer.bytes, from + blockBytes);
  let block = answer.blocks.get(from);
  if (!block || block.to < to) {
    if (block) release(block);
    block = readBlock(answer.file, from, to);
    answer.blocks.set(from, block);
    const [oldest] = answer.blocks;
    if (answer.blocks.size > maxBlocks && oldest) {
      answer.blocks.delete(oldest[0]);
      release(oldest[1]);
    }
  }
  block.users += 1;
  return block;
}

function readBlock(file: FileHandle, from: number, to: number): Block {
  const buffer = freeBuffers.pop() ?? Buffer.allocUnsafeSlow(blockBytes);
  const filled = file.read(buffer, 0, to - from, from).then(
    ({ bytesRead }) => bytesRead,
    () => 0,
  );
  return { to, buffer, filled, users: 1 };
}

/** Undefined when the file could not be read that far. */
async function pieceOf(block: Block, at: number): Promise<Buffer | undefined> {
  const bytes = await block.filled;
  const start = at % blockBytes;
  return bytes > start ? block.buffer.subarray(start, bytes) : undefined;
}

/** What a client who is gone had not taken may still be looked at by the system: its memory is not used again. */
async function sendBlock(block: Block, piece: Buffer, send: Send): Promise<boolean> {
  const isTaken = await send(piece);
  if (isTaken) release(block);
  return isTaken;
}

function release(block: Block): void {
  block.users -= 1;
  if (block.users === 0 && freeBuffers.length < maxFreeBuffers) freeBuffers.push(block.buffer);
}

export function dropBlocks({ blocks }: CacheEntry): void {
  for (const block of blocks.values()) release(block);
  blocks.clear();
}

const changeOf = ({ wake }: CacheEntry): Promise<void> => new Promise((resolve) => void wake.add(resolve));

export function wakeAll({ wake }: CacheEntry): void {
  for (const woken of wake) woken();
  wake.clear();
}

export async function closeFile(answer: CacheEntry): Promise<void> {
  const { file } = answer;
  answer.file = undefined;
  dropBlocks(answer);
  await file?.close();
}

function outcomeOf(answer: CacheEntry, bytes: number): SendResult | undefined {
  if (answer.state === "unshared") return undefined;
  if (answer.state === "busy") return { status: "busy" };
  if (answer.state === "failed" && answer.bytes === 0) return { status: "failed", stderr: answer.stderr };
  return { status: "sent", bytes };
}
