// Relays that do everything a peer must not (event-sync.md "Simulation"), each on a loopback address of its own, because
// a server dials only three relays of one host. They count who dials them, and how many connections are open at once.

import { randomBytes } from "node:crypto";
import { createServer, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import { fingerprintBytes, lastBound, mode, protocolVersion, WireWriter } from "../../src/nostr/negentropy/wire.js";

export type Say = (...message: unknown[]) => void;

export interface Habit {
  /** A connection was opened. */
  readonly opened?: (say: Say, socket: WebSocket) => void;
  /** A message came in. */
  readonly heard?: (say: Say, verb: string, id: string, rest: readonly unknown[], socket: WebSocket) => void;
  /** What a plain HTTP request (NIP-11) gets; 404 without it. */
  readonly information?: (response: ServerResponse) => void;
}

export class RogueRelay {
  connections = 0;
  mostOpen = 0;
  readonly requests: { readonly verb: string; readonly rest: readonly unknown[] }[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #open = new Set<WebSocket>();

  private constructor(
    readonly name: string,
    readonly url: string,
    private readonly http: Server,
  ) {}

  static async start(name: string, host: string, habit: Habit): Promise<RogueRelay> {
    const http = createServer((_request, response) => {
      if (habit.information) habit.information(response);
      else response.writeHead(404).end();
    });
    await new Promise<void>((go) => http.listen(0, host, go));
    const relay = new RogueRelay(name, `ws://${host}:${(http.address() as AddressInfo).port}`, http);
    http.on("connection", (socket) => {
      relay.#sockets.add(socket);
      socket.on("close", () => relay.#sockets.delete(socket));
    });
    new WebSocketServer({ server: http }).on("connection", (socket) => relay.#accept(socket, habit));
    return relay;
  }

  get openConnections(): number {
    return this.#open.size;
  }

  stop(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.http.close();
  }

  #accept(socket: WebSocket, habit: Habit): void {
    this.connections++;
    this.#open.add(socket);
    this.mostOpen = Math.max(this.mostOpen, this.#open.size);
    socket.on("close", () => this.#open.delete(socket));
    socket.on("error", () => undefined);
    const say: Say = (...message) => {
      if (socket.readyState === socket.OPEN && socket.bufferedAmount < 50_000_000) socket.send(JSON.stringify(message));
    };
    socket.on("message", (data) => {
      const [verb, id, ...rest] = JSON.parse(String(data)) as [string, string, ...unknown[]];
      this.requests.push({ verb, rest });
      habit.heard?.(say, verb, id, rest, socket);
    });
    habit.opened?.(say, socket);
  }
}

/** Two ranges: so many ids nobody has, and "the rest differs" for ever. */
export function endlessReconciliation(ids: number): string {
  const out = new WireWriter();
  out.byte(protocolVersion);
  if (ids > 0) {
    out.bound({ time: 1, prefix: new Uint8Array(0) });
    out.varint(mode.idList);
    out.varint(ids);
    out.bytes(randomBytes(32 * ids));
  }
  out.bound(lastBound);
  out.varint(mode.fingerprint);
  out.bytes(randomBytes(fingerprintBytes));
  return Buffer.from(out.finish()).toString("hex");
}

/** They flood for as long as a test waits: more often would make a slow machine slower, not the attack another. */
const floodEveryMs = 250;

const repeatedly = (socket: WebSocket, everyMs: number, act: () => void): void => {
  const timer = setInterval(act, everyMs);
  socket.on("close", () => clearInterval(timer));
};

/** `lies` are events that must never be stored, whoever asks for whatever. */
export function habits(lies: readonly unknown[], duplicate: unknown): Record<string, Habit> {
  const afterRequest = (act: (say: Say, id: string, socket: WebSocket) => void): Habit => ({
    heard: (say, verb, id, _rest, socket) => {
      if (verb === "REQ") act(say, id, socket);
      if (verb === "NEG-OPEN") say("NEG-ERR", id, "error: no");
    },
  });
  const giant = Buffer.from(`["NOTICE","${"x".repeat(40_000_000)}"]`);
  const tellLies = (say: Say, id: string): void => lies.forEach((lie) => void say("EVENT", id, lie));
  return {
    "lies and ends": afterRequest((say, id) => {
      tellLies(say, id);
      say("EOSE", id);
    }),
    "never ends": {
      heard: (say, verb, id, _rest, socket) => {
        if (verb === "NEG-OPEN") say("NEG-ERR", id, "error: no");
        if (verb === "REQ" && socket.listenerCount("close") < 6) {
          repeatedly(socket, floodEveryMs, () => {
            for (let copy = 0; copy < 20; copy++) say("EVENT", id, duplicate);
            tellLies(say, id);
          });
        }
      },
    },
    "ends too early": afterRequest((say, id) => {
      say("EOSE", id);
      tellLies(say, id);
      say("EOSE", id);
    }),
    "closes everything": afterRequest((say, id) => say("CLOSED", id, "error: not for you")),
    "closes what was never open": {
      opened: (say, socket) =>
        repeatedly(socket, floodEveryMs, () => {
          for (const verb of ["CLOSED", "EOSE", "NEG-MSG", "NEG-ERR", "OK", "EVENT", "COUNT", "AUTH"])
            say(verb, "x", lies[0]);
        }),
    },
    "giant messages": { opened: (_say, socket) => socket.send(giant, { binary: false }) },
    "deep messages": { opened: (_say, socket) => socket.send("[".repeat(1_000_000)) },
    "not text": {
      opened: (_say, socket) => {
        socket.send(randomBytes(1000));
        socket.send(Buffer.from([0xff, 0xfe, 0x5b]), { binary: false });
      },
    },
    "reconciles for ever": {
      heard: (say, verb, id) => {
        if (verb.startsWith("NEG-") && verb !== "NEG-CLOSE") say("NEG-MSG", id, endlessReconciliation(0));
        if (verb === "REQ") say("EOSE", id);
      },
    },
    "has all ids in the world": {
      heard: (say, verb, id) => {
        if (verb.startsWith("NEG-") && verb !== "NEG-CLOSE") say("NEG-MSG", id, endlessReconciliation(3_000));
        if (verb === "REQ") say("EOSE", id);
      },
    },
    "hangs up": { opened: (_say, socket) => socket.terminate() },
    "is silent": {},
    "is always too busy": afterRequest((say, id) => say("CLOSED", id, "rate-limited: slow down")),
    "asks who we are for ever": {
      opened: (say) => say("AUTH", "first"),
      heard: (say, verb, id) => {
        if (verb === "REQ") say("CLOSED", id, "auth-required: who?");
        if (verb === "AUTH") {
          say("OK", (id as unknown as { id: string }).id, false, "restricted: no");
          say("AUTH", randomBytes(8).toString("hex"));
        }
      },
    },
    "information without end": {
      information: (response) => {
        response.writeHead(200, { "content-type": "application/nostr+json" });
        const timer = setInterval(() => response.write(" ".repeat(65_536)), 20);
        response.on("close", () => clearInterval(timer));
      },
      heard: (say, verb, id) => {
        if (verb === "REQ") say("EOSE", id);
      },
    },
    "absurd limits": {
      information: (response) =>
        response.end(
          JSON.stringify({ limitation: { max_message_length: 1, max_subscriptions: 1, max_filters: 1, max_limit: 1 } }),
        ),
      heard: (say, verb, id) => {
        if (verb === "REQ") say("EOSE", id);
      },
    },
  };
}

/** Takes every connection to 127.x.y.z on one port, says nothing, and knows which addresses were dialled. */
export async function tarPit(): Promise<{ port: number; dialled: Set<string>; open: () => number; stop: () => void }> {
  const dialled = new Set<string>();
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    dialled.add(socket.localAddress ?? "");
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => undefined);
    socket.resume();
  });
  await new Promise<void>((go) => server.listen(0, "0.0.0.0", go));
  return {
    port: (server.address() as AddressInfo).port,
    dialled,
    open: () => sockets.size,
    stop: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
