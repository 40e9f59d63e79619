// The refs of one repository. Its rows are the truth (catalogue/refs.ts); its table in memory is read from them and
// replaced after each commit (change-refs.ts); git's own files follow, and are overwritten where they differ. Holds no state
// of its own: tables, locks and counters are in the RepositoryContext all repositories share, so that a thousand
// repositories cost nothing while nobody looks.

import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.js";
import { ifPresent, replaceFile, syncBelow, syncPath } from "../base/durable-files.js";
import type { InUse, KeyedLock } from "../base/keyed-lock.js";
import { wantedFormat } from "../catalogue/object-format.js";
import { anyRef, readRefs } from "../catalogue/refs.js";
import { formatOf, type ObjectFormat, type Oid, type RefName } from "../nostr/nip34.js";
import type { Store } from "../store/port.js";
import type { RepositoryAddress } from "./address.js";
import { arePresent, type ObjectPlace, objectTypes, peelTags } from "./objects.js";
import type { RefAlignment } from "./ref-tables.js";
import { emptyTables, type RefTable, type RefTables } from "./ref-tables.js";
import {
  branchIn,
  formatIn,
  hasOurConfig,
  headFile,
  readHead,
  readRefFiles,
  sweepRefLocks,
  sweepRepositoryFiles,
  writeLooseRefs,
} from "./repository-files.js";
import { checkedOid, type Git, GitError, type GitResult } from "./run.js";
import type { SharedPacks } from "./shared-packs.js";

export interface RepositoryContext {
  readonly git: Git;
  readonly clock: Clock;
  readonly store: Store;
  readonly tables: RefTables;
  /** Repositories whose files do not say yet what their rows say. */
  readonly behind: Map<string, Behind>;
  readonly alignment: RefAlignment;
  /** Tables with unclaimed refs: what each was made from, and how often unclaimed data changed anywhere. */
  readonly fetchable: { readonly basis: WeakMap<RefTable, RefTable>; changes: number };
  /** Innermost: around reading and changing one repository's refs, in rows and in files. */
  readonly refLocks: KeyedLock;
  /** Outer: one piece of work at a time on a repository (release, the end of a push). */
  readonly workLocks: KeyedLock;
  readonly inUse: InUse;
  /** How often objects that were in place went again, anywhere: whoever found some since looks once more. */
  readonly takenBack: { count: number };
  /** Set where several machines share their packs: then rows say which repositories there are, and directories are copies. */
  readonly packs: SharedPacks | undefined;
  /** How often another machine changed refs: tables that were read meanwhile are read again. */
  readonly foreign: { changes: number };
  /** Repositories whose leftovers of an earlier life have been removed. */
  readonly swept: Set<string>;
  /** Its packs or refs are not what they were. */
  readonly changed: (address: RepositoryAddress) => void;
}

interface Behind {
  /** Refs whose files have to be written; undefined: every file is compared. */
  readonly names: ReadonlySet<RefName> | undefined;
  /** Objects of some refs are not here, so that git cannot hold them. Not tried again before something has changed. */
  readonly isStuck?: boolean;
}

/** A wanted value of one ref; `undefined` deletes it. */
export interface RefUpdate {
  readonly ref: RefName;
  readonly to: Oid | undefined;
}

export class RepositoryRefs {
  constructor(
    readonly context: RepositoryContext,
    readonly address: RepositoryAddress,
    readonly directory: string,
  ) {}

  protected get key(): string {
    return this.address.key;
  }

  get place(): ObjectPlace {
    return { git: this.context.git, directory: this.directory };
  }

  /**
   * Before git is run on its objects: resolves when they are all here. Throws ObjectsUnavailableError. `tolerant`: whatever
   * can be had. Undefined: they are here.
   */
  ready({ tolerant = false } = {}): Promise<void> | undefined {
    const { packs, inUse, swept, refLocks } = this.context;
    if (!packs || packs.isReady(this.key)) return undefined;
    // Housekeeping makes way: what it joins changes.
    return inUse.during([this.key], async () => {
      // First: a sweep would take packs that are being put into place for what a crash left.
      if (!swept.has(this.key)) await refLocks.run(this.key, () => this.#sweepOnce());
      await packs.bringHere(this, { tolerant });
    });
  }

  async refs(): Promise<RefTable> {
    const cached = this.context.tables.get(this.key);
    if (cached) return cached;
    return await this.context.refLocks.run(this.key, () => this.#table());
  }

  /** Under the ref lock only. */
  async #table(): Promise<RefTable> {
    const { tables, store, foreign } = this.context;
    const cached = tables.get(this.key);
    if (cached) return cached;
    await this.#sweepOnce();
    for (;;) {
      const { changes } = foreign;
      const format = (await this.context.packs?.listed.formatOf(this.address)) ?? formatIn(this.directory);
      const refs = { ...((await readRefs(store, this.address)) ?? emptyTables[format]), format };
      // Rows are read in pages, and the ref lock keeps only this machine's changes away.
      if (foreign.changes === changes) return tables.set(this.key, refs);
    }
  }

  async #sweepOnce(): Promise<void> {
    if (this.context.swept.has(this.key)) return;
    // One that is now in another format is made anew before its objects are used (SharedPacks): new settings alone would hide
    // that its files are still the old ones.
    const staysAsItIs = this.context.packs && (await hasOurConfig(this.directory));
    const format = staysAsItIs ? formatIn(this.directory) : await this.expectedFormat();
    await sweepRepositoryFiles(this.directory, format);
    this.context.swept.add(this.key);
  }

