// BIP-340's official vectors on every engine there is. test/data/bip340-verify.csv holds those over 32 bytes (0–14),
// bip340-lengths.csv those of other lengths (15–18), which Nostr never needs and WebAssembly cannot take.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parseEvent } from "../event.js";
import { keyFrom, signedEvent } from "../testing/signed.js";
import type { SchnorrEngine } from "./engines.js";
import {
  chooseEngine,
  libraryNames,
  loadNative,
  loadPrebuilt,
  packSignatures,
  verifyPacked,
  wasmEngine,
} from "./engines.js";

const native = await loadNative();
const prebuilt = loadPrebuilt();
const engines: SchnorrEngine[] = [native, prebuilt].flatMap((loaded) => (loaded.ok ? [loaded.engine] : []));
engines.push(wasmEngine);

function vectorsIn(file: string) {
  const text = readFileSync(new URL(`../../../../test/data/${file}`, import.meta.url), "utf8");
  const [, ...lines] = text.trim().split("\n");
  return lines.map((line) => {
    const [index, pubkey, message, signature, valid] = line.trim().split(",");
    const bytes = (hex: string | undefined) => Buffer.from(hex ?? "", "hex");
    return {
      index: Number(index),
      pubkey: bytes(pubkey),
      message: bytes(message),
      signature: bytes(signature),
      valid: valid === "TRUE",
    };
  });
}
const vectors = [...vectorsIn("bip340-verify.csv"), ...vectorsIn("bip340-lengths.csv")];

test("the vectors are all there: 0 to 18", () => {
  assert.deepEqual(
    vectors.map((vector) => vector.index),
    Array.from({ length: 19 }, (_, index) => index),
  );
  assert.equal(vectors.filter((vector) => vector.valid).length, 9);
});

for (const engine of engines) {
  test(`${engine.name} agrees with BIP-340's official vectors`, (context) => {
    let skipped = 0;
    for (const { index, signature, message, pubkey, valid } of vectors) {
      if (message.length !== 32 && !engine.takesAnyLength) {
        skipped++;
        continue;
      }
      assert.equal(engine.verifySchnorr(signature, message, pubkey), valid, `vector ${index}`);
    }
    context.diagnostic(
      `${vectors.length - skipped} vectors checked, ${skipped} of other lengths than 32 bytes skipped`,
    );
    assert.equal(skipped, engine.takesAnyLength ? 0 : 4);
  });

  test(`${engine.name} takes keys and signatures of a wrong length for invalid, and reads not beyond them`, () => {
    const { signature, message, pubkey } = vectors[1]!;
    for (const length of [0, 1, 31, 33]) {
      assert.equal(
        engine.verifySchnorr(signature, message, Buffer.concat([pubkey, pubkey]).subarray(0, length)),
        false,
      );
    }
    for (const length of [0, 63, 65]) {
      const other = Buffer.concat([signature, signature]).subarray(0, length);
      assert.equal(engine.verifySchnorr(other, message, pubkey), false);
    }
  });

  test(`${engine.name} tells good from bad inside one batch, each bit of it counted`, () => {
    const events = Array.from({ length: 20 }, (_, index) =>
      signedEvent({ content: `${index}` }, keyFrom(`${index % 3}`)),
    );
    const packed = packSignatures(events);
    assert.equal(packed.length, 20 * 128);
    assert.deepEqual([...verifyPacked(engine, packed)], Array(20).fill(1));
    for (let index = 0; index < 20; index += 2) packed[index * 128 + index * 6]! ^= 1;
    assert.deepEqual(
      [...verifyPacked(engine, packed)],
      Array.from({ length: 20 }, (_, index) => index % 2),
    );
  });

  test(`${engine.name} refuses a good id with another's signature, and another's id with a good signature (threats.md 21)`, () => {
    const mine = signedEvent({ content: "x" }, keyFrom("me"));
    const same = signedEvent({ content: "x" }, keyFrom("other"));
    const other = signedEvent({ content: "y" }, keyFrom("me"));
    const copies = [mine, { ...mine, sig: same.sig }, { ...mine, sig: other.sig }];
    assert.deepEqual([...verifyPacked(engine, packSignatures(copies))], [1, 0, 0]);
    // With another pubkey the id is no longer the hash of the event: it does not get as far as here.
    const { raw: _, ...claimed } = { ...mine, pubkey: same.pubkey, sig: same.sig };
    assert.equal(parseEvent(claimed).ok, false);
  });
}

