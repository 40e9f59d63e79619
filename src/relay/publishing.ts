// EVENT: rate, shape, size, then the one door (intake). Every EVENT gets an OK with the id it was sent with. A client that
// has to authenticate first is asked to. Never writes by itself.

import { refusedForSize } from "../admission/at-the-door.js";
import { perMinute, TokenBucket } from "../base/budget/rates.js";
import { kinds, type NostrEvent, parseEvent } from "../nostr/event.js";
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
    const { authenticated } = this.#auth;
    let text: string;
    let accepted = false;
    try {
      const answer = await parts.intake.submit(event, { type: "client", ip, authenticated });
      accepted = answer.ok;
      if (!answer.ok && answer.code === "auth-required") this.#auth.ask();
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
    return refusedForSize(parsed.event, limits) ?? parsed.event;
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

function kindOf(value: unknown): number | undefined {
  const kind = (value as { kind?: unknown } | null | undefined)?.kind;
  return typeof kind === "number" ? kind : undefined;
}
