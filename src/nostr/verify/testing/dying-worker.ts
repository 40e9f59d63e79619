// A verifying thread that dies, for tests of the pool. How is said in the environment: HOLDFAST_TEST_DEATH is at-start,
// always, once or exit-once; the last two leave HOLDFAST_TEST_MARKER behind, a file, so that only one thread dies.

import { existsSync, writeFileSync } from "node:fs";
import { parentPort } from "node:worker_threads";
import { verifyPacked, wasmEngine } from "../engines.js";

const port = parentPort;
if (!port) throw new Error("this module is started as a worker thread");
const { HOLDFAST_TEST_DEATH: mode, HOLDFAST_TEST_MARKER: marker } = process.env;

/** True the first time anywhere, false afterwards. */
function isFirstTime(): boolean {
  if (marker === undefined || existsSync(marker)) return false;
  writeFileSync(marker, "");
  return true;
}

if (mode === "at-start") throw new Error("died at the start");
port.on("message", (packed: Uint8Array) => {
  if (mode === "always" || (mode === "once" && isFirstTime())) throw new Error("died over a message");
  if (mode === "exit-once" && isFirstTime()) process.exit(3);
  port.postMessage(verifyPacked(wasmEngine, packed));
});
