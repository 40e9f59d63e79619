// EVENT: rate, shape, size, who may bring it, then the one door (intake). Every EVENT gets an OK with the id it was
// sent with. AUTH events and other people's protected events (NIP-70) end here. Never writes by itself.

import { perMinute, TokenBucket } from "../base/budget/rates.js";
import { isProtected, type NostrEvent, parseEvent } from "../nostr/event.js";
import { kinds } from "../nostr/kinds.js";
import { type Refusal, refusalText, refuse } from "../nostr/refusals.js";
import type { Authenticating } from "./authenticating.js";
import type { Connection } from "./connection.js";
import { noticeOf } from "./messages.js";

/** An id longer than this is not echoed: it is nobody's id. */
const maxEchoedIdChars = 1_000;

export class Publishing {
  readonly #connection: Connection;
  readonly #auth: Authenticating;
  readonly #rate: TokenBucket;

  constructor(connection: Connection, auth: Authenticating) {
    this.#connection = connection;
    this.#auth = auth;
    const { clock, limits } = connection.parts;
    this.#rate = new TokenBucket(perMinute(limits().eventsPerMinutePerConnection), clock.monotonicMs());
  }

  async publish(value: unknown): Promise<void> {
    const { parts, ip } = this.#connection;
    const event = this.#read(value);
    if (!("raw" in event)) {
      parts.metrics.refusedAtTheDoor(kindOf(value), event.code);
      return this.#answerRefusal(value, event);
    }
    const refusal = this.#mayBring(event);
    if (refusal) {
      parts.metrics.refusedAtTheDoor(event.kind, refusal.code);
      return this.#answerRefusal(value, refusal);
    }
    const { authenticated } = this.#auth;
    let text: string;
    let accepted = false;
    try {
      const answer = await parts.intake.submit(event, { type: "client", ip, authenticated });
      accepted = answer.ok;
      text = answer.ok ? answer.message : refusalText(answer);
    } catch (error) {
      text = refusalText(this.#connection.failed(error));
    }
    this.#connection.outbox.send({ type: "OK", id: event.id, accepted, text });
  }

  #read(value: unknown): NostrEvent | Refusal {
    const { parts, visit } = this.#connection;
    const limits = parts.limits();
    if (this.#connection.isClosing) return refuse("shutting-down", "the server is shutting down: try again later");
    const rate = perMinute(limits.eventsPerMinutePerConnection);
    const nowMs = parts.clock.monotonicMs();
    if (this.#rate.waitMs(rate, nowMs) > 0 || !visit.maySendEvents) {
      return refuse("rate-limited", "too many events: slow down and send this one again in a minute");
    }
    const parsed = parseEvent(value);
    const cost = parsed.ok ? costOf(parsed.event) : 1;
    if (!this.#rate.take(rate, nowMs, cost) || !visit.takeEvent(cost)) {
      return refuse("rate-limited", `this event counts as ${cost}: slow down and send it again in a few minutes`);
    }
    if (!parsed.ok) return parsed;
    if (isLongerThan(limits.maxEventBytes, parsed.event.raw)) {
      return refuse("too-large", `an event may have at most ${limits.maxEventBytes} bytes`);
    }
    if (parsed.event.tags.length > limits.maxEventTags) {
      return refuse("too-large", `an event may have at most ${limits.maxEventTags} tags`);
    }
    return parsed.event;
  }

  #mayBring(event: NostrEvent): Refusal | undefined {
    if (event.kind === kinds.auth) {
      return refuse("not-relayed", "authentication events are for the AUTH message and are never stored");
    }
    if (!isProtected(event) || this.#auth.authenticated.has(event.pubkey)) return undefined;
    if (this.#auth.authenticated.size > 0) {
      return refuse("not-allowed", "only its own author may publish a protected event");
    }
    this.#auth.ask();
    return refuse("auth-required", "this event is protected: authenticate as its author and send it again");
  }

  #answerRefusal(value: unknown, refusal: Refusal): void {
    const { outbox } = this.#connection;
    const id = (value as { id?: unknown } | null | undefined)?.id;
    if (typeof id === "string" && id.length <= maxEchoedIdChars) {
      outbox.send({ type: "OK", id, accepted: false, text: refusalText(refusal) });
    } else outbox.send(noticeOf(refusal));
  }
}

const tagsAsOneEvent = 100;
const charsAsOneEvent = 16 * 1024;

/**
 * How much work an event is, in plain events (threats.md row 39): each target of a deletion is looked up and removed, and
 * every tag of others is indexed and may be looked up. Every byte is hashed, checked and copied.
 */
function costOf({ kind, tags, raw }: NostrEvent): number {
  const size = Math.floor(raw.length / charsAsOneEvent);
  if (kind !== kinds.deletion) return 1 + Math.floor(tags.length / tagsAsOneEvent) + size;
  let targets = 0;
  for (const [name] of tags) if (name === "e" || name === "a") targets++;
  return Math.max(1 + size, targets);
}

/** A character is one to three bytes of UTF-8: most texts need no counting. */
const isLongerThan = (bytes: number, text: string): boolean =>
  text.length > bytes || (text.length * 3 > bytes && Buffer.byteLength(text) > bytes);

function kindOf(value: unknown): number | undefined {
  const kind = (value as { kind?: unknown } | null | undefined)?.kind;
  return typeof kind === "number" ? kind : undefined;
}
