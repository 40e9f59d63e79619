// What a verifier is. Engines (native, wasm) check one signature; the pool spreads batches over worker threads.

import type { NostrEvent, VerifiedEvent } from "../event.js";

export interface Verifier {
  /** For the start banner, `doctor` and the metric: `native libsecp256k1.so.1` or `wasm`. */
  readonly engine: string;
  /**
   * The event, proven; or undefined when its signature is not by its pubkey over its id. Takes only what parseEvent
   * made: the id it checks was computed from the content. Rejects with VerifierBusyError when too much waits.
   */
  verify(event: NostrEvent): Promise<VerifiedEvent | undefined>;
  close(): Promise<void>;
}

/** One implementation of BIP-340 verification. Never throws on bad input: a malformed key or signature is not valid. */
export interface SchnorrEngine {
  /** `native <library>` or `wasm`. */
  readonly name: string;
  /** Whether messages of other lengths than 32 bytes can be checked. Nostr needs only 32. */
  readonly takesAnyLength: boolean;
  verifySchnorr(signature: Uint8Array, message: Uint8Array, pubkey: Uint8Array): boolean;
}

/** More waits for verification than the pool may hold. The sender should try again in a moment. */
export class VerifierBusyError extends Error {
  override readonly name = "VerifierBusyError";
}

export class VerifierClosedError extends Error {
  override readonly name = "VerifierClosedError";
}
