// The pack store's contract on a real S3 server, and what it says to settings that cannot work.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { BucketPackStore } from "../../src/packs/s3.js";
import { type StoreForTests, testPackStore } from "../../src/packs/testing/contract.js";
import { noS3, TestS3 } from "./s3-server.js";

if (noS3) test("the pack store as a bucket of S3", { skip: noS3 }, () => undefined);
else {
  testPackStore("a bucket of S3", async (): Promise<StoreForTests> => {
    const server = await TestS3.start();
    return {
      manyFiles: 1_050,
      open: async () => new BucketPackStore(server.bucket("packs")),
      async takeAway() {
        await server.stop();
        return () => server.run();
      },
      close: () => server.dispose(),
    };
  });

  describe("a bucket that cannot be used", () => {
    let server: TestS3;
    before(async () => {
      server = await TestS3.start();
    });
    after(() => server.dispose());

    test("is told by name: not there, wrong key, nobody listens", async () => {
      const place = server.bucket("packs");
      const cases = [
        [{ ...place, bucket: "nothing" }, "unreachable", /the bucket nothing at .* is not there/],
        [
          { ...place, credentials: { accessKeyId: "holdfast", secretAccessKey: "wrong" } },
          "refused",
          /look at the key/,
        ],
        [{ ...place, credentials: { accessKeyId: "nobody", secretAccessKey: "wrong" } }, "refused", /look at the key/],
        [{ ...place, endpoint: "http://127.0.0.1:9" }, "unreachable", /does not answer/],
      ] as const;
      for (const [wrong, fault, words] of cases) {
        const store = new BucketPackStore(wrong);
        await assert.rejects(store.mark(), (error: Error & { fault?: string }) => {
          assert.equal(error.fault, fault, error.message);
          assert.match(error.message, words);
          return true;
        });
        await store.close();
      }
    });
  });
}
