// A server before another one, that may take over single requests: what it does not answer itself goes through.

import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type TakeOver = (request: IncomingMessage, body: Buffer, response: ServerResponse) => boolean;

export interface Front {
  readonly port: number;
  /** Requests it saw. */
  readonly seen: string[];
  close(): Promise<void>;
}

export async function startFront(behindPort: number | undefined, takesOver: TakeOver): Promise<Front> {
  const seen: string[] = [];
  const server = createServer((request, response) => void handle(request, response));
  server.on("connection", (socket) => socket.on("error", () => undefined));
  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    seen.push(`${request.method} ${request.url}`);
    response.on("error", () => undefined);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    if (takesOver(request, body, response)) return;
    const { method, headers, url: path } = request;
    const behind = httpRequest(
      { port: behindPort, host: "127.0.0.1", method, headers, path, agent: false },
      (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      },
    );
    behind.on("error", () => response.destroy());
    behind.end(body);
  }
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    async close() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}
