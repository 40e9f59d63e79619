// Another server's repositories on disk: `<npub>/<identifier>.git`, bare, as every GRASP server keeps them; and where the
// objects of each are. The newest server keeps those that several repositories share below `.grasp/families/` and has each
// repository borrow them (`objects/info/alternates`, absolute paths). After the directory has moved, those paths lead
// nowhere: what they name below `.grasp/` is looked for where the directory is now.

import { readdir, readFile, stat } from "node:fs/promises";
import { isAbsolute, join, relative, resolve } from "node:path";
import { ifPresent } from "../base/durable-files.js";
import type { RepositoryName } from "../catalogue/repositories.js";
import { identifierFile } from "../git/repository-files.js";
import { parseNpub } from "../nostr/nip19.js";

export interface ForeignRepository {
  /** As found: `npub1…/name.git`. */
  readonly path: string;
  /** Where its objects are: its own directory first, then those it borrows from. */
  readonly objects: readonly string[];
  /** What it borrows and is not there. */
  readonly lost: readonly string[];
  /** Undefined: its place does not say whose it is, or there is no repository in it. */
  readonly name: RepositoryName | undefined;
}

export async function foreignRepositories(root: string): Promise<ForeignRepository[]> {
  const found: ForeignRepository[] = [];
  for (const npub of (await readdir(root, { withFileTypes: true })).filter((entry) => entry.isDirectory())) {
    if (npub.name.startsWith(".")) continue;
    const owner = parseNpub(npub.name);
    for (const entry of await readdir(join(root, npub.name), { withFileTypes: true })) {
      if (!entry.isDirectory() || !entry.name.endsWith(".git")) continue;
      const directory = join(root, npub.name, entry.name);
      const head = await ifPresent(readFile(join(directory, "HEAD")));
      // Ours record the identifier; others name the directory after it.
      const recorded = await ifPresent(readFile(join(directory, identifierFile), "utf8"));
      const identifier = recorded ?? entry.name.slice(0, -".git".length);
      const name = owner && head && identifier.isWellFormed() ? { owner, identifier } : undefined;
      found.push({ path: `${npub.name}/${entry.name}`, ...(await objectsOf(resolve(root), directory)), name });
    }
  }
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** As deep as git itself follows. */
const maxBorrowed = 100;
const maxDepth = 5;

async function objectsOf(root: string, directory: string): Promise<Pick<ForeignRepository, "objects" | "lost">> {
  const objects = new Set<string>();
  const lost = new Set<string>();
  let next = [join(resolve(directory), "objects")];
  for (let depth = 0; depth <= maxDepth && next.length > 0; depth++) {
    const borrowed: string[] = [];
    for (const place of next) {
      if (objects.has(place) || objects.size >= maxBorrowed) continue;
      objects.add(place);
      for (const line of await alternatesOf(place)) {
        const found = await whereIs(root, place, line);
        if (found === undefined) lost.add(line);
        else borrowed.push(found);
      }
    }
    next = borrowed;
  }
  return { objects: [...objects], lost: [...lost] };
}

async function alternatesOf(objects: string): Promise<string[]> {
  const text = (await ifPresent(readFile(join(objects, "info", "alternates"), "utf8"))) ?? "";
  return text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
}

const familiesMark = "/.grasp/";

/** Where borrowed objects are now: as written, or below the directory that is imported. */
async function whereIs(root: string, from: string, line: string): Promise<string | undefined> {
  const written = isAbsolute(line) ? line : resolve(from, line);
  const at = written.indexOf(familiesMark);
  const moved = at < 0 ? undefined : resolve(root, `.${written.slice(at)}`);
  // What is imported is this directory, also where the old one is still there and has gone on without it.
  for (const place of [moved !== undefined && isBelow(root, moved) ? moved : undefined, written]) {
    if (place !== undefined && (await stat(place).catch(() => undefined))?.isDirectory()) return place;
  }
  return undefined;
}

const isBelow = (root: string, path: string): boolean => !relative(root, path).startsWith("..");
