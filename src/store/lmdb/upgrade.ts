// Brings a store of an earlier format to today's when it is opened, before anything else reads it. What earlier formats
// looked like is written here in words and shapes of its own: it must not change when today's tables do.
//   2  lists some kinds by tag and kind (engine/row.ts)
//   3  repositories under `/prs/` are rows of table "catalogue", and keys name every repository in the same way
// The file as it was is copied first, for whoever wants to go back to the program before. Steps are written in small
// transactions, and the version after the last of them: a start that was cut short begins again, and what was done twice
// is the same as done once. The copy is not made twice: what it would copy is no longer what it was.

import { counted } from "../../base/text.js";
import type { EngineStore } from "../engine/engine.js";
import { type Entry, isListedByTagAndKind, kindsUnderAddress, ofKind, ofTagAndKind } from "../engine/row.js";
import type { Store, TableName } from "../port.js";
import type { Database, DatabaseFiles } from "./database.js";
import type { LmdbBackend } from "./lmdb-backend.js";
import { entryBytes, metaNumber, setMeta, termKeyOf, writeEntry, writeTerm } from "./rows.js";

export const formatVersion = 3;
/** Formats this program can bring up to date. */
export const isKnownFormat = (version: number): boolean => version >= 1 && version <= formatVersion;

const rowsAStep = 500;
const tellEveryRows = 20_000;
const nothing = Buffer.alloc(0);

/** The store is as it was, and its operator can do something about it. */
export class StoreRefusal extends Error {
  override readonly name = "StoreRefusal";
}

/** The format whose copy was made, while the steps that follow it are not all done. */
const copiedMeta = "upgrading-from";
const copyName = (format: number): string => `events-of-format-${format}.mdb`;

interface Upgrading {
  readonly files: DatabaseFiles;
  /** Stays free after the copy. */
  readonly reserveBytes: number;
  readonly freeBytes: () => Promise<number>;
  readonly database: Database;
  readonly backend: LmdbBackend;
  readonly store: EngineStore;
  readonly seed: number;
  readonly nowSeconds: number;
  /** Hears what takes time. */
  readonly tell: (sentence: string) => void;
}

export async function upgrade(from: number, parts: Upgrading): Promise<void> {
  const { database, backend, store, seed, nowSeconds, tell } = parts;
  if (metaNumber(database, copiedMeta) !== from) await copyFirst(from, parts);
  tell(`the store has format ${from}: bringing it to format ${formatVersion}`);
  if (from < 2)
    tell(`${counted(await listByTagAndKind(database, backend, seed), "event was", "events were")} listed anew`);
  if (from < 3) tell(`${await nameRepositoriesAlike(store, nowSeconds, tell)} rows of repositories were moved`);
  await database.write(() => {
    setMeta(database, "version", formatVersion);
    setMeta(database, copiedMeta, 0);
  });
  tell(`the store has format ${formatVersion} now`);
}

async function copyFirst(from: number, { files, database, reserveBytes, freeBytes, tell }: Upgrading): Promise<void> {
  const [neededBytes, free] = [files.bytes() + reserveBytes, await freeBytes()];
  if (free < neededBytes) {
    const [needs, has] = [Math.ceil(neededBytes / 2 ** 20), Math.floor(free / 2 ** 20)];
    throw new StoreRefusal(
      `the store has format ${from} and is copied before it is brought to format ${formatVersion}: that needs ${needs} MiB, and the disk has ${has} MiB free. Make room and start again`,
    );
  }
  const copy = await files.copyBeside(copyName(from), database);
  await database.write(() => setMeta(database, copiedMeta, from));
  tell(`${copy} is a copy of the store as it is now: delete it when you will not go back to the version before`);
}

// ---- format 2 ------------------------------------------------------------------------------------------------------

async function listByTagAndKind(database: Database, backend: LmdbBackend, seed: number): Promise<number> {
  let rows = 0;
  for (const kind of kindsUnderAddress) {
    let after: Entry | undefined;
    for (;;) {
      const entries = backend.scan(ofKind(kind), after, 0, Number.MAX_SAFE_INTEGER, rowsAStep);
      await database.write(() => {
        for (const entry of entries) listOne(database, backend, seed, kind, entry);
      });
      rows += entries.length;
      after = entries.at(-1);
      if (entries.length < rowsAStep) break;
    }
  }
  return rows;
}

