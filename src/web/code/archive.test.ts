import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { ManualClock } from "../../base/testing/manual-clock.js";
import type { RouteRequest } from "../../http/routes.js";
import { sendArchive } from "./archive.js";
import type { Looking } from "./looking.js";
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

async function archiveOf(mebibytes: number): Promise<Pick<Taking, "bytes" | "ended">> {
  const piece = Buffer.alloc(mebibyte);
  const room = {
    commit: async () => ({}),
    async streamArchive(...given: unknown[]) {
      const send = given.at(-1) as Send;
      for (let left = mebibytes; left > 0; left--) if (!(await send(piece))) return { ok: true, value: false };
      return { ok: true, value: true };
    },
  };
  const found = { repository: {}, name: { identifier: "tool" } };
  const looking = { room, found, visitor: {} } as unknown as Looking;
  const place = { kind: "branch", label: "main", commit: "1".repeat(40) } as unknown as Place;
  const request = { method: "GET", message: { headers: {} } } as unknown as RouteRequest;
  const response = new Taking();
  const asked = response as unknown as ServerResponse;
  assert.equal(await sendArchive(looking, place, "tar.gz", request, asked, new ManualClock()), "sent");
  return { bytes: response.bytes, ended: response.ended };
}

test("an archive of 500 MiB is sent whole; a larger one is broken off, so that nobody takes a part for the whole", async () => {
  assert.deepEqual(await archiveOf(500), { bytes: 500 * mebibyte, ended: "whole" });
  assert.deepEqual(await archiveOf(501), { bytes: 500 * mebibyte, ended: "broken off" });
});
