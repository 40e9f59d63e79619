// One verifying thread: packed signatures in, one byte each out, in the order they came.

import { parentPort, workerData } from "node:worker_threads";
import { chooseEngine, type EngineChoice, verifyPacked } from "./engines.js";

if (!parentPort) throw new Error("this module is started as a worker thread");
const port = parentPort;
const engine = await chooseEngine((workerData as { readonly engine: EngineChoice }).engine);
port.on("message", (packed: Uint8Array) => port.postMessage(verifyPacked(engine, packed)));
