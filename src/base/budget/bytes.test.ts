import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteBudget, type HeldBytes } from "./bytes.js";

const limits = { inAll: 100, perAddress: 60 };

test("bytes are bounded by address and in all; what is refused changes nothing; a closed holding gives all back", () => {
  const budget = new ByteBudget(() => limits);
  const one = budget.open("192.0.2.1");
  const other = budget.open("192.0.2.2");
  assert.ok(one.hold(60));
  assert.ok(!one.hold(61));
  assert.ok(!budget.open("192.0.2.1").hold(1));
  assert.equal(one.bytes, 60);
  assert.ok(!other.hold(41));
  assert.ok(other.hold(40));
  assert.ok(one.hold(10));
  assert.ok(other.hold(60));
  assert.deepEqual([budget.held, budget.heldBy("192.0.2.1"), budget.heldBy("192.0.2.2")], [70, 10, 60]);
  other.close();
  other.close();
  assert.ok(!other.hold(1), "a closed holding holds nothing");
  assert.deepEqual([budget.held, budget.heldBy("192.0.2.2")], [10, 0]);
});

test("an IPv6 /64 is one address", () => {
  const budget = new ByteBudget(() => limits);
  assert.ok(budget.open("2001:db8::1").hold(40));
  assert.ok(!budget.open("2001:db8::2").hold(40));
  assert.ok(budget.open("2001:db8:0:1::2").hold(40));
});

test("who holds most of the address that holds most gives way, and who cannot give way stays", () => {
  const gone: string[] = [];
  const budget = new ByteBudget(() => ({ inAll: 100, perAddress: 100 }));
  const open = (name: string, ip: string, bytes: number): HeldBytes => {
    const holding = budget.open(ip, { giveWay: () => gone.push(name) });
    assert.ok(holding.hold(bytes), name);
    return holding;
  };
  const fixed = budget.open("192.0.2.1");
  assert.ok(fixed.hold(5));
  open("a small", "192.0.2.1", 10);
  open("a large", "192.0.2.1", 30);
  open("b larger still", "192.0.2.2", 35);
  const asker = budget.open("192.0.2.3");
  assert.ok(asker.hold(30));
  assert.deepEqual(gone, ["a large"]);
  assert.ok(asker.hold(70));
  assert.deepEqual(gone, ["a large", "b larger still"]);
  assert.ok(!asker.hold(96), "what does not give way is not taken");
  assert.equal(fixed.bytes, 5);
});

test("who is itself the largest is refused and gives way; nobody else goes for it", () => {
  const gone: string[] = [];
  const budget = new ByteBudget(() => ({ inAll: 100, perAddress: 100 }));
  const small = budget.open("192.0.2.2", { giveWay: () => gone.push("small") });
  const large = budget.open("192.0.2.1", { giveWay: () => gone.push("large") });
  assert.ok(small.hold(20));
  assert.ok(large.hold(70));
  assert.ok(!large.hold(90));
  assert.deepEqual([gone, budget.held, large.isClosed], [["large"], 20, true]);
});

test("what waits decides who goes, not what is held: texts that several wait for are held once", () => {
  const gone: string[] = [];
  const budget = new ByteBudget(() => ({ inAll: 100, perAddress: 100 }));
  const text = budget.openForAll();
  assert.ok(text.hold(80));
  const open = (name: string, waiting: number): void => {
    const holding = budget.open("192.0.2.1", {
      waiting: () => waiting,
      giveWay() {
        gone.push(name);
        text.close();
      },
    });
    assert.ok(holding.hold(1));
  };
  open("has taken nearly all", 10);
  open("has taken nothing", 80);
  assert.ok(budget.openForAll().hold(50));
  assert.deepEqual(gone, ["has taken nothing"]);
});
