// Actions are kept up to date item by item; here they are compared with the plain difference of three sets.

import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { type Relay, SyncState } from "./core-state.js";
import { nextLayer, setPhase, takeAction } from "./items.js";
import { phaseOf, phases } from "./job.js";
import { applyWindow } from "./targets.js";
import { syncConfig } from "./testing/config.js";
import { announcing, issue } from "./testing/driver.js";

const config = syncConfig({ syncMaxTagsPerFilter: 3 });
const relays = ["wss://a.example", "wss://b.example"];

type Change =
  | { readonly do: "announce"; readonly repo: number; readonly relays: readonly string[]; readonly full: boolean }
  | { readonly do: "root"; readonly repo: number; readonly root: number }
  | { readonly do: "removeRepo" | "removeRoot"; readonly which: number }
  | { readonly do: "take"; readonly confirm: boolean };

const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ do: fc.constant("announce" as const), repo: fc.nat(4), relays: fc.subarray(relays), full: fc.boolean() }),
  fc.record({ do: fc.constant("root" as const), repo: fc.nat(4), root: fc.nat(6) }),
  fc.record({ do: fc.constantFrom("removeRepo" as const, "removeRoot" as const), which: fc.nat(6) }),
  fc.record({ do: fc.constant("take" as const), confirm: fc.boolean() }),
);

/** targets − pending − confirmed, worked out from the words alone. */
const naive = (relay: Relay): number[] =>
  [...relay.items.keys()].filter((item) => phaseOf(relay.items.get(item)) === phases.fresh).sort((a, b) => a - b);

function nextAction(state: SyncState, relay: Relay): { layer: number; items: readonly number[] } | undefined {
  const layer = nextLayer(relay);
  return layer === undefined ? undefined : { layer, items: takeAction(state, relay, layer) };
}

it("what actions hand out is targets minus pending minus confirmed, lowest layer first, each item once", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      const state = new SyncState(config);
      const { wanted } = state;
      for (const next of changes) {
        if (next.do === "announce")
          wanted.announce(announcing("ann", `r${next.repo}`, next.relays), next.full ? "full" : "state-only");
        else if (next.do === "root") wanted.addRoot(issue(`root ${next.root}`, "ann", `r${next.repo}`));
        else if (next.do === "removeRepo")
          wanted.removeRepo(`30617:${announcing("ann", "", []).pubkey}:r${next.which}`);
        else if (next.do === "removeRoot") wanted.removeRoot(issue(`root ${next.which}`, "ann", "").id);
        applyWindow(state);
        for (const relay of state.relays.values()) {
          const targets = [...relay.items.keys()].length;
          const expected = new Set(
            [...wanted.repos.values()]
              .filter((repo) => repo.placed.has(relay.ix))
              .flatMap((repo) =>
                repo.level === "full"
                  ? [`s${repo.ix}`, `r${repo.ix}`, ...[...repo.roots].map((root) => `e${root}`)]
                  : [`s${repo.ix}`],
              ),
          );
          assert.equal(targets, expected.size + 1, "targets are wanted turned inside out, and layer 1");
          if (next.do !== "take") continue;
          const before = naive(relay);
          const action = nextAction(state, relay);
          assert.equal(action === undefined, before.length === 0);
          if (!action) continue;
          assert.ok(action.items.every((item) => before.includes(item) && (item & 7) === action.layer));
          assert.equal(action.layer, Math.min(...before.map((item) => item & 7)));
          assert.equal(new Set(action.items).size, action.items.length);
          if (!next.confirm) continue;
          for (const item of action.items) setPhase(state, relay, item, phases.confirmed);
        }
      }
      for (const relay of state.relays.values()) {
        const left = naive(relay);
        const taken: number[] = [];
        for (let action = nextAction(state, relay); action; action = nextAction(state, relay))
          taken.push(...action.items);
        assert.deepEqual(
          taken.sort((a, b) => a - b),
          left,
        );
      }
    }),
    { numRuns: 300 },
  );
});
