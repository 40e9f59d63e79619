// A process to be started, as the launcher's callers see it: what is asked for, what comes back, which limits hold it.

import type { Socket } from "node:net";
import type { Readable } from "node:stream";

export interface JobLimits {
  /** The process group is ended after this, gently, then by SIGKILL. */
  readonly wallClockMs: number;
  /** `ulimit -d`: bytes of memory the process may ask for. */
  readonly memoryBytes?: number;
  /** `ulimit -t`. */
  readonly cpuSeconds?: number;
  /** `nice`: how far it stands back behind others. */
  readonly niceness?: number;
}

export interface JobRequest {
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  readonly limits: JobLimits;
  /** Without it the process reads from /dev/null. */
  readonly stdin?: boolean;
  /** An existing, empty file that gets what the process says; the job's stdout is empty then. */
  readonly stdoutFile?: string;
}

export interface JobExit {
  readonly code: number | undefined;
  readonly signal: string | undefined;
  readonly timedOut: boolean;
  /** The first 64 KiB. */
  readonly stderr: string;
}

export interface Job {
  readonly stdout: Readable;
  /** Only when asked for; end() is end of file. A process that stops reading closes it; its exit tells why. */
  readonly stdin: Socket | undefined;
  /** Resolves when the process is gone, however it went; never rejects. */
  readonly exit: Promise<JobExit>;
  /** How long main itself was busy with starting it. */
  readonly startMs: number;
  /** SIGTERM to the group, SIGKILL after 5 s: lock holders must be able to remove their locks. */
  end(): void;
}

export class LauncherError extends Error {
  override readonly name = "LauncherError";
}

/** ulimit has no exec form of its own: a constant script, the values as numbers, the command as "$@". */
export function underLimits(
  command: readonly string[],
  { memoryBytes, cpuSeconds, niceness }: JobLimits,
): readonly string[] {
  const argv = niceness === undefined ? command : ["nice", "-n", String(niceness), ...command];
  if (memoryBytes === undefined && cpuSeconds === undefined) return argv;
  const memory = memoryBytes === undefined ? "unlimited" : String(Math.ceil(memoryBytes / 1024));
  const cpu = cpuSeconds === undefined ? "unlimited" : String(Math.ceil(cpuSeconds));
  return ["/bin/sh", "-c", 'ulimit -d "$1" && ulimit -t "$2" && shift 2 && exec "$@"', "sh", memory, cpu, ...argv];
}
