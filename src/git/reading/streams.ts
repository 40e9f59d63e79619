// Files and archives that are passed on as git reads them, as fast as their readers take them: in places of their own, so that
// slow readers never keep a page waiting.

import { Turns } from "../../base/budget/turns.js";
import type { Oid } from "../../nostr/nip34.js";
import type { JobLimits } from "../launcher.js";
import type { GitRepository } from "../repository.js";
import { checkedOid } from "../run.js";
import type { Looked, Visitor } from "./visitor.js";

const places = { total: 6, perRepository: 4, perIp: 2, maxQueued: 16, keptForOthers: 2 };
const streamLimits = { wallClockMs: 15 * 60_000, memoryBytes: 768 * 2 ** 20, niceness: 10 };
/** Packing is work, not only reading: a tree made to be endless is given up. */
const archiveLimits = { ...streamLimits, cpuSeconds: 60 };

export class Streams {
  readonly #turns = new Turns(() => places);

  /** Passes on a file of any size; false: `send` said so, or git failed. */
  blob(
    repository: GitRepository,
    oid: Oid,
    visitor: Visitor,
    send: (piece: Buffer) => Promise<boolean>,
  ): Promise<Looked<boolean>> {
    return this.#stream(repository, ["cat-file", "blob", checkedOid(oid)], streamLimits, visitor, send);
  }

  /** All files of a commit in one; `prefix`: the folder they stand in, of plain signs. */
  archive(
    repository: GitRepository,
    commit: Oid,
    format: "tar.gz" | "zip",
    prefix: string,
    visitor: Visitor,
    send: (piece: Buffer) => Promise<boolean>,
  ): Promise<Looked<boolean>> {
    const args = ["archive", `--format=${format}`, `--prefix=${prefix}`, checkedOid(commit)] as const;
    return this.#stream(repository, args, archiveLimits, visitor, send);
  }

  async #stream(
    repository: GitRepository,
    args: readonly [string, ...string[]],
    limits: JobLimits,
    { ip, signal, mayStartGit }: Visitor,
    send: (piece: Buffer) => Promise<boolean>,
  ): Promise<Looked<boolean>> {
    if (!mayStartGit()) return { ok: false, code: "too-many" };
    const release = await this.#turns.acquire({ repository: repository.address.key, ip }, signal);
    if (!release) return { ok: false, code: "busy" };
    try {
      await repository.ready();
      const { directory, context } = repository;
      const job = await context.git.start(args, { directory, limits, signal });
      for await (const piece of job.stdout as AsyncIterable<Buffer>) {
        if (await send(piece)) continue;
        job.end();
        return { ok: true, value: false };
      }
      return { ok: true, value: (await job.exit).code === 0 };
    } finally {
      release();
    }
  }
}
