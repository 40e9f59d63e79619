// Opens the store of a folder, and kills itself before the step that is named: "copy", or the number of a transaction.

import { EngineStore } from "../../src/store/engine/engine.js";
import { DatabaseFiles } from "../../src/store/lmdb/database.js";
import { openLmdbStore } from "../../src/store/lmdb/open.js";

const [folder = "", point = ""] = process.argv.slice(2);
const die = (): void => void process.kill(process.pid, "SIGKILL");

if (point === "copy") {
  const copyBeside = DatabaseFiles.prototype.copyBeside;
  DatabaseFiles.prototype.copyBeside = async function halfACopy(name, current) {
    await copyBeside.call(this, `${name}.part`, current);
    die();
    return name;
  };
} else {
  let done = 0;
  const transact = EngineStore.prototype.transact;
  EngineStore.prototype.transact = function killed(work) {
    if (done++ === Number(point)) die();
    return transact.call(this, work) as ReturnType<typeof transact<never>>;
  };
}
await openLmdbStore(folder);
