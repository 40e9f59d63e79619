// What checks signatures: the system's libsecp256k1, called through koffi (as fast as C), when it can be used; otherwise
// the build of it an npm package brings (`secp256k1`), at over half of that speed, where it has one for this system; and
// otherwise the same library compiled to WebAssembly (tiny-secp256k1), which works everywhere at about a sixth. A native
// library that is not there, too old or built without Schnorr is not usable, and the reason is a value.

import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { platform } from "node:os";
import type { NostrEvent } from "../event.js";
import { wasmCurve } from "../wasm-curve.js";

/** One implementation of BIP-340 verification. Never throws on bad input: a malformed key or signature is not valid. */
export interface SchnorrEngine {
  /** `native <library>`, `prebuilt libsecp256k1` or `wasm`. */
  readonly name: string;
  /** What to ask for in order to get this one again, in another thread. */
  readonly kind: Exclude<EngineChoice, "auto">;
  /** Whether messages of other lengths than 32 bytes can be checked. Nostr needs only 32. */
  readonly takesAnyLength: boolean;
  verifySchnorr(signature: Uint8Array, message: Uint8Array, pubkey: Uint8Array): boolean;
}

type LoadedEngine =
  | { readonly ok: true; readonly engine: SchnorrEngine }
  | { readonly ok: false; readonly why: string };

const versions = [6, 5, 4, 3, 2, 1, 0];
const linuxNames = versions.map((version) => `libsecp256k1.so.${version}`);
const macNames = ["libsecp256k1.dylib", ...versions.map((version) => `libsecp256k1.${version}.dylib`)].flatMap(
  (name) => [name, `/opt/homebrew/lib/${name}`, `/usr/local/lib/${name}`],
);

/** The names under which the library is looked for on this system, newest first. */
export const libraryNames = (system: string = platform()): readonly string[] =>
  system === "darwin" ? macNames : linuxNames;

// SECP256K1_CONTEXT_VERIFY: needed by old libraries, understood by all.
const contextVerify = 0x0101;
const xonlyPubkeyBytes = 64;

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

type Koffi = typeof import("koffi");
type Library = ReturnType<Koffi["load"]>;

/** About a megabyte in each thread. */
const maxKnownPubkeys = 4_096;

/**
 * Public keys as the library wants them. Making one ready is a tenth of the work of a signature, and most events are by
 * somebody who wrote before. Forgets all when there are too many: strangers' keys must not fill the memory.
 */
class ReadyPubkeys {
  readonly #ready = new Map<string, Uint8Array>();

  constructor(
    readonly makeReady: (ready: Uint8Array, pubkey: Uint8Array) => boolean,
    readonly max: number,
  ) {}

