import assert from "node:assert/strict";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { test } from "node:test";

test("files of the pages that could not be read for want of descriptors are read when they are asked for again", async (t) => {
  const refuse = (): never => {
    throw Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" });
  };
  const refused = t.mock.method(fs, "readFileSync", refuse);
  const mend = (): void => {
    refused.mock.restore();
    syncBuiltinESMExports();
  };
  syncBuiltinESMExports();
  t.after(mend);
  const { assetRoutes, assetUrl } = await import("./assets.js");
  assert.throws(() => assetRoutes(), /EMFILE/);
  mend();
  assert.equal(assetRoutes().length, 9);
  assert.match(assetUrl("style", "/base"), /^\/base\/assets\/holdfast-[0-9a-f]{10}\.css$/);
});
