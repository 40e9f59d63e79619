// Records of removals tell who follows the feed that something went. When all who follow it have passed them they are
// forgotten, so that the file follows what is held and not what ever was (threats row 54). In small transactions beside everything else; a mark says how far it has come. The newest record of the log stays:
// its number is the store's position.

import { setImmediate as nextTurn } from "node:timers/promises";
import type { Sequence } from "../port.js";
import type { Database } from "./database.js";
import { readSeq, seqKey } from "./keys.js";
import { isRemoval } from "./record.js";
import { metaNumber, setMeta } from "./rows.js";

const recordsAStep = 500;

export async function forgetRemovals(database: Database, before: Sequence, isStopped: () => boolean): Promise<void> {
  let reached = metaNumber(database, "forgottenUpTo") ?? 0;
  while (!isStopped() && reached < before - 1) {
    const range = { start: seqKey(reached + 1), end: seqKey(before), limit: recordsAStep };
    const seqs = [...database.log.getKeys(range)].map((key) => readSeq(key, 0));
    const going = seqs.filter((seq) => {
      const record = database.log.getBinaryFast(seqKey(seq));
      return record !== undefined && isRemoval(record);
    });
    reached = seqs.length < recordsAStep ? before - 1 : (seqs.at(-1) as Sequence);
    const upTo = reached;
    await database.write(() => {
      for (const seq of going) database.log.remove(seqKey(seq));
      setMeta(database, "forgottenUpTo", upTo);
    });
    await nextTurn();
  }
}
