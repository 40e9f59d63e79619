// Trees, commits and tags as git stores them, taken apart: pure. Names of files are bytes, because git's are; whatever a
// commit says is what somebody typed, in any encoding or none.

import { othersFirst } from "../../base/others-first.js";
import { formatOf, isOid, type Oid, oidDigits } from "../../nostr/nip34.js";

export interface TreeEntry {
  readonly kind: "folder" | "file" | "program" | "link" | "module";
  readonly name: Buffer;
  readonly oid: Oid;
}

export const kindOfMode = (mode: string): TreeEntry["kind"] => {
  switch (mode) {
    case "40000":
    case "040000":
      return "folder";
    case "120000":
      return "link";
    case "160000":
      return "module";
    default:
      return mode.endsWith("755") ? "program" : "file";
  }
};

const entriesATime = 500;
/** `readme.markdown` with the sign before it. */
const longestReadme = 16;
const maxReadmes = 1_000;

/**
 * A tree's entries, found without taking all of it apart: one walk notes where each begins, and only those that are wanted
 * are read. A folder may have a hundred thousand. Of a tree that is not well-formed, the entries before the fault.
 */
export class Folder {
  /** In git's order. */
  readonly #starts: number[] = [];
  readonly #folders: number[] = [];
  readonly #others: number[] = [];
  readonly #readmes: number[] = [];

  private constructor(
    readonly tree: Buffer,
    readonly idBytes: number,
  ) {}

  static async of(tree: Buffer, oid: Oid): Promise<Folder> {
    const folder = new Folder(tree, oidDigits[formatOf(oid)] / 2);
    await folder.#walk();
    return folder;
  }

  async #walk(): Promise<void> {
    for (let at = 0; at < this.tree.length; ) {
      if (this.#starts.length % entriesATime === 0) await othersFirst();
      const space = this.tree.indexOf(0x20, at);
      const end = space < 0 ? -1 : this.tree.indexOf(0, space);
      // There is no whole entry here.
      if (end < 0 || end + this.idBytes >= this.tree.length) return;
      this.#starts.push(at);
      (this.#isFolder(at) ? this.#folders : this.#others).push(at);
      const first = this.tree[space + 1];
      if ((first === 0x52 || first === 0x72) && end - space <= longestReadme) this.#readmes.push(at);
      at = end + 1 + this.idBytes;
    }
  }

  /** The modes of folders begin with 4, those of repositories within with 16. */
  #isFolder(at: number): boolean {
    const [first, second] = [this.tree[at], this.tree[at + 1]];
    return first === 0x34 || first === 0x30 || (first === 0x31 && second === 0x36);
  }

  get count(): number {
    return this.#starts.length;
  }

