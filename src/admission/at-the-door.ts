// Rules that need only the event, its source, the clock, the settings and how full the disks are. They are judged before
// the signature, which costs fifty times more than all of them; only the bytes of a day are counted after it, so that
// nobody uses up another author's. AUTH events and protected events (NIP-70) of clients are judged here, those of other
// sources in policy.ts, where the decision is recorded.

import { ipGroup, perDay, Rates } from "../base/budget/rates.js";
import type { Clock } from "../base/clock.js";
import { sizeText } from "../base/text.js";
import type { Config } from "../config/config.js";
import {
  expirationOf,
  isProtected,
  kinds,
  type NostrEvent,
  type Pubkey,
  refusedForBytes,
  tagValues,
  type VerifiedEvent,
} from "../nostr/event.js";
import { frameFault, usualFrameBounds } from "../nostr/frame-shape.js";
import { type Refusal, refuse } from "../nostr/refusals.js";
import type { Volume } from "../store/disk-space.js";
import { type RefusedVerdict, refused, type Source } from "./verdict.js";

/** How much of one event a client may send: the only look at the size of a client's event. */
export function refusedForSize(
  event: NostrEvent,
  { maxEventBytes, maxEventTags }: Pick<Config, "maxEventBytes" | "maxEventTags">,
): Refusal | undefined {
  const tooLarge = refusedForBytes(event, maxEventBytes);
  if (tooLarge || event.tags.length <= maxEventTags) return tooLarge;
  return refuse("too-large", `an event may have at most ${maxEventTags} tags`);
}

export const expired = refuse("expired", "the event's expiration time has passed");

export function refusedForTime(event: NostrEvent, nowSeconds: number, maxFutureSecs: number): Refusal | undefined {
  if (event.created_at > nowSeconds + maxFutureSecs) {
    return refuse("from-the-future", "created_at is too far in the future: check your clock");
  }
  const expiration = expirationOf(event);
  return expiration !== undefined && expiration <= nowSeconds ? expired : undefined;
}

/** What only some may bring: nobody AUTH events, and protected events only their author, who authenticated here. */
export function refusedFromClient(
  event: NostrEvent,
  { authenticated }: { readonly authenticated: ReadonlySet<Pubkey> },
): RefusedVerdict | undefined {
  if (event.kind === kinds.auth) {
    return refused("auth-event", "not-relayed", "authentication events are for the AUTH message and are never stored");
  }
  if (embedsProtected(event)) return reposted;
  if (!isProtected(event) || authenticated.has(event.pubkey)) return undefined;
  return authenticated.size > 0
    ? refused("protected", "not-allowed", "only its own author may publish a protected event")
    : refused("protected", "auth-required", "this event is protected: authenticate as its author and send it again");
}

/** The same for relays, imports and the server itself, none of whom can authenticate. */
export function refusedFromElsewhere(event: NostrEvent, source: Source, serverKey: Pubkey): RefusedVerdict | undefined {
  if (event.kind === kinds.auth) {
    return refused("auth-event", "not-relayed", "authentication events (22242) belong into an AUTH message");
  }
  if (embedsProtected(event)) return reposted;
  if (!isProtected(event) || (source.type === "own" && event.pubkey === serverKey)) return undefined;
  return refused("protected", "not-allowed", "a protected event is taken only from its author");
}

const reposted = refused("protected", "not-allowed", "a repost must not carry a protected event of somebody else");

/** NIP-70: a repost (6, 16) has the event it repeats as its content. What is no JSON, or too deep for an event, carries none. */
function embedsProtected({ kind, content }: NostrEvent): boolean {
  if ((kind !== kinds.repost && kind !== kinds.genericRepost) || content === "") return false;
  if (frameFault(content, usualFrameBounds) !== undefined) return false;
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch {
    return false;
  }
  const tags = (value as { readonly tags?: unknown } | null)?.tags;
  return Array.isArray(tags) && tags.some((tag) => Array.isArray(tag) && tag[0] === "-");
}

