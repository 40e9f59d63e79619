// Where pages read repositories. Objects come from long-lived processes and are kept in memory; everything that needs a run
// of git takes a place of its own limiter, so that readers wait for each other and never a push or an event for them.
// What an id names never changes, so answers by id are kept until newer ones push them out.

import { createHash } from "node:crypto";
import { Turns } from "../../base/budget/turns.js";
import type { Clock } from "../../base/clock.js";
import { KeptValues } from "../../base/kept-values.js";
import type { Oid } from "../../nostr/nip34.js";
import type { RefTable } from "../ref-tables.js";
import type { GitRepository } from "../repository.js";
import { type Blame, readBlame } from "./blame.js";
import { type Diff, emptyTree, readDiff } from "./diff.js";
import { type FileList, findEntry, listFiles } from "./files.js";
import * as history from "./history.js";
import { ObjectReader, type ReadObject } from "./object-reader.js";
import { type Commit, commitOf, Folder, type TreeEntry } from "./objects.js";
import { Streams } from "./streams.js";
import type { Looked, Visitor } from "./visitor.js";

const keptObjectBytes = 48 * 2 ** 20;
const keptAnswerBytes = 24 * 2 ** 20;
const maxCommitBytes = 2 ** 20;
/** Some 200,000 entries. */
const maxTreeBytes = 8 * 2 ** 20;
const maxDepth = 200;
/** Of what is small enough to be shown; more is read for /raw, and not kept. */
const maxKeptBlobBytes = 2 ** 20;

/** What git had no time for is asked again after this: it may be as slow as before, or the disk was busy. */
const askedAgainMs = 30_000;

/** For all branches of a page together. */
const apartMs = 4_000;

type LastChanges = ReadonlyMap<string, history.LastChange>;

const places = { total: 6, perRepository: 3, perIp: 4, maxQueued: 64, keptForOthers: 2 };

/** Where branches and tags lead, and where pull requests do. */
interface Tips {
  readonly own: ReadonlySet<Oid>;
  readonly proposed: ReadonlySet<Oid>;
}

function tipsOf(table: RefTable): Tips {
  const tips = { own: new Set<Oid>(), proposed: new Set<Oid>() };
  for (const [ref, { oid, peeled }] of table.refs) {
    const isOwn = ref.startsWith("refs/heads/") || ref.startsWith("refs/tags/");
    (isOwn ? tips.own : tips.proposed).add(peeled ?? oid);
  }
  return tips;
}

export class ReadingRoom {
  readonly #reader: ObjectReader;
  readonly #objects = new KeptValues<ReadObject>(keptObjectBytes);
  readonly #answers = new KeptValues<unknown>(keptAnswerBytes);
  /** As long as the tree itself is kept. */
  readonly #folders = new WeakMap<Buffer, Promise<Folder>>();
  readonly #tips = new WeakMap<RefTable, Tips>();
  readonly #underWay = new Map<string, Promise<Looked<unknown>>>();
  readonly #turns = new Turns(() => places);
  readonly streams = new Streams();

  constructor(readonly clock: Clock) {
    this.#reader = new ObjectReader(clock);
  }

  close(): Promise<void> {
    return this.#reader.close();
  }

  /** Undefined: no such object. Without content: larger than `maxBytes`. */
  async object(repository: GitRepository, oid: Oid, maxBytes: number): Promise<ReadObject | undefined> {
    const key = `${oid}:${repository.address.key}`;
    const kept = this.#objects.get(key);
    if (kept) return kept.bytes > maxBytes ? { ...kept, content: undefined } : kept;
    await repository.ready();
    const read = await this.#reader.read(repository, oid, maxBytes);
    // A copy: a part of a larger buffer would keep all of it.
    const content = read?.content && read.bytes <= maxTreeBytes ? Buffer.from(read.content) : read?.content;
    if (read && content) this.#objects.set(key, { ...read, content }, read.bytes + 200);
    return read && { ...read, content };
  }

