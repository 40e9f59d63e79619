// Writes refs: one `update-ref --stdin`, two phases. Prepare locks every ref; then the caller looks once more and may
// still say no; commit writes. The only file that changes refs (mechanisms.md, "Push without receive-pack" 7).

import type { Oid } from "../nostr/ids.js";
import type { RefName } from "../nostr/ref-name.js";
import type { Job, JobExit } from "./launcher-job.js";
import type { ObjectPlace } from "./objects.js";
import { checkedOid } from "./run.js";

export interface RefChange {
  readonly ref: RefName;
  readonly from: Oid | undefined;
  readonly to: Oid | undefined;
}

export type TransactionResult =
  | { readonly status: "committed" }
  | { readonly status: "vetoed" }
  /** git would not lock or write; `exit` says why. `partly`: deletions that had to go first are done. */
  | { readonly status: "failed"; readonly exit: JobExit; readonly partly: boolean };

const absent = "0".repeat(40);

/** `refs/heads/a` cannot go in the transaction in which `refs/heads/a/b` comes, nor the reverse: git checks each ref alone. */
export function splitWhereDirectoriesClash(changes: readonly RefChange[]): readonly (readonly RefChange[])[] {
  const deleted = new Set<string>(changes.filter(({ to }) => to === undefined).map(({ ref }) => ref));
  const created = new Set<string>(changes.filter(({ from }) => from === undefined).map(({ ref }) => ref));
  const clashes =
    [...created].some((ref) => foldersOf(ref).some((folder) => deleted.has(folder))) ||
    [...deleted].some((ref) => foldersOf(ref).some((folder) => created.has(folder)));
  if (!clashes) return [changes];
  return [changes.filter(({ to }) => to === undefined), changes.filter(({ to }) => to !== undefined)];
}

function foldersOf(ref: string): string[] {
  const parts = ref.split("/");
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join("/"));
}

function instruction({ ref, from, to }: RefChange): string {
  const old = from === undefined ? absent : checkedOid(from);
  return to === undefined ? `delete ${ref} ${old}\n` : `update ${ref} ${checkedOid(to)} ${old}\n`;
}

export async function writeRefs(
  { git, directory, env = {} }: ObjectPlace,
  changes: readonly RefChange[],
  beforeCommit: () => Promise<boolean>,
): Promise<TransactionResult> {
  // Written out before git starts: a value that is no object id must throw while there is nothing to clean up.
  const parts = splitWhereDirectoriesClash(changes).map((part) => part.map(instruction).join(""));
  const job = await git.start(["update-ref", "--stdin"], { directory, env, stdin: true });
  const conversation = new Conversation(job);
  let decided = false;
  for (const [index, part] of parts.entries()) {
    const prepared =
      (await conversation.say("start\n", "start: ok")) && (await conversation.say(`${part}prepare\n`, "prepare: ok"));
    if (!prepared) return { status: "failed", exit: await conversation.end(), partly: index > 0 };
    if (!decided) {
      decided = await beforeCommit().catch(async (error: unknown) => {
        await conversation.say("abort\n", "abort: ok");
        await conversation.end();
        throw error;
      });
      if (!decided) {
        await conversation.say("abort\n", "abort: ok");
        await conversation.end();
        return { status: "vetoed" };
      }
    }
    if (!(await conversation.say("commit\n", "commit: ok"))) {
      return { status: "failed", exit: await conversation.end(), partly: index > 0 };
    }
  }
  await conversation.end();
  return { status: "committed" };
}

/** One line out, one line back. Ends by closing stdin, never by a signal: a killed update-ref leaves its locks behind. */
class Conversation {
  #text = "";
  #wake: (() => void) | undefined;
  #ended = false;

  constructor(readonly job: Job) {
    job.stdout.on("data", (chunk: Buffer) => {
      this.#text += chunk.toString("utf8");
      this.#wake?.();
    });
    const end = (): void => {
      this.#ended = true;
      this.#wake?.();
    };
    // A git that was killed as soon as it began may have ended before anybody listened: nobody would hear of it again.
    if (job.stdout.readableEnded || job.stdout.destroyed) end();
    job.stdout.once("end", end);
    job.stdout.once("close", end);
  }

  async say(text: string, expected: string): Promise<boolean> {
    if (this.#ended) return false;
    this.job.stdin?.write(text);
    for (;;) {
      const end = this.#text.indexOf("\n");
      if (end >= 0) {
        const line = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 1);
        return line === expected;
      }
      if (this.#ended) return false;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async end(): Promise<JobExit> {
    this.job.stdin?.end();
    return await this.job.exit;
  }
}
