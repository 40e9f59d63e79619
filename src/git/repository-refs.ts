// The refs of one repository: its table in memory and its files, changed only here. Holds no state of its own: tables, locks and counters
// are in the RepositoryContext all repositories share, so that a thousand repositories cost nothing while nobody looks.

import { join } from "node:path";
import type { Clock } from "../base/clock.js";
import { ifPresent, replaceFile, syncBelow, syncPath } from "../base/durable-files.js";
import type { KeyedLock } from "../base/keyed-lock.js";
import type { Oid, RefName } from "../nostr/ids.js";
import type { RepositoryAddress } from "./address.js";
import type { InUse } from "./in-use.js";
import type { Job } from "./launcher.js";
import type { JobExit } from "./launcher-helper.js";
import { type ObjectPlace, peelTags } from "./objects.js";
import { QuarantineDirectory } from "./quarantine.js";
import type { RefTable, RefTables, RefValue, SnapshotRefs } from "./ref-tables.js";
import { mayBePeeled, readRefFiles, sortRefs, sweepRefLocks, sweepRepositoryFiles } from "./repository-files.js";
import { checkedOid, type Git } from "./run.js";

export interface RepositoryContext {
  readonly git: Git;
  readonly clock: Clock;
  readonly tables: RefTables;
  readonly snapshotRefs: SnapshotRefs;
  /** Tables with unclaimed refs: what each was made from, and how often unclaimed data changed anywhere. */
  readonly fetchable: { readonly basis: WeakMap<RefTable, RefTable>; changes: number };
  /** Innermost: around reading and changing one repository's refs. */
  readonly refLocks: KeyedLock;
  /** Outer: one piece of work at a time on a repository (release, the end of a push). */
  readonly workLocks: KeyedLock;
  readonly inUse: InUse;
  /** Repositories whose leftovers of an earlier life have been removed. */
  readonly swept: Set<string>;
  /** Its packs or refs are not what they were. */
  readonly changed: (address: RepositoryAddress) => void;
}

/** A wanted value of one ref; `undefined` deletes it. */
export interface RefUpdate {
  readonly ref: RefName;
  readonly to: Oid | undefined;
}

export type RefUpdateResult =
  | { readonly ok: true; readonly changed: readonly RefUpdate[] }
  | { readonly ok: false; readonly code: "vetoed" | "conflict"; readonly reason: string };

export interface UpdateRefsOptions {
  /**
   * Called while the refs are locked, before anything is written. False ends the transaction with nothing changed.
   * Here the caller decides again, journals, and moves a quarantine's packs into place. Must not update refs itself.
   */
  readonly beforeCommit?: () => Promise<boolean>;
  /** A quarantine whose objects the transaction may see before they are moved into place. */
  readonly quarantine?: QuarantineDirectory;
  /** Clients go on seeing the refs from before until `publish`: for changes that an event must accompany. */
  readonly withhold?: boolean;
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

  /** As they are: what decisions are made on. */
  async refs(): Promise<RefTable> {
    const cached = this.context.tables.get(this.key);
    if (cached) return cached;
    return await this.context.refLocks.run(this.key, () => this.#table());
  }

  /** As clients see them: without what is withheld. */
  async shownRefs(): Promise<RefTable> {
    return this.context.tables.shown(this.key) ?? (await this.refs());
  }

  /** Shows what was withheld, at once. */
  publish(): void {
    this.context.tables.publish(this.key);
  }

  #keep(before: RefTable, changed: Omit<RefTable, "generation">, withhold: boolean | undefined): void {
    if (withhold) this.context.tables.withhold(this.key, before, changed);
    else this.context.tables.set(this.key, changed);
  }

