// Signatures on their way to a worker: 128 bytes each (id, pubkey, signature), no objects. Answers: one byte each.

import type { NostrEvent } from "../event.js";
import type { SchnorrEngine } from "./port.js";

const idBytes = 32;
const pubkeyBytes = 32;
const recordBytes = 128;

/** In memory of its own, so that it can be handed to another thread without copying. */
export function packSignatures(events: readonly Pick<NostrEvent, "id" | "pubkey" | "sig">[]): Uint8Array<ArrayBuffer> {
  const memory = new ArrayBuffer(events.length * recordBytes);
  const bytes = Buffer.from(memory);
  let at = 0;
  for (const { id, pubkey, sig } of events) {
    bytes.write(id, at, "hex");
    bytes.write(pubkey, at + idBytes, "hex");
    bytes.write(sig, at + idBytes + pubkeyBytes, "hex");
    at += recordBytes;
  }
  return new Uint8Array(memory);
}

/** 1 for each signature that is good, 0 for each that is not. */
export function verifyPacked(engine: SchnorrEngine, packed: Uint8Array): Uint8Array {
  const answers = new Uint8Array(packed.length / recordBytes);
  for (let index = 0; index < answers.length; index++) {
    const at = index * recordBytes;
    const id = packed.subarray(at, at + idBytes);
    const pubkey = packed.subarray(at + idBytes, at + idBytes + pubkeyBytes);
    const signature = packed.subarray(at + idBytes + pubkeyBytes, at + recordBytes);
    answers[index] = engine.verifySchnorr(signature, id, pubkey) ? 1 : 0;
  }
  return answers;
}
