// Which engine verifies: the system's library when it can be used, WebAssembly otherwise.

import { loadNative } from "./native.js";
import type { SchnorrEngine } from "./port.js";
import { wasmEngine } from "./wasm.js";

/** `auto` is for the server; the others are for tests, benchmarks and operators who must. */
export type EngineChoice = "auto" | "native" | "wasm";

/** Throws when `native` is demanded and cannot be had. */
export async function chooseEngine(choice: EngineChoice = "auto"): Promise<SchnorrEngine> {
  if (choice === "wasm") return wasmEngine;
  const native = await loadNative();
  if (native.ok) return native.engine;
  if (choice === "native") throw new Error(`native verification was demanded, but ${native.why}`);
  return wasmEngine;
}
