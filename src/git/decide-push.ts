// May this push be written (git-http.md, Push 3 and 4; threats.md rows 10 and 16)? Pure: facts in, a verdict for each
// command out. It is made twice with the same function: before the pack is read, when it is not known yet which
// candidates the push completes (`completeness` answers undefined: assume the best), and between prepare and commit,
// on the authority of that moment and with completeness known.

import { compareNewestFirst, type EventId, isEventId } from "../nostr/event.js";
import type { ObjectFormat, Oid, RefName } from "../nostr/nip34.js";
import { otherFormatReason } from "./advertisement.js";
import type {
  CandidateState,
  CommandVerdict,
  PackBudgets,
  PushAuthority,
  PushCommand,
  PushDecision,
  PushRefusalCode,
  PushResult,
  Refused,
  StateStamp,
} from "./push-types.js";
import type { RefUpdate } from "./repository-refs.js";

interface PushFacts {
  readonly commands: readonly PushCommand[];
  readonly atomic: boolean;
  readonly authority: PushAuthority;
  readonly current: ReadonlyMap<RefName, { readonly oid: Oid }>;
  /** How the repository names its objects, and how the commands do. */
  readonly formats: { readonly here: ObjectFormat; readonly pushed: ObjectFormat };
  /** Whether every object of a candidate is here together with this push; undefined: not known yet. */
  readonly completeness: (candidate: CandidateState) => boolean | undefined;
}

const short = (oid: Oid): string => oid.slice(0, 8);

const refused = (command: PushCommand, code: PushRefusalCode, reason: string): CommandVerdict => ({
  command,
  ok: false,
  code,
  reason,
});

const allowed = (command: PushCommand, effect: "move" | "none" | "placeholder"): CommandVerdict => ({
  command,
  ok: true,
  effect,
});

/** The event a `refs/nostr/<id>` is named after. */
export function nostrRefEventId(ref: RefName): EventId | undefined {
  const id = ref.startsWith("refs/nostr/") ? ref.slice("refs/nostr/".length) : "";
  return isEventId(id) ? id : undefined;
}

/** Heads and tags that a state can list and every client can check out. */
function isStateRef(ref: RefName): boolean {
  const name = /^refs\/(?:heads|tags)\/(.+)$/.exec(ref)?.[1];
  return name !== undefined && name !== "HEAD" && !/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(name);
}

export function decidePush(facts: PushFacts): PushDecision {
  const { authority, commands, formats } = facts;
  const refuseEach = (code: PushRefusalCode, reason: string): PushDecision => {
    const verdicts = commands.map((command) => refused(command, code, reason));
    return { verdicts, candidate: undefined, moves: false };
  };
  if (authority.readOnlyReason !== undefined) return refuseEach("read-only", authority.readOnlyReason);
  if (formats.here !== formats.pushed) {
    return refuseEach("object-format", otherFormatReason(formats.here, formats.pushed, "push"));
  }
  const usable = authority.candidates
    .filter(({ refs }) => refs.size > 0)
    .filter((state) => authority.mark === undefined || compareNewestFirst(state, authority.mark) <= 0)
    .sort(compareNewestFirst);
  const nostr = new Map<PushCommand, CommandVerdict>();
  const stateCommands: PushCommand[] = [];
  for (const command of commands) {
    if (nostrRefEventId(command.ref)) nostr.set(command, decideNostrRef(command, facts));
    else if (authority.nostrRefsOnly) nostr.set(command, refused(command, "ref-not-allowed", onlyNostr));
    else if (!isStateRef(command.ref)) nostr.set(command, refused(command, "ref-not-allowed", notAllowed(command)));
    else stateCommands.push(command);
  }
  const chosen = chooseCandidate(stateCommands, usable, facts);
  const verdicts = commands.map(
    (command) => nostr.get(command) ?? chosen.verdicts.get(command) ?? refused(command, "internal", "not decided"),
  );
  return settle(unmixed(verdicts), chosen.candidate, facts.atomic);
}

/**
 * Data of unknown events has limits of its own, which nobody could keep in a pack that brings other data as well: such
 * a push is refused (threats.md row 45).
 */
function unmixed(verdicts: readonly CommandVerdict[]): readonly CommandVerdict[] {
  const effects = new Set(verdicts.map((verdict) => (verdict.ok ? verdict.effect : "none")));
  if (!effects.has("move") || !effects.has("placeholder")) return verdicts;
  const reason =
    "refs of events this server does not know yet are taken by themselves only: push them in a push of their own";
  return verdicts.map((verdict) =>
    verdict.ok && verdict.effect !== "none" ? refused(verdict.command, "unclaimed-budget", reason) : verdict,
  );
}

