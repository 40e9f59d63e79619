// A port of this machine that nobody listens on, at least a moment ago. Not one of those the system gives to whoever asks
// for any: between this look and the server's own another process could be given the same. Each process looks at places
// of its own first, for the same reason.

import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";

const lowest = 11_000;
const processes = 1_000;
const places = 20;
const own = lowest + (process.pid % processes) * places;
let looks = 0;

/** The port, when it could be listened on; 0 asks for any. */
async function isFree(port: number): Promise<number | undefined> {
  const listener = createServer();
  try {
    listener.listen(port, "127.0.0.1");
    await once(listener, "listening");
  } catch {
    return undefined;
  }
  const found = (listener.address() as AddressInfo).port;
  listener.close();
  await once(listener, "close");
  return found;
}

export async function freePort(): Promise<number> {
  for (let tries = 0; tries < places; tries++) {
    const port = await isFree(own + (looks++ % places));
    if (port !== undefined) return port;
  }
  const any = await isFree(0);
  if (any === undefined) throw new Error("no port is free");
  return any;
}
