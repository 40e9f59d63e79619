// Names in the addresses of code pages: pure. Segments are percent-encoded bytes, because names of files need not be
// UTF-8; an encoded slash belongs to no name. Which part of `<ref>/<path>` is the ref is decided by the refs there are.

import { parseGitPath } from "../../git/address.js";
import type { RefTable } from "../../git/ref-tables.js";
import { parseNpub } from "../../nostr/nip19.js";
import { isOid, isRefName, maxRefNameBytes, type Oid, type RefName } from "../../nostr/nip34.js";

/** Undefined: a bad escape, an encoded slash or a zero byte. */
export function decodeSegment(segment: string): Buffer | undefined {
  const bytes: number[] = [];
  for (let at = 0; at < segment.length; at++) {
    const code = segment.charCodeAt(at);
    if (code === 0x25) {
      const digits = segment.slice(at + 1, at + 3);
      if (!/^[0-9a-fA-F]{2}$/.test(digits)) return undefined;
      bytes.push(Number.parseInt(digits, 16));
      at += 2;
    } else if (code > 0xff) return undefined;
    else bytes.push(code);
  }
  const decoded = Buffer.from(bytes);
  return decoded.includes(0x2f) || decoded.includes(0) ? undefined : decoded;
}

const plain = /[A-Za-z0-9._~!$'()*+,;=:@-]/;

export const encodeSegment = (name: Buffer): string =>
  Array.from(name, (byte) => {
    const sign = String.fromCharCode(byte);
    return plain.test(sign) ? sign : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }).join("");

export const encodePath = (path: readonly Buffer[]): string => path.map(encodeSegment).join("/");

export const joinPath = (path: readonly Buffer[]): Buffer =>
  Buffer.from(path.map((name) => name.toString("latin1")).join("/"), "latin1");

/** As a reader sees it. */
export const textOfName = (name: Buffer): string => name.toString("utf8");

/** What stands after the repository in an address: the page's name and the segments below it. */
export interface CodePath {
  readonly page: string;
  readonly segments: readonly Buffer[];
}

const maxSegments = 300;

export function codePathOf(rest: string): CodePath | undefined {
  const [page = "", ...others] = rest.split("/");
  const segments = others.slice(0, maxSegments + 1).map(decodeSegment);
  if (segments.length > maxSegments) return undefined;
  const decoded = segments.filter((segment) => segment !== undefined && segment.length > 0) as Buffer[];
  return decoded.length === segments.length ? { page, segments: decoded } : undefined;
}

/** A commit that an address names, how it names it, and what follows the name. */
export interface Place {
  readonly kind: "head" | "branch" | "tag" | "commit";
  /** The full name of the branch or tag. */
  readonly ref: RefName | undefined;
  /** A branch's or tag's name without `refs/…/`, or the id. */
  readonly label: string;
  /** As it stands in an address. */
  readonly inAddress: string;
  readonly commit: Oid;
  readonly path: readonly Buffer[];
}

/**
 * `HEAD`, a full id, `refs/heads/…`, `refs/tags/…`, else the longest beginning that is a branch, then a tag. Ids are not
 * looked up here: whether one may be shown is for the caller.
 */
export function placeOf(table: RefTable, segments: readonly Buffer[]): Place | undefined {
  const names = segments.map((segment) => segment.toString("utf8"));
  const [first] = names;
  if (first === undefined) return undefined;
  const rest = (used: number): readonly Buffer[] => segments.slice(used);
  const inAddress = (used: number): string => encodePath(segments.slice(0, used));
  if (first === "HEAD") {
    const commit = tipOf(table, table.head);
    const place = { kind: "head", ref: table.head, label: shortName(table.head), inAddress: "HEAD" } as const;
    return commit && { ...place, commit, path: rest(1) };
  }
  if (isOid(first)) {
    return { kind: "commit", ref: undefined, label: first, inAddress: first, commit: first, path: rest(1) };
  }
  const prefixes = names[0] === "refs" ? [""] : ["refs/heads/", "refs/tags/"];
  for (const prefix of prefixes) {
    for (let used = Math.min(names.length, maxRefNameBytes); used > 0; used--) {
      const ref = prefix + names.slice(0, used).join("/");
      if (!isRefName(ref)) continue;
      const commit = /^refs\/(?:heads|tags)\//.test(ref) ? tipOf(table, ref) : undefined;
      if (!commit) continue;
      const kind = ref.startsWith("refs/heads/") ? "branch" : "tag";
      return { kind, ref, label: shortName(ref), inAddress: inAddress(used), commit, path: rest(used) };
    }
  }
  return undefined;
}

const tipOf = ({ refs }: RefTable, ref: RefName): Oid | undefined => {
  const value = refs.get(ref);
  return value && (value.peeled ?? value.oid);
};

export const shortName = (ref: string): string => ref.replace(/^refs\/(?:heads|tags)\//, "");

/** The shortest address of a branch or tag that means it and nothing else. */
export function refInAddress(table: RefTable, ref: RefName): string {
  const segments = (name: string): Buffer[] => name.split("/").map((part) => Buffer.from(part));
  const short = segments(shortName(ref));
  const found = placeOf(table, short);
  return encodePath(found?.ref === ref && found.path.length === 0 && found.kind !== "head" ? short : segments(ref));
}

/** The place a repository's own page shows: its head, or any branch while the head has no commit. */
export function startPlace(table: RefTable): Place | undefined {
  const refs = table.refs.has(table.head) ? [table.head] : [...table.refs.keys()];
  const ref = refs.find((name) => name.startsWith("refs/heads/"));
  const commit = ref && tipOf(table, ref);
  if (!ref || !commit) return undefined;
  return { kind: "branch", ref, label: shortName(ref), inAddress: refInAddress(table, ref), commit, path: [] };
}

/**
 * Where a slip leads, by the text alone: an address without `.git`, or with slashes at its end. Undefined: it is none.
 * Without the base path and the query.
 */
export function redirectOf(localPath: string): string | undefined {
  const [, owner = "", name = "", ...rest] = localPath.split("/");
  if (parseNpub(owner) === undefined || name === "") return undefined;
  // Nobody means a path that climbs.
  if ([name, ...rest].some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment))) return undefined;
  const end = rest.findLastIndex((segment) => segment !== "") + 1;
  const path = parseGitPath(`/${owner}/${name}`);
  const wanted = [`/${owner}/${name}${path ? "" : ".git"}`, ...rest.slice(0, end)].join("/");
  return wanted !== localPath && parseGitPath(wanted) ? wanted : undefined;
}

/** `…/tree/main/src`: `ref` is as it stands in addresses. */
export const codeUrl = (root: string, page: string, ref: string, path: readonly Buffer[] = []): string =>
  [root, page, ref, ...(path.length > 0 ? [encodePath(path)] : [])].join("/");
