// A wire between a machine and PostgreSQL that a test can cut, at the COMMIT or altogether.

import type { AddressInfo } from "node:net";
import { createServer, connect as dial, type Server, type Socket } from "node:net";

/** What becomes of the next COMMIT. */
type NextCommit = "passes" | "is lost" | "arrives, its answer is lost";

const commit = Buffer.from("COMMIT\0");

export class Wire {
  nextCommit: NextCommit = "passes";
  /** New connections are refused. */
  isCut = false;
  /** From the moment a COMMIT was cut. */
  cutsWithCommit = false;
  readonly #pairs = new Set<readonly [Socket, Socket]>();

  private constructor(
    private readonly server: Server,
    private port: number,
  ) {}

  static async before(port: number): Promise<Wire> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const wire = new Wire(server, port);
    server.on("connection", (socket) => wire.#join(socket));
    return wire;
  }

  url(): string {
    return `postgres://holdfast@127.0.0.1:${(this.server.address() as AddressInfo).port}/holdfast`;
  }

  cut(): void {
    this.isCut = true;
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
  }

  /** Where new connections go from now on, as a virtual address moves. */
  leadTo(port: number): void {
    this.port = port;
    this.isCut = false;
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }

  #join(client: Socket): void {
    client.on("error", () => undefined);
    if (this.isCut) {
      client.destroy();
      return;
    }
    const server = dial(this.port, "127.0.0.1");
    server.on("error", () => client.destroy());
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    client.on("data", (bytes) => this.#fromClient(bytes, client, server));
    server.on("data", (bytes) => client.write(bytes));
    client.on("close", () => {
      this.#pairs.delete(pair);
      server.end();
    });
    server.on("close", () => client.destroy());
  }

  #fromClient(bytes: Buffer, client: Socket, server: Socket): void {
    const fate = bytes.includes(commit) ? this.nextCommit : "passes";
    if (fate === "passes") {
      server.write(bytes);
      return;
    }
    this.nextCommit = "passes";
    if (this.cutsWithCommit) this.isCut = true;
    server.removeAllListeners("data");
    server.resume();
    if (fate === "is lost") server.destroy();
    else server.write(bytes);
    client.destroy();
  }
}
