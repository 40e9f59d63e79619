// Remembered ids beside a plain model, and who makes room when memory is full.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { EventId } from "../../nostr/event.js";
import type { RememberedId } from "./messages.js";
import { ColdIds } from "./remembered.js";
import { announcing, Driver, event, id, key, only } from "./testing/driver.js";

const entry = (name: string, relay: string, identifier: string, untilWallMs = 1_000_000): RememberedId => ({
  id: id(name),
  kind: 30617,
  author: key(relay),
  identifier,
  reason: "service-not-listed",
  relay,
  untilWallMs,
});

/** Numbers that look random and are the same each time. */
function* numbers(): Generator<number> {
  for (let state = 1; ; ) {
    state = (state * 48_271) % 2_147_483_647;
    yield state;
  }
}

describe("remembered ids", () => {
  it("are found by identifier and by relay like in a plain list, whatever comes and goes", () => {
    const random = numbers();
    const next = (below: number): number => random.next().value % below;
    const cold = new ColdIds();
    let model: RememberedId[] = [];
    for (let step = 0; step < 3_000; step++) {
      const name = `n${next(200)}`;
      if (next(3) > 0) {
        const one = entry(name, `r${next(4)}`, `d${next(9)}`);
        cold.add(one);
        if (!model.some((other) => other.id === one.id)) model.push(one);
      } else {
        assert.equal(
          cold.delete(id(name)),
          model.some((other) => other.id === id(name)),
        );
        model = model.filter((other) => other.id !== id(name));
      }
      assert.equal(cold.size, model.length);
      const relay = `r${next(4)}`;
      const ofRelay = model.filter((other) => other.relay === relay);
      assert.equal(cold.countOf(relay), ofRelay.length);
      assert.equal(cold.oldestOf(relay), ofRelay[0]?.id);
      const identifier = `d${next(9)}`;
      assert.deepEqual(
        cold.withIdentifier(identifier, new Set(), 1_000).map((found) => found.id),
        model.flatMap((other) => (other.identifier === identifier ? [other.id] : [])).reverse(),
      );
    }
  });

  it("of a relay whose announcements are refused without end make room for each other, not those of others", () => {
    const driver = new Driver({ rejectedColdMaxEvents: 100, maxColdShare: 0.1 });
    const remembered = (ids: readonly EventId[]): number => {
      const forgotten = new Set(only(driver.said, "forget").map((command) => command.id));
      return ids.filter((one) => !forgotten.has(one)).length;
    };
    const refuse = (relay: string, name: string): EventId => {
      const refused = event(name, 30617, [["d", name]]);
      driver.tell({
        type: "verdict",
        relay,
        source: "startup",
        layerFour: false,
        event: refused,
        outcome: { type: "refused", code: "service-not-listed" },
      });
      return refused.id;
    };
    const honest = Array.from({ length: 9 }, (_, n) => refuse("honest.example", `h${n}`));
    const flood = Array.from({ length: 500 }, (_, n) => refuse("flood.example", `f${n}`));
    assert.equal(remembered(honest), 9);
    assert.equal(remembered(flood), 10);
    assert.equal(remembered(flood.slice(-10)), 10, "the newest");
    for (let relay = 0; relay < 50; relay++) for (let n = 0; n < 10; n++) refuse(`s${relay}.example`, `s${relay}/${n}`);
    assert.ok(driver.snapshot().cold <= 100);
    assert.ok(remembered(honest) > 0, "many floods share what is there");
  });

  it("that were kept over a restart are held to the same bounds", () => {
    const driver = new Driver({ rejectedColdMaxEvents: 100, maxColdShare: 0.1 });
    const entries = Array.from({ length: 40 }, (_, n) =>
      entry(`n${n}`, "a.example", `d${n}`, driver.wallMs + 1_000_000),
    );
    const said = driver.tell({ type: "rememberedLoaded", entries });
    assert.equal(driver.snapshot().cold, 10);
    assert.equal(only(said, "forget").length, 30);
  });

  it("are loaded before anything begins", () => {
    const driver = new Driver({ bootstrap: ["wss://b.example" as never] });
    assert.deepEqual(
      driver.tell({ type: "rememberedLoaded", entries: [entry("n", "b.example", "d", driver.wallMs * 2)] }),
      [],
    );
    assert.deepEqual(driver.tell({ type: "naughtyLoaded", entries: [] }), []);
    driver.tell({ type: "tick" });
    driver.advance(0);
    assert.equal(only(driver.said, "connect").length, 1);
    driver.tell({ type: "accepted", event: announcing("ann", "d", []), hosted: true });
  });
});
