// The small blobs of a history, read whole: where pointers to large files are looked for. Two processes for a usual push,
// none of which holds more than a page of blobs.

import type { Oid } from "../nostr/nip34.js";
import type { GitRepository } from "./repository.js";
import { checkedOid, GitError } from "./run.js";

const blobsAtOnce = 2_000;
const limits = { wallClockMs: 10 * 60_000, cpuSeconds: 600 };

/** Content of each blob under `maxBytes` that these reach and those in `without` do not. */
export async function* smallBlobs(
  repository: GitRepository,
  tips: readonly Oid[],
  without: readonly Oid[],
  maxBytes: number,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  if (tips.length === 0) return;
  const { git } = repository.context;
  const { directory } = repository;
  const filter = `--filter=combine:blob:limit=${maxBytes}+object:type=blob`;
  const job = await git.start(
    // --ignore-missing: an older tip may be gone, and what is missing is hunted.
    ["rev-list", "--objects", "--no-object-names", filter, "--filter-provided-objects", "--ignore-missing", "--stdin"],
    { directory, limits, signal, stdin: true },
  );
  const lines = [...tips.map(checkedOid), ...without.map((oid) => `^${checkedOid(oid)}`)];
  job.stdin?.on("error", () => undefined);
  job.stdin?.end(`${lines.join("\n")}\n`);
  let page: string[] = [];
  let rest = "";
  for await (const chunk of job.stdout as AsyncIterable<Buffer>) {
    const found = (rest + chunk.toString("latin1")).split("\n");
    rest = found.pop() ?? "";
    page.push(...found);
    while (page.length >= blobsAtOnce) yield* contentsOf(repository, page.splice(0, blobsAtOnce), signal);
  }
  const exit = await job.exit;
  if (exit.code !== 0) throw new GitError("rev-list", exit);
  if (page.length > 0) yield* contentsOf(repository, page, signal);
  page = [];
}

async function* contentsOf(
  { context: { git }, directory }: GitRepository,
  oids: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const input = oids.map((oid) => `${checkedOid(oid as Oid)}\n`).join("");
  const output = await git.mustRun(["cat-file", "--batch", "--buffer"], { directory, limits, signal, input });
  for (let at = 0; at < output.length; ) {
    const end = output.indexOf(0x0a, at);
    if (end < 0) return;
    const [, type, size] = output.toString("latin1", at, end).split(" ");
    at = end + 1;
    // "<id> missing" has no content behind it.
    if (size === undefined) continue;
    if (type === "blob") yield output.subarray(at, at + Number(size));
    at += Number(size) + 1;
  }
}
