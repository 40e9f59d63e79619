// The process of walked-server.ts: a whole server on LMDB whose clock stands still, so that nothing runs but what
// somebody asks of it.

import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { openStore } from "../../src/store/open-store.js";
import { freePort } from "./free-port.js";
import { liveConfigOf } from "./live-config.js";
import { dropInEnvironment, newFolder, startInProcess } from "./server.js";

export type ToServer = { readonly type: "advance"; readonly ms: number } | { readonly type: "end" };

export type FromServer =
  | { readonly type: "started"; readonly folder: string; readonly port: number }
  | { readonly type: "advanced" }
  | { readonly type: "stored"; readonly id: string };

if (process.send) {
  const tell = (message: FromServer): void => void process.send?.(message);
  const settings = JSON.parse(process.argv[2] ?? "{}") as Record<string, string>;
  const clock = new ManualClock(Date.now());
  const folder = await newFolder();
  const port = await freePort();
  const options = { backend: "lmdb", settings, folder, port } as const;
  const store = await openStore(liveConfigOf(dropInEnvironment(folder, port, options)).current, clock);
  store.onCommit(({ entries }) => {
    for (const entry of entries) if (entry.type === "stored") tell({ type: "stored", id: entry.event.id });
  });
  const server = await startInProcess({ ...options, clock, store });
  process.on("message", async (message: ToServer) => {
    if (message.type === "advance") {
      clock.advance(message.ms);
      tell({ type: "advanced" });
      return;
    }
    await server.stop().finally(() => store.close());
    process.disconnect();
  });
  tell({ type: "started", folder, port });
}
