import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { NostrEvent } from "../event.js";
import { keyFrom, signedEvent } from "../testing/signed.js";
import { loadPrebuilt } from "./engines.js";
import {
  createVerifierPool,
  VerifierBusyError,
  VerifierClosedError,
  VerifierDiedError,
  type VerifierPool,
  type VerifierPoolOptions,
} from "./pool.js";

const good = Array.from({ length: 60 }, (_, index) => signedEvent({ content: `${index}` }, keyFrom(`${index % 5}`)));
const forged: NostrEvent = { ...good[0]!, sig: good[1]!.sig };

/** A pool whose threads die as said, for the time of `use`. */
async function withDyingPool(
  mode: string,
  options: Omit<VerifierPoolOptions, "workerModule">,
  use: (pool: VerifierPool, marker: string) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-pool-"));
  const marker = join(folder, "died");
  process.env.HOLDFAST_TEST_DEATH = mode;
  process.env.HOLDFAST_TEST_MARKER = marker;
  const workerModule = new URL("./testing/dying-worker.js", import.meta.url);
  const pool = await createVerifierPool({ ...options, workerModule });
  try {
    await use(pool, marker);
  } finally {
    await pool.close();
    rmSync(folder, { recursive: true });
  }
}

for (const options of [
  { workers: 0 },
  { workers: 1 },
  { workers: 2 },
  { workers: 2, maxBatchEvents: 1 },
  { workers: 2, engine: "wasm" },
  ...(loadPrebuilt().ok ? [{ workers: 2, engine: "prebuilt" } as const] : []),
] satisfies VerifierPoolOptions[]) {
  test(`good events are proven and forged ones are not, with ${JSON.stringify(options)}`, async () => {
    const pool = await createVerifierPool(options);
    try {
      assert.match(pool.engine, /^(native libsecp256k1.*|prebuilt libsecp256k1|wasm)$/);
      const answers = await Promise.all([...good, forged, ...good].map((event) => pool.verify(event)));
      answers.forEach((answer, index) => {
        if (index === good.length) assert.equal(answer, undefined);
        // The very object that was asked about: nothing was made anew that could differ from it.
        else assert.equal(answer, good[index % (good.length + 1)] ?? good[index - good.length - 1]);
      });
      assert.equal(pool.held, 0);
    } finally {
      await pool.close();
    }
  });
}

test("a forged copy before the good one does not spoil the good one (threats.md 21)", async () => {
  const pool = await createVerifierPool({ workers: 1 });
  try {
    const answers = await Promise.all([forged, good[0]!, forged].map((event) => pool.verify(event)));
    assert.deepEqual(answers, [undefined, good[0], undefined]);
  } finally {
    await pool.close();
  }
});

test("closing answers what waits, then refuses", async () => {
  for (const workers of [0, 2]) {
    const pool = await createVerifierPool({ workers });
    const waiting = good.map((event) => pool.verify(event));
    const closed = pool.close();
    assert.equal((await Promise.all(waiting)).filter(Boolean).length, good.length);
    await closed;
    await pool.close();
    await assert.rejects(pool.verify(good[0]!), VerifierClosedError);
  }
});

test("more than may be held is refused, room is announced, and then all is well again", async () => {
  const pool = await createVerifierPool({ workers: 1, maxHeldEvents: 10 });
  try {
    const held = good.slice(0, 10).map((event) => pool.verify(event));
    assert.equal(pool.held, 10);
    await assert.rejects(pool.verify(good[10]!), VerifierBusyError);
    await pool.whenRoom();
    assert.ok(pool.held < 5);
    assert.ok(await pool.verify(good[10]!));
    assert.equal((await Promise.all(held)).filter(Boolean).length, 10);
    await pool.whenRoom();
  } finally {
    await pool.close();
  }
});

test("big events fill the queue by their size", async () => {
  const pool = await createVerifierPool({ workers: 1, maxHeldChars: 1000 });
  try {
    const big = signedEvent({ content: "x".repeat(2000) });
    const first = pool.verify(big);
    await assert.rejects(pool.verify(good[0]!), VerifierBusyError);
    assert.ok(await first);
    assert.ok(await pool.verify(good[0]!));
  } finally {
    await pool.close();
  }
});

for (const mode of ["once", "exit-once"]) {
  test(`a thread that dies (${mode}) is replaced and nothing is lost`, async () => {
    await withDyingPool(mode, { workers: 2, engine: "wasm", maxBatchEvents: 4 }, async (pool, marker) => {
      const answers = await Promise.all([...good, forged].map((event) => pool.verify(event)));
      assert.deepEqual(answers, [...good, undefined]);
      assert.ok(existsSync(marker), "no thread died");
      assert.equal(pool.held, 0);
    });
  });
}

for (const mode of ["always", "at-start"]) {
  test(`events over which threads die twice (${mode}) fail as an exception, and the pool can be closed`, async () => {
    await withDyingPool(mode, { workers: 1, engine: "wasm" }, async (pool) => {
      const answers = await Promise.allSettled(good.slice(0, 3).map((event) => pool.verify(event)));
      for (const answer of answers) {
        assert.equal(answer.status, "rejected");
        assert.match(String(answer.reason), /died twice/);
        assert.ok(answer.reason instanceof VerifierDiedError);
        assert.match(String(answer.reason.cause), /died/);
      }
      assert.equal(pool.held, 0);
    });
  });
}
