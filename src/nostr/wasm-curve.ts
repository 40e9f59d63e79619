// libsecp256k1 as WebAssembly (tiny-secp256k1), which works everywhere. Loaded when it is first called for: compiling it
// takes a tenth of a server's start and three megabytes in each thread, and a server that checks signatures natively and
// has told everybody its profile calls it for nothing. require() tries again when it failed, unlike an import.

import { createRequire } from "node:module";

type Curve = typeof import("tiny-secp256k1");

let loaded: Curve | undefined;

export function wasmCurve(): Curve {
  loaded ??= createRequire(import.meta.url)("tiny-secp256k1") as Curve;
  return loaded;
}
