// The verdict on one event: a function of the event, where it came from, and facts read from the store.

import type { VerifiedEvent } from "../nostr/event.js";
import type { Pubkey } from "../nostr/ids.js";
import type { Refusal } from "../nostr/refusals.js";
import type { Reader } from "../store/port.js";

/** Where an event came from. Nothing is trusted because of it; it decides budgets, messages and the hunt's delay. */
export type Source =
  | { readonly type: "client"; readonly ip: string; readonly authenticated: ReadonlySet<Pubkey> }
  | { readonly type: "sync"; readonly relay: string; readonly phase: string }
  | { readonly type: "import" }
  | { readonly type: "own" };

export type Verdict =
  /** Kept and served. `message` goes to the client when there is something to say. */
  | { readonly ok: true; readonly action: "store"; readonly rule: string; readonly message?: string }
  /** Kept, not served, until its git data is here. */
  | { readonly ok: true; readonly action: "hold"; readonly rule: string; readonly message?: string }
  /** Passed on to live subscribers, not kept (ephemeral kinds). */
  | { readonly ok: true; readonly action: "relay"; readonly rule: string }
  | (Refusal & { readonly rule: string });

export interface AdmissionContext {
  readonly reader: Reader;
  readonly source: Source;
  readonly nowSeconds: number;
}

export type AdmissionPolicy = (event: VerifiedEvent, context: AdmissionContext) => Promise<Verdict>;