function listOne(database: Database, backend: LmdbBackend, seed: number, kind: number, entry: Entry): void {
  // Terms are hashed: another kind may share the list.
  const row = backend.row(entry.seq);
  if (row?.kind !== kind) return;
  const key = Buffer.alloc(entryBytes);
  for (const [name, value] of row.tags) {
    if (name === undefined || value === undefined || !isListedByTagAndKind(name, kind)) continue;
    writeTerm(key, termKeyOf(ofTagAndKind(name, value, kind), seed));
    writeEntry(key, entry);
    database.entries.put(key, nothing);
  }
}

// ---- format 3 ------------------------------------------------------------------------------------------------------

/** What becomes of a row. Undefined: it is as it should be. */
type Move = (
  key: string,
  value: Record<string, unknown>,
) => { readonly table: TableName; readonly key: string; readonly value: unknown } | undefined;

async function nameRepositoriesAlike(
  store: Store,
  nowSeconds: number,
  tell: (sentence: string) => void,
): Promise<number> {
  let rows = 0;
  let told = 0;
  for (const [table, prefix, move] of movesToFormat3(nowSeconds)) {
    for await (const moved of moveAll(store, table, prefix, move)) {
      rows += moved;
      if (rows - told < tellEveryRows) continue;
      told = rows;
      tell(`${rows} rows of repositories were moved so far`);
    }
  }
  return rows;
}

function movesToFormat3(nowSeconds: number): readonly (readonly [TableName, string, Move])[] {
  return [
    // Bytes of a repository under `/prs/`, keyed by `<owner>:<identifier>`: its row.
    [
      "meta",
      "prs-bytes:",
      (key, { owner, identifier, bytes }) => ({
        table: "catalogue",
        key: `prs:${key.slice("prs-bytes:".length)}`,
        value: {
          address: `prs:${owner}:${identifier}`,
          owner,
          identifier,
          area: "prs",
          status: "served",
          since: nowSeconds,
          mark: null,
          governing: null,
          partial: null,
          archive: null,
          counters: { pushes: 0, bytes, pullRequestBytes: 0 },
        },
      }),
    ],
    // `housekeeping:main:<owner>:<identifier>`: announced repositories have no area in keys.
    [
      "meta",
      "housekeeping:main:",
      (key, value) => ({ table: "meta", key: `housekeeping:${key.slice("housekeeping:main:".length)}`, value }),
    ],
    // `p:<signer>:<identifier>:<event id>`, a pull request that waits for data under `/prs/`: among what concerns a repository.
    [
      "purgatory",
      "p:",
      (key, value) => ({
        table: "purgatory",
        key: `r:prs:${key.slice("p:".length, -eventIdLength)}pull-request:${key.slice(-eventIdLength)}`,
        value,
      }),
    ],
    // `g:<event id>:<area>:<owner>:<identifier>`, data without its event: the area stands in the repository's address.
    [
      "purgatory",
      "g:",
      (key, { area, repository, ...rest }) => {
        if (area === undefined) return undefined;
        const [head, tail] = [key.slice(0, placeAt), key.slice(placeAt)];
        const address = area === "prs" ? `prs:${String(repository).slice("30617:".length)}` : repository;
        const at = `${head}${tail.startsWith("main:") ? tail.slice("main:".length) : tail}`;
        return { table: "purgatory", key: at, value: { ...rest, repository: address } };
      },
    ],
  ];
}

const eventIdLength = 64;
const placeAt = "g:".length + eventIdLength + ":".length;

/** In the order of keys, a step at a time. Rows that are moved within the same prefix may be met again, as they should be. */
async function* moveAll(store: Store, table: TableName, prefix: string, move: Move): AsyncIterable<number> {
  for (let after: string | undefined; ; ) {
    const range = { prefix, limit: rowsAStep, ...(after !== undefined && { after }) };
    const rows: (readonly [string, Record<string, unknown>])[] = [];
    for await (const row of store.rows<Record<string, unknown>>(table, range)) rows.push(row);
    await store.transact(async (tx) => {
      for (const [key, value] of rows) {
        const to = move(key, value);
        if (!to) continue;
        if (to.table !== table || to.key !== key) tx.deleteRow(table, key);
        tx.setRow(to.table, to.key, to.value);
      }
    });
    yield rows.length;
    if (rows.length < rowsAStep) return;
    after = rows.at(-1)?.[0];
  }
}