/** Under `atomic` one refusal is everybody's. */
export function settle(
  verdicts: readonly CommandVerdict[],
  candidate: StateStamp | undefined,
  atomic: boolean,
  because?: string,
): PushDecision {
  const failing = verdicts.find((verdict) => !verdict.ok);
  if (atomic && failing) {
    const reason = `this atomic push was refused because of ${because ?? failing.command.ref}`;
    return {
      verdicts: verdicts.map((verdict) => (verdict.ok ? refused(verdict.command, "atomic", reason) : verdict)),
      candidate: undefined,
      moves: false,
    };
  }
  const stateMoves = verdicts.some(({ ok, command, ...rest }) => {
    return ok && "effect" in rest && rest.effect === "move" && !nostrRefEventId(command.ref);
  });
  return {
    verdicts,
    candidate: stateMoves && candidate ? { id: candidate.id, created_at: candidate.created_at } : undefined,
    moves: verdicts.some((verdict) => verdict.ok && verdict.effect !== "none"),
  };
}

// ---- heads and tags ----------------------------------------------------------------------------------------------

interface Choice {
  readonly candidate: CandidateState | undefined;
  readonly verdicts: ReadonlyMap<PushCommand, CommandVerdict>;
}

function chooseCandidate(
  commands: readonly PushCommand[],
  usable: readonly CandidateState[],
  facts: PushFacts,
): Choice {
  const movesNothing = (command: PushCommand): boolean => facts.current.get(command.ref)?.oid === command.new;
  if (commands.every(movesNothing)) {
    // Truthful without any state, and no state gains anything by it (threats.md row 16).
    return { candidate: undefined, verdicts: new Map(commands.map((command) => [command, allowed(command, "none")])) };
  }
  let best: Choice | undefined;
  for (const candidate of usable) {
    const verdicts = new Map<PushCommand, CommandVerdict>();
    for (const command of commands) {
      const verdict = movesNothing(command) ? allowed(command, "none") : underCandidate(command, candidate, facts);
      verdicts.set(command, verdict);
    }
    if (facts.authority.strict) demandFullAlignment(verdicts, candidate, facts);
    const all = [...verdicts.values()];
    if (all.every(({ ok }) => ok)) return { candidate, verdicts };
    const anyMoves = all.some((verdict) => verdict.ok && verdict.effect === "move");
    // Kept for its reasons: the newest that lets something through, else the newest.
    if (!best || (anyMoves && best.candidate === undefined)) {
      best = { candidate: anyMoves ? candidate : undefined, verdicts };
    }
  }
  return best ?? { candidate: undefined, verdicts: withoutCandidate(commands, movesNothing, facts) };
}

function underCandidate(command: PushCommand, candidate: CandidateState, facts: PushFacts): CommandVerdict {
  const listed = candidate.refs.get(command.ref);
  if (command.new !== undefined) {
    // The client's old value is advisory: the candidate names the value.
    if (listed === command.new) return allowed(command, "move");
    const first = `no state by a maintainer lists ${command.ref} at ${short(command.new)}`;
    const now = listed === undefined ? "does not list it" : `lists ${short(listed)}`;
    return refused(
      command,
      listed === undefined ? "no-state" : "state-differs",
      `${first} (the newest ${now}): publish a state event first, then push again`,
    );
  }
  if (listed !== undefined) {
    return refused(
      command,
      "listed-ref",
      `the state lists ${command.ref} at ${short(listed)}: publish a state event without it first`,
    );
  }
  if (command.old !== undefined && command.old !== facts.current.get(command.ref)?.oid) {
    return refused(command, "stale-old-value", `${command.ref} has moved since you looked: fetch, then push again`);
  }
  if (candidate.governs || facts.completeness(candidate) !== false) return allowed(command, "move");
  return refused(
    command,
    "not-complete",
    `${command.ref} can be deleted only together with everything the new state lists: push its other refs too`,
  );
}

/** NGIT_PUSH_STRICT: after the push heads and tags must equal the candidate exactly. */
function demandFullAlignment(
  verdicts: Map<PushCommand, CommandVerdict>,
  candidate: CandidateState,
  { current }: PushFacts,
): void {
  const after = new Map<RefName, Oid>();
  for (const [ref, { oid }] of current) if (isStateRef(ref)) after.set(ref, oid);
  for (const { ref, new: to } of verdicts.keys()) {
    if (to === undefined) after.delete(ref);
    else after.set(ref, to);
  }
  const lacking = [...candidate.refs].find(([ref, oid]) => after.get(ref) !== oid)?.[0];
  const surplus = [...after.keys()].find((ref) => !candidate.refs.has(ref));
  const ref = lacking ?? surplus;
  if (ref === undefined) return;
  const todo = lacking === undefined ? `delete ${ref} in the same push` : `push ${ref} as the state lists it as well`;
  for (const [command, verdict] of verdicts) {
    if (verdict.ok && verdict.effect === "move") {
      verdicts.set(command, refused(command, "strict", `this server takes only pushes of the whole state: ${todo}`));
    }
  }
}

