// A load balancer without a memory: every request, and every WebSocket, goes to the next machine that listens.

import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";

export class Balancer {
  /** Ports of the machines; a test may take one out, as an operator does before an upgrade. */
  machines: number[] = [];
  /** How many requests each port got. */
  readonly served = new Map<number, number>();
  readonly #server: Server;
  readonly #sockets = new Set<Duplex>();
  #turn = 0;

  private constructor(readonly port: number) {
    this.#server = createServer((message, response) => void this.#forward(message, response));
    this.#server.on("upgrade", (message, socket, head) => void this.#upgrade(message, socket, head));
    this.#server.on("connection", (socket) => this.#keep(socket));
    // A machine's own limits are what is tested.
    this.#server.requestTimeout = 0;
  }

  static async listen(port: number): Promise<Balancer> {
    const balancer = new Balancer(port);
    await new Promise<void>((resolve) => balancer.#server.listen(port, "127.0.0.1", resolve));
    return balancer;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #keep(socket: Duplex): void {
    this.#sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => this.#sockets.delete(socket));
  }

  /** A connection to the next machine that takes one. */
  async #next(): Promise<Socket | undefined> {
    for (let tries = 0; tries < this.machines.length; tries++) {
      const port = this.machines[this.#turn++ % this.machines.length];
      if (port === undefined) continue;
      const socket = connect(port, "127.0.0.1");
      this.#keep(socket);
      const isOpen = await new Promise<boolean>((resolve) => {
        socket.once("connect", () => resolve(true));
        socket.once("error", () => resolve(false));
      });
      if (!isOpen) continue;
      this.served.set(port, (this.served.get(port) ?? 0) + 1);
      return socket;
    }
    return undefined;
  }

  async #forward(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const socket = await this.#next();
    if (!socket) return void response.writeHead(502).end("no machine listens");
    const { method, url, headers } = message;
    const passed = request({
      createConnection: () => socket,
      method,
      path: url,
      headers: { ...headers, connection: "close" },
    });
    passed.on("response", (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
      answer.on("error", () => response.destroy());
    });
    passed.on("error", () => {
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end("the machine went away");
    });
    message.pipe(passed);
    response.once("close", () => passed.destroy());
  }

  async #upgrade({ method, url, rawHeaders }: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    const socket = await this.#next();
    if (!socket) return void client.destroy();
    const lines: string[] = [`${method} ${url} HTTP/1.1`];
    for (let index = 0; index < rawHeaders.length; index += 2)
      lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`);
    socket.write(`${lines.join("\r\n")}\r\n\r\n`);
    socket.write(head);
    socket.pipe(client);
    client.pipe(socket);
    socket.once("close", () => client.destroy());
    client.once("close", () => socket.destroy());
  }
}