/** They make room, and people must be able to take back what they said, however full it is. */
const makesRoom: ReadonlySet<number> = new Set([kinds.deletion, kinds.vanish]);
/** What git follows with directories and packs of its own. */
const growsGit: ReadonlySet<number> = new Set([
  kinds.announcement,
  kinds.state,
  kinds.pullRequest,
  kinds.pullRequestUpdate,
]);

/** What a nearly full disk refuses: everything from NGIT_DISK_EVENTS_MAX_PERCENT on, except what makes room. */
export function refusedForDisk(
  { kind }: Pick<NostrEvent, "kind">,
  used: Readonly<Record<Volume, number>>,
  maxPercent: number,
): Refusal | undefined {
  if (makesRoom.has(kind)) return undefined;
  const share = growsGit.has(kind) ? Math.max(used.git, used.relay) : used.relay;
  if (share * 100 < maxPercent) return undefined;
  return refuse("disk-full", "the server's disk is nearly full, only deletions are taken: try again later");
}

type DailyByteLimits = Pick<
  Config,
  "eventsPerDayPerAuthorBytes" | "eventsPerDayPerRepositoryBytes" | "eventsPerDayPerIpBytes"
>;

type Owner = "author" | "repository" | "address";

/** Further repositories that an event names are not counted: it is kept once. */
const maxCountedRepositories = 20;

interface Account {
  readonly by: Owner;
  readonly rates: Rates;
  readonly key: string;
}

/**
 * How many bytes of events are kept in a day for one author, about one repository, and from one address (threats.md row
 * 40). Only what clients send counts, and only what is kept. The owner of a repository is not kept out of it by others.
 */
export class DailyBytes {
  readonly #clock: Clock;
  readonly #authors: Rates;
  readonly #repositories: Rates;
  readonly #addresses: Rates;

  constructor(clock: Clock, live: { readonly current: DailyByteLimits }) {
    this.#clock = clock;
    this.#authors = new Rates(() => perDay(live.current.eventsPerDayPerAuthorBytes));
    this.#repositories = new Rates(() => perDay(live.current.eventsPerDayPerRepositoryBytes));
    this.#addresses = new Rates(() => perDay(live.current.eventsPerDayPerIpBytes));
  }

  /** Takes the event's bytes from everybody they count for. `giveBack` when it was not kept after all. */
  take(event: VerifiedEvent, ip: string): { readonly ok: true; giveBack(): void } | Refusal {
    const bytes = Buffer.byteLength(event.raw);
    const nowMs = this.#clock.monotonicMs();
    const taken: Account[] = [];
    const giveBack = (): void => {
      for (const { rates, key } of taken) rates.give(key, bytes);
    };
    for (const account of this.#accounts(event, ip)) {
      if (account.rates.take(account.key, nowMs, bytes)) taken.push(account);
      else {
        giveBack();
        return refusalOf(account, account.rates.waitMs(account.key, nowMs, bytes));
      }
    }
    return { ok: true, giveBack };
  }

  #accounts(event: VerifiedEvent, ip: string): Account[] {
    const accounts: Account[] = [
      { by: "address", rates: this.#addresses, key: ipGroup(ip) },
      { by: "author", rates: this.#authors, key: event.pubkey },
    ];
    const named = new Set<string>();
    for (const address of tagValues(event, "a")) {
      if (named.size >= maxCountedRepositories) break;
      const [kind, owner] = address.split(":", 2);
      if (kind === String(kinds.announcement) && owner !== event.pubkey) named.add(address);
    }
    for (const key of named) accounts.push({ by: "repository", rates: this.#repositories, key });
    return accounts;
  }
}

const whose: Readonly<Record<Owner, string>> = {
  author: "by one author",
  repository: "about one repository",
  address: "from one address",
};

function refusalOf({ by, rates }: Account, waitMs: number): Refusal {
  const hours = Math.max(1, Math.ceil(waitMs / 3_600_000));
  const most = sizeText(rates.rate().most);
  return refuse(`${by}-bytes`, `at most ${most} of events ${whose[by]} are taken in a day: try again in ${hours} h`);
}
