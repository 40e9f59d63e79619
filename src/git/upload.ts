// `POST git-upload-pack`: a fetch. The request is small and read whole, within limits; `ls-refs` is answered from memory,
// everything else by git, shared between equal requests (git-http.md, Serving;
// threats.md row 9). Never touches refs or objects.

import { createHash } from "node:crypto";
import type { Turns } from "../base/budget/turns.js";
import type { Config } from "../config/config.js";
import { formatOf, isOid, type ObjectFormat } from "../nostr/nip34.js";
import {
  isLsRefs,
  type LsRefsAnswers,
  otherFormatReason,
  type ProtocolVersion,
  v2Command,
  v2Format,
} from "./advertisement.js";
import type { Send, SendResult } from "./cache-entry.js";
import type { AnswerOrigin, FetchCache } from "./fetch-cache.js";
import { maxUploadLines } from "./http-types.js";
import { encodePkt, lineOf, listPkts, type Pkt, PktError } from "./pkt-line.js";
import { alternatePath } from "./quarantine.js";
import type { RefTable } from "./ref-tables.js";
import type { GitRepository } from "./repository.js";
import type { GitEnvironment } from "./run.js";

export interface UploadParts {
  readonly live: { readonly current: Pick<Config, "gitTotalSecs"> };
  readonly limiter: Turns;
  readonly answers: FetchCache;
  readonly lsRefs: LsRefsAnswers;
}

type UploadPlan =
  | { readonly type: "answer"; readonly operation: "probe" | "ls-refs" | "fetch"; readonly body: Buffer }
  | { readonly type: "bad-request"; readonly reason: string }
  /** A clone is a fetch by who has nothing yet. */
  | { readonly type: "run"; readonly operation: "fetch" | "clone" };

const have = Buffer.from("have ");

const packBytes = new WeakMap<RefTable, number>();

const remoteError = (text: string): Buffer => encodePkt(`ERR ${text}\n`);

/** What a request needs, from its bytes and what can be fetched. `repository`: undefined while it is not on disk. */
export function planUpload(
  body: Buffer,
  version: ProtocolVersion,
  repository: GitRepository | undefined,
  table: RefTable,
  { lsRefs }: UploadParts,
): UploadPlan {
  try {
    if (version === 2 && isLsRefs(body)) {
      const answer = lsRefs.answer(table, body, () => listPkts(body, maxUploadLines));
      if (answer) return { type: "answer", operation: "ls-refs", body: answer };
      return { type: "bad-request", reason: "this ls-refs request is not well formed" };
    }
    return planFetch(listPkts(body, maxUploadLines), version, repository, table.format);
  } catch (error) {
    if (error instanceof PktError) return { type: "bad-request", reason: error.message };
    throw error;
  }
}

function planFetch(
  pkts: readonly Pkt[],
  version: ProtocolVersion,
  repository: GitRepository | undefined,
  format: ObjectFormat,
): UploadPlan {
  if (pkts.every(({ type }) => type === "flush")) return { type: "answer", operation: "probe", body: Buffer.alloc(0) };
  if (pkts.length > maxUploadLines) {
    const answer = remoteError(`upload-pack: more than ${maxUploadLines} want and have lines`);
    return { type: "answer", operation: "fetch", body: answer };
  }
  if (version === 2 && v2Command(pkts) !== "fetch") {
    return { type: "bad-request", reason: "only ls-refs and fetch are served" };
  }
  const asked = version === 2 ? v2Format(pkts) : formatWanted(pkts);
  if (version === 2 && !asked) return { type: "bad-request", reason: "this object-format is not known" };
  if (asked && asked !== format) {
    return { type: "answer", operation: "fetch", body: remoteError(otherFormatReason(format, asked, "request")) };
  }
  if (!repository) {
    const wanted = pkts
      .flatMap((pkt) => (pkt.type === "data" ? [lineOf(pkt.payload)] : []))
      .find((line) => /^want /.test(line));
    return {
      type: "answer",
      operation: "fetch",
      body: remoteError(`upload-pack: not our ref ${wanted?.split(" ")[1]?.slice(0, 64) ?? ""}`),
    };
  }
  const hasSomething = pkts.some((pkt) => pkt.type === "data" && pkt.payload.subarray(0, 5).equals(have));
  return { type: "run", operation: hasSomething ? "fetch" : "clone" };
}

const packsOf = async (repository: GitRepository): Promise<number> => (await repository.packFacts()).bytes;

/** The id of a `want` line. */
function wantIn(pkt: Pkt): string | undefined {
  return pkt.type === "data" ? /^want ([0-9a-f]+)/.exec(lineOf(pkt.payload))?.[1] : undefined;
}

/** Before protocol 2 nothing but the ids' length says in which format a fetch is written. */
function formatWanted(pkts: readonly Pkt[]): ObjectFormat | undefined {
  const first = pkts.map(wantIn).find((id) => id !== undefined);
  return isOid(first) ? formatOf(first) : undefined;
}

/** The ids a fetch asks for. */
const wantsOf = (body: Buffer): Set<string> =>
  new Set(listPkts(body, maxUploadLines).flatMap((pkt) => wantIn(pkt) ?? []));

/** An environment variable has room for this many; a client that wants more at once is told that they are not here. */
const maxAlternates = 256;

const alternates = (folders: readonly string[]): GitEnvironment =>
  folders.length === 0
    ? {}
    : { GIT_ALTERNATE_OBJECT_DIRECTORIES: folders.slice(0, maxAlternates).map(alternatePath).join(":") };

export async function runUpload(
  repository: GitRepository,
  body: Buffer,
  version: ProtocolVersion,
  ip: string,
  { live, limiter, answers }: UploadParts,
  send: Send,
  signal: AbortSignal,
): Promise<SendResult> {
  // An answer without some of the objects would look like a damaged repository.
  await repository.ready();
  // What the table names, git must be able to find by its own refs too; files that cannot follow are no reason to refuse.
  await repository.bringInLine().catch(() => undefined);
  const isContributors = repository.address.area === "prs";
  const table = isContributors ? await repository.fetchableRefs() : await repository.refs();
  const unclaimed = [
    ...(isContributors ? await repository.unclaimedObjects(wantsOf(body)) : []),
    ...(await repository.retiredObjects()),
  ];
  const digest = createHash("sha256").update(body).digest("hex");
  const key = `${repository.address.key} ${table.generation} ${version} ${digest}`;
  const source: AnswerOrigin = {
    expectedBytes: async () => {
      const bytes = packBytes.get(table) ?? (await (isContributors ? repository.sizeBytes() : packsOf(repository)));
      packBytes.set(table, bytes);
      // The packs' own bytes, or fewer; then their framing, an ACK for each `have`, and what git says of its progress.
      return Math.ceil(bytes * 1.02) + 4 * 2 ** 20;
    },
    start: async (ending, file) => {
      const release = await limiter.acquire({ repository: repository.address.key, ip }, ending);
      if (!release) return undefined;
      try {
        const job = await repository.context.git.start(["upload-pack", "--stateless-rpc", repository.directory], {
          env: { ...(version === 0 ? {} : { GIT_PROTOCOL: `version=${version}` }), ...alternates(unclaimed) },
          limits: { wallClockMs: live.current.gitTotalSecs * 1_000 },
          signal: ending,
          stdin: true,
          ...(file === undefined ? {} : { stdoutFile: file }),
        });
        void job.exit.then(release);
        job.stdin?.end(body);
        return job;
      } catch (error) {
        release();
        throw error;
      }
    },
  };
  return await answers.send(key, source, send, signal);
}
