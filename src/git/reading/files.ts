// Files by their names, each question one bounded run of git: all of a commit, or one of a folder that has too many entries to
// be read as a whole.

import { othersFirst } from "../../base/others-first.js";
import { isOid, type Oid } from "../../nostr/nip34.js";
import type { GitRepository } from "../repository.js";
import { checkedOid } from "../run.js";
import { runBounded, runForText } from "./bounded-run.js";
import type { InTime } from "./history.js";
import { kindOfMode, type TreeEntry } from "./objects.js";

export interface FileList {
  /** Bytes as latin1, in git's order. */
  readonly paths: readonly string[];
  /** There are more. */
  readonly isCut: boolean;
  /** Its time was over before it was whole. */
  readonly isLate: boolean;
}

const maxBytes = 8 * 2 ** 20;
const maxPaths = 100_000;
const pathsATime = 1_000;

export async function listFiles(repository: GitRepository, tree: Oid): Promise<FileList> {
  const args = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", checkedOid(tree)] as const;
  const { bytes, end } = await runForText(repository, args, "", { maxBytes });
  const paths: string[] = [];
  let at = 0;
  // After the last one stands nothing, or a part of a name.
  for (let name = bytes.indexOf(0); name >= 0 && paths.length < maxPaths; name = bytes.indexOf(0, at)) {
    paths.push(bytes.toString("latin1", at, name));
    at = name + 1;
    if (paths.length % pathsATime === 0) await othersFirst();
  }
  return { paths, isCut: end !== "complete" || at < bytes.length, isLate: end === "late" };
}

/** `<mode> <type> <id>TAB<name>NUL` each: looked through as they come, up to the one that is asked for. */
export async function findEntry(
  repository: GitRepository,
  tree: Oid,
  name: Buffer,
): Promise<InTime<TreeEntry | undefined>> {
  const wanted = name.toString("latin1");
  let found: TreeEntry | undefined;
  let rest = "";
  const args = ["ls-tree", "-z", "--full-tree", checkedOid(tree)] as const;
  const end = await runBounded(repository, args, "", { maxBytes: Number.POSITIVE_INFINITY }, (piece) => {
    const lines = (rest + piece.toString("latin1")).split("\0");
    rest = lines.pop() ?? "";
    const line = lines.find((one) => one.endsWith(wanted) && one.slice(one.indexOf("\t") + 1) === wanted);
    const [mode = "", , oid] = line?.slice(0, line.indexOf("\t")).split(" ") ?? [];
    if (isOid(oid)) found = { kind: kindOfMode(mode), name, oid };
    return found === undefined;
  });
  return end === "late" ? { ok: false, code: "late" } : { ok: true, value: found };
}
