import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { compareNewestFirst, type EventId } from "../nostr/event.js";
import type { ObjectFormat, Oid, RefName } from "../nostr/nip34.js";
import { decidePush } from "./decide-push.js";
import type { CandidateState, PushAuthority, PushCommand, PushDecision } from "./push-types.js";

const oid = (digit: string): Oid => digit.repeat(40) as Oid;
const eventId = (digit: string): EventId => digit.repeat(64) as EventId;
const [A, B, C] = [oid("a"), oid("b"), oid("c")];
const main = "refs/heads/main" as RefName;
const dev = "refs/heads/dev" as RefName;
const nostr = `refs/nostr/${eventId("e")}` as RefName;

const state = (id: string, created_at: number, refs: Record<string, Oid>, governs = false): CandidateState => ({
  id: eventId(id),
  created_at,
  refs: new Map(Object.entries(refs) as [RefName, Oid][]),
  governs,
});

const base: PushAuthority = {
  strict: false,
  mark: undefined,
  candidates: [],
  nostrEvents: new Map(),
  unclaimed: { ok: true, maxBytes: 1 },
};

const to = (ref: RefName, value: Oid | undefined, old?: Oid): PushCommand => ({ ref, old, new: value });

interface Case {
  readonly name: string;
  readonly commands: readonly PushCommand[];
  readonly authority: Partial<PushAuthority>;
  readonly current?: Record<string, Oid>;
  readonly atomic?: boolean;
  readonly formats?: { readonly here: ObjectFormat; readonly pushed: ObjectFormat };
  readonly complete?: boolean | undefined;
  /** For each command: an effect, or a refusal's code. */
  readonly expected: readonly string[];
  readonly candidate?: string;
}

const verdictsOf = ({ verdicts }: PushDecision): string[] =>
  verdicts.map((verdict) => (verdict.ok ? verdict.effect : verdict.code));

function decide({
  commands,
  authority,
  current = {},
  atomic = false,
  formats = { here: "sha1", pushed: "sha1" },
  complete,
}: Omit<Case, "name" | "expected">): PushDecision {
  return decidePush({
    commands,
    atomic,
    authority: { ...base, ...authority },
    current: new Map(Object.entries(current).map(([ref, value]) => [ref as RefName, { oid: value }])),
    formats,
    completeness: () => complete,
  });
}

const s1 = state("1", 100, { [main]: A });
const s2 = state("2", 200, { [main]: B });

