// Loaded into a started server before it (`--import`): says, when its parent asks, what the server holds once the garbage
// is gone, or what it uses with its garbage. The product knows nothing of it.

import { isMainThread } from "node:worker_threads";
import { heldHere, usedHere } from "./held-memory.js";

// Not in its workers, and not in the children it starts the same way.
if (isMainThread && process.send && process.argv[2] === "serve") {
  process.on("message", (what) => process.send?.({ what, bytes: what === "used" ? usedHere() : heldHere() }));
  // Asking must not keep a server alive that wants to end.
  process.channel?.unref();
}
