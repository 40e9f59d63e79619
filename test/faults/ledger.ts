// What was asked of the server and what it acknowledged: the record the checker holds against it. Knows no server.

import type { Person, SignedEvent } from "../harness/grasp-people.js";
import type { Refs } from "../harness/grasp-story.js";
import type { Source } from "./source.js";

interface Answer {
  readonly ok: boolean;
  readonly message: string;
}

interface Sent {
  readonly event: SignedEvent;
  answer?: Answer;
  /** Its time in the waiting room may have run out. */
  mayExpire: boolean;
}

export interface StateRecord {
  readonly event: SignedEvent;
  readonly refs: Refs;
}

interface PullRequestRecord {
  readonly event: SignedEvent;
  readonly tip: string;
  isPushed: boolean;
}

interface AcknowledgedRef {
  readonly owner: Person;
  readonly ref: string;
  readonly value: string | undefined;
  /** The state it was pushed under. */
  readonly index: number;
}

/** Repositories of one identifier whose owners list each other: one history of states decides all of them. */
export class Hosted {
  readonly states: StateRecord[] = [];
  /** The newest state whose release was acknowledged, by an OK without "purgatory" or a complete push. */
  floor = -1;
  readonly acknowledgedRefs: AcknowledgedRef[] = [];
  /** States under which a push was sent whose answer never came: its refs may be written, or not. */
  readonly unanswered = new Set<number>();
  /** Commits of refused pushes: they must not be anywhere. */
  readonly refused = new Map<string, Person>();
  readonly pullRequests: PullRequestRecord[] = [];
  /** Its announcement's OK never came, or it may have expired: it need not be there. */
  isOptional = false;
  #second = Math.floor(Date.now() / 1000) - 3_500;

  constructor(
    readonly identifier: string,
    readonly owners: readonly [Person, ...Person[]],
    readonly source: Source,
  ) {}

  /** Each event of these repositories is newer than the one before. */
  nextSecond(): number {
    this.#second = Math.max(this.#second + 1, Math.floor(Date.now() / 1000) - 3_500);
    return this.#second;
  }

  get newest(): StateRecord | undefined {
    return this.states.at(-1);
  }

  newState(author: Person, refs: Refs): SignedEvent {
    const tags = [["d", this.identifier], ...Object.entries(refs), ["HEAD", "ref: refs/heads/main"]];
    const event = author.sign(30618, tags, "", this.nextSecond());
    this.states.push({ event, refs });
    return event;
  }

  released(index: number): void {
    this.floor = Math.max(this.floor, index);
  }
}

const addressOf = ({ kind, pubkey, tags }: SignedEvent): string | undefined =>
  kind >= 30_000 && kind < 40_000 ? `${kind}:${pubkey}:${tags.find(([name]) => name === "d")?.[1] ?? ""}` : undefined;

export interface Found {
  readonly served: ReadonlySet<string>;
  readonly waiting: ReadonlySet<string>;
}

export class Ledger {
  readonly #sent = new Map<string, Sent>();
  readonly #byAddress = new Map<string, SignedEvent[]>();
  readonly #deletions: { readonly request: SignedEvent; readonly target: string }[] = [];
  /** While true, whatever waits or comes to wait may be gone later. */
  #isExpiring = false;
  acknowledged = 0;

  sending(event: SignedEvent): void {
    if (this.#sent.has(event.id)) return;
    this.#sent.set(event.id, { event, mayExpire: this.#isExpiring });
    const address = addressOf(event);
    if (address) this.#byAddress.set(address, [...(this.#byAddress.get(address) ?? []), event]);
    if (event.kind !== 5) return;
    for (const [name, target] of event.tags)
      if (name === "e" && target) this.#deletions.push({ request: event, target });
  }

  answered(event: SignedEvent, answer: Answer): void {
    const sent = this.#sent.get(event.id);
    if (sent) sent.answer = answer;
    if (answer.ok) this.acknowledged++;
  }

  isAcknowledged(id: string): boolean {
    return this.#sent.get(id)?.answer?.ok === true;
  }

  expiryIs(isShort: boolean): void {
    this.#isExpiring = isShort;
    if (isShort) for (const sent of this.#sent.values()) sent.mayExpire = true;
  }

  mayHaveExpired(id: string): boolean {
    return this.#sent.get(id)?.mayExpire === true;
  }

  get ids(): string[] {
    return [...this.#sent.keys()];
  }

  /** Every promise about an event that is not kept. */
  broken({ served, waiting }: Found): string[] {
    const problems: string[] = [];
    const isThere = (id: string): boolean => served.has(id) || waiting.has(id);
    for (const { event, answer, mayExpire } of this.#sent.values()) {
      const { id, kind } = event;
      if (served.has(id) && waiting.has(id)) problems.push(`event ${id} (${kind}) is served and waits`);
      if (!answer?.ok) continue;
      const isWaiting = answer.message.startsWith("purgatory:");
      const deletion = this.#deletions.find(({ target }) => target === id);
      if (deletion && this.isAcknowledged(deletion.request.id)) {
        if (isThere(id)) problems.push(`event ${id} (${kind}) is there although its deletion was acknowledged`);
        continue;
      }
      if (served.has(id) || (isWaiting && (waiting.has(id) || mayExpire))) continue;
      if (deletion && isThere(deletion.request.id)) continue;
      const isReplaced = (this.#byAddress.get(addressOf(event) ?? "") ?? []).some(
        (other) =>
          other.created_at > event.created_at && (served.has(other.id) || (kind === 30617 && waiting.has(other.id))),
      );
      if (isReplaced) continue;
      const where = waiting.has(id) ? "only waits" : "is lost";
      problems.push(`event ${id} (${kind}), acknowledged with ${JSON.stringify(answer.message)}, ${where}`);
    }
    return problems;
  }
}
