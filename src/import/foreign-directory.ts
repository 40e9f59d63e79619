// Another server's repositories on disk: `<npub>/<identifier>.git`, bare, as every GRASP server keeps them.

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { ifPresent } from "../base/durable-files.js";
import type { RepositoryName } from "../catalogue/repositories.js";
import { identifierFile } from "../git/repository-files.js";
import { parseNpub } from "../nostr/nip19.js";

export interface ForeignRepository {
  /** As found: `npub1…/name.git`. */
  readonly path: string;
  readonly directory: string;
  /** Undefined: its place does not say whose it is, or there is no repository in it. */
  readonly name: RepositoryName | undefined;
}

export async function foreignRepositories(root: string): Promise<ForeignRepository[]> {
  const found: ForeignRepository[] = [];
  for (const npub of (await readdir(root, { withFileTypes: true })).filter((entry) => entry.isDirectory())) {
    const owner = parseNpub(npub.name);
    for (const entry of await readdir(join(root, npub.name), { withFileTypes: true })) {
      if (!entry.isDirectory() || !entry.name.endsWith(".git")) continue;
      const directory = join(root, npub.name, entry.name);
      const head = await ifPresent(readFile(join(directory, "HEAD")));
      // Ours record the identifier; others name the directory after it.
      const recorded = await ifPresent(readFile(join(directory, identifierFile), "utf8"));
      const identifier = recorded ?? entry.name.slice(0, -".git".length);
      const name = owner && head && identifier.isWellFormed() ? { owner, identifier } : undefined;
      found.push({ path: `${npub.name}/${entry.name}`, directory, name });
    }
  }
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}
