// One attacker: an address of the loopback network, a key, and the ways to reach the server from there. Whatever the
// server does to a connection (refuses, cuts, keeps it waiting) is an answer like any other: nothing here throws for it.

import { randomBytes } from "node:crypto";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { frameOf, openWebSocket, RawClient } from "../../bench/raw-client.js";
import { addressOf, type HostedRepository } from "../../bench/traffic.js";
import { SecretKey, signEvent } from "../../src/nostr/keys.js";

export interface Target {
  readonly port: number;
  /** Of honest people. */
  readonly repositories: readonly HostedRepository[];
  /** Of the attackers: a README that is slow to render, and a pack that takes long to send. */
  readonly own: HostedRepository;
  readonly ownTip: string;
}

/** How long one attempt may hold on before the attacker begins anew. */
const patienceMs = 10_000;

export class Stranger {
  readonly key = SecretKey.generate(randomBytes);

  constructor(
    readonly target: Target,
    readonly address: string,
  ) {}

  get path(): string {
    const { npub, identifier } = this.target.own;
    return `/${npub}/${identifier}`;
  }

  /** The status; 0 when there was none. The body is read and dropped. */
  get(path: string): Promise<number> {
    return new Promise((resolve) => {
      const { port } = this.target;
      const options = { port, host: "127.0.0.1", localAddress: this.address, path, agent: false, timeout: patienceMs };
      const asked = request(options, (response) => {
        response.on("error", () => resolve(0)).on("end", () => resolve(response.statusCode ?? 0));
        response.resume();
      });
      asked.on("error", () => resolve(0)).on("timeout", () => asked.destroy());
      asked.end();
    });
  }

  /** A connection on which the attacker writes what it wants. Answers when the server closed it, or after its patience. */
  hold(begin: (socket: Socket) => void): Promise<void> {
    const socket = connect({ port: this.target.port, host: "127.0.0.1", localAddress: this.address });
    return held(socket, () => begin(socket));
  }

  /** The same on an open WebSocket. */
  async holdWebSocket(begin: (socket: Socket) => void, forMs = patienceMs): Promise<void> {
    const socket = await openWebSocket(this.target.port, this.address);
    await held(socket, () => begin(socket), forMs);
  }

  /** Sends frames and waits until the server has answered so many times, closed, or kept silent for too long. */
  async talk(frames: readonly string[], answers: number): Promise<void> {
    const client = await RawClient.connect(this.target.port, this.address);
    let heard = 0;
    client.onText = () => {
      if (++heard >= answers) client.close();
    };
    await held(client.socket, () => {
      for (const frame of frames) client.socket.write(frameOf(frame));
    });
  }

  event(kind: number, tags: readonly (readonly string[])[], content = "", key = this.key): string {
    const created_at = Math.floor(Date.now() / 1_000);
    return `["EVENT",${signEvent(key, { kind, created_at, tags: tags.map((tag) => [...tag]), content }, randomBytes).raw}]`;
  }

  /** An honest repository. */
  about(at = 0): string {
    const { repositories } = this.target;
    return addressOf(repositories[at % repositories.length] as HostedRepository);
  }

  /** The attackers' own: what they write there is read by themselves only. */
  get aboutOwn(): string {
    return addressOf(this.target.own);
  }
}

function held(socket: Socket, begin: () => void, forMs = patienceMs): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => socket.destroy(), forMs);
    socket.on("error", () => undefined);
    socket.on("close", () => {
      clearTimeout(timer);
      resolve();
    });
    if (socket.connecting) socket.once("connect", begin);
    else begin();
  });
}

/** Writes the same bytes for as long as the server takes them, and lets the other attackers of the process have a turn. */
export function writeForEver(socket: Socket, bytes: Buffer): void {
  const more = (): void => {
    if (socket.destroyed) return;
    if (socket.write(bytes)) setImmediate(more);
    else socket.once("drain", more);
  };
  more();
}
