// Whether a backup, or what was restored from one, is whole: bytes as the manifest says, the store opens, every
// repository has all objects its refs need, and refs are what the states served beside them signed. Changes nothing.

import { stat } from "node:fs/promises";
import { join, relative } from "node:path";
import { ifPresent } from "../base/durable-files.js";
import { type CatalogueRow, catalogueRows, isReleased, repositoryKey } from "../catalogue/repositories.js";
import { diskAddress } from "../git/address.js";
import { readRefFiles } from "../git/repository-files.js";
import type { Git } from "../git/run.js";
import { governingState, refDifferences } from "../operator/repositories.js";
import { openLmdbStore } from "../store/lmdb/open.js";
import type { Store } from "../store/port.js";
import { bytesIn, checksumOf, type Manifest, type Progress } from "./files.js";

export interface Checking {
  readonly git: Git;
  readonly progress: Progress;
  readonly signal: AbortSignal;
}

const maxProblems = 50;

/** What is wrong with the files, each named by its path. */
export async function checkFiles(folder: string, { files }: Manifest, checking: Checking): Promise<string[]> {
  const problems: string[] = [];
  const total = bytesIn(files);
  let done = 0;
  for (const { path, bytes, sha256 } of files) {
    checking.signal.throwIfAborted();
    const found = await ifPresent(stat(join(folder, path)));
    if (!found?.isFile()) problems.push(`${path} is missing`);
    else if (found.size !== bytes) problems.push(`${path} has ${found.size} bytes instead of ${bytes}`);
    else if ((await checksumOf(join(folder, path), checking.signal)) !== sha256) {
      problems.push(`${path} does not have its checksum`);
    }
    if (problems.length >= maxProblems) break;
    done += bytes;
    checking.progress(done, total, "comparing", "bytes");
  }
  return problems;
}

export interface Contents {
  readonly events: number;
  readonly problems: readonly string[];
}

/** `repositories`: folders below `gitFolder`. */
export async function checkContents(
  relayFolder: string,
  gitFolder: string,
  repositories: readonly string[],
  checking: Checking,
): Promise<Contents> {
  const problems: string[] = [];
  let events = 0;
  let store: Store;
  try {
    store = await openLmdbStore(relayFolder, { readOnly: true });
  } catch (error) {
    return { events, problems: [`the store does not open: ${error instanceof Error ? error.message : String(error)}`] };
  }
  try {
    events = store.stats.events;
    problems.push(...(await checkRefs(store, gitFolder, new Set(repositories))));
  } finally {
    await store.close();
  }
  for (const [index, repository] of repositories.entries()) {
    checking.signal.throwIfAborted();
    const directory = join(gitFolder, repository);
    const result = await checking.git.run(["fsck", "--connectivity-only", "--no-dangling", "--no-progress"], {
      directory,
      signal: checking.signal,
    });
    const said = `${result.stdout.toString("utf8")}${result.stderr}`.trim().split("\n")[0]?.slice(0, 200) ?? "";
    if (result.code !== 0) problems.push(`git/${repository}: ${said}`);
    if (problems.length >= maxProblems) break;
    checking.progress(index + 1, repositories.length, "checking repositories");
  }
  return { events, problems };
}

/** A release or a push that was under way is ended by the next start: until then its refs may be ahead of its state. */
async function repositoriesUnderWay(store: Store): Promise<Set<string>> {
  const found = new Set<string>();
  for await (const [, row] of store.rows<Pick<CatalogueRow, "owner" | "identifier">>("journal")) {
    found.add(repositoryKey(row));
  }
  return found;
}

async function checkRefs(store: Store, gitFolder: string, present: ReadonlySet<string>): Promise<string[]> {
  const problems: string[] = [];
  const underWay = await repositoriesUnderWay(store);
  for await (const row of catalogueRows(store)) {
    if (!isReleased(row)) continue;
    const directory = diskAddress(row).directoryUnder(gitFolder);
    const name = relative(gitFolder, directory);
    if (!present.has(name)) {
      problems.push(`git/${name} is missing, and events of it are served`);
      continue;
    }
    const state = await governingState(store, row);
    if (!state || underWay.has(repositoryKey(row))) continue;
    const { head, refs } = await readRefFiles(directory);
    const differences = refDifferences({ head, refs }, state, row.partial);
    const [first] = differences.filter(({ recorded }) => !recorded);
    if (first) problems.push(`git/${name}: ${first.ref} is not what its governing state says`);
  }
  return problems;
}
