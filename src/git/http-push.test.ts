import assert from "node:assert/strict";
import { createServer, get, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { ManualClock } from "../base/testing/manual-clock.js";
import type { Oid, RefName } from "../nostr/nip34.js";
import { PushResponder, reportBody } from "./http-push.js";
import type { CommandVerdict } from "./push-types.js";

const command = { ref: "refs/heads/main" as RefName, old: undefined, new: "a".repeat(40) as Oid };
const yes: CommandVerdict = { command, ok: true, effect: "move" };
const no: CommandVerdict = { command, ok: false, code: "no-state", reason: "publish\na state\0first" };
const plain = { reportStatus: true, sideBand: false, quiet: false, atomic: false };
const band = { ...plain, sideBand: true };

describe("push report", () => {
  it("is plain without side-band", () => {
    const body = reportBody({ unpack: "ok", verdicts: [yes], messages: ["hello"] }, plain);
    assert.equal(body.toString(), "000eunpack ok\n0017ok refs/heads/main\n0000");
  });

  it("begins with ERR when refused without side-band, and what others wrote cannot break its lines", () => {
    const body = reportBody({ unpack: "ok", verdicts: [no], messages: [] }, plain);
    assert.equal(
      body.toString(),
      "0034ERR authorisation failed: publish a state first\n000eunpack ok\n002dng refs/heads/main publish a state first\n0000",
    );
  });

  it("puts words on band 2 and the report on band 1", () => {
    const body = reportBody({ unpack: "ok", verdicts: [no, yes], messages: ["released"] }, band).toString();
    assert.match(body, /^001b\u0002publish a state first\n000e\u0002released\n[0-9a-f]{4}\u0001000eunpack ok\n/);
    assert.match(body, /00000000$/);
  });

  it("is empty for a client that asked for none", () => {
    const silent = { ...plain, reportStatus: false };
    assert.equal(reportBody({ unpack: "ok", verdicts: [yes], messages: [] }, silent).length, 0);
  });

  for (const [quiet, seconds] of [
    [false, 5],
    [true, 5],
    [false, 2],
  ] as const) {
    it(`gives a sign of life every ${seconds} s while we work${quiet ? ", without words when asked to be quiet" : ""}`, async () => {
      const clock = new ManualClock();
      let responder: PushResponder | undefined;
      const server = createServer((_request, response: ServerResponse) => {
        responder = new PushResponder(response, { ...band, quiet }, clock, seconds * 1_000);
        responder.begin();
        clock.advance((2 * seconds + 1) * 1_000);
        void responder.end({ unpack: "ok", verdicts: [yes], messages: [] });
        clock.advance(60_000);
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const text = await new Promise<string>((resolve) => {
        get({ port: (server.address() as AddressInfo).port, host: "127.0.0.1" }, (response) => {
          let all = "";
          response.on("data", (chunk: Buffer) => {
            all += chunk.toString();
          });
          response.on("end", () => resolve(all));
        });
      });
      server.close();
      const sign = quiet ? "0005\u0001" : "0019\u0002still working on it\n";
      assert.ok(text.startsWith(sign + sign), JSON.stringify(text));
      assert.equal(text.split(sign).length - 1, 2, "none after the report");
    });
  }
});
