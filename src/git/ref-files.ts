// Reads a repository's refs from its files, without a process: HEAD, packed-refs, loose refs. Only well-formed names
// and ids are taken; symbolic links and symbolic refs below refs/ are not followed (threats.md row 8).

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { ifPresent } from "../base/durable-files.js";
import { isOid, type Oid } from "../nostr/ids.js";
import { isRefName, type RefName } from "../nostr/ref-name.js";
import { unbornBranch } from "./repository-files.js";
import type { RefValue } from "./types.js";

export interface RefsOnDisk {
  readonly head: RefName;
  readonly refs: Map<RefName, RefValue>;
  /** Loose refs that may be annotated tags: what they point at is not written in the files. */
  readonly unpeeled: readonly RefName[];
}

export async function readRefFiles(directory: string): Promise<RefsOnDisk> {
  const head = await readHead(directory);
  const { refs, fullyPeeled } = parsePackedRefs(
    (await ifPresent(readFile(join(directory, "packed-refs"), "utf8"))) ?? "",
  );
  const unpeeled = new Set<RefName>(fullyPeeled ? [] : [...refs.keys()].filter(mayBePeeled));
  for (const [name, oid] of await readLooseRefs(directory, "refs")) {
    if (refs.get(name)?.oid === oid) continue;
    refs.set(name, { oid, peeled: undefined });
    if (mayBePeeled(name)) unpeeled.add(name);
  }
  return { head, refs, unpeeled: [...unpeeled] };
}

/** Branches are commits; everything else may be a tag object. */
export const mayBePeeled = (name: RefName): boolean => !name.startsWith("refs/heads/");

export async function readHead(directory: string): Promise<RefName> {
  const text = (await ifPresent(readFile(join(directory, "HEAD"), "utf8"))) ?? "";
  const branch = text.startsWith("ref: ") ? text.slice("ref: ".length).trim() : "";
  return isRefName(branch) ? branch : (unbornBranch as RefName);
}

export function parsePackedRefs(text: string): { refs: Map<RefName, RefValue>; fullyPeeled: boolean } {
  const refs = new Map<RefName, RefValue>();
  let fullyPeeled = text === "";
  let last: RefName | undefined;
  for (const line of text.split("\n")) {
    if (line.startsWith("#")) fullyPeeled ||= line.includes(" fully-peeled");
    else if (line.startsWith("^")) {
      const peeled = line.slice(1);
      const value = last && refs.get(last);
      if (last && value && isOid(peeled)) refs.set(last, { oid: value.oid, peeled });
    } else {
      const [oid, name] = [line.slice(0, line.indexOf(" ")), line.slice(line.indexOf(" ") + 1)];
      last = isOid(oid) && isRefName(name) ? name : undefined;
      if (last) refs.set(last, { oid: oid as Oid, peeled: undefined });
    }
  }
  return { refs, fullyPeeled };
}

const readsAtOnce = 32;

async function readLooseRefs(directory: string, below: string): Promise<[RefName, Oid][]> {
  const names: RefName[] = [];
  await collectNames(directory, below, names);
  const found: [RefName, Oid][] = [];
  for (let at = 0; at < names.length; at += readsAtOnce) {
    const batch = names.slice(at, at + readsAtOnce);
    const texts = await Promise.all(batch.map((name) => ifPresent(readFile(join(directory, name), "utf8"))));
    texts.forEach((text, index) => {
      const name = batch[index];
      const oid = text?.trim();
      if (name && isOid(oid)) found.push([name, oid]);
    });
  }
  return found;
}

async function collectNames(directory: string, folder: string, names: RefName[]): Promise<void> {
  for (const entry of (await ifPresent(readdir(join(directory, folder), { withFileTypes: true }))) ?? []) {
    const name = `${folder}/${entry.name}`;
    if (entry.isDirectory()) await collectNames(directory, name, names);
    else if (entry.isFile() && isRefName(name)) names.push(name);
  }
}

/** git sorts names by bytes; JavaScript by UTF-16 units, which differs only above U+D7FF. */
export function sortRefs(refs: ReadonlyMap<RefName, RefValue>): Map<RefName, RefValue> {
  const byBytes = [...refs.keys()].some((name) => /[\ud800-\uffff]/.test(name));
  const entries = [...refs];
  if (byBytes) entries.sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  else entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return new Map(entries);
}
