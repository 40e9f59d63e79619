// Data pushed to refs/nostr/<id> before its event: how much of it is taken, and what becomes of it (git-http.md,
// "Push" 4 and budgets; purgatory.md, "Placeholder"; threats.md rows 10 and 18).

import { type HourlyCounter, ipGroup } from "../base/budget/rates.js";
import { unixSeconds } from "../base/clock.js";
import { sizeText } from "../base/text.js";
import {
  bookContributors,
  type RepositoryName,
  repositoryAddress,
  repositoryKey,
  repositoryNamed,
  rowForData,
  setCatalogueRow,
} from "../catalogue/repositories.js";
import { type PlaceholderRow, placeholders, putPlaceholder, removePlaceholder } from "../catalogue/waiting.js";
import { diskAddress, type RepositoryAddress } from "../git/address.js";
import { Overtaken } from "../git/change-refs.js";
import type { UnclaimedAllowance } from "../git/push-types.js";
import type { UnclaimedData } from "../git/quarantine.js";
import type { EventId, Pubkey } from "../nostr/event.js";
import { isOid, type Oid, pullRequestOf } from "../nostr/nip34.js";
import type { Transaction } from "../store/port.js";
import type { PurgatoryContext } from "./context.js";
import type { KnownPullRequest } from "./pull-requests.js";

/** What else nobody claims: it counts in the same budget and ends by the same clock. */
export interface OtherUnclaimed {
  rows(): Iterable<{ readonly ip: string; readonly bytes: number; readonly entered: number; drop(): Promise<void> }>;
  expire(nowSeconds: number, isBusy: (name: RepositoryName) => boolean): Promise<number>;
  shift(seconds: number, isOlder: (enteredSeconds: number) => boolean): Promise<void>;
  repositoryGone(name: RepositoryName): void;
}

const maxRounds = 3;

export class Placeholders {
  /** Mirrors the rows of the store: every placeholder, by repository and event. */
  readonly #held = new Map<string, PlaceholderRow>();
  #others: OtherUnclaimed | undefined;

  constructor(
    private readonly context: PurgatoryContext,
    private readonly perHour: HourlyCounter,
    /** Nothing may be left in that repository. */
    private readonly emptied: (name: RepositoryName) => Promise<void>,
  ) {}

  async open(): Promise<void> {
    for await (const [, row] of this.context.store.rows<PlaceholderRow>("purgatory", { prefix: "g:" })) {
      this.#held.set(this.#key(row), row);
    }
  }

