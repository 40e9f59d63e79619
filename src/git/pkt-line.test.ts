import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { defaultConfig } from "../config/testing/default-config.js";
import { encodeBand, encodePkt, flushPkt, maxPktBytes, PktError, readAllPkts, readPkt } from "./pkt-line.js";
import { PushHeadParser } from "./push-commands.js";

describe("pkt-lines", () => {
  it("come back as they were written", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 })), (payloads) => {
        const bytes = Buffer.concat([...payloads.map((payload) => encodePkt(Buffer.from(payload))), flushPkt]);
        const pkts = [...readAllPkts(bytes)];
        assert.equal(pkts.at(-1)?.type, "flush");
        const read = pkts.flatMap((pkt) => (pkt.type === "data" ? [new Uint8Array(pkt.payload)] : []));
        assert.deepEqual(
          read,
          payloads.map((payload) => new Uint8Array(payload)),
        );
      }),
    );
  });

  it("of random bytes are an error or nothing, never a crash or a payload out of bounds", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (random) => {
        try {
          const read = readPkt(Buffer.from(random), 0);
          if (read) assert.ok(read.end <= random.length);
        } catch (error) {
          assert.ok(error instanceof PktError);
        }
      }),
    );
  });

  it("split a long side-band payload", () => {
    const pkts = [...readAllPkts(encodeBand(1, Buffer.alloc(200_000, "x")))];
    assert.equal(pkts.length, 4);
    assert.ok(
      pkts.every((pkt) => pkt.type === "data" && pkt.payload[0] === 1 && pkt.payload.length <= maxPktBytes - 4),
    );
    assert.equal(encodeBand(1, "").toString(), "0005\u0001");
  });
});

describe("the head of a push", () => {
  const zero = "0".repeat(40);
  const line = (text: string): Buffer => encodePkt(text);
  const good = Buffer.concat([
    line(`${zero} ${"a".repeat(40)} refs/heads/ü\0 report-status side-band-64k atomic agent=x`),
    line(`${"b".repeat(40)} ${zero} refs/tags/v1\n`),
    line(`shallow ${"c".repeat(40)}`),
    flushPkt,
    Buffer.from("PACK"),
  ]);

  it("is read however it is cut into chunks, and the pack's bytes are left", () => {
    for (let size = 1; size <= good.length; size += 3) {
      const parser = new PushHeadParser(defaultConfig());
      let at = 0;
      let result = parser.push(good.subarray(0, size));
      while (result.status === "more") {
        at += size;
        result = parser.push(good.subarray(at, at + size));
      }
      assert.equal(result.status, "ready");
      if (result.status !== "ready") continue;
      const rest = Buffer.concat([parser.rest, good.subarray(at + size)]);
      assert.equal(rest.toString(), "PACK");
      assert.deepEqual(result.head.commands, [
        { ref: "refs/heads/ü", old: undefined, new: "a".repeat(40) },
        { ref: "refs/tags/v1", old: "b".repeat(40), new: undefined },
      ]);
      assert.deepEqual(result.head.capabilities, { reportStatus: true, sideBand: true, quiet: false, atomic: true });
    }
  });

  it("with any byte changed is read or refused, never thrown at, and never names an unchecked ref", () => {
    fc.assert(
      fc.property(fc.nat(good.length - 5), fc.nat(255), (at, value) => {
        const bytes = Buffer.from(good);
        bytes[at] = value;
        const result = new PushHeadParser(defaultConfig()).push(bytes);
        if (result.status !== "ready") return;
        for (const { ref } of result.head.commands) assert.match(ref, /^refs\/[^\x00-\x20\x7f~^:?*[\\]+$/);
      }),
      { numRuns: 2_000 },
    );
  });

  it("stops reading after 1 MiB", () => {
    const parser = new PushHeadParser(defaultConfig());
    const chunk = line(`shallow ${"c".repeat(40)}`);
    const block = Buffer.concat(Array.from({ length: 1000 }, () => chunk));
    let result = parser.push(block);
    let blocks = 1;
    while (result.status === "more" && blocks < 100) {
      result = parser.push(block);
      blocks += 1;
    }
    assert.equal(result.status, "refused");
    assert.ok(blocks < 25);
  });
});
