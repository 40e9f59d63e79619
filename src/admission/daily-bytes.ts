// How many bytes of events are kept in a day for one author, about one repository, and from one address (threats.md row
// 40). Only what clients send counts, and only what is kept. The owner of a repository is not kept out of it by others.

import { ipGroup } from "../base/budget/address-group.js";
import { perDay, Rates } from "../base/budget/rates.js";
import type { Clock } from "../base/clock.js";
import { sizeText } from "../base/text.js";
import type { Config } from "../config/config.js";
import { tagValues, type VerifiedEvent } from "../nostr/event.js";
import { kinds } from "../nostr/kinds.js";
import { type Refusal, refuse } from "../nostr/refusals.js";

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

export class DailyBytes {
  readonly #clock: Clock;
  readonly #authors: Rates;
  readonly #repositories: Rates;
  readonly #addresses: Rates;

  constructor(clock: Clock, limits: () => DailyByteLimits) {
    this.#clock = clock;
    this.#authors = new Rates(() => perDay(limits().eventsPerDayPerAuthorBytes));
    this.#repositories = new Rates(() => perDay(limits().eventsPerDayPerRepositoryBytes));
    this.#addresses = new Rates(() => perDay(limits().eventsPerDayPerIpBytes));
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