  #entryFrom(at: number): TreeEntry {
    const space = this.tree.indexOf(0x20, at);
    const end = this.tree.indexOf(0, space);
    const oid = this.tree.subarray(end + 1, end + 1 + this.idBytes).toString("hex") as Oid;
    return {
      kind: kindOfMode(this.tree.toString("latin1", at, space)),
      name: this.tree.subarray(space + 1, end),
      oid,
    };
  }

  /** As readers want them: folders first, then as git sorts. */
  slice(from: number, to: number): TreeEntry[] {
    const folders = this.#folders.slice(from, to);
    const rest = Math.max(0, from - this.#folders.length);
    const others = this.#others.slice(rest, rest + (to - from) - folders.length);
    return [...folders, ...others].map((at) => this.#entryFrom(at));
  }

  /** Those with short names that begin as a README's does; no more than anybody has. */
  readmes(): TreeEntry[] {
    return this.#readmes.slice(0, maxReadmes).map((at) => this.#entryFrom(at));
  }

  /** git sorts by bytes, as if a folder's name ended with a slash; and refuses trees that are not sorted. */
  find(name: Buffer): TreeEntry | undefined {
    if (name.includes(0x2f)) return undefined;
    return this.#findSorted(name) ?? this.#findSorted(Buffer.concat([name, Buffer.from("/")]));
  }

  #findSorted(key: Buffer): TreeEntry | undefined {
    let [low, high] = [0, this.#starts.length - 1];
    while (low <= high) {
      const middle = (low + high) >> 1;
      const entry = this.#entryFrom(this.#starts[middle] ?? 0);
      const own = entry.kind === "folder" ? Buffer.concat([entry.name, Buffer.from("/")]) : entry.name;
      const order = Buffer.compare(own, key);
      if (order === 0) return entry;
      if (order < 0) low = middle + 1;
      else high = middle - 1;
    }
    return undefined;
  }
}

export interface Signed {
  readonly name: string;
  /** Seconds, as claimed. */
  readonly time: number;
}

export interface Commit {
  readonly oid: Oid;
  readonly tree: Oid;
  readonly parents: readonly Oid[];
  readonly author: Signed;
  readonly committer: Signed;
  readonly subject: string;
  /** What follows the subject. */
  readonly body: string;
  /** Carries a signature of its own (OpenPGP, SSH, X.509). */
  readonly signature: "OpenPGP" | "SSH" | "X.509" | undefined;
}

export function commitOf(oid: Oid, content: Buffer): Commit | undefined {
  const { headers, message } = partsOf(content);
  const tree = headers.get("tree")?.[0]?.toString("latin1");
  if (!isOid(tree)) return undefined;
  const decode = decoderFor(headers.get("encoding")?.[0]?.toString("latin1"));
  const text = decode(message).replace(/^\n+/, "");
  const subjectEnd = text.search(/\n\s*\n/);
  const subject = (subjectEnd < 0 ? text : text.slice(0, subjectEnd)).trim().replace(/\s*\n\s*/g, " ");
  const person = (name: string): Signed => personOf(decode(headers.get(name)?.[0] ?? Buffer.alloc(0)));
  const signature = (headers.get("gpgsig") ?? headers.get("gpgsig-sha256"))?.[0]?.toString("latin1");
  return {
    oid,
    tree,
    parents: (headers.get("parent") ?? []).map((value) => value.toString("latin1")).filter(isOid),
    author: person("author"),
    committer: person("committer"),
    subject,
    body: subjectEnd < 0 ? "" : text.slice(subjectEnd).trim(),
    signature: signature && signatureKind(signature),
  } as Commit;
}

function signatureKind(text: string): NonNullable<Commit["signature"]> {
  if (text.startsWith("-----BEGIN SSH")) return "SSH";
  return text.startsWith("-----BEGIN SIGNED") ? "X.509" : "OpenPGP";
}

/** What an annotated tag points at, and what it says. */
export function tagOf(
  content: Buffer,
): { readonly target: Oid; readonly tagger: Signed; readonly message: string } | undefined {
  const { headers, message } = partsOf(content);
  const target = headers.get("object")?.[0]?.toString("latin1");
  if (!isOid(target)) return undefined;
  return {
    target,
    tagger: personOf((headers.get("tagger")?.[0] ?? Buffer.alloc(0)).toString("utf8")),
    message: message.toString("utf8").trim(),
  };
}

/** Header lines until the first empty one; a line that begins with a space goes on with the one before it. */
function partsOf(content: Buffer): { readonly headers: ReadonlyMap<string, Buffer[]>; readonly message: Buffer } {
  const headers = new Map<string, Buffer[]>();
  let at = 0;
  while (at < content.length) {
    let end = content.indexOf(0x0a, at);
    if (end < 0) end = content.length;
    if (end === at) return { headers, message: content.subarray(at + 1) };
    const space = content.indexOf(0x20, at);
    if (content[at] !== 0x20 && space > at && space < end) {
      const name = content.toString("latin1", at, space);
      const values = headers.get(name) ?? [];
      values.push(content.subarray(space + 1, end));
      headers.set(name, values);
    }
    at = end + 1;
  }
  return { headers, message: Buffer.alloc(0) };
}

/** `Name <mail> seconds zone`. The mail address is left out: pages are read by those who collect them. */
export function personOf(line: string): Signed {
  const mail = line.indexOf("<");
  const seconds =
    line
      .slice(line.lastIndexOf(">") + 1)
      .trim()
      .split(" ")[0] ?? "";
  return {
    name: (mail < 0 ? line : line.slice(0, mail)).trim(),
    time: /^\d{1,15}$/.test(seconds) ? Number(seconds) : Number.NaN,
  };
}

function decoderFor(encoding: string | undefined): (bytes: Buffer) => string {
  if (encoding === undefined) return (bytes) => bytes.toString("utf8");
  try {
    const decoder = new TextDecoder(encoding.trim());
    return (bytes) => decoder.decode(bytes);
  } catch {
    // A name no decoder knows: anybody can write one.
    return (bytes) => bytes.toString("utf8");
  }
}

const looksBinaryWithin = 8_000;

/** As git guesses: a zero byte near the beginning. */
export const isBinary = (content: Buffer): boolean => content.subarray(0, looksBinaryWithin).includes(0);
