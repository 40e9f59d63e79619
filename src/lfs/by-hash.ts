// `NGIT_BLOSSOM_READ`: the content of large files at `/<sha256>`, as Blossom servers give it (GET and HEAD), whichever public
// repository has them. Takes nothing.

import type { ServerResponse } from "node:http";
import { Turns } from "../base/budget/turns.js";
import { holdersOf, isLargeFileId, largeFile } from "../catalogue/large-files.js";
import { catalogueRow, isReleased } from "../catalogue/repositories.js";
import type { Context } from "../context.js";
import { busy, type GitRequest, refuse } from "../git/http-types.js";
import type { Holdings } from "./holdings.js";
import { sendFile } from "./serve.js";

/** Repositories that are looked at for one that is served. */
const maxHolders = 50;

const hashIn = (localPath: string): string | undefined => /^\/([0-9a-f]{64})$/.exec(localPath)?.[1];

export class FilesByHash {
  readonly #turns = new Turns(() => ({ total: 32, perRepository: 32, perIp: 8, maxQueued: 64 }));

  constructor(
    private readonly context: Context,
    private readonly holdings: Holdings,
  ) {}

  matches({ localPath, message }: Pick<GitRequest, "localPath" | "message">): boolean {
    return hashIn(localPath) !== undefined && (message.method === "GET" || message.method === "HEAD");
  }

  async handle({ localPath, message, ip }: GitRequest, response: ServerResponse): Promise<void> {
    const { clock, live } = this.context;
    const oid = hashIn(localPath);
    const path = isLargeFileId(oid) ? await this.#pathOf(oid) : undefined;
    if (path === undefined || oid === undefined)
      return void refuse(response, 404, "no such file is served here", "missing");
    const closed = new AbortController();
    response.once("close", () => closed.abort());
    const leave = await this.#turns.acquire({ ip, repository: oid }, closed.signal);
    if (!leave) return void busy(response);
    try {
      const sent = await sendFile(message, response, path, {
        clock,
        idleMs: live.current.gitIdleSecs * 1_000,
        etag: oid,
      });
      if (sent === undefined) refuse(response, 404, "no such file is served here", "missing");
    } finally {
      leave();
    }
  }

  /** Only what a released pointer of a served repository names. */
  async #pathOf(oid: Parameters<typeof largeFile>[2]): Promise<string | undefined> {
    const { store } = this.context;
    for (const holder of await holdersOf(store, oid, maxHolders)) {
      const row = await catalogueRow(store, holder);
      const isServed = isReleased(row) || row?.status === "leaving";
      if (isServed && (await largeFile(store, holder, oid))?.isNamed) {
        return await this.holdings.pathOf(holder, oid);
      }
    }
    return undefined;
  }
}
