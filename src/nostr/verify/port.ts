// What a verifier is. Engines (native, wasm) check one signature; the pool spreads batches over worker threads.

import type { NostrEvent, VerifiedEvent } from "../event.js";

export interface Verifier {
  /** For the start banner, `doctor` and the metric: `native libsecp256k1.so.1` or `wasm`. */
  readonly engine: string;
  /** The event, proven; or undefined when its signature is not by its pubkey over its id. */
  verify(event: NostrEvent): Promise<VerifiedEvent | undefined>;
  close(): Promise<void>;
}
