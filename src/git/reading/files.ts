// All files of a commit, by their paths: one bounded run of git.

import { othersFirst } from "../../base/others-first.js";
import type { Oid } from "../../nostr/nip34.js";
import type { GitRepository } from "../repository.js";
import { checkedOid } from "../run.js";
import { runForText } from "./bounded-run.js";

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
