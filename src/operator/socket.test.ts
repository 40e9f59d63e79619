import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { done } from "./context.js";
import { type AdminSocket, askServer, openAdminSocket, type SocketParts } from "./socket.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-socket-"));
after(() => rmSync(folder, { recursive: true }));

const silent = (): void => undefined;
const request = { operation: "status", parameters: { a: 1 } };

async function withSocket(
  directory: string,
  run: SocketParts["run"],
  work: (socket: AdminSocket, faults: unknown[]) => Promise<void>,
): Promise<void> {
  mkdirSync(directory, { recursive: true });
  const faults: unknown[] = [];
  const socket = await openAdminSocket({ directory, run, onFault: (error) => faults.push(error) });
  try {
    await work(socket, faults);
  } finally {
    await socket.close();
  }
}

/** Sends raw text and reads lines until as many came, or the other side ends. */
function exchange(path: string, text: string, lines: number): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const socket = connect(path, () => socket.write(text));
    let read = "";
    const end = (): void => {
      socket.destroy();
      resolve(read.split("\n").filter((line) => line !== ""));
    };
    socket.setEncoding("utf8").on("data", (part: string) => {
      read += part;
      if (read.split("\n").length > lines) end();
    });
    socket.on("close", end);
    socket.on("error", (error: NodeJS.ErrnoException) =>
      error.code === "EPIPE" || error.code === "ECONNRESET" ? end() : reject(error),
    );
  });
}

test("progress is streamed before the answer, and the file is private and goes at the end", async () => {
  const directory = join(folder, "plain");
  await withSocket(
    directory,
    async ({ operation, parameters }, { progress }) => {
      for (const step of [1, 2, 3]) progress(step, 3, "working");
      return done({ operation, parameters });
    },
    async () => {
      assert.equal(statSync(join(directory, "admin.sock")).mode & 0o777, 0o600);
      const seen: unknown[] = [];
      const answer = await askServer(directory, request, (...step) => seen.push(step));
      assert.deepEqual(answer && "result" in answer && answer.result, request);
      assert.deepEqual(seen, [
        [1, 3, "working"],
        [2, 3, "working"],
        [3, 3, "working"],
      ]);
    },
  );
  assert.deepEqual(readdirSync(directory), []);
  assert.equal(await askServer(directory, request, silent), undefined);
  assert.equal(await askServer(join(folder, "nowhere"), request, silent), undefined);
});

test("a long answer comes line by line, no faster than it is taken", async () => {
  const directory = join(folder, "lines");
  const count = 200;
  let made = 0;
  await withSocket(
    directory,
    async (_, { lines }) => {
      for (; made < count; made++) await lines?.([String(made), "x".repeat(2 ** 16)]);
      return done({ made });
    },
    async () => {
      let taken = 0;
      let mostAhead = 0;
      const answer = await askServer(directory, request, silent, {
        async lines([number]) {
          assert.equal(number, String(taken));
          for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
          mostAhead = Math.max(mostAhead, made - taken);
          taken++;
        },
      });
      assert.deepEqual(answer, { id: 1, ...done({ made: count }) });
      assert.equal(taken, count);
      assert.ok(mostAhead < 40, `${mostAhead} messages of 64 KiB were under way`);
    },
  );
});

test("what is no request is refused, an oversized one ends the connection, and the next is answered", async () => {
  const directory = join(folder, "bad");
  const path = join(directory, "admin.sock");
  await withSocket(
    directory,
    async ({ operation }) => done(operation),
    async (_, faults) => {
      const [bad, array, good] = await exchange(path, '{\n[]\n{"id":"x","operation":"status"}\n', 3);
      assert.match(bad ?? "", /bad-request/);
      assert.match(array ?? "", /bad-request/);
      assert.deepEqual(JSON.parse(good ?? ""), { id: "x", ok: true, result: "status" });
      assert.deepEqual(await exchange(path, "x".repeat(2 ** 21), 1), []);
      assert.equal((await askServer(directory, request, silent))?.ok, true);
      assert.deepEqual(faults, []);
    },
  );
});

test("a client that goes away aborts what it asked for; a fault is told and does not end the socket", async () => {
  const directory = join(folder, "gone");
  let aborted = (): void => undefined;
  const wasAborted = new Promise<void>((resolve) => {
    aborted = resolve;
  });
  await withSocket(
    directory,
    async ({ operation }, { signal, progress }) => {
      if (operation === "fault") throw new Error("broken");
      progress(0, 1, "begun");
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      aborted();
      throw signal.reason;
    },
    async (_, faults) => {
      await exchange(join(directory, "admin.sock"), '{"id":1,"operation":"endless"}\n', 1);
      await wasAborted;
      const answer = await askServer(directory, { operation: "fault", parameters: {} }, silent);
      assert.ok(answer && !answer.ok && answer.code === "not-possible");
      assert.deepEqual(faults.map(String), ["Error: broken"]);
    },
  );
});

test("a client that goes away in the middle of a long answer ends it, and that is no fault", async () => {
  const directory = join(folder, "left");
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  await withSocket(
    directory,
    async (_, { lines }) => {
      try {
        for (;;) await lines?.(["x".repeat(2 ** 16)]);
      } finally {
        end();
      }
    },
    async (_, faults) => {
      const socket = connect(join(directory, "admin.sock"), () => socket.write('{"id":1,"operation":"endless"}\n'));
      // What is not read makes its end a reset, not a farewell.
      socket.once("readable", () => socket.destroy());
      await ended;
      assert.equal((await exchange(join(directory, "admin.sock"), "{\n", 1)).length, 1);
      assert.deepEqual(faults, []);
    },
  );
});

test("a socket is found in a directory whose path is too long for one, and a dead server's file is replaced", async () => {
  const directory = join(folder, "d".repeat(60), "e".repeat(60));
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "admin.sock"), "");
  await withSocket(
    directory,
    async () => done(1),
    async () => {
      assert.equal((await askServer(directory, request, silent))?.ok, true);
    },
  );
  assert.deepEqual(readdirSync(directory), []);
});