  /** Under the ref lock only. */
  async #table(): Promise<RefTable> {
    const cached = this.context.tables.get(this.key);
    if (cached) return cached;
    await this.#sweepOnce();
    const { head, refs, unpeeled } = await readRefFiles(this.directory);
    await this.#peel(refs, unpeeled, this.place);
    return this.context.tables.set(this.key, { head, refs: sortRefs(refs) });
  }

  async #sweepOnce(): Promise<void> {
    if (this.context.swept.has(this.key)) return;
    await sweepRepositoryFiles(this.directory);
    this.context.swept.add(this.key);
  }

  async #peel(refs: Map<RefName, RefValue>, names: readonly RefName[], place: ObjectPlace): Promise<void> {
    const oids = names.flatMap((name) => refs.get(name)?.oid ?? []);
    if (oids.length === 0) return;
    const peeled = await peelTags(place, oids);
    for (const name of names) {
      const oid = refs.get(name)?.oid;
      if (oid) refs.set(name, { oid, peeled: peeled.get(oid) });
    }
  }

  /** Two-phase; values that are already right are left out. The only way refs change. */
  async updateRefs(updates: readonly RefUpdate[], options: UpdateRefsOptions = {}): Promise<RefUpdateResult> {
    const { refs } = await this.refs();
    const update = (): Promise<RefUpdateResult> => this.#update(updates, options);
    // Housekeeping makes way for who writes, and for nobody else. Before the ref lock, which it may wait for.
    if (updates.every(({ ref, to }) => refs.get(ref)?.oid === to)) return await update();
    return await this.context.inUse.during([this.key], update);
  }

  async #update(updates: readonly RefUpdate[], options: UpdateRefsOptions): Promise<RefUpdateResult> {
    return await this.context.refLocks.run(this.key, async () => {
      let isAgreed = false;
      const beforeCommit = async (): Promise<boolean> => {
        isAgreed ||= (await options.beforeCommit?.()) ?? true;
        return isAgreed;
      };
      const before = await this.#table();
      const first = await this.#tryUpdate(updates, { ...options, beforeCommit }, before);
      if (first.ok || first.code !== "conflict") return first;
      // Somebody changed the files behind our back, or git was killed and may have written some of them or all: look at
      // them again, once. What was agreed to stays so; asked again, the caller would see refs that have moved already.
      this.context.tables.delete(this.key);
      const now = await this.#table();
      return await this.#tryUpdate(updates, { ...options, beforeCommit }, isAgreed ? before : now);
    });
  }

  /** `before`: what clients see until the change is published. */
  async #tryUpdate(
    updates: readonly RefUpdate[],
    options: UpdateRefsOptions,
    before: RefTable,
  ): Promise<RefUpdateResult> {
    const table = await this.#table();
    const changes: RefChange[] = [];
    for (const [ref, to] of new Map(updates.map((update) => [update.ref, update.to]))) {
      const from = table.refs.get(ref)?.oid;
      if (from !== to) changes.push({ ref, from, to });
    }
    const { beforeCommit = async () => true, quarantine } = options;
    const changed = changes.map(({ ref, to }) => ({ ref, to }));
    if (changes.length === 0) {
      if (!(await beforeCommit())) return { ok: false, code: "vetoed", reason: "" };
      if (before !== table) this.#keep(before, table, options.withhold);
      return { ok: true, changed };
    }
    const place =
      quarantine instanceof QuarantineDirectory ? { ...this.place, env: quarantine.readingEnvironment } : this.place;
    const refs = new Map(table.refs);
    for (const { ref, to } of changes) {
      if (to === undefined) refs.delete(ref);
      else refs.set(ref, { oid: to, peeled: undefined });
    }
    const changedNames = changes.filter(({ ref, to }) => to !== undefined && mayBePeeled(ref)).map(({ ref }) => ref);
    await this.#peel(refs, changedNames, place);
    const release = this.context.tables.pin(this.key);
    try {
      const result = await writeRefs(place, changes, async () => {
        if (!(await beforeCommit())) return false;
        this.context.snapshotRefs.changes(this.key, table);
        return true;
      });
      if (result.status === "vetoed") return { ok: false, code: "vetoed", reason: "" };
      if (result.status === "failed") {
        this.context.tables.delete(this.key);
        // A killed update-ref leaves its locks, and every later update would fail. Other pushes' quarantines stay.
        if (result.exit.signal) await sweepRefLocks(this.directory);
        return { ok: false, code: "conflict", reason: result.exit.stderr.trim() };
      }
      const isReordered = changes.some(({ from }) => from === undefined);
      this.#keep(before, { head: table.head, refs: isReordered ? sortRefs(refs) : refs }, options.withhold);
      this.context.changed(this.address);
      return { ok: true, changed };
    } finally {
      release();
    }
  }

  /** HEAD moves only to a branch that exists; false otherwise. */
  async setHead(branch: RefName, options: { readonly withhold?: boolean } = {}): Promise<boolean> {
    return await this.context.refLocks.run(this.key, async () => {
      const table = await this.#table();
      if (!table.refs.has(branch) || !branch.startsWith("refs/heads/")) return false;
      if (table.head === branch) return true;
      this.context.snapshotRefs.changes(this.key, table);
      await replaceFile(join(this.directory, "HEAD"), `ref: ${branch}\n`);
      this.#keep(table, { head: branch, refs: table.refs }, options.withhold);
      return true;
    });
  }

  /** fsyncs refs and HEAD: after this a journal entry for them may go. */
  async syncRefs(): Promise<void> {
    await syncBelow(join(this.directory, "refs"));
    await ifPresent(syncPath(join(this.directory, "packed-refs")));
    await ifPresent(syncPath(this.directory));
  }
}

