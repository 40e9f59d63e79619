// What sync keeps over restarts: remembered ids (table "remembered", keys `sync:<id>`), relays that are plainly broken
// (table "naughty", keys `relay:<key>`), and how far each relay was (table "meta", keys `sync-relay:<key>`). Writes are
// gathered and done together: losing the last second of them costs one fetch or one dial.

import { type Clock, commitSoon, LateWork } from "../base/clock.js";
import type { EventId } from "../nostr/event.js";
import {
  SharedLogError,
  type Store,
  StoreBusyError,
  StoreClosedError,
  StoreFullError,
  type TableName,
  type TableReader,
  type Transaction,
} from "../store/port.js";
import type { Command, KeptRelay, NaughtyKind, RememberedId } from "./core/messages.js";

type KeptCommand = Extract<
  Command,
  { type: "remember" | "forget" | "saveNaughty" | "dropNaughty" | "keepRelay" | "dropKept" }
>;

interface RelayRow extends KeptRelay {
  /** Of our own feed: what is kept says nothing about a store that has lost changes since. */
  readonly position: number;
}

interface NaughtyRow {
  readonly kind: NaughtyKind;
  readonly untilWallMs: number;
}

// Not `id:`: those rows are admission's, and what sync merely could not use gives no right to its author.
const idPrefix = "sync:";
const relayPrefix = "relay:";
const keptPrefix = "sync-relay:";
const gatherMs = 1_000;
const writeAtOnce = 1_000;
const readAtOnce = 1_000;

/** Sync was refused this event, or a newer one is here: it is not fetched again for some days. */
export async function isRememberedBySync(store: TableReader, id: EventId, nowWallMs: number): Promise<boolean> {
  const row = await store.row<RememberedId>("remembered", idPrefix + id);
  return row !== undefined && row.untilWallMs > nowWallMs;
}

export class KeptRows {
  /** table and key → the row to write, or undefined to delete it; the newest wish counts. */
  readonly #wishes = new Map<string, { table: TableName; key: string; value: unknown }>();
  readonly #writing: LateWork;
  #isClosing = false;

  constructor(
    private readonly store: Store,
    private readonly clock: Clock,
    private readonly fault: (error: unknown) => void,
  ) {
    this.#writing = new LateWork(clock, gatherMs, () => this.#write());
  }

  /** In pages: a million of them at once would take a third of a gibibyte. */
  async *remembered(nowWallMs: number): AsyncIterable<readonly RememberedId[]> {
    for (let after: string | undefined; ; ) {
      const page: RememberedId[] = [];
      let read = 0;
      const range = { prefix: idPrefix, limit: readAtOnce, ...(after !== undefined && { after }) };
      for await (const [key, row] of this.store.rows<RememberedId>("remembered", range)) {
        if (row.untilWallMs > nowWallMs) page.push(row);
        else this.#wish("remembered", key, undefined);
        after = key;
        read += 1;
      }
      if (page.length > 0) yield page;
      if (read < readAtOnce) return;
      // What is over is written away before there is more of it.
      if (this.#wishes.size >= readAtOnce) await this.#writing.now();
      await new Promise<void>((go) => setImmediate(go));
    }
  }

  async naughty(nowWallMs: number): Promise<(NaughtyRow & { relay: string })[]> {
    const found: (NaughtyRow & { relay: string })[] = [];
    for await (const [key, row] of this.store.rows<NaughtyRow>("naughty", { prefix: relayPrefix })) {
      if (row.untilWallMs > nowWallMs) found.push({ relay: key.slice(relayPrefix.length), ...row });
      else this.#wish("naughty", key, undefined);
    }
    return found;
  }

  async relays(): Promise<{ relay: string; entry: KeptRelay }[]> {
    const found: { relay: string; entry: KeptRelay }[] = [];
    for await (const [key, { position, ...entry }] of this.store.rows<RelayRow>("meta", { prefix: keptPrefix })) {
      if (position <= this.store.position) found.push({ relay: key.slice(keptPrefix.length), entry });
      else this.#wish("meta", key, undefined);
    }
    return found;
  }

  execute(command: KeptCommand): void {
    switch (command.type) {
      case "keepRelay": {
        const row: RelayRow = { ...command.entry, position: this.store.position };
        this.#wish("meta", keptPrefix + command.relay, row);
        break;
      }
      case "dropKept":
        this.#wish("meta", keptPrefix + command.relay, undefined);
        break;
      case "remember":
        this.#wish("remembered", idPrefix + command.entry.id, command.entry);
        break;
      case "forget":
        this.#wish("remembered", idPrefix + command.id, undefined);
        break;
      case "saveNaughty": {
        const { kind, untilWallMs } = command;
        this.#wish("naughty", relayPrefix + command.relay, { kind, untilWallMs });
        break;
      }
      case "dropNaughty":
        this.#wish("naughty", relayPrefix + command.relay, undefined);
        break;
    }
  }

  /** Writes what is gathered. */
  async close(): Promise<void> {
    this.#isClosing = true;
    const stop = commitSoon(this.store, this.clock);
    await this.#writing.now();
    stop();
  }

  #wish(table: TableName, key: string, value: unknown): void {
    // Keys are at most 1,000 bytes; a relay whose address is longer is judged anew after a restart.
    if (Buffer.byteLength(key) > 900) return;
    this.#wishes.set(`${table} ${key}`, { table, key, value });
    this.#writing.later();
  }

  async #write(): Promise<void> {
    while (this.#wishes.size > 0) {
      const wishes = [...this.#wishes].slice(0, writeAtOnce);
      for (const [name] of wishes) this.#wishes.delete(name);
      try {
        const work = async (tx: Transaction): Promise<void> => {
          for (const [, { table, key, value }] of wishes) {
            if (value === undefined) tx.deleteRow(table, key);
            else tx.setRow(table, key, value);
          }
        };
        await this.store.transact(work, { mayWait: !this.#isClosing });
      } catch (error) {
        const isExpected =
          error instanceof StoreFullError ||
          error instanceof StoreBusyError ||
          error instanceof StoreClosedError ||
          error instanceof SharedLogError;
        if (!isExpected) this.fault(error);
        return;
      }
    }
  }
}
