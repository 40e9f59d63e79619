// A bare WebSocket client that keeps everything it heard and waits for what a test wants to hear.

import { once } from "node:events";
import { type ClientOptions, WebSocket } from "ws";

export type Heard = readonly unknown[];

export class RelayClient {
  readonly socket: WebSocket;
  readonly heard: Heard[] = [];
  closeCode: number | undefined;
  #waiting: { wanted: (message: Heard) => boolean; resolve: (message: Heard) => void }[] = [];

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data) => {
      const message = JSON.parse(String(data)) as Heard;
      this.heard.push(message);
      const ready = this.#waiting.filter((waiter) => waiter.wanted(message));
      this.#waiting = this.#waiting.filter((waiter) => !ready.includes(waiter));
      for (const waiter of ready) waiter.resolve(message);
    });
    socket.on("close", (code) => {
      this.closeCode = code;
    });
    socket.on("error", () => undefined);
  }

  static async connect(url: string, options: ClientOptions = {}): Promise<RelayClient> {
    const socket = new WebSocket(url, options);
    const client = new RelayClient(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once("open", () => resolve());
      socket.once("error", reject);
    });
    return client;
  }

  send(...message: unknown[]): void {
    this.socket.send(JSON.stringify(message));
  }

  /** The next message, from now on, that is wanted. */
  next(wanted: (message: Heard) => boolean): Promise<Heard> {
    return new Promise((resolve) => this.#waiting.push({ wanted, resolve }));
  }

  /** Sends an event and waits for its OK. */
  publish<Sent extends { readonly id: string }>(event: Sent): Promise<Heard> {
    const answer = this.next(([verb, id]) => verb === "OK" && id === event.id);
    this.send("EVENT", event);
    return answer;
  }

  /** Asks, and returns the events up to EOSE or CLOSED, and that last message. */
  async ask(id: string, ...filters: unknown[]): Promise<{ events: { id: string }[]; end: Heard }> {
    const from = this.heard.length;
    const ended = this.next(([verb, sub]) => (verb === "EOSE" || verb === "CLOSED") && sub === id);
    this.send("REQ", id, ...filters);
    const end = await ended;
    return { events: this.eventsOf(id, from), end };
  }

  eventsOf(id: string, from = 0): { id: string }[] {
    return this.heard
      .slice(from)
      .filter(([verb, sub]) => verb === "EVENT" && sub === id)
      .map(([, , event]) => event as { id: string });
  }

  async close(): Promise<void> {
    if (this.socket.readyState === WebSocket.CLOSED) return;
    const closed = once(this.socket, "close");
    this.socket.close();
    await closed;
  }
}
