// A bucket whose server takes requests and says nothing more. What a real S3 server does is tested in test/cluster.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { markFile, markText, mustBeStoredName, PackStoreError } from "./port.js";
import { BucketPackStore } from "./s3.js";

const silentMs = 1_500;
/** The library tries three times, and gives up an upload with one more request: all of that takes three silences or more. */
const oneSilenceMs = 2 * silentMs;

let server: Server;
let folder: string;
let store: BucketPackStore;
/** Which requests are not answered: all that contain it. */
let deafTo: RegExp | undefined;
const unanswered = new Set<ServerResponse>();
let asked: string[] = [];

/** As much of S3 as it takes to begin. */
function answer(request: IncomingMessage, response: ServerResponse): void {
  const { method = "", url = "" } = request;
  asked.push(`${method} ${url}`);
  request.resume();
  if (deafTo?.test(`${method} ${url}`)) {
    unanswered.add(response);
    // What begins to come, and stops.
    if (url.includes("half")) response.writeHead(200, { "content-length": 1_000 }).write("half of it");
  } else if (url.includes("uploads")) {
    response.end("<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>");
  } else if (url.includes(markFile)) {
    response.end(markText({ cluster: randomUUID(), token: randomUUID() }));
  } else response.writeHead(200, { etag: '"1"' }).end();
}

function beHeard(): void {
  deafTo = undefined;
  for (const response of unanswered) response.headersSent ? response.destroy() : response.writeHead(200).end();
  unanswered.clear();
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-silent-"));
  server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
});
beforeEach(() => {
  asked = [];
  const credentials = { accessKeyId: "a", secretAccessKey: "b" };
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  store = new BucketPackStore({ bucket: "packs", region: "us-east-1", endpoint, credentials }, silentMs);
});
after(async () => {
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true, force: true });
});

async function isRefusedWithin(work: Promise<unknown>, ms: number): Promise<void> {
  const begun = performance.now();
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof PackStoreError, String(error));
    assert.equal(error.fault, "unreachable");
    assert.match(error.message, /^the bucket packs at .* does not answer: .*\(TimeoutError\)$/);
    return true;
  });
  const took = performance.now() - begun;
  assert.ok(took < ms, `it took ${took} ms`);
}

/** Ends with the test's own limit if it never does. */
async function untilAnswered(): Promise<void> {
  while (!(await store.has(name).catch(() => false))) await nextTurn();
}

const local = (): string => join(folder, randomUUID());
const name = mustBeStoredName("main/a");

const silences: Readonly<Record<string, readonly [deafTo: RegExp, work: () => Promise<unknown>]>> = {
  "to a question": [/./, () => store.has(name)],
  "in the middle of a file that is fetched": [/./, () => store.fetch(mustBeStoredName("main/half"), local())],
  "to the parts of a file that is put": [
    /partNumber|DELETE|HEAD/,
    async () => {
      const file = local();
      await writeFile(file, "");
      await truncate(file, 30 << 20);
      await store.put(name, file);
    },
  ],
};

for (const [when, [deaf, work]] of Object.entries(silences)) {
  test(`a server that is silent ${when} is waited for once; others are told at once, until it answers again`, {
    timeout: 30_000,
  }, async () => {
    try {
      deafTo = deaf;
      await isRefusedWithin(work(), oneSilenceMs);
      const before = asked.filter((line) => !line.startsWith("HEAD")).length;
      await isRefusedWithin(store.remove(name), silentMs / 2);
      assert.equal(asked.filter((line) => !line.startsWith("HEAD")).length, before, "it was not asked");
      beHeard();
      await untilAnswered();
    } finally {
      beHeard();
      await store.close();
    }
  });
}

test("a server that is slow with one file is asked for others as soon as it answers a question", {
  timeout: 30_000,
}, async () => {
  try {
    deafTo = /slow/;
    await isRefusedWithin(store.has(mustBeStoredName("main/slow")), oneSilenceMs);
    await untilAnswered();
  } finally {
    beHeard();
    await store.close();
  }
});
