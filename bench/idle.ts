// What an idle server holds (goal P10): with 1,000 repositories' announcements, for each of 5,000 open sockets, and
// how long it takes to start over a million events.

import { join } from "node:path";
import { openLmdbStore } from "../src/store/lmdb/open.js";
import { announcementOf } from "./hosted.js";
import { largeStore } from "./large-store.js";
import { inFolder, startBenchServer } from "./processes.js";
import { frameOf, RawClient } from "./raw-client.js";
import { type Benchmark, type BenchRow, mebibytes, milliseconds } from "./rows.js";

const repositories = 1_000;
const sockets = 5_000;
const goalRssBytes = 120 * 2 ** 20;
const goalSocketBytes = 10 * 1024;
const goalStartMs = 3_000;

async function memory(): Promise<BenchRow[]> {
  return inFolder(async (folder) => {
    const empty = await startBenchServer(join(folder, "empty"));
    const bare = await empty.usage();
    await empty.close();
    const store = await openLmdbStore(join(folder, "full", "relay"));
    await store.transact(async (tx) => {
      for (let index = 0; index < repositories; index++) await tx.put(announcementOf(index, `repository-${index}`));
    });
    await store.close();
    const server = await startBenchServer(join(folder, "full"));
    const idle = await server.usage();
    const clients: RawClient[] = [];
    for (let opened = 0; opened < sockets; opened += 100) {
      clients.push(...(await Promise.all(Array.from({ length: 100 }, () => RawClient.connect(server.port)))));
    }
    const open = await server.usage();
    const listening = clients.slice(0, 1_000);
    await Promise.all(
      listening.map((client) => {
        const answered = new Promise<void>((resolve) => {
          client.onText = () => resolve();
        });
        client.socket.write(frameOf(`["REQ","s",{"kinds":[1621],"#a":["30617:${"a".repeat(64)}:x"],"limit":0}]`));
        return answered;
      }),
    );
    const subscribed = await server.usage();
    for (const client of clients) client.close();
    await server.close();
    const each = (open.rssBytes - idle.rssBytes) / sockets;
    const heapEach = (open.heapBytes + open.externalBytes - idle.heapBytes - idle.externalBytes) / sockets;
    const subscriptionEach = (subscribed.heapBytes - open.heapBytes) / listening.length;
    return [
      {
        goal: "P10",
        work: `RSS, idle, ${repositories.toLocaleString("en")} repositories announced`,
        measured: mebibytes(idle.rssBytes),
        limit: `${mebibytes(bare.rssBytes)} with none`,
        ratio: idle.rssBytes / bare.rssBytes,
        target: "< 120 MB",
        met: idle.rssBytes < goalRssBytes,
      },
      {
        goal: "P10",
        work: `memory a socket, ${sockets.toLocaleString("en")} open`,
        measured: `${(each / 1024).toFixed(1)} KiB RSS, ${(heapEach / 1024).toFixed(1)} KiB heap`,
        target: "< 10 KiB",
        met: each < goalSocketBytes,
      },
      {
        goal: "-",
        work: "memory a subscription",
        measured: `${(subscriptionEach / 1024).toFixed(1)} KiB heap`,
      },
    ];
  });
}

async function start(): Promise<BenchRow> {
  const { folder, events } = await largeStore();
  const bareMs = await inFolder(async (empty) => {
    const server = await startBenchServer(empty);
    await server.close();
    return server.startMs;
  });
  const server = await startBenchServer(folder);
  await server.close();
  return {
    goal: "P10",
    work: `start with ${events.toLocaleString("en")} events, process to open port`,
    measured: milliseconds(server.startMs),
    limit: `${milliseconds(bareMs)} with none`,
    ratio: server.startMs / bareMs,
    target: "< 3 s",
    met: server.startMs < goalStartMs,
  };
}

export const idleBenchmark: Benchmark = {
  name: "idle",
  run: async () => [...(await memory()), await start()],
};
