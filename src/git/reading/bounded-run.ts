// One run of git for a page: a small input, an output that is read as it comes and no further than is wanted, a deadline,
// and a lower priority than what serves pushes and events. Ids and paths go in by standard input.

import type { GitRepository } from "../repository.js";
import type { GitCall } from "../run.js";

export interface RunBounds {
  readonly maxBytes: number;
  readonly wallClockMs?: number;
}

/** How a run ended. `late`: its time was over; what it had said until then is used. */
export type RunEnd = "complete" | "cut" | "late" | "failed";

const usualMs = 8_000;
const cpuSeconds = 8;
const memoryBytes = 768 * 2 ** 20;
const niceness = 10;

/** Hands over what git says piece by piece; `false` means enough. Never throws for what git says about a repository. */
export async function runBounded(
  repository: GitRepository,
  args: readonly [string, ...string[]],
  input: string | Buffer,
  { maxBytes, wallClockMs = usualMs }: RunBounds,
  take: (piece: Buffer) => boolean,
): Promise<RunEnd> {
  const call: GitCall = {
    directory: repository.directory,
    limits: { wallClockMs, cpuSeconds, memoryBytes, niceness },
    settings: { "core.quotePath": "false", "diff.renameLimit": "400", "log.showSignature": "false" },
    stdin: true,
  };
  const job = await repository.context.git.start(args, call);
  job.stdin?.end(input);
  let bytes = 0;
  let isEnough = false;
  for await (const piece of job.stdout as AsyncIterable<Buffer>) {
    const fitting = piece.subarray(0, maxBytes - bytes);
    bytes += piece.length;
    isEnough = bytes > maxBytes;
    if (!take(fitting)) isEnough = true;
    if (isEnough) break;
  }
  if (isEnough) job.end();
  const exit = await job.exit;
  if (isEnough) return "cut";
  if (exit.timedOut || exit.signal !== undefined) return "late";
  return exit.code === 0 ? "complete" : "failed";
}

interface ReadText {
  readonly bytes: Buffer;
  readonly end: RunEnd;
}

/** `isWanted` sees each piece; when it answers false, no more is read. */
export async function runForTextWhile(
  repository: GitRepository,
  args: readonly [string, ...string[]],
  input: string | Buffer,
  bounds: RunBounds,
  isWanted: (piece: Buffer) => boolean,
): Promise<ReadText> {
  const pieces: Buffer[] = [];
  const end = await runBounded(repository, args, input, bounds, (piece) => {
    pieces.push(piece);
    return isWanted(piece);
  });
  return { bytes: Buffer.concat(pieces), end };
}

export const runForText = (
  repository: GitRepository,
  args: readonly [string, ...string[]],
  input: string | Buffer,
  bounds: RunBounds,
): Promise<ReadText> => runForTextWhile(repository, args, input, bounds, () => true);