interface RefChange {
  readonly ref: RefName;
  readonly from: Oid | undefined;
  readonly to: Oid | undefined;
}

type TransactionResult =
  | { readonly status: "committed" }
  | { readonly status: "vetoed" }
  /** git would not lock or write; `exit` says why. `partly`: deletions that had to go first are done. */
  | { readonly status: "failed"; readonly exit: JobExit; readonly partly: boolean };

const absent = "0".repeat(40);

/** `refs/heads/a` cannot go in the transaction in which `refs/heads/a/b` comes, nor the reverse: git checks each ref alone. */
function splitWhereDirectoriesClash(changes: readonly RefChange[]): readonly (readonly RefChange[])[] {
  const deleted = new Set<string>(changes.filter(({ to }) => to === undefined).map(({ ref }) => ref));
  const created = new Set<string>(changes.filter(({ from }) => from === undefined).map(({ ref }) => ref));
  const clashes =
    [...created].some((ref) => foldersOf(ref).some((folder) => deleted.has(folder))) ||
    [...deleted].some((ref) => foldersOf(ref).some((folder) => created.has(folder)));
  if (!clashes) return [changes];
  return [changes.filter(({ to }) => to === undefined), changes.filter(({ to }) => to !== undefined)];
}

function foldersOf(ref: string): string[] {
  const parts = ref.split("/");
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join("/"));
}

function instruction({ ref, from, to }: RefChange): string {
  const old = from === undefined ? absent : checkedOid(from);
  return to === undefined ? `delete ${ref} ${old}\n` : `update ${ref} ${checkedOid(to)} ${old}\n`;
}

/**
 * One `update-ref --stdin`, two phases: prepare locks every ref, then the caller looks once more and may still say no,
 * commit writes (mechanisms.md, "Push without receive-pack" 7).
 */
async function writeRefs(
  { git, directory, env = {} }: ObjectPlace,
  changes: readonly RefChange[],
  beforeCommit: () => Promise<boolean>,
): Promise<TransactionResult> {
  // Written out before git starts: a value that is no object id must throw while there is nothing to clean up.
  const parts = splitWhereDirectoriesClash(changes).map((part) => part.map(instruction).join(""));
  const job = await git.start(["update-ref", "--stdin"], { directory, env, stdin: true });
  const conversation = new Conversation(job);
  let decided = false;
  for (const [index, part] of parts.entries()) {
    const prepared =
      (await conversation.say("start\n", "start: ok")) && (await conversation.say(`${part}prepare\n`, "prepare: ok"));
    if (!prepared) return { status: "failed", exit: await conversation.end(), partly: index > 0 };
    if (!decided) {
      decided = await beforeCommit().catch(async (error: unknown) => {
        await conversation.say("abort\n", "abort: ok");
        await conversation.end();
        throw error;
      });
      if (!decided) {
        await conversation.say("abort\n", "abort: ok");
        await conversation.end();
        return { status: "vetoed" };
      }
    }
    if (!(await conversation.say("commit\n", "commit: ok"))) {
      return { status: "failed", exit: await conversation.end(), partly: index > 0 };
    }
  }
  await conversation.end();
  return { status: "committed" };
}

/** One line out, one line back. Ends by closing stdin, never by a signal: a killed update-ref leaves its locks behind. */
class Conversation {
  #text = "";
  #wake: (() => void) | undefined;
  #ended = false;

  constructor(readonly job: Job) {
    job.stdout.on("data", (chunk: Buffer) => {
      this.#text += chunk.toString("utf8");
      this.#wake?.();
    });
    const end = (): void => {
      this.#ended = true;
      this.#wake?.();
    };
    // A git that was killed as soon as it began may have ended before anybody listened: nobody would hear of it again.
    if (job.stdout.readableEnded || job.stdout.destroyed) end();
    job.stdout.once("end", end);
    job.stdout.once("close", end);
  }

  async say(text: string, expected: string): Promise<boolean> {
    if (this.#ended) return false;
    this.job.stdin?.write(text);
    for (;;) {
      const end = this.#text.indexOf("\n");
      if (end >= 0) {
        const line = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 1);
        return line === expected;
      }
      if (this.#ended) return false;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async end(): Promise<JobExit> {
    this.job.stdin?.end();
    return await this.job.exit;
  }
}