  async commit(repository: GitRepository, oid: Oid): Promise<Commit | undefined> {
    const object = await this.object(repository, oid, maxCommitBytes);
    return object?.type === "commit" && object.content ? commitOf(oid, object.content) : undefined;
  }

  /** Undefined: it is no folder. `too-large`: of more entries than can be shown. */
  async folder(repository: GitRepository, oid: Oid): Promise<Folder | "too-large" | undefined> {
    const object = await this.object(repository, oid, maxTreeBytes);
    if (object?.type !== "tree") return undefined;
    if (!object.content) return "too-large";
    const known = this.#folders.get(object.content);
    if (known) return await known;
    const folder = Folder.of(object.content, oid);
    this.#folders.set(object.content, folder);
    return await folder;
  }

  /** The entry at a path below a commit's root; undefined: there is none. */
  async entryAt(
    repository: GitRepository,
    root: Oid,
    path: readonly Buffer[],
    visitor: Visitor,
  ): Promise<Looked<TreeEntry | undefined>> {
    const nothing = { ok: true, value: undefined } as const;
    if (path.length > maxDepth) return nothing;
    let entry: TreeEntry = { kind: "folder", name: Buffer.alloc(0), oid: root };
    for (const name of path) {
      const looked: Looked<TreeEntry | undefined> =
        entry.kind === "folder" ? await this.#entryIn(repository, entry.oid, name, visitor) : nothing;
      if (!looked.ok || !looked.value) return looked;
      entry = looked.value;
    }
    return { ok: true, value: entry };
  }

