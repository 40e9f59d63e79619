import assert from "node:assert/strict";
import { test } from "node:test";
import { sharedAbort } from "./shared-abort.js";

test("a signal that fifty listen to is no leak, and Node does not say so", async (t) => {
  const warned: string[] = [];
  const onWarning = ({ name }: Error): void => void warned.push(name);
  process.on("warning", onWarning);
  t.after(() => process.off("warning", onWarning));
  const { signal } = sharedAbort();
  for (let count = 0; count < 50; count++) signal.addEventListener("abort", () => undefined);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(warned, []);
});
