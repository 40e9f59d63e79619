// Loaded into each test process before the tests. Node 20's runner follows every promise and handle from its making to
// its collection, to know which test a late error belongs to; that takes a tenth of the tests' processor time and makes
// what they measure of memory and time depend on it. Here the runner is told of its own tests only, which it needs to
// nest them. An error that nobody catches ends the process at once and is shown: its test file has failed.
import asyncHooks from "node:async_hooks";
import { isMainThread } from "node:worker_threads";

if (isMainThread && process.versions.node.startsWith("20.")) await withoutFollowing();
if (isMainThread) await withoutWaitingForEver();

async function withoutFollowing() {
  const { AsyncResource, createHook } = asyncHooks;
  let hooks;
  asyncHooks.AsyncResource = class extends AsyncResource {
    constructor(...args) {
      super(...args);
      hooks?.init(this.asyncId(), args[0], this.triggerAsyncId(), this);
    }
  };
  asyncHooks.createHook = (callbacks) => {
    hooks = callbacks;
    for (const name of ["uncaughtException", "unhandledRejection"]) process.on(name, endWith);
    const hook = { enable: () => hook, disable: () => hook };
    return hook;
  };
  // The runner takes both as it is loaded; everybody else gets Node's own.
  await import("node:test");
  Object.assign(asyncHooks, { AsyncResource, createHook });
}

/**
 * What a test left open, such as the server of a test that failed, keeps its process alive, and the runner waits for that
 * process: without an end of its own nobody would learn which test it was.
 */
async function withoutWaitingForEver() {
  const { after } = await import("node:test");
  const end = () => {
    const left = process.getActiveResourcesInfo().join(", ");
    process.stderr.write(`the tests are over, but their process goes on because of what they left open: ${left}\n`);
    process.exit(1);
  };
  // The hooks that close what the files share may come after this one.
  after(() => void setTimeout(end, 60_000).unref());
}

function endWith(error) {
  process.stderr.write(`an error that no test caught: ${error?.stack ?? error}\n`);
  process.exit(1);
}