  /**
   * The format its files must be read in: that of its refs; without any, whatever a config of ours says, because an empty
   * repository is made anew when its format changes (Repositories.create).
   */
  async expectedFormat(): Promise<ObjectFormat> {
    const { store } = this.context;
    const oid = await anyRef(store, this.address);
    if (oid) return formatOf(oid);
    const listed = await this.context.packs?.listed.formatOf(this.address);
    if (listed) return listed;
    return (await hasOurConfig(this.directory)) ? formatIn(this.directory) : await wantedFormat(store, this.address);
  }

  /** In the turn in which these refs were committed: whoever runs git on the files from now on has them written first. */
  fallBehind(names: readonly RefName[]): void {
    const { behind } = this.context;
    const before = behind.get(this.key);
    const isUnknown = before && !before.names;
    behind.set(this.key, { names: isUnknown ? undefined : new Set([...(before?.names ?? []), ...names]) });
  }

  /** Before git is run on this repository's refs: resolves when its files say what the rows say. */
  async bringInLine(): Promise<void> {
    const { behind, inUse, refLocks, packs } = this.context;
    for (let isDone = false; !isDone; ) {
      await this.ready();
      const work = behind.get(this.key);
      if (!work || work.isStuck) return;
      const projectIfReady = async (): Promise<boolean> => {
        // Another machine brought packs meanwhile: what the rows name now may be in those.
        if (packs && !packs.isReady(this.key)) return false;
        await this.project();
        return true;
      };
      // Housekeeping makes way for who writes. Before the ref lock, which it may wait for.
      isDone = await inUse.during([this.key], () => refLocks.run(this.key, projectIfReady));
    }
  }

  /** git cannot hold some of the refs, because their objects are not here. */
  get isStuck(): boolean {
    return this.context.behind.get(this.key)?.isStuck ?? false;
  }

  /** The version that the files have; undefined when they cannot have it. */
  async alignedVersion(): Promise<number | undefined> {
    await this.bringInLine();
    return await this.context.refLocks.run(this.key, async () => {
      const { version } = await this.#table();
      // Asked last: another machine may have changed refs while they were read.
      return this.context.behind.has(this.key) ? undefined : version;
    });
  }

  /** Compares all files with the rows and mends what differs. Answers the refs that did, HEAD among them. */
  async mendFiles(): Promise<readonly string[]> {
    const { behind, refLocks } = this.context;
    const differing = await refLocks.run(this.key, async () => {
      const table = await this.#table();
      if (table.version === 0) return [];
      const names: string[] = (await this.#compare(table)).updates.map(({ ref }) => ref);
      if ((await readHead(this.directory)) !== table.head) names.push("HEAD");
      if (names.length > 0) behind.set(this.key, { names: undefined });
      return names;
    });
    await this.bringInLine();
    return differing;
  }

  /** What git itself would say, which somebody may have changed. */
  refsOnDisk(): Promise<Pick<RefTable, "head" | "refs">> {
    return readRefFiles(this.directory);
  }

  /** The files as rows have them: for those that have no rows yet. */
  async peeledFiles(): Promise<Pick<RefTable, "head" | "refs">> {
    await this.#sweepOnce();
    const { head, refs, unpeeled } = await readRefFiles(this.directory);
    const oids = unpeeled.flatMap((name) => refs.get(name)?.oid ?? []);
    const peeled = await peelTags(this.place, oids);
    for (const name of unpeeled) {
      const oid = refs.get(name)?.oid;
      if (oid) refs.set(name, { oid, peeled: peeled.get(oid) });
    }
    return { head, refs };
  }

  async #compare({ refs }: RefTable): Promise<{ updates: RefUpdate[]; broken: readonly RefName[] }> {
    const { refs: files, broken } = await readRefFiles(this.directory);
    const gone = [...files.keys()].filter((ref) => !refs.has(ref)).map((ref) => ({ ref, to: undefined }));
    const others = [...refs].filter(([ref, { oid }]) => files.get(ref)?.oid !== oid);
    return { updates: [...gone, ...others.map(([ref, { oid }]) => ({ ref, to: oid }))], broken };
  }