function withoutCandidate(
  commands: readonly PushCommand[],
  movesNothing: (command: PushCommand) => boolean,
  { authority }: PushFacts,
): Map<PushCommand, CommandVerdict> {
  const verdicts = new Map<PushCommand, CommandVerdict>();
  for (const command of commands) {
    const wasListed = authority.candidates.some(
      ({ refs }) => command.new !== undefined && refs.get(command.ref) === command.new,
    );
    const at = command.new === undefined ? "as deleted" : `at ${short(command.new)}`;
    if (movesNothing(command)) verdicts.set(command, allowed(command, "none"));
    else if (wasListed) {
      const reason = `a newer state than the one that lists ${command.ref} ${at} was used here since`;
      verdicts.set(command, refused(command, "superseded", `${reason}: publish a new state event first`));
    } else {
      const reason = `no state by a maintainer lists ${command.ref} ${at}: publish a state event first`;
      verdicts.set(command, refused(command, "no-state", reason));
    }
  }
  return verdicts;
}

// ---- refs/nostr and others ---------------------------------------------------------------------------------------

const onlyNostr = "only refs/nostr/<event id> can be pushed here: push branches and tags to the repository's own URL";

const notAllowed = ({ ref }: PushCommand): string =>
  `${ref} is not a name this server keeps: push to refs/heads/, refs/tags/ or refs/nostr/<event id>`;

function decideNostrRef(command: PushCommand, { authority, current }: PushFacts): CommandVerdict {
  const id = nostrRefEventId(command.ref);
  const event = (id && authority.nostrEvents.get(id)) ?? { known: false };
  const moves = current.get(command.ref)?.oid !== command.new;
  if (command.new === undefined) {
    if (!moves) return allowed(command, "none");
    const why = event.known ? "it belongs to its event and goes when that is deleted" : "it goes by itself";
    return refused(command, "nostr-delete", `${command.ref} cannot be deleted by a push: ${why}`);
  }
  if (!event.known) {
    if (event.heldAt === command.new) return allowed(command, "none");
    if (event.heldAt !== undefined) {
      const reason = `another commit, ${short(event.heldAt)}, was pushed for that event first and holds its ref`;
      return refused(command, "nostr-other-tip", `${reason}: publish the event, its c tag decides`);
    }
    if (authority.unclaimed.ok) return allowed(command, "placeholder");
    return refused(command, "unclaimed-budget", authority.unclaimed.reason);
  }
  if (!event.addressesThisRepository) {
    const reason = "that event is for another repository: push to the one its a tag names";
    return refused(command, "nostr-other-repository", reason);
  }
  if (event.tip === command.new) return allowed(command, moves ? "move" : "none");
  const wanted = event.tip === undefined ? "names no commit" : `names ${short(event.tip)}`;
  return refused(
    command,
    "nostr-other-tip",
    `the c tag of that event ${wanted}, not ${short(command.new)}: push that commit`,
  );
}

// ---- what the verdicts add up to: for the pusher, for the refs, for the pack -------------------------------------

export const refuseAll = (commands: readonly PushCommand[], { code, reason }: Refused): CommandVerdict[] =>
  commands.map((command) => ({ command, ok: false, code, reason }));

export function resultOf(verdicts: readonly CommandVerdict[], extra: Partial<PushResult> = {}): PushResult {
  const failing = verdicts.find((verdict) => !verdict.ok);
  return {
    unpack: "ok",
    code: failing && !failing.ok ? failing.code : "ok",
    verdicts,
    messages: [],
    ...extra,
  };
}

export function updatesOf({ verdicts }: PushDecision): RefUpdate[] {
  return verdicts.flatMap((verdict) =>
    verdict.ok && verdict.effect === "move" ? [{ ref: verdict.command.ref, to: verdict.command.new }] : [],
  );
}

/** The same commands with the same effects, under the same state. */
export function isSamePlan(a: PushDecision, b: PushDecision): boolean {
  const plan = ({ verdicts, candidate }: PushDecision): string =>
    JSON.stringify([candidate?.id, verdicts.map((verdict) => (verdict.ok ? verdict.effect : "refused"))]);
  return plan(a) === plan(b);
}

/** What the pack may have, by the tightest of all limits, and why that one holds. */
export function packBudgetsFor(
  authority: PushAuthority,
  { verdicts }: PushDecision,
  budgets: PackBudgets,
): PackBudgets & { readonly why: string } {
  const onlyPlaceholders = verdicts.every((verdict) => !verdict.ok || verdict.effect !== "move");
  const limits = [{ maxBytes: budgets.pushMaxBytes, reason: "" }];
  if (authority.quota) limits.push(authority.quota);
  if (onlyPlaceholders && authority.unclaimed.ok) {
    const reason = "data for an event this server does not know yet: publish the event first";
    limits.push({ maxBytes: authority.unclaimed.maxBytes, reason });
  }
  const tightest = limits.reduce((a, b) => (b.maxBytes < a.maxBytes ? b : a));
  return { ...budgets, pushMaxBytes: Math.max(0, tightest.maxBytes), why: tightest.reason };
}
