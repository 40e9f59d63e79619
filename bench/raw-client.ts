// A WebSocket client that costs almost nothing, so that what is measured is the server: frames are made once, not
// masked in earnest (key 0), and answers are handed over as bytes without being decoded.

import { connect, type Socket } from "node:net";

/** One masked text frame. */
export function frameOf(text: string): Buffer {
  const payload = Buffer.from(text);
  const header =
    payload.length < 126
      ? Buffer.from([0x81, 0x80 | payload.length])
      : payload.length < 65_536
        ? Buffer.from([0x81, 0x80 | 126, payload.length >> 8, payload.length & 255])
        : Buffer.from([0x81, 0x80 | 127, 0, 0, 0, 0, 0, 0, 0, 0]);
  if (payload.length >= 65_536) header.writeUInt32BE(payload.length, 6);
  return Buffer.concat([header, Buffer.alloc(4), payload]);
}

const textOpcode = 0x1;
export const pingOpcode = 0x9;
export const emptyPong = Buffer.from([0x8a, 0x80, 0, 0, 0, 0]);

/** A socket on which WebSocket frames follow. */
export function openWebSocket(port: number, localAddress = "127.0.0.1"): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  socket.setNoDelay(true);
  socket.write(
    "GET / HTTP/1.1\r\nHost: bench\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
  );
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.once("close", () => reject(new Error("closed during the handshake")));
    socket.once("data", (data: Buffer) => {
      const text = data.toString("latin1");
      if (text.startsWith("HTTP/1.1 101 ")) resolve(socket);
      else reject(new Error(text));
    });
  });
}

export class RawClient {
  readonly socket: Socket;
  #rest: Buffer = Buffer.alloc(0);
  /** Called with each text frame's payload; it is valid during the call. */
  onText: (payload: Buffer) => void = () => undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
  }

  static async connect(port: number, localAddress?: string): Promise<RawClient> {
    const client = new RawClient(await openWebSocket(port, localAddress));
    client.socket.on("data", (bytes: Buffer) => client.#read(bytes));
    return client;
  }

  close(): void {
    this.socket.destroy();
  }

  #read(bytes: Buffer): void {
    let data = this.#rest.length > 0 ? Buffer.concat([this.#rest, bytes]) : bytes;
    for (;;) {
      if (data.length < 2) break;
      let length = (data[1] as number) & 127;
      let header = 2;
      if (length === 126) {
        header = 4;
        if (data.length < header) break;
        length = data.readUInt16BE(2);
      } else if (length === 127) {
        header = 10;
        if (data.length < header) break;
        length = data.readUInt32BE(6);
      }
      if (data.length < header + length) break;
      const opcode = (data[0] as number) & 15;
      if (opcode === pingOpcode) this.socket.write(emptyPong);
      else if (opcode === textOpcode) this.onText(data.subarray(header, header + length));
      data = data.subarray(header + length);
    }
    this.#rest = data;
  }
}
