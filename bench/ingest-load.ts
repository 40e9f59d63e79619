// The clients of the ingest benchmark, in a process of their own: each connection keeps some events outstanding and
// sends the next when one is answered. Tells its parent when everything was answered, and how long each answer took.

import "./ends-with-parent.js";
import { readFileSync } from "node:fs";
import { frameOf, RawClient } from "./raw-client.js";
import { percentile } from "./rows.js";

export interface IngestLoad {
  /** Each connection goes to the next of them. */
  readonly ports: readonly number[];
  /** Signed events, one a line. */
  readonly file: string;
  readonly skip: number;
  readonly count: number;
  readonly connections: number;
  readonly outstanding: number;
  /** Instead of as many as are answered: `outstanding` does not count then. */
  readonly perSecond?: number;
}

export interface IngestResult {
  readonly ms: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly refused: number;
  /** Of the clients, which share the cores with the server. */
  readonly cpuMs: number;
}

const okAt = '["'.length;
const idAt = '["OK","'.length;
const idEnd = idAt + 64;
const trueAt = idEnd + '",'.length;
const silentMs = 60_000;

async function run(load: IngestLoad): Promise<IngestResult> {
  const lines = readFileSync(load.file, "utf8")
    .split("\n")
    .slice(load.skip, load.skip + load.count);
  const events = lines.map((raw) => ({ id: raw.slice(7, 71), frame: frameOf(`["EVENT",${raw}]`) }));
  const clients = await Promise.all(
    Array.from({ length: load.connections }, (_, index) =>
      RawClient.connect(load.ports[index % load.ports.length] ?? 0),
    ),
  );
  const took: number[] = [];
  let next = 0;
  let refused = 0;
  const cpu = process.cpuUsage();
  const began = performance.now();
  const { perSecond } = load;
  const sends: (() => void)[] = [];
  let pacing: NodeJS.Timeout | undefined;
  let silence: NodeJS.Timeout | undefined;
  await new Promise<void>((resolve, reject) => {
    silence = setTimeout(() => {
      reject(new Error(`${next - took.length} of ${next} events were not answered for ${silentMs / 1_000} s`));
    }, silentMs);
    for (const client of clients) {
      client.socket.once("close", () => reject(new Error("the server closed a connection")));
      const sentAt = new Map<string, number>();
      const send = () => {
        const event = events[next++];
        if (!event) return;
        sentAt.set(event.id, performance.now());
        client.socket.write(event.frame);
      };
      client.onText = (payload) => {
        const id = payload.toString("latin1", idAt, idEnd);
        const at = sentAt.get(id);
        // AUTH and NOTICE are no answers.
        if (payload[okAt] !== 0x4f) return;
        if (at === undefined) throw new Error(payload.toString());
        sentAt.delete(id);
        silence?.refresh();
        took.push(performance.now() - at);
        if (payload[trueAt] !== 0x74) {
          if (refused++ === 0) process.stderr.write(`${payload.toString()}\n`);
        }
        if (took.length === events.length) resolve();
        else if (perSecond === undefined) send();
      };
      sends.push(send);
      if (perSecond !== undefined) continue;
      client.socket.cork();
      for (let number = 0; number < load.outstanding; number++) send();
      client.socket.uncork();
    }
    if (perSecond === undefined) return;
    pacing = setInterval(() => {
      const due = Math.min(events.length, ((performance.now() - began) * perSecond) / 1_000);
      while (next < due) sends[next % sends.length]?.();
    }, 10);
  });
  clearInterval(pacing);
  clearTimeout(silence);
  const ms = performance.now() - began;
  const { user, system } = process.cpuUsage(cpu);
  for (const client of clients) client.close();
  return { ms, p50Ms: percentile(took, 0.5), p99Ms: percentile(took, 0.99), refused, cpuMs: (user + system) / 1_000 };
}

process.on("message", async (load) => {
  process.send?.(await run(load as IngestLoad));
  process.disconnect();
});
