// What the thread that runs the event loop has used, without the other threads of the process.

import { readFileSync } from "node:fs";

/** Linux counts each thread's time in hundredths of a second; undefined elsewhere. */
export function mainThreadMs(): number | undefined {
  try {
    const text = readFileSync(`/proc/self/task/${process.pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return undefined;
  }
}

/** The same to the millionth of a second. */
function threadMicroseconds(): number | undefined {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]) / 1_000;
  } catch {
    return undefined;
  }
}

/** How long the event loop stood still at a time. */
export interface Hold {
  /** In processor time of its thread, so that other programs do not count; undefined where the system does not say. */
  readonly cpuMs: number | undefined;
  readonly wallMs: number;
}

/** Looks at the loop in each of its turns: the longest way from one to the next since it was begun. Costs a core meanwhile. */
export class HoldWatch {
  #longest: { cpuMs: number | undefined; wallMs: number } = { cpuMs: undefined, wallMs: 0 };
  #isOver = false;

  constructor() {
    let [wall, cpu] = [performance.now(), threadMicroseconds()];
    const look = (): void => {
      const [nowWall, nowCpu] = [performance.now(), threadMicroseconds()];
      this.#longest.wallMs = Math.max(this.#longest.wallMs, nowWall - wall);
      if (cpu !== undefined && nowCpu !== undefined)
        this.#longest.cpuMs = Math.max(this.#longest.cpuMs ?? 0, (nowCpu - cpu) / 1_000);
      [wall, cpu] = [nowWall, nowCpu];
      if (!this.#isOver) setImmediate(look);
    };
    setImmediate(look);
  }

  end(): Hold {
    this.#isOver = true;
    return this.#longest;
  }
}
