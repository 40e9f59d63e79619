// Takes a pack from a stream into a quarantine, within budgets (git-http.md, "Budgets"; threats.md row 6). The header
// tells the number of objects before git is started; bytes are counted as they pass; git itself runs under limits of
// memory and time; object sizes are looked up afterwards, in the files of a small pack, by git in those of others. Never holds more than a few chunks. Used by pushes, and for the
// objects of a bare repository that some other program made.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { sizeText } from "../base/text.js";
import { type Oid, oidDigits } from "../nostr/nip34.js";
import { heldBytes, maxIndexBytes, missingObjects, type ObjectPlace, type ObjectType, PackIndex } from "./objects.js";
import type { PackBudgets, PushRefusalCode, Refused } from "./push-types.js";
import { alternatePath, notSynced, type QuarantineDirectory } from "./quarantine.js";
import type { GitRepository } from "./repository.js";
import { formatIn } from "./repository-files.js";
import { checkedOid, toleratedFaults } from "./run.js";

interface ReceivedPack {
  readonly ok: true;
  readonly bytes: number;
  /** Of the ids asked about, those that came in this pack. */
  readonly types: ReadonlyMap<Oid, ObjectType>;
}

const headerBytes = 12;
const fewObjects = 200;
/** What index-pack --strict keeps for each object. */
const indexPackBytesAnObject = 256;
const indexPackCpuSeconds = 600;
/**
 * How long a pack that came completely may be looked at. A few kilobytes of deltas can stand for gigabytes that git
 * would hash for minutes; honest packs need a fraction of this.
 */
const checkingMs = (packBytes: number): number => 30_000 + Math.ceil(packBytes / 2 ** 20) * 1_000;

const refused = (code: PushRefusalCode, reason: string): Refused => ({ ok: false, code, reason });

interface PackSource {
  /** What was read of the body already and belongs to the pack. */
  readonly first: Buffer;
  /** The rest of the body, chunk by chunk; undefined at its end. The caller drains what is left after a refusal. */
  readonly next: () => Promise<Buffer | undefined>;
}

export async function receivePack(
  quarantine: QuarantineDirectory,
  source: PackSource,
  budgets: PackBudgets,
  interesting: ReadonlySet<Oid>,
  options: { readonly wallClockMs: number; readonly signal: AbortSignal },
): Promise<ReceivedPack | Refused> {
  let head = source.first;
  while (head.length < headerBytes) {
    const chunk = await source.next();
    if (!chunk) return refused("bad-objects", "the push ended before its pack began");
    head = Buffer.concat([head, chunk]);
  }
  const version = head.readUInt32BE(4);
  if (head.toString("latin1", 0, 4) !== "PACK" || (version !== 2 && version !== 3)) {
    return refused("bad-objects", "what follows the commands is not a pack");
  }
  const objects = head.readUInt32BE(8);
  if (objects > budgets.pushMaxObjects) {
    return refused(
      "too-many-objects",
      `the push has ${objects} objects, at most ${budgets.pushMaxObjects} are taken at once`,
    );
  }
  const limits = [`--strict=${toleratedFaults}`, `--max-input-size=${budgets.pushMaxBytes}`];
  // Threads are not worth starting for a few objects.
  const threads = objects > fewObjects ? [] : ["--threads=1"];
  const job = await quarantine.git.start(["index-pack", "--stdin", "--fix-thin", ...threads, ...limits], {
    directory: quarantine.repositoryDirectory,
    env: quarantine.writingEnvironment,
    settings: notSynced,
    limits: {
      wallClockMs: options.wallClockMs,
      cpuSeconds: indexPackCpuSeconds,
      memoryBytes: budgets.gitMemoryBytes + objects * indexPackBytesAnObject,
    },
    signal: options.signal,
    stdin: true,
  });
  job.stdout.resume();
  const { stdin } = job;
  let gone = false;
  void job.exit.then(() => {
    gone = true;
  });
  const write = async (chunk: Buffer): Promise<void> => {
    quarantine.packBytes += chunk.length;
    if (gone || !stdin || stdin.destroyed || stdin.write(chunk)) return;
    await Promise.race([new Promise((resolve) => stdin.once("drain", resolve)), job.exit]);
  };
  try {
    await write(head);
    for (let chunk = await source.next(); chunk; chunk = await source.next()) {
      await write(chunk);
      // git has said no: the caller drains the rest and reports.
      if (gone || quarantine.packBytes > budgets.pushMaxBytes) break;
    }
  } catch (error) {
    job.end();
    await job.exit;
    throw error;
  }
  if (quarantine.packBytes > budgets.pushMaxBytes) {
    job.end();
    await job.exit;
    return refused("too-large", `a push may have ${sizeText(budgets.pushMaxBytes)} at most: push in smaller steps`);
  }
  stdin?.end();
  let tookTooLong = false;
  const cancel = quarantine.clock.after(checkingMs(quarantine.packBytes), () => {
    tookTooLong = true;
    job.end();
  });
  const exit = await job.exit;
  cancel();
  if (exit.timedOut || tookTooLong)
    return refused("timeout", "checking the objects took too long: push in smaller steps");
  // --strict also wants what the objects link to.
  const lacking = /did not receive expected object ([0-9a-f]{40,64})/.exec(exit.stderr)?.[1];
  if (lacking) {
    return refused("missing-objects", `the push lacks object ${lacking.slice(0, 8)}: push from a complete clone`);
  }
  if (exit.code !== 0) return refused("bad-objects", explain(exit.stderr));
  const { repositoryDirectory, packFolder } = quarantine;
  const nameBytes = oidDigits[formatIn(repositoryDirectory)] / 2;
  const small = surveySmallPack(packFolder, nameBytes, interesting, budgets.maxObjectBytes);
  if (small) return { ok: true, bytes: quarantine.packBytes, types: small };
  const { largestBytes, types } = await surveyObjects(
    { git: quarantine.git, directory: repositoryDirectory, env: quarantine.aloneEnvironment },
    interesting,
  );
  if (largestBytes > budgets.maxObjectBytes) {
    const limit = sizeText(budgets.maxObjectBytes);
    return refused(
      "object-too-large",
      `a file of ${sizeText(largestBytes)} is in the push, ${limit} are taken at most`,
    );
  }
  return { ok: true, bytes: quarantine.packBytes, types };
}

