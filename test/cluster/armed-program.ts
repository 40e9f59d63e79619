// The real server, which ends or stands still at a named step of its next push when its parent says so (armed.ts names them),
// or whose disk is full.
//   node armed-program.js serve
// The product knows nothing of it: methods of its classes are wrapped here before it starts.

import { Session } from "../../src/cluster/session.js";
import { DirectoryPackStore } from "../../src/packs/directory.js";
import { LmdbBackend } from "../../src/store/lmdb/lmdb-backend.js";
import { ChangeLog } from "../../src/store/postgres/change-log.js";
import type { Armed, DiskWish, PushStep } from "./armed.js";

type Method = (...args: never[]) => Promise<unknown>;

let armed: Armed | undefined;

function reached(step: PushStep): void {
  if (armed?.step !== step) return;
  const { signal } = armed;
  armed = undefined;
  process.send?.({ reached: step });
  process.kill(process.pid, signal);
}

function watch(
  of: object,
  name: string,
  step: PushStep,
  when: "before" | "after",
  isIt = (..._: unknown[]) => true,
): void {
  const methods = of as Record<string, Method>;
  const original = methods[name];
  if (!original) throw new Error(`there is no ${name}`);
  methods[name] = async function (this: unknown, ...args: never[]): Promise<unknown> {
    if (when === "before" && isIt(...args)) reached(step);
    const answer = await original.apply(this, args);
    if (when === "after" && isIt(...args)) reached(step);
    return answer;
  };
}

watch(DirectoryPackStore.prototype, "put", "a pack is about to be put into the store", "before");
watch(DirectoryPackStore.prototype, "put", "a pack was put into the store", "after");
watch(ChangeLog.prototype, "lock", "the lock is held", "after");
watch(ChangeLog.prototype, "append", "the change is appended", "after");
watch(Session.prototype, "run", "the change is committed", "after", (text) => text === "COMMIT");
watch(LmdbBackend.prototype, "commit", "the change is applied", "after");

let isDiskFull = false;
const { commit } = LmdbBackend.prototype;
LmdbBackend.prototype.commit = async function (change): Promise<void> {
  if (isDiskFull) throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
  await commit.call(this, change);
};

process.on("message", (message: Armed | DiskWish) => {
  if ("disk" in message) isDiskFull = message.disk === "full";
  else armed = message;
  // A push that comes before this was heard would pass the step unnoticed.
  process.send?.({ heard: message });
});
process.channel?.unref();

await import("../../src/main.js");