  async #entryIn(
    repository: GitRepository,
    tree: Oid,
    name: Buffer,
    visitor: Visitor,
  ): Promise<Looked<TreeEntry | undefined>> {
    const folder = await this.folder(repository, tree);
    if (folder !== "too-large") return { ok: true, value: folder?.find(name) };
    const read = () => findEntry(repository, tree, name);
    return await this.#inTime(repository, `entry ${tree} ${name.toString("latin1")}`, visitor, read);
  }

  blob(repository: GitRepository, oid: Oid, maxBytes = maxKeptBlobBytes): Promise<ReadObject | undefined> {
    return this.object(repository, oid, maxBytes);
  }

  /** What the files of a commit take on disk, as git keeps them. */
  storedBytes(repository: GitRepository, commit: Oid, visitor: Visitor): Promise<Looked<number>> {
    const read = () => history.storedBytes(repository, commit);
    return this.#inTime(repository, `stored ${commit}`, visitor, read);
  }

  log(repository: GitRepository, question: history.LogQuestion, visitor: Visitor): Promise<Looked<history.LogPage>> {
    const { from, without = "", path, skip, count } = question;
    const key = `log ${from} ${without} ${skip} ${count} ${path.toString("latin1")}`;
    const read = () => history.readLog(repository, question);
    return this.#once(
      repository,
      key,
      visitor,
      read,
      ({ lines }) => lines.length * 500,
      ({ isLate }) => !isLate,
    );
  }

  /** After a push only the commits that came with it are looked at. */
  lastChanges(
    repository: GitRepository,
    question: history.ChangesQuestion,
    visitor: Visitor,
  ): Promise<Looked<LastChanges>> {
    const { commit, ref, folder, names } = question;
    const place = `${folder.toString("latin1")} ${repository.address.key}`;
    const key = `changes ${commit} ${names.size} ${[...names][0]} ${place}`;
    const read = async (): Promise<LastChanges> => {
      const lastKey = `last changes ${ref} ${place}`;
      const last = ref && (this.#answers.get(lastKey) as { commit: Oid; found: LastChanges } | undefined);
      const base = last && (await history.mergeBase(repository, last.commit, commit));
      const known = base?.ok && base.value === last?.commit ? last : undefined;
      const newer = await history.lastChanges(repository, question, known?.commit);
      const found = new Map([...(known?.found ?? [])].filter(([name]) => names.has(name)));
      for (const [name, change] of newer) found.set(name, change);
      if (ref) this.#answers.set(lastKey, { commit, found }, found.size * 400 + 300);
      return found;
    };
    return this.#once(repository, key, visitor, read, (found) => found.size * 400);
  }

  files(repository: GitRepository, tree: Oid, visitor: Visitor): Promise<Looked<FileList>> {
    const weigh = ({ paths }: FileList): number => paths.reduce((sum, path) => sum + path.length + 24, 0);
    const read = () => listFiles(repository, tree);
    return this.#once(repository, `files ${tree}`, visitor, read, weigh, ({ isLate }) => !isLate);
  }

  /** `path` as `canBeBlamed` takes it. */
  blame(repository: GitRepository, commit: Oid, path: Buffer, visitor: Visitor): Promise<Looked<Blame>> {
    const read = () => readBlame(repository, commit, path);
    return this.#once(
      repository,
      `blame ${commit} ${path.toString("latin1")}`,
      visitor,
      read,
      ({ parts }) => parts.length * 150,
      ({ isLate }) => !isLate,
    );
  }

  countCommits(repository: GitRepository, commit: Oid, most: number, visitor: Visitor): Promise<Looked<number>> {
    const read = () => history.countCommits(repository, commit, most);
    return this.#inTime(repository, `count ${commit} ${most}`, visitor, read);
  }

  /** How far each is from the base, in order; undefined where there was no time left to count. One question, however many. */
  countApart(
    repository: GitRepository,
    base: Oid,
    others: readonly Oid[],
    visitor: Visitor,
  ): Promise<Looked<readonly (history.Apart | undefined)[]>> {
    const read = async (): Promise<(history.Apart | undefined)[]> => {
      const counted: (history.Apart | undefined)[] = [];
      const untilMs = this.clock.monotonicMs() + apartMs;
      for (const other of others) {
        const isTime = this.clock.monotonicMs() < untilMs;
        counted.push(isTime ? await history.countApart(repository, base, other) : undefined);
      }
      return counted;
    };
    const key = `apart ${base} ${others.join(" ")}`;
    const weigh = () => others.length * 50;
    return this.#once(repository, key, visitor, read, weigh, (counted) => !counted.includes(undefined));
  }

  mergeBase(repository: GitRepository, one: Oid, other: Oid, visitor: Visitor): Promise<Looked<Oid | undefined>> {
    const read = () => history.mergeBase(repository, one, other);
    return this.#inTime(repository, `base ${one} ${other}`, visitor, read);
  }

  /** Which of these commits the head has; those that are not here at all it has not. */
  async reachedOf(
    repository: GitRepository,
    head: Oid,
    tips: readonly Oid[],
    visitor: Visitor,
  ): Promise<Looked<ReadonlySet<Oid>>> {
    const read = async (): Promise<history.InTime<ReadonlySet<Oid>>> => {
      const here: Oid[] = [];
      for (const tip of tips) if (await this.commit(repository, tip)) here.push(tip);
      return here.length === 0 ? { ok: true, value: new Set() } : await history.reachedOf(repository, head, here);
    };
    const asked = createHash("sha256").update(tips.join(" ")).digest("base64url");
    return await this.#inTime(repository, `reached ${head} ${asked}`, visitor, read, (found) => found.size * 100);
  }

  /** What the head's history had before it merged that commit. */
  beforeMerge(repository: GitRepository, head: Oid, commit: Oid, visitor: Visitor): Promise<Looked<Oid | undefined>> {
    const read = () => history.beforeMerge(repository, head, commit);
    return this.#inTime(repository, `merge ${head} ${commit}`, visitor, read);
  }

  /** Against the empty tree when there is nothing before. */
  diff(repository: GitRepository, from: Oid | undefined, to: Oid, visitor: Visitor): Promise<Looked<Diff>> {
    const read = async () => readDiff(repository, from ?? emptyTree[(await repository.refs()).format], to);
    const weigh = ({ files }: Diff): number =>
      files.reduce((sum, { hunks }) => sum + 500 + hunks.reduce((all, { lines }) => all + lines.length * 150, 0), 0);
    return this.#once(repository, `diff ${from ?? ""} ${to}`, visitor, read, weigh, ({ isLate }) => !isLate);
  }

  /**
   * From where a commit is reached: what nothing reaches is not shown, although git may still have it. `proposal`: by
   * pull requests only.
   */
  async reach(
    repository: GitRepository,
    table: RefTable,
    commit: Oid,
    visitor: Visitor,
  ): Promise<Looked<"branches" | "proposal" | "nothing">> {
    const tips = this.#tips.get(table) ?? tipsOf(table);
    this.#tips.set(table, tips);
    if (tips.own.has(commit)) return { ok: true, value: "branches" };
    const read = async (): Promise<history.InTime<"branches" | "proposal" | "nothing">> => {
      const nothing = { ok: true, value: "nothing" } as const;
      const object = await this.object(repository, commit, maxCommitBytes);
      if (object?.type !== "commit") return nothing;
      const own = await history.isReachedFrom(repository, commit, [...tips.own]);
      if (!own.ok) return own;
      if (own.value) return { ok: true, value: "branches" };
      if (tips.proposed.size === 0) return nothing;
      const proposed = await history.isReachedFrom(repository, commit, [...tips.proposed]);
      if (!proposed.ok) return proposed;
      return proposed.value ? { ok: true, value: "proposal" } : nothing;
    };
    // By the table: what was reached before a branch was rewritten may be reached no longer.
    return await this.#inTime(repository, `reach ${commit} ${table.generation}`, visitor, read);
  }

  /** For a question whose half answer would be a wrong one. */
  async #inTime<Value>(
    repository: GitRepository,
    question: string,
    visitor: Visitor,
    read: () => Promise<history.InTime<Value>>,
    weigh: (value: Value) => number = () => 100,
  ): Promise<Looked<Value>> {
    const weight = (answer: history.InTime<Value>): number => (answer.ok ? weigh(answer.value) : 0);
    const looked = await this.#once(repository, question, visitor, read, weight, ({ ok }) => ok);
    return looked.ok ? looked.value : looked;
  }

  /** One run for all who ask at the same time; kept for long when `isGood` says so. */
  async #once<Value>(
    repository: GitRepository,
    question: string,
    visitor: Visitor,
    read: () => Promise<Value>,
    weigh: (value: Value) => number,
    isGood: (value: Value) => boolean = () => true,
  ): Promise<Looked<Value>> {
    const key = `${question} ${repository.address.key}`;
    const kept = this.#answers.get(key) as { readonly value: Value; readonly untilMs: number } | undefined;
    if (kept && this.clock.monotonicMs() < kept.untilMs) return { ok: true, value: kept.value };
    const underWay = this.#underWay.get(key) as Promise<Looked<Value>> | undefined;
    if (underWay) {
      const answer = await underWay;
      // Refused was the one who asked first.
      if (answer.ok) return answer;
    }
    if (!visitor.mayStartGit()) return { ok: false, code: "too-many" };
    const work = this.#inTurn(repository, visitor, async () => {
      const value = await read();
      const untilMs = isGood(value) ? Number.POSITIVE_INFINITY : this.clock.monotonicMs() + askedAgainMs;
      this.#answers.set(key, { value, untilMs }, weigh(value) + 300 + key.length);
      return value;
    });
    this.#underWay.set(key, work);
    try {
      return await work;
    } finally {
      if (this.#underWay.get(key) === work) this.#underWay.delete(key);
    }
  }

  async #inTurn<Value>(
    repository: GitRepository,
    { ip, signal }: Visitor,
    read: () => Promise<Value>,
  ): Promise<Looked<Value>> {
    const release = await this.#turns.acquire({ repository: repository.address.key, ip }, signal);
    if (!release) return { ok: false, code: "busy" };
    try {
      await repository.ready();
      return { ok: true, value: await read() };
    } finally {
      release();
    }
  }
}
