import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { ManualClock } from "../../base/testing/manual-clock.js";
import type { Looked } from "../../git/reading/visitor.js";
import type { Document, RouteRequest } from "../../http/routes.js";
import { sendArchive } from "./archive.js";
import type { Looking, Shown } from "./looking.js";
import type { Place } from "./paths.js";

const mebibyte = 2 ** 20;

/** Takes everything at once, and tells how the answer ended. */
class Taking extends EventEmitter {
  headersSent = false;
  bytes = 0;
  ended: "whole" | "broken off" | undefined;

  writeHead(): this {
    this.headersSent = true;
    return this;
  }

  write(bytes: Buffer, taken: () => void): void {
    this.bytes += bytes.length;
    taken();
  }

  end(): void {
    this.ended = "whole";
  }

  destroy(): void {
    this.ended = "broken off";
  }
}

type Send = (piece: Buffer) => Promise<boolean>;

const name = { owner: "1".repeat(64), identifier: "tool" };

/** What is said instead, or how sending went; `stored`: what git says of the commit's files. */
async function archiveOf(
  mebibytes: number,
  stored: Looked<number> = { ok: true, value: 1 },
): Promise<Pick<Taking, "bytes" | "ended"> | Shown> {
  const piece = Buffer.alloc(mebibyte);
  const room = {
    commit: async () => ({}),
    storedBytes: async () => stored,
    streams: {
      async archive(...given: unknown[]) {
        const send = given.at(-1) as Send;
        for (let left = mebibytes; left > 0; left--) if (!(await send(piece))) return { ok: true, value: false };
        return { ok: true, value: true };
      },
    },
  };
  const counters = { bytes: 300 * mebibyte, pullRequestBytes: 300 * mebibyte };
  const found = { repository: {}, name, row: { counters }, announcement: { name: "" }, table: { refs: new Map() } };
  const site = { name: "here", basePath: "", httpUrl: "http://here", relayUrl: "ws://here", version: "1" };
  const looking = { room, found, site, visitor: {} } as unknown as Looking;
  const place = { kind: "branch", label: "main", commit: "1".repeat(40) } as unknown as Place;
  const request = { method: "GET", message: { headers: {} } } as unknown as RouteRequest;
  const response = new Taking();
  const asked = response as unknown as ServerResponse;
  const shown = await sendArchive(looking, place, "tar.gz", request, asked, new ManualClock());
  if (shown !== "sent") return shown;
  return { bytes: response.bytes, ended: response.ended };
}

test("an archive of 500 MiB is sent whole; a larger one is broken off, so that nobody takes a part for the whole", async () => {
  assert.deepEqual(await archiveOf(500), { bytes: 500 * mebibyte, ended: "whole" });
  assert.deepEqual(await archiveOf(501), { bytes: 500 * mebibyte, ended: "broken off" });
});

test("an archive that is known to be too large is a sentence with another way; where that is not known it is begun", async () => {
  const { status, body } = (await archiveOf(501, { ok: true, value: 501 * mebibyte })) as Document;
  assert.equal(status, 403);
  assert.match(body, /more than the 500 MiB that an archive may have.*git clone --depth 1 http:\/\/here\/npub1/s);
  const whole = { bytes: 10 * mebibyte, ended: "whole" };
  assert.deepEqual(await archiveOf(10, { ok: false, code: "late" }), whole);
  assert.deepEqual(await archiveOf(10, { ok: true, value: 500 * mebibyte }), whole);
});
