// How far a long command is: one line on the terminal with a bar, the rate and the time that remains. Elsewhere silent.
// Every long command uses this, so that they all look alike.

import type { Clock } from "../base/clock.js";
import { sizeText } from "../base/text.js";
import type { Progress } from "../operator/context.js";
import type { Abilities, Terminal } from "./abilities.js";

export interface ProgressBar {
  /** The work tells how far it is, one phase (`label`) after the other. */
  readonly report: Progress;
  /** Takes the line off the screen; the next report draws it again. */
  done(): void;
}

const drawEveryMs = 100;

export function progressBar({ terminal, clock }: Pick<Abilities, "terminal" | "clock">): ProgressBar {
  let phase: Phase | undefined;
  return {
    report(done, total, label, unit) {
      if (phase?.label !== label) phase = new Phase(terminal, clock, label);
      phase.at(done, total, unit);
    },
    done: () => phase?.clear(),
  };
}

class Phase {
  readonly #startedMs: number;
  #drawnMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly terminal: Terminal,
    private readonly clock: Clock,
    readonly label: string,
  ) {
    this.#startedMs = clock.monotonicMs();
  }

  at(done: number, total: number | undefined, unit: Unit | undefined): void {
    const nowMs = this.clock.monotonicMs();
    if (!this.terminal.showsProgress || nowMs - this.#drawnMs < drawEveryMs) return;
    this.#drawnMs = nowMs;
    const line = progressLine({ label: this.label, done, total, unit }, nowMs - this.#startedMs, this.terminal.columns);
    this.terminal.error(`\r\x1b[K${line}`);
  }

  clear(): void {
    if (this.#drawnMs !== Number.NEGATIVE_INFINITY) this.terminal.error("\r\x1b[K");
    this.#drawnMs = Number.NEGATIVE_INFINITY;
  }
}

type Unit = "bytes";

interface Standing {
  readonly label: string;
  readonly done: number;
  /** Undefined or 0: nobody knows how much there is. */
  readonly total: number | undefined;
  readonly unit?: Unit | undefined;
}

/** Before this much time no rate tells anything about the rest. */
const trustedAfterMs = 500;

export function progressLine({ label, done, total, unit }: Standing, elapsedMs: number, columns: number): string {
  const shown = (value: number): string => (unit === "bytes" ? sizeText(value) : String(value));
  const aSecond = elapsedMs > 0 ? (done * 1000) / elapsedMs : 0;
  const rate = `(${shown(Math.round(aSecond))}/s)`;
  if (!total) return `${label} ${shown(done)} ${rate}, ${durationText(elapsedMs / 1000)}`.slice(0, columns - 1);
  const part = Math.min(1, done / total);
  const isKnown = aSecond > 0 && elapsedMs >= trustedAfterMs && done < total;
  const left = isKnown ? `, ${durationText((total - done) / aSecond)} left` : "";
  const numbers = ` ${Math.floor(part * 100)} % ${shown(done)}/${shown(total)} ${rate}${left}`;
  const width = Math.max(0, Math.min(40, columns - label.length - numbers.length - 4));
  const filled = Math.round(part * width);
  const bar = width > 4 ? ` [${"#".repeat(filled)}${".".repeat(width - filled)}]` : "";
  return `${label}${bar}${numbers}`.slice(0, columns - 1);
}

/** `8 s`, `3 min 20 s`, `2 h 5 min`: rounded up, because nothing is left only at the end. */
export function durationText(seconds: number): string {
  const whole = Math.max(0, Math.ceil(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return whole % 60 === 0 ? `${minutes} min` : `${minutes} min ${whole % 60} s`;
  const hours = Math.floor(minutes / 60);
  return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
}
