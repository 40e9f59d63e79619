// A test double for the answering side of negentropy: whatever is asked, it answers with all its ids in one range,
// which the protocol allows. Enough for a real client to find every difference; no fingerprints, no frame limit.

import type { NegentropyFactory } from "../../src/relay/negentropy-session.js";

const version = 0x61;
const idListMode = 2;

function varint(value: number): number[] {
  const digits = [value & 127];
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) digits.unshift((rest & 127) | 128);
  return digits;
}

export const oracleNegentropy: NegentropyFactory = (items) => ({
  reconcile(message) {
    if (message[0] !== version) return { ok: false, error: "this version of the protocol is not known here" };
    if (message.length === 1) return { ok: true, message: Uint8Array.of(version) };
    // The upper bound "everything": time 0 (infinity), no id prefix.
    const head = [version, 0, 0, idListMode, ...varint(items.length)];
    return { ok: true, message: Buffer.concat([Uint8Array.from(head), items.ids.subarray(0, items.length * 32)]) };
  },
});
