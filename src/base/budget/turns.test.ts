import assert from "node:assert/strict";
import { test } from "node:test";
import { type TurnOwner, Turns } from "./turns.js";

const never = new AbortController().signal;
const wide = { total: 100, perRepository: 100, perIp: 100, maxQueued: 100 };

/** Asks, and tells at any time whether it got a place, waits or was refused. */
function asker(turns: Turns, owner: TurnOwner, signal: AbortSignal = never) {
  let answer: (() => void) | undefined | "waits" = "waits";
  void turns.acquire(owner, signal).then((release) => {
    answer = release;
  });
  return {
    get state(): "runs" | "waits" | "refused" {
      return answer === "waits" ? "waits" : answer ? "runs" : "refused";
    },
    release(): void {
      if (typeof answer === "function") answer();
    },
  };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("places are bounded in all, by address and by repository; what does not fit waits, and what does not fit there is refused", async () => {
  const cases: [limits: Partial<typeof wide>, owners: TurnOwner[], states: string[]][] = [
    [{ total: 1, maxQueued: 1 }, [{ ip: "a" }, { ip: "b" }, { ip: "c" }], ["runs", "waits", "refused"]],
    [{ perIp: 1 }, [{ ip: "a" }, { ip: "a" }, { ip: "b" }], ["runs", "waits", "runs"]],
    [{ perIp: 1 }, [{ ip: "2001:db8::1" }, { ip: "2001:db8::2" }], ["runs", "waits"]],
    [
      { perRepository: 1 },
      [
        { ip: "a", repository: "r" },
        { ip: "b", repository: "r" },
        { ip: "c", repository: "s" },
      ],
      ["runs", "waits", "runs"],
    ],
  ];
  for (const [limits, owners, states] of cases) {
    const turns = new Turns(() => ({ ...wide, ...limits }));
    const askers = owners.map((owner) => asker(turns, owner));
    await settled();
    assert.deepEqual(
      askers.map((one) => one.state),
      states,
    );
  }
});

test("a free place goes to the address that has fewest, and of those to who waits longest", async () => {
  const turns = new Turns(() => ({ ...wide, total: 2 }));
  const first = asker(turns, { ip: "a" });
  asker(turns, { ip: "a" });
  const waiting = ["a", "a", "b", "c"].map((ip) => ({ ip, one: asker(turns, { ip }) }));
  await settled();
  first.release();
  await settled();
  const running = () => waiting.filter(({ one }) => one.state === "runs").map(({ ip }) => ip);
  assert.deepEqual(running(), ["b"]);
  waiting[2]?.one.release();
  await settled();
  assert.deepEqual(running(), ["b", "c"]);
});

test("who fills the queue does not keep others out of it", async () => {
  const turns = new Turns(() => ({ ...wide, total: 1, maxQueued: 3 }));
  asker(turns, { ip: "a" });
  const crowd = ["a", "a", "a"].map((ip) => asker(turns, { ip }));
  const other = asker(turns, { ip: "b" });
  await settled();
  assert.deepEqual(
    crowd.map((one) => one.state),
    ["waits", "waits", "refused"],
  );
  assert.equal(other.state, "waits");
  const oneMore = asker(turns, { ip: "a" });
  await settled();
  assert.deepEqual([oneMore.state, turns.queued], ["refused", 3]);
});

test("places are kept for addresses that have none, and for who is trusted", async () => {
  const turns = new Turns(() => ({ ...wide, total: 4, keptForOthers: 1, keptForTrusted: 1 }));
  const greedy = ["a", "a", "a"].map((ip) => asker(turns, { ip }));
  const other = asker(turns, { ip: "b" });
  const late = asker(turns, { ip: "c" });
  const owner = asker(turns, { ip: "d", trusted: true });
  await settled();
  assert.deepEqual(
    [...greedy, other, late, owner].map((one) => one.state),
    ["runs", "runs", "waits", "runs", "waits", "runs"],
  );
});

test("who goes away while it waits leaves the queue, and a place is given back once", async () => {
  const turns = new Turns(() => ({ ...wide, total: 1 }));
  const running = asker(turns, { ip: "a" });
  const left = new AbortController();
  const waiting = asker(turns, { ip: "b" }, left.signal);
  left.abort();
  await settled();
  assert.deepEqual([waiting.state, turns.queued, turns.running], ["refused", 0, 1]);
  running.release();
  running.release();
  assert.equal(turns.running, 0);
});
