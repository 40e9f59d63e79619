// The refs of one repository: its table in memory, changed only here. Holds no state of its own: tables, locks and counters
// are in the RepositoryContext all repositories share, so that a thousand repositories cost nothing while nobody looks.

import { join } from "node:path";
import type { Clock } from "../base/clock.js";
import { ifPresent, replaceFile, syncBelow, syncPath } from "../base/durable-files.js";
import type { KeyedLock } from "../base/keyed-lock.js";
import type { RefName } from "../nostr/ref-name.js";
import type { RepositoryAddress } from "./address.js";
import type { GivingWay } from "./giving-way.js";
import { type ObjectPlace, peelTags } from "./objects.js";
import { QuarantineDirectory } from "./quarantine.js";
import { mayBePeeled, readRefFiles, sortRefs } from "./ref-files.js";
import type { RefTables } from "./ref-tables.js";
import { type RefChange, writeRefs } from "./ref-transaction.js";
import type { RefsKept } from "./refs-kept.js";
import { sweepRefLocks, sweepRepositoryFiles } from "./repository-files.js";
import type { Git } from "./run.js";
import type { RefTable, RefUpdate, RefUpdateResult, RefValue, UpdateRefsOptions } from "./types.js";

export interface RepositoryContext {
  readonly git: Git;
  readonly clock: Clock;
  readonly tables: RefTables;
  readonly refsKept: RefsKept;
  /** Tables with unclaimed refs: what each was made from, and how often unclaimed data changed anywhere. */
  readonly fetchable: { readonly basis: WeakMap<RefTable, RefTable>; changes: number };
  /** Innermost: around reading and changing one repository's refs. */
  readonly refLocks: KeyedLock;
  /** Outer: one piece of work at a time on a repository (release, the end of a push). */
  readonly workLocks: KeyedLock;
  readonly givingWay: GivingWay;
  /** Repositories whose leftovers of an earlier life have been removed. */
  readonly swept: Set<string>;
  /** Its packs or refs are not what they were. */
  readonly changed: (address: RepositoryAddress) => void;
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

  async refs(): Promise<RefTable> {
    const cached = this.context.tables.get(this.key);
    if (cached) return cached;
    return await this.context.refLocks.run(this.key, () => this.#table());
  }

  async shownRefs(): Promise<RefTable> {
    return this.context.tables.shown(this.key) ?? (await this.refs());
  }

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

  async updateRefs(updates: readonly RefUpdate[], options: UpdateRefsOptions = {}): Promise<RefUpdateResult> {
    const { refs } = await this.refs();
    const update = (): Promise<RefUpdateResult> => this.#update(updates, options);
    // Housekeeping makes way for who writes, and for nobody else. Before the ref lock, which it may wait for.
    if (updates.every(({ ref, to }) => refs.get(ref)?.oid === to)) return await update();
    return await this.context.givingWay.during([this.key], update);
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
        this.context.refsKept.changes(this.key, table);
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

  async setHead(branch: RefName, options: { readonly withhold?: boolean } = {}): Promise<boolean> {
    return await this.context.refLocks.run(this.key, async () => {
      const table = await this.#table();
      if (!table.refs.has(branch) || !branch.startsWith("refs/heads/")) return false;
      if (table.head === branch) return true;
      this.context.refsKept.changes(this.key, table);
      await replaceFile(join(this.directory, "HEAD"), `ref: ${branch}\n`);
      this.#keep(table, { head: branch, refs: table.refs }, options.withhold);
      return true;
    });
  }

  async syncRefs(): Promise<void> {
    await syncBelow(join(this.directory, "refs"));
    await ifPresent(syncPath(join(this.directory, "packed-refs")));
    await ifPresent(syncPath(this.directory));
  }
}
