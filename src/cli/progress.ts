// A progress bar for long work on a terminal; elsewhere it is silent. Drawn at most ten times a second.

import type { Clock } from "../base/clock.js";
import type { Terminal } from "./abilities.js";

export interface Progress {
  add(count: number): void;
  /** Takes the bar off the screen. */
  done(): void;
}

const drawEveryMs = 100;

/** `total` undefined: a running count instead of a bar. */
export function startProgress(terminal: Terminal, clock: Clock, label: string, total?: number): Progress {
  let count = 0;
  let drawnAtMs = Number.NEGATIVE_INFINITY;
  const startedMs = clock.monotonicMs();
  return {
    add(more) {
      count += more;
      const nowMs = clock.monotonicMs();
      if (!terminal.showsProgress || nowMs - drawnAtMs < drawEveryMs) return;
      drawnAtMs = nowMs;
      terminal.error(`\r\x1b[K${progressLine(label, count, total, nowMs - startedMs, terminal.columns)}`);
    },
    done() {
      if (terminal.showsProgress && count > 0) terminal.error("\r\x1b[K");
    },
  };
}

export function progressLine(
  label: string,
  count: number,
  total: number | undefined,
  elapsedMs: number,
  columns: number,
) {
  const rate = elapsedMs > 0 ? Math.round((count * 1000) / elapsedMs) : 0;
  if (!total) return `${label} ${count} (${rate}/s)`.slice(0, columns - 1);
  const part = Math.min(1, count / total);
  const numbers = ` ${Math.floor(part * 100)} % ${count}/${total} (${rate}/s)`;
  const width = Math.max(0, Math.min(40, columns - label.length - numbers.length - 4));
  const filled = Math.round(part * width);
  const bar = width > 4 ? ` [${"#".repeat(filled)}${".".repeat(width - filled)}]` : "";
  return `${label}${bar}${numbers}`.slice(0, columns - 1);
}