const cases: readonly Case[] = [
  {
    name: "the listed value passes",
    commands: [to(main, A)],
    authority: { candidates: [s1] },
    expected: ["move"],
    candidate: "1",
  },
  {
    name: "ids of another format than the repository's",
    commands: [to(main, A)],
    authority: { candidates: [s1] },
    formats: { here: "sha256", pushed: "sha1" },
    expected: ["object-format"],
  },
  { name: "without a state nothing passes", commands: [to(main, A)], authority: {}, expected: ["no-state"] },
  {
    name: "another value than listed",
    commands: [to(main, C)],
    authority: { candidates: [s1] },
    expected: ["state-differs"],
  },
  { name: "a ref the state lacks", commands: [to(dev, A)], authority: { candidates: [s1] }, expected: ["no-state"] },
  {
    name: "the newest candidate under which all pass",
    commands: [to(main, A)],
    authority: { candidates: [s2, s1] },
    expected: ["move"],
    candidate: "1",
  },
  {
    name: "newest first when several pass",
    commands: [to(main, A)],
    authority: { candidates: [s1, state("3", 300, { [main]: A, [dev]: B })] },
    expected: ["move"],
    candidate: "3",
  },
  {
    name: "in one second the lower id is newer",
    commands: [to(main, A)],
    authority: { candidates: [state("5", 100, { [main]: A }), state("4", 100, { [main]: A })] },
    expected: ["move"],
    candidate: "4",
  },
  {
    name: "a candidate that lets all pass wins over a newer that lets one",
    commands: [to(main, A), to(dev, A)],
    authority: { candidates: [state("9", 900, { [main]: A }), state("3", 300, { [main]: A, [dev]: A })] },
    expected: ["move", "move"],
    candidate: "3",
  },
  {
    name: "otherwise the newest that lets at least one pass",
    commands: [to(main, A), to(dev, C)],
    authority: { candidates: [s2, s1] },
    expected: ["move", "no-state"],
    candidate: "1",
  },
  {
    name: "atomic takes all or nothing",
    commands: [to(main, A), to(dev, C)],
    atomic: true,
    authority: { candidates: [s1] },
    expected: ["atomic", "no-state"],
  },
  {
    name: "the mark closes older states",
    commands: [to(main, A)],
    authority: { candidates: [s1], mark: s2 },
    expected: ["superseded"],
  },
  {
    name: "the mark itself is a candidate",
    commands: [to(main, B)],
    authority: { candidates: [s1, s2], mark: s2 },
    expected: ["move"],
    candidate: "2",
  },
  {
    name: "a mark of a state that is gone still counts",
    commands: [to(main, A)],
    authority: { candidates: [s1], mark: { id: eventId("0"), created_at: 100 } },
    expected: ["superseded"],
  },
  {
    name: "a state without refs is no licence",
    commands: [to(main, undefined, A)],
    current: { [main]: A },
    authority: { candidates: [state("7", 700, {}, true)] },
    expected: ["no-state"],
  },
  {
    name: "the old value is advisory",
    commands: [to(main, A, C)],
    current: { [main]: B },
    authority: { candidates: [s1] },
    expected: ["move"],
    candidate: "1",
  },
  {
    name: "deletion under a governing state that lacks the ref",
    commands: [to(dev, undefined, A)],
    current: { [dev]: A },
    complete: false,
    authority: { candidates: [state("1", 100, { [main]: A }, true)] },
    expected: ["move"],
    candidate: "1",
  },
  {
    name: "deletion under a waiting, incomplete state",
    commands: [to(dev, undefined, A)],
    current: { [dev]: A },
    complete: false,
    authority: { candidates: [s1] },
    expected: ["not-complete"],
  },
  {
    name: "deletion under a complete state",
    commands: [to(dev, undefined, A)],
    current: { [dev]: A },
    complete: true,
    authority: { candidates: [s1] },
    expected: ["move"],
    candidate: "1",
  },
  {
    name: "deletion while completeness is not known yet",
    commands: [to(dev, undefined, A)],
    current: { [dev]: A },
    complete: undefined,
    authority: { candidates: [s1] },
    expected: ["move"],
    candidate: "1",
  },
  {
    name: "deletion of a listed ref",
    commands: [to(main, undefined, A)],
    current: { [main]: A },
    authority: { candidates: [s1] },
    expected: ["listed-ref"],
  },
  {
    name: "deletion of a ref that moved since",
    commands: [to(dev, undefined, A)],
    current: { [dev]: B },
    complete: true,
    authority: { candidates: [s1] },
    expected: ["stale-old-value"],
  },
  {
    name: "a value that is there already needs no state and starts nothing",
    commands: [to(main, A)],
    current: { [main]: A },
    authority: {},
    expected: ["none"],
  },
  {
    name: "deleting what is not there moves nothing",
    commands: [to(dev, undefined)],
    authority: { candidates: [s1] },
    expected: ["none"],
  },
  {
    name: "an equal value beside a refused one",
    commands: [to(main, A), to(dev, B)],
    current: { [main]: A },
    authority: { candidates: [s1] },
    expected: ["none", "no-state"],
  },
  {
    name: "strict: the rest of the state is wanted too",
    commands: [to(main, A)],
    authority: { strict: true, candidates: [state("3", 300, { [main]: A, [dev]: B })] },
    expected: ["strict"],
  },
  {
    name: "strict: what the state lacks must go",
    commands: [to(main, A)],
    current: { [dev]: B },
    authority: { strict: true, candidates: [s1] },
    expected: ["strict"],
  },
  {
    name: "strict: fully in line",
    commands: [to(main, A), to(dev, undefined, B)],
    current: { [dev]: B },
    complete: true,
    authority: { strict: true, candidates: [s1] },
    expected: ["move", "move"],
    candidate: "1",
  },
  {
    name: "read-only refuses everything",
    commands: [to(main, A), to(nostr, A)],
    authority: { readOnlyReason: "archive", candidates: [s1] },
    expected: ["read-only", "read-only"],
  },
  {
    name: "an unknown event's ref is a placeholder",
    commands: [to(nostr, A)],
    authority: {},
    expected: ["placeholder"],
  },
  {
    name: "placeholders have a budget",
    commands: [to(nostr, A)],
    authority: { unclaimed: { ok: false, reason: "full" } },
    expected: ["unclaimed-budget"],
  },
  {
    name: "a known event's own tip",
    commands: [to(nostr, A)],
    authority: { nostrEvents: new Map([[eventId("e"), { known: true, tip: A, addressesThisRepository: true }]]) },
    expected: ["move"],
  },
  {
    name: "a known event's other tip",
    commands: [to(nostr, B)],
    authority: { nostrEvents: new Map([[eventId("e"), { known: true, tip: A, addressesThisRepository: true }]]) },
    expected: ["nostr-other-tip"],
  },
  {
    name: "a known event without an object id",
    commands: [to(nostr, B)],
    authority: {
      nostrEvents: new Map([[eventId("e"), { known: true, tip: undefined, addressesThisRepository: true }]]),
    },
    expected: ["nostr-other-tip"],
  },
  {
    name: "an event for another repository",
    commands: [to(nostr, A)],
    authority: { nostrEvents: new Map([[eventId("e"), { known: true, tip: A, addressesThisRepository: false }]]) },
    expected: ["nostr-other-repository"],
  },
  {
    name: "a nostr ref is not deleted by a push",
    commands: [to(nostr, undefined)],
    current: { [nostr]: A },
    authority: {},
    expected: ["nostr-delete"],
  },
  {
    name: "a refused nostr ref does not hold up a branch",
    commands: [to(main, A), to(nostr, undefined)],
    current: { [nostr]: A },
    authority: { candidates: [s1] },
    expected: ["move", "nostr-delete"],
    candidate: "1",
  },
  {
    name: "only nostr refs under /prs/",
    commands: [to(main, A), to(nostr, A)],
    authority: { nostrRefsOnly: true, candidates: [s1] },
    expected: ["ref-not-allowed", "placeholder"],
  },
  {
    name: "other namespaces",
    commands: [to("refs/notes/x" as RefName, A), to("refs/heads/HEAD" as RefName, A)],
    authority: { candidates: [s1] },
    expected: ["ref-not-allowed", "ref-not-allowed"],
  },
];

