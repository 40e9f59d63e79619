// More relays that are followed: memory and processor time, idle and while a hundred new events come in each second. The relays
// are sockets of this process, each with one repository of its own. For idling the server's clock runs twenty times as fast.

import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { NostrEvent } from "../../src/nostr/event.js";
import { SecretKey, signEvent } from "../../src/nostr/keys.js";
import { PlainRelay } from "../../test/harness/sync-plain-relay.js";
import { Asker } from "../asker.js";
import { anonymousBytes } from "../process-costs.js";
import { type BenchServer, freePort, inFolder, startBenchServer } from "../processes.js";
import type { HostedRepository } from "../traffic.js";
import type { Curve } from "./curve.js";
import { type Placing, placedSettings, placeRepositories, templateIn } from "./placed.js";
import { costMs, pause } from "./settled.js";

const speed = 20;
const idleMs = 10 * 60_000;
const eventsASecond = 100;
const seconds = 10;
const waitMs = 600_000;

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (const endMs = performance.now() + waitMs; !(await isSo()); ) {
    if (performance.now() > endMs) throw new Error(`${what}: not within ten minutes`);
    await pause(100);
  }
}

const author = SecretKey.generate((length) => createHash("sha256").update("author").digest().subarray(0, length));

function issueOn({ ownerHex, identifier }: HostedRepository, at: number): NostrEvent {
  const tags = [["a", `30617:${ownerHex}:${identifier}`]];
  const draft = { kind: 1_621, created_at: Math.floor(Date.now() / 1_000), tags, content: `issue ${at}` };
  return signEvent(author, draft, (length) => createHash("sha256").update(String(at)).digest().subarray(0, length));
}

/** Each event comes from one relay, in turns. */
async function receiving(
  server: BenchServer,
  relays: readonly PlainRelay[],
  hosted: readonly HostedRepository[],
): Promise<number> {
  const count = eventsASecond * seconds;
  const events = Array.from({ length: count }, (_, at) => issueOn(hosted[at % hosted.length]!, at));
  const asker = await Asker.connect(server.port);
  const areHere = async (ids: readonly string[]): Promise<boolean> =>
    (await asker.ask(JSON.stringify({ ids }))).rows === ids.length;
  const beganMs = performance.now();
  const ms = await costMs(server, async () => {
    for (const [at, event] of events.entries()) {
      const dueMs = beganMs + (at * 1_000) / eventsASecond;
      if (dueMs > performance.now()) await pause(dueMs - performance.now());
      relays[at % relays.length]!.publish(event);
    }
    await until("the last ones are here", () => areHere(events.slice(-10).map(({ id }) => id)));
  });
  await until("all of them are here", () => areHere(events.map(({ id }) => id)));
  asker.close();
  return (ms / count) * 1_000;
}

export const relaysCurve: Curve = {
  name: "relays",
  of: "followed relays",
  sizes: [10, 100, 1_000],
  series: [
    { name: "memory", unit: "MiB", work: "each" },
    { name: "until all are followed", unit: "ms of processor time", work: "each" },
    { name: "ten idle minutes", unit: "ms of processor time", work: "each" },
    { name: "an event, at 100 a second", unit: "µs of processor time", work: "one" },
  ],
  measure: (size, progress) =>
    inFolder(async (scratch) => {
      const relays: PlainRelay[] = [];
      for (let at = 0; at < size; at++) relays.push(await PlainRelay.start());
      const template = await templateIn(scratch, (work) => writeFile(join(work, "README.md"), "# A repository\n"));
      const placing: Placing = {
        ...{ folder: join(scratch, "data"), port: await freePort(), count: size, template },
        relays: (place) => [relays[place]!.url],
      };
      const hosted = await placeRepositories(placing, progress);
      // All are on one host here.
      const caps = { NGIT_SYNC_MAX_RELAYS_PER_HOST: "10000", NGIT_SYNC_MAX_RELAYS: "10000" };
      const settings = { ...placedSettings(placing.port), ...caps };
      const start = (more: Record<string, string> = {}): Promise<BenchServer> =>
        startBenchServer(placing.folder, { ...settings, ...more }, placing.port);
      const areFollowed = (): boolean => relays.every(({ openConnections }) => openConnections > 0);
      // Its relays are not faster than before.
      const patience = { NGIT_SYNC_DIAL_TIMEOUT_SECS: "600", NGIT_SYNC_SILENT_LINK_SECS: "1200" };
      const fast = await start({ ...patience, BENCH_CLOCK_SPEED: String(speed) });
      await until("all relays are followed", areFollowed);
      await pause(5_000);
      progress("ten idle minutes");
      const idle = await costMs(fast, () => pause(idleMs / speed));
      await fast.close();
      const server = await start();
      const followed = await costMs(server, () => until("all relays are followed", areFollowed), true);
      const memory = anonymousBytes(server.pid) / 2 ** 20;
      progress("a hundred events a second");
      const event = await receiving(server, relays, hosted);
      await server.close();
      for (const relay of relays) await relay.stop();
      return {
        ...{ memory, "until all are followed": followed, "ten idle minutes": idle },
        "an event, at 100 a second": event,
      };
    }),
};
