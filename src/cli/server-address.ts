// Where the server of this configuration answers on this machine, and one request to it.

import { get } from "node:http";
import type { Config } from "../config/config.js";
import { type HostPort, hostPortText } from "../config/kinds.js";

/** An address that means "all interfaces" is reached over loopback. */
export function localAddress({ host, port }: HostPort): HostPort {
  if (host === "0.0.0.0") return { host: "127.0.0.1", port };
  return host === "::" ? { host: "::1", port } : { host, port };
}

export const serverUrl = (config: Config): string => `http://${hostPortText(localAddress(config.bindAddress))}`;

export interface Reply {
  readonly status: number;
  readonly body: string;
}

const maxReplyBytes = 16 * 2 ** 20;

/** The reply, or undefined when nobody answers. */
export function ask(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Reply | undefined> {
  return new Promise((resolve) => {
    const request = get(url, { headers: { ...headers }, agent: false, timeout: 5000 }, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > maxReplyBytes) request.destroy();
        else chunks.push(chunk);
      });
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString("utf8") }),
      );
      response.on("close", () => resolve(undefined));
    });
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(undefined));
  });
}