/** The largest object of the place's own object directory, and the types of those asked for. Streams: there may be millions. */
async function surveyObjects(
  place: ObjectPlace,
  interesting: ReadonlySet<Oid>,
): Promise<{ readonly largestBytes: number; readonly types: ReadonlyMap<Oid, ObjectType> }> {
  const { git, directory, env = {} } = place;
  const job = await git.start(["cat-file", "--batch-all-objects", "--batch-check", "--unordered"], { directory, env });
  const types = new Map<Oid, ObjectType>();
  let largestBytes = 0;
  let rest = "";
  for await (const chunk of job.stdout) {
    const lines = (rest + String(chunk)).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const [oid = "", type, size] = line.split(" ");
      largestBytes = Math.max(largestBytes, Number(size));
      if (interesting.has(oid as Oid)) types.set(oid as Oid, type as ObjectType);
    }
  }
  const exit = await job.exit;
  if (exit.code !== 0) throw new Error(`git cat-file failed: ${exit.stderr}`);
  return { largestBytes, types };
}

const maxPackBytes = 2 ** 20;
const maxObjects = 4_000;
const maxChain = 64;

interface Facts {
  readonly type: ObjectType;
  /** Unpacked, it has at most so many bytes. */
  readonly maxBytes: number;
}

const wholeTypes: Readonly<Record<number, ObjectType>> = { 1: "commit", 2: "tree", 3: "blob", 4: "tag" };
const offsetDelta = 6;
const nameDelta = 7;

/**
 * The types of some objects of the one pack in a folder, which index-pack has just checked. Undefined: there is none, it is not
 * small, or an object in it may be larger than is allowed; then git is asked.
 */
export function surveySmallPack(
  folder: string,
  nameBytes: number,
  interesting: ReadonlySet<Oid>,
  maxObjectBytes: number,
): ReadonlyMap<Oid, ObjectType> | undefined {
  try {
    const names = readdirSync(folder).filter((name) => name.endsWith(".idx"));
    const [name] = names;
    if (name === undefined || names.length > 1) return undefined;
    const packPath = join(folder, name.replace(/idx$/, "pack"));
    if (statSync(join(folder, name)).size > maxIndexBytes || statSync(packPath).size > maxPackBytes) return undefined;
    const index = new PackIndex(heldBytes(join(folder, name)), nameBytes);
    if (!index.isWhole || index.count > maxObjects) return undefined;
    const pack = new PackHeaders(readFileSync(packPath), index);
    for (let place = 0; place < index.count; place++) {
      const facts = pack.at(index.offset(place));
      if (!facts || facts.maxBytes > maxObjectBytes) return undefined;
    }
    const types = new Map<Oid, ObjectType>();
    for (const oid of interesting) {
      const place = index.find(oid);
      const facts = place === undefined ? undefined : pack.at(index.offset(place));
      if (facts) types.set(oid, facts.type);
    }
    return types;
  } catch {
    // Whatever is wrong with the files, git says it better.
    return undefined;
  }
}

/** What stands before each object of a pack: its type and its size, or those of the delta that makes it from another. */
class PackHeaders {
  readonly #known = new Map<number, Facts>();

  constructor(
    private readonly bytes: Buffer,
    private readonly index: PackIndex,
  ) {}

  /** Undefined: too many deltas lie on one another, or it is made from an object that is not in the pack. */
  at(offset: number): Facts | undefined {
    const deltas: { readonly offset: number; readonly size: number }[] = [];
    let at = offset;
    while (deltas.length <= maxChain) {
      const header = this.#known.get(at) ?? this.#read(at);
      if (header === undefined) return undefined;
      if ("type" in header) return this.#upon(header, at, deltas);
      deltas.push({ offset: at, size: header.size });
      at = header.base;
    }
    return undefined;
  }

