// Whether the system reads what lies around a page of the database too. LMDB reads its file through a map, and single
// questions about a file that does not fit into memory want no more than their pages: what is read around them drives out what
// the next one needs. A copy walks all of the file, and there each page that is not read ahead is a wait of its own.

import { readFileSync, realpathSync } from "node:fs";
import { totalmem } from "node:os";

/** For questions. */
export const readsAhead = (fileBytes: number, memoryBytes: number): boolean => fileBytes <= memoryBytes;

export const memoryBytes = (): number => Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);

export interface MappedRange {
  readonly start: bigint;
  readonly bytes: bigint;
}

/** Where a file is mapped, by the text of `/proc/self/maps`. */
export function rangesOf(maps: string, file: string): MappedRange[] {
  return maps.split("\n").flatMap((line) => {
    const [, start, end, mapped] = /^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ \d+ +(.*)$/.exec(line) ?? [];
    if (mapped !== file) return [];
    const first = BigInt(`0x${start}`);
    return [{ start: first, bytes: BigInt(`0x${end}`) - first }];
  });
}

/** Linux's. */
const advice = { usual: 0, single: 1 } as const;

type Advise = (start: bigint, bytes: bigint, advice: number) => number;

/** Undefined where there is no glibc. Loaded when it is needed first: few databases are larger than the memory. */
let loading: Promise<Advise | undefined> | undefined;

function adviser(): Promise<Advise | undefined> {
  loading ??= import("koffi")
    .then(({ load }) => load("libc.so.6").func("int madvise(uint64_t start, size_t bytes, int advice)") as Advise)
    .catch(() => undefined);
  return loading;
}

/** Runs `work` while what lies around a page of a file that was opened without is read ahead. */
export async function readingAhead<T>(path: string, work: () => Promise<T>): Promise<T> {
  const advise = await adviser();
  if (!advise) return work();
  const file = realpathSync(path);
  // The map moves when the file grows: where it is is asked for each time.
  const give = (wanted: number): void => {
    for (const { start, bytes } of rangesOf(readFileSync("/proc/self/maps", "utf8"), file))
      advise(start, bytes, wanted);
  };
  give(advice.usual);
  try {
    return await work();
  } finally {
    give(advice.single);
  }
}