  /** Undefined for 32 bytes that are nobody's key. */
  of(pubkey: Uint8Array): Uint8Array | undefined {
    const name = Buffer.from(pubkey.buffer, pubkey.byteOffset, pubkey.length).toString("latin1");
    const known = this.#ready.get(name);
    if (known) return known;
    const ready = new Uint8Array(xonlyPubkeyBytes);
    if (!this.makeReady(ready, pubkey)) return undefined;
    if (this.#ready.size >= this.max) this.#ready.clear();
    if (this.max > 0) this.#ready.set(name, ready);
    return ready;
  }
}

/** Throws when the library lacks a function. */
function engineFrom(library: Library, name: string, maxKnown: number): SchnorrEngine {
  const createContext = library.func("void *secp256k1_context_create(unsigned int flags)");
  const parsePubkey = library.func(
    "int secp256k1_xonly_pubkey_parse(void *context, _Out_ uint8_t *pubkey, const uint8_t *input32)",
  );
  // Libraries before mid-2021 have a schnorrsig_verify without a length: calling it with one would read wild memory.
  // This function came into being in the same change as the length (bitcoin-core/secp256k1#844).
  library.func("int secp256k1_schnorrsig_sign_custom(void *, void *, void *, size_t, void *, void *)");
  const verify = library.func(
    "int secp256k1_schnorrsig_verify(void *context, const uint8_t *sig64, const uint8_t *msg, size_t length, const uint8_t *pubkey)",
  );
  const context: unknown = createContext(contextVerify);
  const pubkeys = new ReadyPubkeys((ready, pubkey) => parsePubkey(context, ready, pubkey) === 1, maxKnown);
  return {
    name: `native ${name}`,
    kind: "native",
    takesAnyLength: true,
    verifySchnorr(signature, message, pubkey) {
      // C reads as many bytes as it expects, whatever was given.
      if (signature.length !== 64 || pubkey.length !== 32) return false;
      const ready = pubkeys.of(pubkey);
      return ready !== undefined && verify(context, signature, message, message.length, ready) === 1;
    },
  };
}

// BIP-340's vector 1, and the same with one bit of the message changed.
const known = {
  pubkey: Buffer.from("dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659", "hex"),
  message: Buffer.from("243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89", "hex"),
  signature: Buffer.from(
    "6896bd60eeae296db48a229ff71dfe071bde413e6d43f917dc8dcf8c78de33418906d11ac976abccb20b091292bff4ea897efcb639ea871cfa95f6de339e4b0a",
    "hex",
  ),
};

function passesSelfTest(engine: SchnorrEngine): boolean {
  const other = Buffer.from(known.message);
  other.writeUInt8(other.readUInt8(0) ^ 1, 0);
  return (
    engine.verifySchnorr(known.signature, known.message, known.pubkey) &&
    !engine.verifySchnorr(known.signature, other, known.pubkey)
  );
}

/** `maxKnown`: public keys that are remembered; with 0 the engine does what the library does. */
export async function loadNative(
  names: readonly string[] = libraryNames(),
  maxKnown: number = maxKnownPubkeys,
): Promise<LoadedEngine> {
  let koffi: Koffi;
  try {
    koffi = await import("koffi");
  } catch (error) {
    return { ok: false, why: `koffi has no build for this system (${messageOf(error)})` };
  }
  const reasons: string[] = [];
  for (const name of names) {
    let library: Library;
    try {
      library = koffi.load(name);
    } catch {
      continue; // not installed under this name
    }
    try {
      const engine = engineFrom(library, name, maxKnown);
      if (passesSelfTest(engine)) return { ok: true, engine };
      reasons.push(`${name} fails a known signature`);
    } catch (error) {
      reasons.push(`${name} cannot be used (${messageOf(error)})`);
    }
  }
  return { ok: false, why: reasons.join("; ") || "libsecp256k1 is not installed" };
}

export const wasmEngine: SchnorrEngine = {
  name: "wasm",
  kind: "wasm",
  takesAnyLength: false,
  verifySchnorr(signature, message, pubkey) {
    if (signature.length !== 64 || message.length !== 32 || pubkey.length !== 32) return false;
    const { isXOnlyPoint, verifySchnorr } = wasmCurve();
    if (!isXOnlyPoint(pubkey)) return false;
    try {
      return verifySchnorr(message, pubkey, signature);
    } catch {
      return false; // it throws on a signature whose numbers are out of range
    }
  },
};

// ---- prebuilt: the libsecp256k1 that the npm package `secp256k1` brings for the common platforms -----------------------
// Three times as fast as WebAssembly, with nothing to install. That build has no Schnorr, but it recovers ECDSA keys, and
// recovery is the same sum of two products that BIP-340 asks for:
//   BIP-340:   R = s·G − e·P                     valid if R is finite, its y even and its x the signature's r
//   recovery:  Q = (s'·R' − m'·G) / r'           for the point R' whose x is r' (or r' + n) and whose y is even
//   with R' = P, r' = x(P), s' = −e·r', m' = −s·r':   Q = −e·P + s·G = R
// Only public values are computed with: nothing here needs to take the same time for all of them.

/** What is used of the package. It throws where a number is out of range, a point is none or the sum is infinite. */
interface Recovery {
  ecdsaRecover(
    signature: Uint8Array,
    recoveryId: number,
    message: Uint8Array,
    compressed: true,
    output: Uint8Array,
  ): Uint8Array;
}

/** The order of the group. */
const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const evenY = 2;
/** The x of the point is the signature's first number plus the order. */
const xBeyondOrder = 2;

const tagDigest = createHash("sha256").update("BIP0340/challenge").digest();
const challengePrefix = Buffer.concat([tagDigest, tagDigest]);

const bufferOn = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
const numberIn = (bytes: Buffer): bigint => BigInt(`0x${bytes.toString("hex")}`);
const writeNumber = (target: Buffer, at: number, value: bigint): void => {
  target.write(value.toString(16).padStart(64, "0"), at, "hex");
};

/** Throws when the package has no build for this system. `otherwise` answers the two cases recovery cannot express. */
function loadRecovery(otherwise: SchnorrEngine): SchnorrEngine["verifySchnorr"] {
  // Not the package's entry: where it has no build, that one is JavaScript, slower than our WebAssembly.
  const recovery = createRequire(import.meta.url)("secp256k1/bindings.js") as Recovery;
  const recoverable = Buffer.alloc(64);
  const recoveredMessage = Buffer.alloc(32);
  const sum = Buffer.alloc(33);
  return (signature, message, pubkey) => {
    if (signature.length !== 64 || pubkey.length !== 32) return false;
    const [sig, key] = [bufferOn(signature), bufferOn(pubkey)];
    const s = numberIn(sig.subarray(32));
    if (s >= order) return false;
    const x = numberIn(key);
    const [r, recoveryId] = x < order ? [x, 0] : [x - order, xBeyondOrder];
    const challenge = createHash("sha256").update(challengePrefix).update(sig.subarray(0, 32)).update(key);
    const e = numberIn(challenge.update(message).digest()) % order;
    // ECDSA has no signatures with a zero in them. Nobody can make such a challenge; such a key is no point.
    if (e === 0n || r === 0n) return otherwise.verifySchnorr(signature, message, pubkey);
    writeNumber(recoverable, 0, r);
    writeNumber(recoverable, 32, ((order - e) * r) % order);
    writeNumber(recoveredMessage, 0, ((order - s) * r) % order);
    try {
      recovery.ecdsaRecover(recoverable, recoveryId, recoveredMessage, true, sum);
    } catch {
      return false; // the key is no point, or the sum is infinite
    }
    return sum[0] === evenY && sig.compare(sum, 1, 33, 0, 32) === 0;
  };
}

export function loadPrebuilt(): LoadedEngine {
  try {
    const verifySchnorr = loadRecovery(wasmEngine);
    const engine = { name: "prebuilt libsecp256k1", kind: "prebuilt", takesAnyLength: true, verifySchnorr } as const;
    return passesSelfTest(engine) ? { ok: true, engine } : { ok: false, why: "secp256k1 fails a known signature" };
  } catch (error) {
    return { ok: false, why: `the package secp256k1 has no build for this system (${messageOf(error)})` };
  }
}

// ---- the choice, and signatures on their way to a thread -----------------------------------------------------------

/** `auto` is for the server; the others are for tests, benchmarks and operators who must. */
export type EngineChoice = "auto" | "native" | "prebuilt" | "wasm";

/** Throws when an engine is demanded that cannot be had. */
export async function chooseEngine(choice: EngineChoice = "auto"): Promise<SchnorrEngine> {
  if (choice === "wasm") return loadWasm();
  const native = choice === "prebuilt" ? undefined : await loadNative();
  if (native?.ok) return native.engine;
  if (choice === "native") throw new Error(`native verification was demanded, but ${native?.why}`);
  const prebuilt = loadPrebuilt();
  if (prebuilt.ok) return prebuilt.engine;
  if (choice === "prebuilt") throw new Error(`prebuilt verification was demanded, but ${prebuilt.why}`);
  return loadWasm();
}

function loadWasm(): SchnorrEngine {
  wasmCurve();
  return wasmEngine;
}

// Signatures on their way to a worker: 128 bytes each (id, pubkey, signature), no objects. Answers: one byte each.

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
