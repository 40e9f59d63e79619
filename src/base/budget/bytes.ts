// Bytes that are held because of strangers, by address and in all. One `ByteBudget` a kind of memory; every reader or
// writer opens a holding in it and says how much it holds now:
//
//   const held = budget.open(ip);                 // or open(ip, { waiting: () => n, giveWay: () => socket.destroy() })
//   if (!held.hold(bytes)) …refuse, and close     // the new amount, not the difference; false: nothing was changed
//   held.close();                                 // always, at the end
//
// When there is no room, holdings that can give way do: of the address that makes us wait for most, the largest first.
// Who cannot give way is never taken from, and is refused when even that is not enough.

import { ipGroup } from "./rates.js";

export interface ByteLimits {
  readonly inAll: number;
  readonly perAddress: number;
}

export interface GivesWay {
  /** How much waits here, if that is not what is held: texts that several wait for are held once. */
  waiting?(): number;
  /** Ends whatever holds the bytes. Called at most once; the holding is closed already. */
  giveWay(): void;
}

interface Group {
  bytes: number;
  holdings: number;
}

export class ByteBudget {
  readonly #limits: () => ByteLimits;
  readonly #groups = new Map<string, Group>();
  readonly #giving = new Set<HeldBytes>();
  #held = 0;

  constructor(limits: () => ByteLimits) {
    this.#limits = limits;
  }

  get held(): number {
    return this.#held;
  }

  heldBy(ip: string): number {
    return this.#groups.get(ipGroup(ip))?.bytes ?? 0;
  }

  open(ip: string, givesWay?: GivesWay): HeldBytes {
    const key = ipGroup(ip);
    const group = this.#groups.get(key) ?? { bytes: 0, holdings: 0 };
    group.holdings++;
    this.#groups.set(key, group);
    const holding = new HeldBytes(this, key, group, givesWay);
    if (givesWay) this.#giving.add(holding);
    return holding;
  }

  /** For what no address answers for alone. It counts in all, and does not give way. */
  openForAll(): HeldBytes {
    return new HeldBytes(this, undefined, { bytes: 0, holdings: 1 }, undefined);
  }

  /** More than half is held, in all or by this address: a good moment to ask for less. */
  isTight(holding: HeldBytes): boolean {
    const { inAll, perAddress } = this.#limits();
    return this.#held * 2 > inAll || holding.groupBytes * 2 > perAddress;
  }

  /** Of holdings only. */
  change(holding: HeldBytes, group: Group, difference: number): boolean {
    if (difference > 0 && !this.#fits(holding, group, difference) && !this.#makeRoom(holding, group, difference)) {
      return false;
    }
    this.#held += difference;
    group.bytes += difference;
    return true;
  }

  /** Of holdings only. */
  leave(holding: HeldBytes, group: Group): void {
    this.#giving.delete(holding);
    group.holdings--;
    if (group.holdings === 0 && holding.key !== undefined) this.#groups.delete(holding.key);
  }

  #fits(asker: HeldBytes, group: Group, bytes: number): boolean {
    const { inAll, perAddress } = this.#limits();
    return this.#held + bytes <= inAll && (asker.key === undefined || group.bytes + bytes <= perAddress);
  }

  #makeRoom(asker: HeldBytes, group: Group, bytes: number): boolean {
    const { inAll, perAddress } = this.#limits();
    if (asker.key !== undefined && group.bytes + bytes > perAddress)
      this.#evict(
        asker,
        (one) => one.key === asker.key,
        () => group.bytes + bytes <= perAddress * 0.9,
      );
    if (this.#held + bytes > inAll)
      this.#evict(
        asker,
        () => true,
        () => this.#held + bytes <= inAll * 0.9,
      );
    return !asker.isClosed && this.#fits(asker, group, bytes);
  }

  /** Goes on a little below the bound, so that the next to ask does not sort them all again. */
  #evict(asker: HeldBytes, isAsked: (one: HeldBytes) => boolean, isEnough: () => boolean): void {
    const weighed = [...this.#giving].flatMap((one) => {
      const waiting = isAsked(one) ? one.waiting : 0;
      return waiting > 0 ? [{ one, waiting }] : [];
    });
    const byGroup = new Map<string | undefined, number>();
    for (const { one, waiting } of weighed) byGroup.set(one.key, (byGroup.get(one.key) ?? 0) + waiting);
    const groupOf = ({ one }: { one: HeldBytes }): number => byGroup.get(one.key) ?? 0;
    weighed.sort((a, b) => groupOf(b) - groupOf(a) || b.waiting - a.waiting);
    for (const { one } of weighed) {
      if (isEnough()) return;
      one.giveWay();
      // The asker was the largest: it is refused, and no other has to go for it.
      if (one === asker) return;
    }
  }
}

export class HeldBytes {
  readonly #budget: ByteBudget;
  readonly #group: Group;
  readonly #givesWay: GivesWay | undefined;
  #bytes = 0;
  #closed = false;

  constructor(
    budget: ByteBudget,
    /** The address group; none for what is everybody's. */
    readonly key: string | undefined,
    group: Group,
    givesWay: GivesWay | undefined,
  ) {
    this.#budget = budget;
    this.#group = group;
    this.#givesWay = givesWay;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get groupBytes(): number {
    return this.#group.bytes;
  }

  get waiting(): number {
    return this.#givesWay?.waiting?.() ?? this.#bytes;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  get isTight(): boolean {
    return this.#budget.isTight(this);
  }

  /** So much is held from now on. False: there is no room, and the amount is what it was (or nothing, if it gave way). */
  hold(bytes: number): boolean {
    if (this.#closed) return false;
    if (bytes === this.#bytes) return true;
    if (!this.#budget.change(this, this.#group, bytes - this.#bytes)) return false;
    this.#bytes = bytes;
    return true;
  }

  add(bytes: number): boolean {
    return this.hold(this.#bytes + bytes);
  }

  /** Of the budget only. */
  giveWay(): void {
    this.close();
    this.#givesWay?.giveWay();
  }

  close(): void {
    if (this.#closed) return;
    this.hold(0);
    this.#closed = true;
    this.#budget.leave(this, this.#group);
  }
}
