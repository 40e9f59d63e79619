// HTTP by hand: exact bytes over one socket, which is closed with the answer, so that no kept-alive connection blurs
// what a server holds open.

import { type ClientRequest, request as httpRequest } from "node:http";
import { connect, type Socket } from "node:net";

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
  /** The body as latin1: every byte is one character. */
  readonly text: string;
}

export interface Question {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
  /** Writes the body itself; the request is not ended for it. */
  readonly write?: (request: ClientRequest) => void;
}

export function ask(url: string, { method, headers = {}, body, write }: Question = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const verb = method ?? (body === undefined && !write ? "GET" : "POST");
    const request = httpRequest(url, { method: verb, agent: false, headers }, (response) => {
      const chunks: Buffer[] = [];
      const answer = (): void => {
        const whole = Buffer.concat(chunks);
        const status = response.statusCode ?? 0;
        resolve({ status, headers: response.headers, body: whole, text: whole.toString("latin1") });
      };
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", answer);
      // Cut by the server: what came counts.
      response.on("error", answer);
    });
    request.on("error", reject);
    if (write) write(request);
    else request.end(body);
  });
}

/** Sends bytes no HTTP client would and answers everything until the server closes. */
export function exchange(origin: string, bytes: Buffer | string): Promise<string> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket: Socket = connect(Number(port), hostname, () => socket.write(bytes));
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(Buffer.concat(chunks).toString("latin1")));
  });
}

export const pkt = (text: string | Buffer): Buffer => {
  const payload = Buffer.from(text);
  return Buffer.concat([Buffer.from((payload.length + 4).toString(16).padStart(4, "0")), payload]);
};

/** The lines of an answer, without their ends; flushes and delimiters are left out. */
export function pktLines(body: Buffer): string[] {
  const lines: string[] = [];
  for (let at = 0; at < body.length; ) {
    const length = Number.parseInt(body.toString("latin1", at, at + 4), 16);
    if (length > 4) lines.push(body.toString("utf8", at + 4, at + length).replace(/\n$/, ""));
    at += Math.max(length, 4);
  }
  return lines;
}
