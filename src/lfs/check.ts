// For `fsck`: whether the large files of a repository are what their names say, and whether rows and files agree. Reads every
// byte and changes nothing; whoever asks mends (start-large-files.ts), or only tells, while no server runs.

import { type LargeFileId, largeFile, largeFiles } from "../catalogue/large-files.js";
import type { RepositoryName } from "../catalogue/repositories.js";
import type { TableReader } from "../store/port.js";
import { filesIn, isWhole, largeFilePath } from "./files.js";

interface LargeFileFault {
  readonly oid: LargeFileId;
  /** `damaged`: its row says that it is here, and it is not, or not whole. `unrecorded`: no row says so. */
  readonly fault: "damaged" | "unrecorded";
}

export async function* largeFileFaults(
  store: TableReader,
  directory: string,
  name: RepositoryName,
): AsyncGenerator<LargeFileFault> {
  for await (const [oid, { isHere }] of largeFiles(store, name)) {
    if (isHere && !(await isWhole(largeFilePath(directory, oid), oid))) yield { oid, fault: "damaged" };
  }
  for await (const oid of filesIn(directory)) {
    if (!(await largeFile(store, name, oid))?.isHere) yield { oid, fault: "unrecorded" };
  }
}

/** As a command without a server tells it. */
export const largeFileFaultText = ({ oid, fault }: LargeFileFault): string =>
  fault === "damaged"
    ? `large file ${oid} is damaged or lost: it is looked for on other servers when the server runs`
    : `large file ${oid} is not recorded: a check while the server runs removes it`;
