// AUTH (NIP-42): who is on this connection. Asked for only when something needs it. The challenge belongs to one
// connection, so an answer taken from another connection, or shown twice, is worth nothing (threats row 28).

import { unixSeconds } from "../base/clock.js";
import { normalRelayUrl, servicePart } from "../net/url.js";
import { kinds, type NostrEvent, parseEvent, tagValue } from "../nostr/event.js";
import type { Pubkey } from "../nostr/ids.js";
import { type Refusal, refusalText, refuse } from "../nostr/refusals.js";
import type { Connection } from "./connection.js";
import { noticeOf } from "./messages.js";

const nobody: ReadonlySet<Pubkey> = new Set();

export class Authenticating {
  readonly #connection: Connection;
  // Few connections authenticate: the sets are made for the first that does.
  #authenticated: Set<Pubkey> | undefined;
  #usedIds: Set<string> | undefined;
  #challenge: string | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  get authenticated(): ReadonlySet<Pubkey> {
    return this.#authenticated ?? nobody;
  }

  ask(): void {
    this.#challenge ??= this.#connection.parts.newChallenge();
    this.#connection.outbox.send({ type: "AUTH", challenge: this.#challenge });
  }

  async authenticate(value: unknown): Promise<void> {
    const { outbox, parts } = this.#connection;
    const parsed = parseEvent(value);
    if (!parsed.ok) {
      const id = (value as { id?: unknown } | null | undefined)?.id;
      if (typeof id === "string") outbox.send({ type: "OK", id, accepted: false, text: refusalText(parsed) });
      else outbox.send(noticeOf(parsed));
      return;
    }
    const { event } = parsed;
    const answer = (accepted: boolean, text: string) => outbox.send({ type: "OK", id: event.id, accepted, text });
    const refusal = this.#check(event);
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
    this.#authenticated ??= new Set();
    this.#authenticated.add(event.pubkey);
    answer(true, "");
  }

  #check(event: NostrEvent): Refusal | undefined {
    const { clock, limits, serviceNames } = this.#connection.parts;
    const { authMaxAgeSeconds, maxAuthenticatedKeys } = limits();
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
