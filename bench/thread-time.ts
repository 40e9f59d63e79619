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