  /** What git has to write. Files that it would not overwrite go. */
  async #differences(table: RefTable): Promise<RefUpdate[]> {
    const { updates, broken } = await this.#compare(table);
    for (const name of broken) await rm(join(this.directory, name), { force: true });
    return updates;
  }

  /** Under the ref lock. What is written is not synced: that follows (RefAlignment). */
  private async project(): Promise<void> {
    const { behind, alignment, changed } = this.context;
    const work = behind.get(this.key);
    if (!work) return;
    let mark = work;
    // What another machine changed since makes the files fall behind anew, whatever came of this.
    const settle = (left?: Behind): void => {
      if (behind.get(this.key) !== mark) return;
      if (left) behind.set(this.key, left);
      else behind.delete(this.key);
      mark = left ?? mark;
    };
    const head = await headFile(this.directory);
    if (head === undefined) return settle();
    const table = await this.#table();
    // No row speaks of it: its files are not ours to change.
    if (table.version === 0) return settle();
    if (branchIn(head) !== table.head) {
      await replaceFile(join(this.directory, "HEAD"), `ref: ${table.head}\n`);
    }
    const known = work.names && [...work.names].map((ref) => ({ ref, to: table.refs.get(ref)?.oid }));
    let written = known?.map(({ ref }) => ref);
    const isWritten = known !== undefined && this.#hasObjects(known) && (await writeLooseRefs(this.directory, known));
    let result = isWritten ? nothingToWrite : await this.#write(known ?? (await this.#differences(table)));
    // Somebody changed the files, or git was killed and may have written some of them or all. Nobody else writes refs now: a
    // lock that is here is one that was left.
    if (result.code !== 0) {
      await sweepRefLocks(this.directory);
      written = undefined;
      result = await this.#write(await this.#differences(table));
    }
    let isStuck = false;
    if (result.code !== 0) {
      settle({ names: undefined });
      if (result.signal) throw new GitError("update-ref", result);
      const possible = await this.#possible(await this.#differences(table));
      const rest = await this.#write(possible);
      if (rest.code !== 0) throw new GitError("update-ref", rest);
      isStuck = true;
    }
    settle(isStuck ? { names: undefined, isStuck } : undefined);
    changed(this.address);
    if (isStuck) alignment.failed(new GitError("update-ref", result));
    else alignment.add(this, written && new Set(written));
  }

  /** Whatever is not surely here, git looks for before it writes the ref. */
  #hasObjects(updates: readonly RefUpdate[]): boolean {
    const oids = updates.flatMap(({ to }) => to ?? []);
    return arePresent(join(this.directory, "objects"), oids);
  }

  /** Without refs that git would not hold: their objects are lost, and hunted. */
  async #possible(updates: readonly RefUpdate[]): Promise<RefUpdate[]> {
    const types = await objectTypes(
      this.place,
      updates.flatMap(({ to }) => to ?? []),
    );
    return updates.filter(({ ref, to }) => {
      const type = to && types.get(to);
      return to === undefined || (ref.startsWith("refs/heads/") ? type === "commit" : type !== undefined);
    });
  }

  /** One `update-ref --stdin`, whatever the files say now. */
  async #write(updates: readonly RefUpdate[]): Promise<Written> {
    if (updates.length === 0) return nothingToWrite;
    // git checks each ref alone: `refs/heads/a` cannot go in the transaction in which `refs/heads/a/b` comes.
    const deletions = updates.filter(({ to }) => to === undefined);
    const others = updates.filter(({ to }) => to !== undefined);
    const parts = areSeparate(deletions, others) ? [updates] : [deletions, others];
    const input = parts.map((part) => `start\n${part.map(instruction).join("")}prepare\ncommit\n`).join("");
    const result = await this.context.git.run(["update-ref", "--stdin"], { directory: this.directory, input });
    // A killed update-ref leaves its locks, and every later update would fail. Other pushes' quarantines stay.
    if (result.signal) await sweepRefLocks(this.directory);
    return result;
  }

  /** fsyncs HEAD and refs, these or all: after this their version may be recorded as aligned. */
  async syncRefs(names?: ReadonlySet<RefName>): Promise<void> {
    if (names) {
      const folders = new Set([...names].flatMap(foldersOf));
      for (const place of [...names, ...folders]) await ifPresent(syncPath(join(this.directory, place)));
    } else await syncBelow(join(this.directory, "refs"));
    await ifPresent(syncPath(join(this.directory, "packed-refs")));
    await ifPresent(syncPath(this.directory));
  }
}

type Written = Pick<GitResult, "code" | "signal" | "stderr" | "timedOut">;

const nothingToWrite: Written = { code: 0, signal: undefined, stderr: "", timedOut: false };

const instruction = ({ ref, to }: RefUpdate): string =>
  to === undefined ? `delete ${ref}\n` : `update ${ref} ${checkedOid(to)}\n`;

export function foldersOf(ref: string): string[] {
  const parts = ref.split("/");
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join("/"));
}

/** No ref that comes needs a directory where a ref goes, nor the reverse. */
function areSeparate(going: readonly RefUpdate[], coming: readonly RefUpdate[]): boolean {
  const gone = new Set<string>(going.map(({ ref }) => ref));
  const here = new Set<string>(coming.map(({ ref }) => ref));
  return (
    !coming.some(({ ref }) => foldersOf(ref).some((folder) => gone.has(folder))) &&
    !going.some(({ ref }) => foldersOf(ref).some((folder) => here.has(folder)))
  );
}