  /** Data whose push was never answered: the server was killed before the row was written. */
  async dropUnknown(name: RepositoryName): Promise<void> {
    const repository = this.context.repositories.open(diskAddress(name));
    for (const { eventId } of await repository.unclaimed()) {
      if (!this.#held.has(`${repositoryKey(name)}:${eventId}`)) await repository.dropUnclaimed(eventId);
    }
  }

  /** Large files that nothing names yet, which are brought before the push that names them. */
  countWith(others: OtherUnclaimed): void {
    this.#others = others;
  }

  /** Another machine wrote that row (`g:<event id>:<repository>`) or deleted it. */
  follow(key: string, row: PlaceholderRow | undefined): void {
    const [, id, ...repository] = key.split(":");
    const held = `${repository.join(":")}:${id}`;
    if (row) this.#held.set(held, row);
    else this.#held.delete(held);
  }

  get rows(): Iterable<PlaceholderRow> {
    return this.#held.values();
  }

  /** Event ids somebody pushed data for and nobody has sent yet. */
  get ids(): EventId[] {
    return [...new Set([...this.#held.values()].map((row) => row.id))];
  }

  /** Counts these events there against the address; asking again about the same ones counts nothing. */
  allowance(ip: string, name: RepositoryName, ids: readonly EventId[], nowSeconds: number): UnclaimedAllowance {
    const { unclaimedMaxBytes, unclaimedPrsMaxBytes, unclaimedPerHourPerIp } = this.context.live.current;
    // By place as well: one id pushed into a thousand repositories would count once.
    if (!ids.every((id) => this.perHour.allows(ip, `${repositoryKey(name)} ${id}`, nowSeconds, unclaimedPerHourPerIp)))
      return {
        ok: false,
        reason: "too many pushes for unknown events from your address: publish the event, or wait an hour",
      };
    const each = name.area === "prs" ? unclaimedPrsMaxBytes : unclaimedMaxBytes;
    const maxBytes = Math.min(each, ...ids.map((id) => each - (this.#rowOf(name, id)?.bytes ?? 0)));
    if (maxBytes > 0) return { ok: true, maxBytes };
    return { ok: false, reason: `${sizeText(each)} were pushed for that event already: publish the event first` };
  }

  /** The same for files that come without any event: what one request may bring. Undefined: nothing more now. */
  filesAllowance(ip: string, name: RepositoryName, request: string, nowSeconds: number): number | undefined {
    const { unclaimedMaxBytes, unclaimedPrsMaxBytes, unclaimedPerHourPerIp } = this.context.live.current;
    const what = `${repositoryKey(name)} ${request}`;
    if (!this.perHour.allows(ip, what, nowSeconds, unclaimedPerHourPerIp)) return undefined;
    return name.area === "prs" ? unclaimedPrsMaxBytes : unclaimedMaxBytes;
  }

  /** Of these events, those that somebody pushed data for there, and what. */
  tipsHeld(name: RepositoryName, ids: readonly EventId[]): Map<EventId, Oid> {
    const held = ids.flatMap((id): [EventId, Oid][] => {
      const tip = this.#rowOf(name, id)?.tip;
      return tip === undefined ? [] : [[id, tip]];
    });
    return new Map(held);
  }

  #rowOf(name: RepositoryName, id: EventId): PlaceholderRow | undefined {
    return this.#held.get(`${repositoryKey(name)}:${id}`);
  }

  /** Before the pusher hears `ok`: what cannot be written down is not kept. Answers the events nothing was kept for before. */
  async keptAside(address: RepositoryAddress, ip: string, kept: readonly UnclaimedData[]): Promise<EventId[]> {
    const { placeholderExpirySecs, placeholderPrsExpirySecs } = this.context.live.current;
    const waitSeconds = address.area === "prs" ? placeholderPrsExpirySecs : placeholderExpirySecs;
    const rows = kept.map(
      (data): PlaceholderRow => ({
        id: data.eventId,
        repository: repositoryAddress(address),
        tip: data.tip,
        ip,
        bytes: data.bytes,
        entered: Math.floor(data.sinceMs / 1000),
        expires: Math.floor(data.sinceMs / 1000) + waitSeconds,
      }),
    );
    try {
      await this.context.store.transact(async (tx) => {
        const repository = await rowForData(tx, address, unixSeconds(this.context.clock));
        if (repository) setCatalogueRow(tx, repository);
        for (const row of rows) putPlaceholder(tx, row);
        for (const data of kept) {
          if (!(await this.context.repositories.noteUnclaimed(tx, address, data)))
            throw new Overtaken("the repository was removed");
        }
      });
    } catch (error) {
      const repository = this.context.repositories.open(address);
      for (const row of rows) if (!this.#held.has(this.#key(row))) await repository.dropUnclaimed(row.id);
      throw error;
    }
    const isNew = rows.map((row) => !this.#held.has(this.#key(row)));
    for (const row of rows) this.#held.set(this.#key(row), row);
    return rows.filter((_, index) => isNew[index]).map(({ id }) => id);
  }

  /** The push was refused after all. */
  async dropAside(name: RepositoryName, ids: readonly EventId[]): Promise<void> {
    for (const id of ids) {
      const row = this.#rowOf(name, id);
      if (row) await this.#drop(row);
    }
  }

  /** After a push: whoever holds most gives way. */
  makeRoom(): Promise<void> {
    return this.#evictAbove(this.context.live.current.unclaimedTotalMaxBytes);
  }

  /** The event is here: its `c` decides what of the data stays, and whose quota that is. */
  async claim(known: KnownPullRequest): Promise<void> {
    const { event } = known;
    const pullRequest = pullRequestOf(event);
    for (const row of await placeholders(this.context.store, event.id)) {
      const name = repositoryNamed(row.repository);
      if (!name) continue;
      const address = diskAddress(name);
      const tip =
        pullRequest && known.repositories.includes(row.repository) && isOid(pullRequest.tip)
          ? pullRequest.tip
          : undefined;
      const isKept = await this.#claim(row, address, event.pubkey, tip);
      if (!isKept) await this.emptied(name);
    }
  }

  /** False: nothing of it is kept. */
  async #claim(
    row: PlaceholderRow,
    address: RepositoryAddress,
    author: Pubkey,
    tip: Oid | undefined,
  ): Promise<boolean> {
    const { repositories } = this.context;
    for (let round = 1; ; round++) {
      const repository = (await repositories.exists(address)) ? repositories.open(address) : undefined;
      const claimed = tip && (await repository?.claim(row.id, tip));
      try {
        await this.#forget(
          row,
          claimed &&
            (async (tx) => {
              if (!(await claimed.list(tx))) throw new Overtaken("packs of the repository have changed");
              await this.#book(tx, address, author, row.bytes);
            }),
        );
        claimed?.listed();
        await repository?.dropUnclaimed(row.id);
        return claimed !== undefined;
      } catch (error) {
        await claimed?.takeBack();
        if (!(error instanceof Overtaken) || round === maxRounds) throw error;
      }
    }
  }

  /** A wall clock that jumped takes the deadlines along. */
  async shift(seconds: number, isOlder: (enteredSeconds: number) => boolean): Promise<void> {
    const moved = [...this.#held.values()]
      .filter(({ entered }) => isOlder(entered))
      .map((row) => ({ ...row, entered: row.entered + seconds, expires: row.expires + seconds }));
    await this.context.store.transact(async (tx) => {
      for (const row of moved) putPlaceholder(tx, row);
    });
    for (const row of moved) this.#held.set(this.#key(row), row);
    await this.#others?.shift(seconds, isOlder);
  }

  async expire(nowSeconds: number, isBusy: (name: RepositoryName) => boolean = () => false): Promise<number> {
    const isDue = (row: PlaceholderRow): boolean => {
      const name = repositoryNamed(row.repository);
      return row.expires <= nowSeconds && !(name && isBusy(name));
    };
    const due = [...this.#held.values()].filter(isDue);
    let count = 0;
    for (const row of due) {
      const name = repositoryNamed(row.repository);
      // Another machine may be taking a push for it: it ends with a later look.
      if (name && (await this.context.repositories.isBusyElsewhere(name))) continue;
      await this.#drop(row);
      count++;
    }
    return count + ((await this.#others?.expire(nowSeconds, isBusy)) ?? 0);
  }

  /** Called when a repository goes: its directory took the data along. */
  async repositoryGone(name: RepositoryName): Promise<void> {
    this.#others?.repositoryGone(name);
    await this.madeAnew(name);
  }

  /** Called when a repository was made anew, empty: what was pushed is gone, large files stayed. */
  async madeAnew(name: RepositoryName): Promise<void> {
    const address = repositoryAddress(name);
    for (const row of [...this.#held.values()]) {
      if (row.repository === address) await this.#forget(row);
    }
  }

  #key(row: PlaceholderRow): string {
    const name = repositoryNamed(row.repository);
    return `${name ? repositoryKey(name) : row.repository}:${row.id}`;
  }

  /** The address (IPv6: /64) that holds most gives way first, its oldest data before its newer. */
  async #evictAbove(maxBytes: number): Promise<void> {
    for (;;) {
      const pushes = [...this.#held.values()].map((row) => ({ ...row, drop: () => this.#drop(row) }));
      const rows = [...pushes, ...(this.#others?.rows() ?? [])];
      const byGroup = new Map<string, number>();
      let all = 0;
      for (const row of rows) {
        byGroup.set(ipGroup(row.ip), (byGroup.get(ipGroup(row.ip)) ?? 0) + row.bytes);
        all += row.bytes;
      }
      if (all <= maxBytes) return;
      const [largest] = [...byGroup].sort((a, b) => b[1] - a[1])[0] ?? [];
      const [victim] = rows.filter((row) => ipGroup(row.ip) === largest).sort((a, b) => a.entered - b.entered);
      if (!victim) return;
      await victim.drop();
    }
  }

  async #drop(row: PlaceholderRow): Promise<void> {
    const name = repositoryNamed(row.repository);
    if (name) {
      const address = diskAddress(name);
      if (await this.context.repositories.exists(address))
        await this.context.repositories.open(address).dropUnclaimed(row.id);
    }
    await this.#forget(row);
    if (name) await this.emptied(name);
  }

  async #forget(row: PlaceholderRow, also?: (tx: Transaction) => Promise<void>): Promise<void> {
    const name = repositoryNamed(row.repository);
    await this.context.store.transact(async (tx) => {
      removePlaceholder(tx, row);
      if (name) await this.context.repositories.shared?.packs.unclaimed.forget(tx, diskAddress(name), row.id);
      await also?.(tx);
    });
    this.#held.delete(this.#key(row));
  }

  async #book(tx: Transaction, name: RepositoryName, author: Pubkey, bytes: number): Promise<void> {
    const row = await rowForData(tx, name, unixSeconds(this.context.clock));
    if (row) await bookContributors(tx, row, author, bytes);
  }
}
