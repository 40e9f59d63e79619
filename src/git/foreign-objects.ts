// Objects of a bare repository some other program made, taken through the same door as a push: packed, checked strictly
// into a quarantine, within budgets, complete or not at all. Nothing of the other repository is obeyed: git runs in ours and
// only borrows its object directory, so that a planted config or hook is never read (threats.md row 8).

import { join, resolve } from "node:path";
import type { Oid } from "../nostr/ids.js";
import { missingObjects, type ObjectPlace } from "./objects.js";
import { alternatePath } from "./quarantine.js";
import { receivePack } from "./receive-pack-stream.js";
import type { GitRepository } from "./repository.js";
import { checkedOid } from "./run.js";
import type { PackBudgets, Refused } from "./types.js";

export type Taken = { readonly ok: true; readonly bytes: number; readonly lacking: ReadonlySet<Oid> } | Refused;

const borrowing = ({ place }: GitRepository, foreign: string): ObjectPlace => ({
  ...place,
  env: { GIT_ALTERNATE_OBJECT_DIRECTORIES: alternatePath(join(resolve(foreign), "objects")) },
});

/** Which of these neither repository has with everything they reach. */
export const lackingWith = (repository: GitRepository, foreign: string, oids: readonly Oid[]): Promise<Set<Oid>> =>
  missingObjects(borrowing(repository, foreign), oids, { deep: true });

/** Brings what of these the other repository has and ours lacks. */
export async function takeForeignObjects(
  repository: GitRepository,
  foreign: string,
  oids: readonly Oid[],
  budgets: PackBudgets,
  options: { readonly wallClockMs: number; readonly signal: AbortSignal },
): Promise<Taken> {
  const missing = [...(await repository.missingObjects(oids))];
  const lacking = await lackingWith(repository, foreign, missing);
  const wanted = missing.filter((oid) => !lacking.has(oid));
  if (wanted.length === 0) return { ok: true, bytes: 0, lacking };
  const { git, directory, env = {} } = borrowing(repository, foreign);
  const quarantine = await repository.quarantine();
  try {
    const { refs } = await repository.refs();
    const here = [...new Set([...refs.values()].map(({ oid }) => oid))];
    const lines = [...wanted, "--not", ...here].map((line) => (line === "--not" ? line : checkedOid(line as Oid)));
    const packing = await git.start(["pack-objects", "--revs", "--stdout", "--delta-base-offset", "--quiet"], {
      directory,
      env,
      stdin: true,
      limits: { wallClockMs: options.wallClockMs },
      signal: options.signal,
    });
    packing.stdin?.end(`${lines.join("\n")}\n`);
    const chunks = packing.stdout[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    const next = async (): Promise<Buffer | undefined> => {
      const { done, value } = await chunks.next();
      return done ? undefined : value;
    };
    const received = await receivePack(quarantine, { first: Buffer.alloc(0), next }, budgets, new Set(wanted), options);
    packing.end();
    await packing.exit;
    if (!received.ok) return received;
    if ((await quarantine.missingObjects(wanted)).size > 0) {
      return { ok: false, code: "missing-objects", reason: "its objects are not complete" };
    }
    await quarantine.migrate();
    return { ok: true, bytes: received.bytes, lacking };
  } finally {
    await quarantine.drop();
  }
}