test("all engines agree on random and damaged signatures", { skip: engines.length < 2 }, () => {
  for (let run = 0; run < 300; run++) {
    const packed = packSignatures([signedEvent({ content: `${run}` }, keyFrom(`${run % 7}`))]);
    if (run % 2 === 1) packed[(run * 37) % 128]! ^= 1 << (run % 8);
    for (const engine of engines) {
      assert.equal(verifyPacked(engine, packed)[0], run % 2 === 1 ? 0 : 1, `run ${run}, ${engine.name}`);
    }
  }
});

// p is the field's size, n the group's order; both are above 2^255. A key is an x below p; between n and p lie x whose
// points ECDSA names in another way, and many that are none.
const p = 2n ** 256n - 2n ** 32n - 977n;
const n = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const bytesOf = (value: bigint): Buffer => Buffer.from(value.toString(16).padStart(64, "0"), "hex");

test("all engines agree at the edges of what is a key and a signature", { skip: engines.length < 2 }, () => {
  const { signature, message, pubkey } = vectors[1]!;
  const edges = [
    0n,
    1n,
    2n,
    n - 1n,
    n,
    n + 1n,
    n + 2n,
    n + 4n,
    n + 5n,
    p - 4n,
    p - 3n,
    p - 1n,
    p,
    p + 1n,
    2n ** 256n - 1n,
  ];
  const [r, s] = [signature.subarray(0, 32), signature.subarray(32)];
  const tried = edges.map(bytesOf).flatMap((edge) => [
    [signature, edge],
    [Buffer.concat([edge, s]), pubkey],
    [Buffer.concat([r, edge]), pubkey],
    [Buffer.concat([edge, edge]), edge],
  ]);
  for (const [signed, key] of tried as [Buffer, Buffer][]) {
    for (const engine of engines) {
      assert.equal(engine.verifySchnorr(signed, message, key), false, `${engine.name} ${signed.toString("hex")}`);
    }
  }
});

test("native answers the same whether it knows a key, has forgotten it or never keeps one", {
  skip: !native.ok,
}, async () => {
  for (const maxKnown of [0, 1, 2, 100]) {
    const loaded = await loadNative(libraryNames(), maxKnown);
    assert.ok(loaded.ok);
    for (let run = 0; run < 60; run++) {
      // Three writers in turn; the second copy has another's signature, the third a pubkey that is no point.
      const event = signedEvent({ content: `${run}` }, keyFrom(`${run % 3}`));
      const other = signedEvent({ content: `${run}` }, keyFrom(`${(run + 1) % 3}`));
      const copies = [event, { ...event, sig: other.sig }, { ...event, pubkey: "f".repeat(64) as typeof event.pubkey }];
      assert.deepEqual([...verifyPacked(loaded.engine, packSignatures(copies))], [1, 0, 0], `${maxKnown}, run ${run}`);
    }
  }
});

test("native is chosen when it is there, then what a package brings, and each can be forced", async () => {
  assert.equal((await chooseEngine("wasm")).name, "wasm");
  const best = [native, prebuilt].find((loaded) => loaded.ok);
  assert.equal((await chooseEngine()).name, best?.ok ? best.engine.name : "wasm");
  if (prebuilt.ok) assert.equal((await chooseEngine("prebuilt")).name, "prebuilt libsecp256k1");
  else await assert.rejects(chooseEngine("prebuilt"), /prebuilt verification was demanded/);
  if (native.ok) assert.match((await chooseEngine("native")).name, /^native libsecp256k1/);
  else await assert.rejects(chooseEngine("native"), /native verification was demanded/);
});

test("a library that is missing, or lacks Schnorr, is not usable and says why", async () => {
  assert.deepEqual(await loadNative(["libnosuchthing.so.9"]), { ok: false, why: "libsecp256k1 is not installed" });
  const libc = process.platform === "darwin" ? "libSystem.dylib" : "libc.so.6";
  const result = await loadNative([libc]);
  assert.ok(!result.ok);
  assert.match(result.why, /cannot be used/);
});

test("names are tried from the newest version down, on Linux and macOS", () => {
  assert.equal(libraryNames("linux")[0], "libsecp256k1.so.6");
  assert.equal(libraryNames("linux").at(-1), "libsecp256k1.so.0");
  assert.ok(libraryNames("darwin").includes("libsecp256k1.dylib"));
});
