// Asks REQs one after the other and times them to their EOSE. Of an answer only the frames' headers and the first
// bytes of each are looked at: what is measured is the server, not a client that makes buffers of 5 MB.

import type { Socket } from "node:net";
import { emptyPong, frameOf, openWebSocket, pingOpcode } from "./raw-client.js";

export interface Answer {
  readonly ms: number;
  readonly rows: number;
  readonly bytes: number;
}

/** Bytes of a payload that tell `["EVENT"` from `["EOSE"`. */
const telling = 4;

export class Asker {
  readonly #socket: Socket;
  /** The beginning of a frame that is not whole yet. */
  readonly #start = Buffer.alloc(16);
  #started = 0;
  #skip = 0;
  #rows = 0;
  #bytes = 0;
  #isAnswered = false;
  #answered: (answer: Omit<Answer, "ms">) => void = () => undefined;
  #refused: (error: Error) => void = () => undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (bytes: Buffer) => this.#read(bytes));
  }

  static async connect(port: number): Promise<Asker> {
    return new Asker(await openWebSocket(port));
  }

  /** The same subscription is used again: the earlier one ends with it. */
  ask(filter: string): Promise<Answer> {
    const frame = frameOf(`["REQ","q",${filter}]`);
    this.#rows = 0;
    this.#bytes = 0;
    return new Promise((resolve, reject) => {
      const began = performance.now();
      this.#refused = reject;
      this.#answered = (answer) => resolve({ ms: performance.now() - began, ...answer });
      this.#socket.write(frame);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.#skip > 0) {
        const skipped = Math.min(this.#skip, bytes.length - at);
        this.#skip -= skipped;
        at += skipped;
      } else {
        this.#start[this.#started++] = bytes[at++] as number;
        if (this.#started >= 2) this.#frameStarted();
      }
    }
    this.#bytes += bytes.length;
    if (!this.#isAnswered || this.#skip > 0) return;
    this.#isAnswered = false;
    this.#answered({ rows: this.#rows, bytes: this.#bytes });
  }

  #frameStarted(): void {
    const start = this.#start;
    const short = (start[1] as number) & 127;
    const header = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (this.#started < header) return;
    const length = short < 126 ? short : short === 126 ? start.readUInt16BE(2) : start.readUInt32BE(6);
    const seen = Math.min(telling, length);
    if (this.#started < header + seen) return;
    this.#started = 0;
    this.#skip = length - seen;
    if (((start[0] as number) & 15) === pingOpcode) this.#socket.write(emptyPong);
    else {
      const verb = start.toString("latin1", header + 2, header + seen);
      if (verb === "EV") this.#rows++;
      else if (verb === "EO") this.#isAnswered = true;
      else if (verb === "CL") this.#refused(new Error("the question was refused with CLOSED"));
      // AUTH and NOTICE are no answers.
      else if (verb !== "AU" && verb !== "NO") throw new Error(`an unexpected message that begins with ${verb}`);
    }
  }
}