  /** Each step of a delta copies at most the whole of what it is made from, or brings 127 bytes, and is itself a byte or more. */
  #upon(whole: Facts, at: number, deltas: readonly { readonly offset: number; readonly size: number }[]): Facts {
    this.#known.set(at, whole);
    let facts = whole;
    for (const { offset, size } of [...deltas].reverse()) {
      facts = { type: facts.type, maxBytes: size * Math.max(facts.maxBytes, 127) };
      this.#known.set(offset, facts);
    }
    return facts;
  }

  #read(offset: number): Facts | { readonly size: number; readonly base: number } | undefined {
    let at = offset;
    let byte = this.bytes.readUInt8(at++);
    const type = (byte >> 4) & 7;
    let size = byte & 15;
    for (let weight = 16; byte & 0x80; weight *= 128) {
      byte = this.bytes.readUInt8(at++);
      size += (byte & 0x7f) * weight;
    }
    const whole = wholeTypes[type];
    if (whole) return { type: whole, maxBytes: size };
    if (type === nameDelta) {
      const name = this.bytes.toString("hex", at, at + this.index.nameBytes) as Oid;
      const place = this.index.find(name);
      return place === undefined ? undefined : { size, base: this.index.offset(place) };
    }
    if (type !== offsetDelta) return undefined;
    byte = this.bytes.readUInt8(at++);
    let back = byte & 0x7f;
    while (byte & 0x80) {
      byte = this.bytes.readUInt8(at++);
      back = (back + 1) * 128 + (byte & 0x7f);
    }
    return { size, base: offset - back };
  }
}

/** git's first complaint, as one printable line that no client mistakes for a missing repository. */
export function explain(stderr: string): string {
  const line = stderr.split("\n").find((text) => /^(?:fatal|error): /.test(text)) ?? "";
  const words = line
    .replace(/^(?:fatal|error): /, "")
    .replace(/[^\x20-\x7e]/g, "?")
    .replace(/not found/gi, "missing")
    .slice(0, 200);
  if (/out of memory|cannot allocate|mmap failed/i.test(words)) {
    return "the objects need more memory to check than this server gives: push smaller files";
  }
  return words === "" ? "the objects of the push could not be read" : `the objects were not accepted: ${words}`;
}

type Taken = { readonly ok: true; readonly bytes: number; readonly lacking: ReadonlySet<Oid> } | Refused;

/** Directories of objects, absolute paths; the repository's own first. */
type ForeignObjects = readonly string[];

const borrowing = ({ place }: GitRepository, foreign: ForeignObjects): ObjectPlace => ({
  ...place,
  env: { GIT_ALTERNATE_OBJECT_DIRECTORIES: foreign.map(alternatePath).join(":") },
});

/** Which of these neither repository has with everything they reach. One of the other format has nothing for ours. */
export const lackingWith = async (
  repository: GitRepository,
  foreign: ForeignObjects,
  oids: readonly Oid[],
): Promise<Set<Oid>> =>
  formatIn(dirname(foreign[0] ?? "")) === formatIn(repository.directory)
    ? await missingObjects(borrowing(repository, foreign), oids, { deep: true })
    : new Set(oids);

/**
 * Brings what of these the other repository has and ours lacks, complete or not at all. Nothing of the other repository
 * is obeyed: git runs in ours and only borrows its object directories, so that a planted config or hook is never read
 * (threats.md row 8).
 */
export async function takeForeignObjects(
  repository: GitRepository,
  foreign: ForeignObjects,
  oids: readonly Oid[],
  budgets: PackBudgets,
  options: { readonly wallClockMs: number; readonly signal: AbortSignal },
): Promise<Taken> {
  const missing = [...(await repository.missingObjects(oids))];
  const lacking = await lackingWith(repository, foreign, missing);
  const wanted = missing.filter((oid) => !lacking.has(oid));
  if (wanted.length === 0) return { ok: true, bytes: 0, lacking };
  const { git, directory, env = {} } = borrowing(repository, foreign);
  const quarantine = await repository.quarantine();
  try {
    const { refs } = await repository.refs();
    const here = [...new Set([...refs.values()].map(({ oid }) => oid))];
    const lines = [...wanted, "--not", ...here].map((line) => (line === "--not" ? line : checkedOid(line as Oid)));
    const packing = await git.start(["pack-objects", "--revs", "--stdout", "--delta-base-offset", "--quiet"], {
      directory,
      env,
      stdin: true,
      limits: { wallClockMs: options.wallClockMs },
      signal: options.signal,
    });
    packing.stdin?.end(`${lines.join("\n")}\n`);
    const chunks = packing.stdout[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    const next = async (): Promise<Buffer | undefined> => {
      const { done, value } = await chunks.next();
      return done ? undefined : value;
    };
    const received = await receivePack(quarantine, { first: Buffer.alloc(0), next }, budgets, new Set(wanted), options);
    packing.end();
    await packing.exit;
    if (!received.ok) return received;
    if ((await quarantine.missingObjects(wanted)).size > 0) {
      return { ok: false, code: "missing-objects", reason: "its objects are not complete" };
    }
    await repository.keep(quarantine);
    return { ok: true, bytes: received.bytes, lacking };
  } finally {
    await quarantine.drop();
  }
}