describe("push decision", () => {
  for (const { name, expected, candidate, ...facts } of cases) {
    it(name, () => {
      const decision = decide(facts);
      assert.deepEqual(verdictsOf(decision), expected);
      assert.equal(decision.candidate?.id, candidate === undefined ? undefined : eventId(candidate));
      const moves = expected.some((word) => word === "move" || word === "placeholder");
      assert.equal(decision.moves, moves);
      for (const verdict of decision.verdicts) {
        if (!verdict.ok) assert.doesNotMatch(verdict.reason, /not found|404/i);
      }
    });
  }

  it("never moves a branch or tag to a value that no usable candidate lists (random cases)", () => {
    const value = fc.constantFrom(A, B, C, undefined);
    const ref = fc.constantFrom(main, dev, "refs/tags/v1" as RefName);
    const refs = fc.dictionary(ref, fc.constantFrom(A, B, C));
    const candidate = fc.record({
      id: fc.constantFrom("1", "2", "3", "4"),
      at: fc.integer({ min: 1, max: 4 }),
      refs,
      governs: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.record({ ref, new: value }), { selector: (command) => command.ref, minLength: 1 }),
        fc.uniqueArray(candidate, { selector: ({ id }) => id }),
        refs,
        fc.integer({ min: 0, max: 5 }),
        fc.boolean(),
        fc.boolean(),
        (commands, states, current, markAt, atomic, strict) => {
          const mark = { id: eventId("2"), created_at: markAt };
          const candidates = states.map(({ id, at, refs: listed, governs }) => state(id, at, listed, governs));
          const decision = decide({
            commands: commands.map((command) => ({ ...command, old: undefined })),
            authority: { candidates, mark, strict },
            current,
            atomic,
            complete: false,
          });
          const chosen = candidates.find(({ id }) => id === decision.candidate?.id);
          for (const verdict of decision.verdicts) {
            if (!verdict.ok || verdict.effect !== "move") continue;
            assert.ok(chosen && chosen.refs.size > 0 && compareNewestFirst(chosen, mark) <= 0);
            assert.equal(chosen.refs.get(verdict.command.ref), verdict.command.new);
            if (verdict.command.new === undefined) assert.ok(chosen.governs);
          }
          if (atomic) assert.ok(new Set(decision.verdicts.map(({ ok }) => ok)).size === 1);
        },
      ),
    );
  });
});
