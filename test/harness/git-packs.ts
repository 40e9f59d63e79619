// Packs: what git would send, and packs written by hand that git would never make.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { deflateSync } from "node:zlib";

/** What `wanted` needs and `known` has not. */
export async function packOf(
  folder: string,
  wanted: readonly string[],
  known: readonly string[] = [],
): Promise<Buffer> {
  const input = [...wanted, ...known.map((id) => `^${id}`)].map((line) => `${line}\n`).join("");
  const options = { cwd: folder, input, maxBuffer: 1 << 30 };
  return execFileSync("git", ["pack-objects", "--revs", "--stdout", "-q", "--delta-base-offset"], options);
}

const types = { commit: 1, tree: 2, blob: 3, tag: 4 } as const;

export interface PackObject {
  readonly type: keyof typeof types;
  readonly data: Buffer;
}

export const oidOf = ({ type, data }: PackObject): string =>
  createHash("sha1").update(`${type} ${data.length}\0`).update(data).digest("hex");

/** The type and size before an object's bytes. */
export function objectHeader(type: number, size: number): Buffer {
  const bytes: number[] = [];
  let byte = (type << 4) | (size & 15);
  let rest = Math.floor(size / 16);
  while (rest > 0) {
    bytes.push(byte | 0x80);
    byte = rest & 0x7f;
    rest = Math.floor(rest / 128);
  }
  bytes.push(byte);
  return Buffer.from(bytes);
}

export function packHeader(objects: number): Buffer {
  const header = Buffer.alloc(12);
  header.write("PACK");
  header.writeUInt32BE(2, 4);
  header.writeUInt32BE(objects, 8);
  return header;
}

export function handMadePack(objects: readonly PackObject[]): Buffer {
  const parts = objects.flatMap(({ type, data }) => [
    objectHeader(types[type], data.length),
    deflateSync(data, { level: 9 }),
  ]);
  const body = Buffer.concat([packHeader(objects.length), ...parts]);
  return Buffer.concat([body, createHash("sha1").update(body).digest()]);
}

export const treeOf = (entries: readonly (readonly [mode: string, name: string, oid: string])[]): PackObject => ({
  type: "tree",
  data: Buffer.concat(
    entries.flatMap(([mode, name, oid]) => [Buffer.from(`${mode} ${name}\0`), Buffer.from(oid, "hex")]),
  ),
});

export const commitOf = (treeOid: string): PackObject => ({
  type: "commit",
  data: Buffer.from(`tree ${treeOid}\nauthor A <a@b> 1700000000 +0000\ncommitter A <a@b> 1700000000 +0000\n\nx\n`),
});
