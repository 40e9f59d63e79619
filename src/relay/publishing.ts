// EVENT and AUTH, the two verbs that bring a signed event. EVENT: rate, shape, size, then the one door (intake). Each gets
// an OK with the id it was sent with. A client that has to authenticate first is asked to. Never writes by itself.

import { refusedForSize } from "../admission/at-the-door.js";
import { perMinute, TokenBucket } from "../base/budget/rates.js";
import { unixSeconds } from "../base/clock.js";
import { normalRelayUrl, servicePart } from "../net/url.js";
import { kinds, type NostrEvent, parseEvent, parseEventOfAnySize, tagValue } from "../nostr/event.js";
import { type Refusal, refusalText, refuse } from "../nostr/refusals.js";
import { type Connection, notAMember, type RelayParts } from "./connection.js";
import { noticeOf, type RelayMessage } from "./messages.js";

/** An id longer than this is not echoed: it is nobody's id. */
const maxEchoedIdChars = 1_000;

export class Publishing {
  readonly #connection: Connection;
  readonly #auth: Authenticating;
  readonly #rate: TokenBucket;

  constructor(connection: Connection, auth: Authenticating) {
    this.#connection = connection;
    this.#auth = auth;
    const { clock, limits } = connection.place.parts;
    this.#rate = new TokenBucket(perMinute(limits.eventsPerMinutePerConnection), clock.monotonicMs());
  }

  async publish(value: unknown): Promise<void> {
    const { parts, ip } = this.#connection.place;
    const event = this.#read(value);
    if (!("raw" in event)) {
      return this.#connection.place.outbox.send(refusedEvent(parts, value, event));
    }
    const { authenticated } = this.#connection;
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
    this.#connection.place.outbox.send({ type: "OK", id: event.id, accepted, text });
  }

  #read(value: unknown): NostrEvent | Refusal {
    const { parts, visit } = this.#connection.place;
    const limits = parts.limits;
    if (this.#connection.isClosing) return refuse("shutting-down", "the server is shutting down: try again later");
    const rate = perMinute(limits.eventsPerMinutePerConnection);
    const nowMs = parts.clock.monotonicMs();
    if (this.#rate.waitMs(rate, nowMs) > 0 || !visit.maySendEvents) {
      return refuse("rate-limited", "too many events: slow down and send this one again in a minute");
    }
    const parsed = parseEventOfAnySize(value);
    const cost = parsed.ok ? costOf(parsed.event) : 1;
    if (!this.#rate.take(rate, nowMs, cost) || !visit.takeEvent(cost)) {
      return refuse("rate-limited", `this event counts as ${cost}: slow down and send it again in a few minutes`);
    }
    if (!parsed.ok) return parsed;
    return refusedForSize(parsed.event, limits) ?? parsed.event;
  }
}

/** Counted, and answered by an OK with the id that was sent, or, where that is none, by a NOTICE. */
export function refusedEvent({ metrics }: Pick<RelayParts, "metrics">, value: unknown, refusal: Refusal): RelayMessage {
  metrics.refusedAtTheDoor(kindOf(value), refusal.code);
  const id = (value as { id?: unknown } | null | undefined)?.id;
  if (typeof id !== "string" || id.length > maxEchoedIdChars) return noticeOf(refusal);
  return { type: "OK", id, accepted: false, text: refusalText(refusal) };
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

/** A signature is looked at, so that each counts like an event: forged ones without end would keep the verifiers busy. */
const tooManyAuthentications = refuse("rate-limited", "too many events and authentications: try again in a minute");

/**
 * AUTH (NIP-42): who is on this connection. Asked for only when something needs it. The challenge belongs to one
 * connection, so an answer taken from another connection, or shown twice, is worth nothing (threats row 28).
 */
export class Authenticating {
  readonly #connection: Connection;
  // Few connections authenticate: it is made for the first that does.
  #usedIds: Set<string> | undefined;
  #challenge: string | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  ask(): void {
    this.#challenge ??= this.#connection.place.parts.newChallenge();
    this.#connection.place.outbox.send({ type: "AUTH", challenge: this.#challenge });
  }

  async authenticate(value: unknown): Promise<void> {
    const { outbox, parts, visit } = this.#connection.place;
    const parsed = parseEvent(value);
    if (!parsed.ok) {
      const id = (value as { id?: unknown } | null | undefined)?.id;
      if (typeof id === "string") outbox.send({ type: "OK", id, accepted: false, text: refusalText(parsed) });
      else outbox.send(noticeOf(parsed));
      return;
    }
    const { event } = parsed;
    const answer = (accepted: boolean, text: string) => outbox.send({ type: "OK", id: event.id, accepted, text });
    const refusal = this.#check(event) ?? (visit.takeEvent(costOf(event)) ? undefined : tooManyAuthentications);
    if (refusal) return answer(false, refusalText(refusal));
    this.#usedIds ??= new Set();
    this.#usedIds.add(event.id);
    let verified: unknown;
    try {
      verified = await parts.verifier.verify(event);
    } catch (error) {
      return answer(false, refusalText(this.#connection.failed(error)));
    }
    if (!verified) {
      // A forged copy must not use up the id of the true one.
      this.#usedIds.delete(event.id);
      return answer(false, refusalText(refuse("bad-signature", "the signature does not belong to this pubkey and id")));
    }
    this.#connection.authenticateAs(event.pubkey);
    // Said at once: a relay that follows us then asks nothing, and its filters name no repository in vain.
    if (parts.members.isPrivate && !parts.members.has(event.pubkey)) return answer(false, refusalText(notAMember));
    answer(true, "");
  }

  #check(event: NostrEvent): Refusal | undefined {
    const { clock, limits, serviceNames } = this.#connection.place.parts;
    const { authMaxAgeSeconds, maxAuthenticatedKeys } = limits;
    if (event.kind !== kinds.auth) return refuse("bad-event", `an authentication event has kind ${kinds.auth}`);
    if (this.#challenge === undefined || tagValue(event, "challenge") !== this.#challenge) {
      return refuse("not-allowed", "the challenge is not the one of this connection");
    }
    const relay = tagValue(event, "relay") ?? "";
    const service = normalRelayUrl(relay) && servicePart(relay);
    if (!service || !serviceNames.some((name) => name === service)) {
      return refuse("not-allowed", "the relay tag names another relay");
    }
    if (Math.abs(event.created_at - unixSeconds(clock)) > authMaxAgeSeconds) {
      return refuse("not-allowed", "created_at is too far from now: sign a new authentication event");
    }
    if (this.#usedIds?.has(event.id)) return refuse("not-allowed", "this authentication event was used before");
    if ((this.#usedIds?.size ?? 0) >= maxAuthenticatedKeys) {
      return refuse("too-many", `a connection may authenticate as ${maxAuthenticatedKeys} keys`);
    }
    return undefined;
  }
}
