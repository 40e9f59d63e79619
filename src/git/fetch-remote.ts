// One `git fetch` of objects by id from another server into a quarantine, and from there into the repository only when
// every object passed git's strict check and everything the ids reach is here (purgatory.md "Hunting"; threats.md
// rows 4 and 7). Takes a GuardedUrl only: git dials the checked address and follows no redirect. Sets no ref. Whatever
// goes wrong, the quarantine goes, and the process group with it.

import { randomBytes } from "node:crypto";
import { mkdir, open, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.js";
import { ifPresent, removeAll } from "../base/durable-files.js";
import { curlResolveEntry, type GuardedUrl } from "../net/guard.js";
import type { ObjectFormat, Oid } from "../nostr/nip34.js";
import { Overtaken } from "./change-refs.js";
import { missingObjects } from "./objects.js";
import { type QuarantineDirectory, reachedBy } from "./quarantine.js";
import type { RefTable } from "./ref-tables.js";
import type { GitRepository } from "./repository.js";
import { bytesBelow, repositoryConfigs } from "./repository-files.js";
import { checkedOid, type Git, GitError, ObjectsUnavailableError, toleratedFaults } from "./run.js";

export interface RemoteFetchLimits {
  readonly totalMs: number;
  readonly minBytesPerSecond: number;
  readonly slowForMs: number;
  readonly maxBytes: number;
  readonly maxObjects: number;
  /** What each git process may use for data; a little more for each object of a pack that came. */
  readonly gitMemoryBytes: number;
}

interface RemoteFetch {
  readonly git: Git;
  readonly clock: Clock;
  readonly repository: GitRepository;
  readonly url: GuardedUrl;
  readonly ids: readonly Oid[];
  readonly limits: RemoteFetchLimits;
  /** False where the repository itself may be damaged: then what its refs reach is fetched and checked again. */
  readonly trustRefs: boolean;
  /** GRASP-08: who we are, for this URL. It stands in a file of ours, never among arguments that others on the machine see. */
  readonly authorization?: string | undefined;
  /** A private directory of ours. */
  readonly scratchRoot: string;
  readonly signal: AbortSignal;
}

type RemoteFetchFailure = "timeout" | "too-large" | "aborted" | "bad-objects" | "fetch-failed";

type RemoteFetchResult = { readonly bytes: number } & (
  | { readonly outcome: "arrived" }
  /** "not our ref" or "unadvertised object": the server lacks, or does not give, one of the ids. */
  | { readonly outcome: "refused" }
  | { readonly outcome: "failed"; readonly code: RemoteFetchFailure }
);

const watchMs = 200;
/** What git keeps for each object while it checks them. */
const bytesAnObject = 256;
const packHeaderBytes = 12;

export async function fetchFromRemote(fetch: RemoteFetch): Promise<RemoteFetchResult> {
  const { repository, signal } = fetch;
  if (signal.aborted) return { outcome: "failed", code: "aborted", bytes: 0 };
  const table = await repository.refs();
  const known = fetch.trustRefs ? table : undefined;
  const scratch = await makeScratch(fetch.scratchRoot, table.format, known, fetch.authorization);
  const attempt = async (memoryBytes: number): Promise<RemoteFetchResult | { readonly needsBytes: number }> => {
    const quarantine = await repository.quarantine({ evenDamaged: !fetch.trustRefs });
    try {
      return await throughQuarantine(fetch, scratch.directory, quarantine, memoryBytes);
    } finally {
      await quarantine.drop();
    }
  };
  try {
    const { gitMemoryBytes } = fetch.limits;
    const first = await attempt(gitMemoryBytes);
    if (!("needsBytes" in first)) return first;
    // A pack of many objects needs more than everything before it may: now that it began to come, once.
    const second = await attempt(first.needsBytes);
    return "needsBytes" in second ? { outcome: "failed", code: "fetch-failed", bytes: 0 } : second;
  } finally {
    await scratch.drop();
  }
}

async function throughQuarantine(
  fetch: RemoteFetch,
  scratch: string,
  quarantine: QuarantineDirectory,
  memoryBytes: number,
): Promise<RemoteFetchResult | { readonly needsBytes: number }> {
  const { ids, limits, trustRefs, repository, signal } = fetch;
  const ended = await runFetch(fetch, scratch, quarantine, memoryBytes);
  const { bytes, objects } = await measure(quarantine.directory);
  if (ended === "out-of-memory") {
    const needsBytes = limits.gitMemoryBytes + objects * bytesAnObject;
    const mayNeedMore = objects > 0 && objects <= limits.maxObjects && needsBytes > memoryBytes;
    return mayNeedMore ? { needsBytes } : { outcome: "failed", code: "fetch-failed", bytes };
  }
  if (ended !== "arrived") {
    return ended === "refused" ? { outcome: "refused", bytes } : { outcome: "failed", code: ended, bytes };
  }
  // The watch looks now and then; a quick server may have been quicker.
  if (bytes > limits.maxBytes || objects > limits.maxObjects) return { outcome: "failed", code: "too-large", bytes };
  const badObjects = { outcome: "failed", code: "bad-objects", bytes } as const;
  // A server may be smart to us and dumb to git, and git checks nothing of what comes so.
  if (await hasLooseObjects(quarantine.directory)) return badObjects;
  const from = trustRefs ? quarantine.place : { ...quarantine.place, env: quarantine.aloneEnvironment };
  if ((await missingObjects(from, ids, { deep: !trustRefs })).size > 0) return badObjects;
  // However it came: only what the ids reach leaves the quarantine, and every object of it was checked here.
  const here = trustRefs ? await repository.tips() : [];
  const most = { wallClockMs: limits.totalMs, memoryBytes: limits.gitMemoryBytes + objects * bytesAnObject };
  const reached = await reachedBy(quarantine, ids, here, { from, strict: true, alone: !trustRefs, limits: most }).catch(
    (error: unknown) => {
      if (error instanceof GitError && !signal.aborted) return undefined;
      throw error;
    },
  );
  if (!reached) return badObjects;
  try {
    await repository.keep(reached);
  } catch (error) {
    // Packs went meanwhile, or the pack store is away: nobody is to blame, and it is asked for again.
    if (!(error instanceof Overtaken || error instanceof ObjectsUnavailableError)) throw error;
    return { outcome: "failed", code: "aborted", bytes };
  } finally {
    await reached.drop();
  }
  if (!trustRefs) await repository.dropLost();
  return { outcome: "arrived", bytes };
}

/** A fetch by git's smart protocol leaves packs only. */
const hasLooseObjects = async (directory: string): Promise<boolean> =>
  ((await ifPresent(readdir(directory))) ?? []).some((name) => /^[0-9a-f]{2}$/.test(name));

async function runFetch(
  fetch: RemoteFetch,
  scratch: string,
  quarantine: QuarantineDirectory,
  memoryBytes: number,
): Promise<"arrived" | "refused" | "out-of-memory" | RemoteFetchFailure> {
  const { git, clock, url, ids, limits, signal } = fetch;
  const job = await git.start(
    [
      "fetch",
      "--quiet",
      "--no-write-fetch-head",
      "--no-tags",
      "--no-auto-maintenance",
      "--no-recurse-submodules",
      "--stdin",
      "--end-of-options",
      url.href,
    ],
    {
      directory: scratch,
      // Damaged objects of the repository would count as here.
      env: fetch.trustRefs ? quarantine.writingEnvironment : quarantine.aloneEnvironment,
      settings: fetchSettings(url, limits),
      limits: { wallClockMs: limits.totalMs, memoryBytes },
      signal,
      stdin: true,
    },
  );
  job.stdout.resume();
  job.stdin?.on("error", () => undefined);
  job.stdin?.end(ids.map((id) => `${checkedOid(id)}\n`).join(""));
  const watch = watchSize(clock, quarantine.directory, limits, () => job.end());
  const exit = await job.exit;
  await watch.stop();
  if (watch.isTooLarge()) return "too-large";
  if (signal.aborted) return "aborted";
  if (exit.timedOut) return "timeout";
  if (exit.code === 0) return "arrived";
  return /out of memory|cannot allocate|mmap failed/i.test(exit.stderr) ? "out-of-memory" : reasonIn(exit.stderr);
}

function fetchSettings(url: GuardedUrl, limits: RemoteFetchLimits): Readonly<Record<string, string>> {
  const pin = curlResolveEntry(url);
  const tolerated = toleratedFaults.split(",").map((fault) => {
    const [name = "", action = ""] = fault.split("=");
    return [`fetch.fsck.${name}`, action] as const;
  });
  return {
    ...Object.fromEntries(tolerated),
    ...(pin === undefined ? {} : { "http.curloptResolve": pin }),
    [`protocol.${url.scheme}.allow`]: "always",
    "protocol.version": "2",
    "http.followRedirects": "false",
    "http.proxy": "",
    "http.lowSpeedLimit": String(limits.minBytesPerSecond),
    "http.lowSpeedTime": String(Math.max(1, Math.ceil(limits.slowForMs / 1_000))),
    "fetch.uriProtocols": "",
    "fetch.writeCommitGraph": "false",
    "transfer.bundleURI": "false",
    "pack.threads": "1",
  };
}

/** git's words on the first fault. They are the remote side's in part: read, never repeated. */
export function reasonIn(stderr: string): "refused" | RemoteFetchFailure {
  if (/not our ref|unadvertised object|couldn't find remote ref|no such remote ref/i.test(stderr)) return "refused";
  if (/operation too slow|timed out|less than \d+ bytes/i.test(stderr)) return "timeout";
  const bad =
    /fsck|index-pack|bad object|unresolved delta|corrupt|inflate|checksum|did not send all necessary objects/i;
  return bad.test(stderr) ? "bad-objects" : "fetch-failed";
}

function watchSize(
  clock: Clock,
  directory: string,
  limits: RemoteFetchLimits,
  end: () => void,
): { readonly isTooLarge: () => boolean; readonly stop: () => Promise<void> } {
  let tooLarge = false;
  let stopped = false;
  let looking: Promise<void> = Promise.resolve();
  let cancel = clock.after(watchMs, turn);
  function turn(): void {
    looking = look();
    // What cannot be measured does not go on; `stop` says why.
    looking.catch(end);
  }
  async function look(): Promise<void> {
    const { bytes, objects } = await measure(directory);
    if (stopped) return;
    if (bytes > limits.maxBytes || objects > limits.maxObjects) {
      tooLarge = true;
      end();
    } else cancel = clock.after(watchMs, turn);
  }
  return {
    isTooLarge: () => tooLarge,
    async stop() {
      stopped = true;
      cancel();
      await looking;
    },
  };
}

/** Bytes of a quarantine, and the objects its packs (also the one being written) announce in their headers. */
async function measure(directory: string): Promise<{ readonly bytes: number; readonly objects: number }> {
  let objects = 0;
  const folder = join(directory, "pack");
  for (const name of (await ifPresent(readdir(folder))) ?? []) {
    if (name.endsWith(".pack") || name.startsWith("tmp_pack")) objects += await objectsAnnounced(join(folder, name));
  }
  return { bytes: await bytesBelow(directory), objects };
}

async function objectsAnnounced(path: string): Promise<number> {
  const file = await ifPresent(open(path, "r"));
  if (!file) return 0;
  try {
    const header = Buffer.alloc(packHeaderBytes);
    const { bytesRead } = await file.read(header, 0, packHeaderBytes, 0);
    return bytesRead === packHeaderBytes ? header.readUInt32BE(8) : 0;
  } finally {
    await file.close();
  }
}

/** More haves cost more than they save. */
const maxRefs = 2_000;

interface ScratchDirectory {
  readonly directory: string;
  drop(): Promise<void>;
}

/**
 * The git-dir the fetch runs in: made for this one fetch, gone after it. Never the repository's own: git honours its
 * config, and a planted `url.….insteadOf` or `http.proxy` would rewrite the checked URL (mechanisms.md, "Fetch for
 * hunting"). The repository's refs are copied in as text, so that git asks only for what is new.
 */
async function makeScratch(
  root: string,
  format: ObjectFormat,
  known: RefTable | undefined,
  authorization: string | undefined,
): Promise<ScratchDirectory> {
  const directory = join(root, `fetch-${randomBytes(8).toString("hex")}`);
  await mkdir(join(directory, "refs"), { recursive: true, mode: 0o700 });
  await mkdir(join(directory, "objects"));
  await writeFile(join(directory, "HEAD"), "ref: refs/heads/none\n");
  const header = authorization === undefined ? "" : `[http]\n\textraHeader = "Authorization: ${authorization}"\n`;
  await writeFile(join(directory, "config"), repositoryConfigs[format] + header, { mode: 0o600 });
  const lines = known ? [...known.refs].slice(0, maxRefs).map(([ref, { oid }]) => `${oid} ${ref}\n`) : [];
  await writeFile(join(directory, "packed-refs"), lines.join(""));
  return { directory, drop: () => removeAll(directory) };
}
