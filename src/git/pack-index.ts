// Which objects a repository lacks for sure, read from its files: a look into pack indexes instead of a git process. Most
// questions are about commits that have not come yet (a state before its push, pull requests that wait), and while
// strangers keep every core busy a process takes ten times as long as a read. Never says that an object is here.
// Reads at once and little: each wait for the disk would be a turn of an event loop that is busy.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Oid } from "../nostr/ids.js";

/** Of all indexes of a repository, some 30,000 objects; git maps what is larger, and is asked. */
const maxIndexBytes = 2 ** 20;
const maxIndexes = 50;
const magicOfVersion2 = "ff744f6300000002";
const headerBytes = 8;
const namesAt = headerBytes + 256 * 4;
const nameBytes = 20;

/** Those of these SHA-1 ids that are not in the object directory. An id that is not among them may be here or not. */
export function absentObjects(objectDirectory: string, oids: readonly Oid[]): ReadonlySet<Oid> {
  try {
    // Loose ones first: git packs an object before it removes the loose file.
    const folders = new Set(readdirSync(objectDirectory));
    const indexes = readIndexes(join(objectDirectory, "pack"));
    if (!indexes) return new Set();
    return new Set(
      oids.filter((oid) => !folders.has(oid.slice(0, 2)) && !indexes.some((index) => isInIndex(index, oid))),
    );
  } catch {
    // A repack has just replaced a pack and the object may be in the new one, or nothing can be read: git will say.
    return new Set();
  }
}

/** Undefined: one of them is not as expected, or they are too large to be read here. */
function readIndexes(folder: string): readonly Buffer[] | undefined {
  const paths = readdirSync(folder)
    .filter((name) => name.endsWith(".idx"))
    .map((name) => join(folder, name));
  if (paths.length > maxIndexes) return undefined;
  let bytes = 0;
  for (const path of paths) bytes += statSync(path).size;
  if (bytes > maxIndexBytes) return undefined;
  const indexes: Buffer[] = [];
  for (const path of paths) {
    const index = readFileSync(path);
    if (!isWellFormed(index)) return undefined;
    indexes.push(index);
  }
  return indexes;
}

function isWellFormed(index: Buffer): boolean {
  if (index.length < namesAt || index.toString("hex", 0, headerBytes) !== magicOfVersion2) return false;
  return index.length >= namesAt + endOf(index, 255) * nameBytes;
}

/** How many objects have a name whose first byte is this or a smaller one. */
const endOf = (index: Buffer, firstByte: number): number => index.readUInt32BE(headerBytes + firstByte * 4);

function isInIndex(index: Buffer, oid: Oid): boolean {
  const name = Buffer.from(oid, "hex");
  const first = name.readUInt8(0);
  let low = first === 0 ? 0 : endOf(index, first - 1);
  let high = endOf(index, first);
  while (low < high) {
    const middle = (low + high) >> 1;
    const at = namesAt + middle * nameBytes;
    const order = name.compare(index, at, at + nameBytes);
    if (order === 0) return true;
    if (order < 0) high = middle;
    else low = middle + 1;
  }
  return false;
}
