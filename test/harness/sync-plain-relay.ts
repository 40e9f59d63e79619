// A relay of the plainest kind, over a list of events: no negentropy unless told, and all the bad habits a test may
// ask for. It keeps what it heard, so that a test can see what sync asks and when it is quiet.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import { compareNewestFirst, type NostrEvent, parseEvent } from "../../src/nostr/event.js";
import { type Filter, matcherOf, parseFilter } from "../../src/nostr/filter.js";
import { lastBound, mode, protocolVersion, WireWriter } from "../../src/nostr/negentropy/wire.js";

export interface PlainHabits {
  /** What a NEG-OPEN is answered with; silence without it. */
  readonly negentropy?: "notice" | "error" | "silent";
  /** The words of its NEG-ERR. */
  readonly negentropyError?: string;
  /** What it answers every NEG-OPEN with: that it has these ids and no others. */
  readonly claimedIds?: readonly string[];
  /** Never more events than this for one filter. */
  readonly pageEvents?: number;
  /** The NIP-11 document; 404 without it. */
  readonly information?: unknown;
  /** This many requests are refused as rate-limited first. */
  readonly rateLimitFirst?: number;
  /** This many connections are cut as soon as they are open. */
  readonly dieFirst?: number;
  readonly refusesLimitZero?: boolean;
  /** Wants to know who asks before it answers. */
  readonly wantsAuth?: boolean;
  /** Lets nobody in who says who he is. */
  readonly refusesAuth?: boolean;
  /** Filters with a value longer than this are refused as invalid. */
  readonly maxValueChars?: number;
  /** Filters with more values than this are refused. */
  readonly maxValues?: number;
  readonly maxSubscriptions?: number;
  /** Sends every event it is asked for twice. */
  readonly repeats?: boolean;
}

/** A negentropy message: these ids are all there is. */
function listOfIds(ids: readonly string[]): string {
  const out = new WireWriter();
  out.byte(protocolVersion);
  out.bound(lastBound);
  out.varint(mode.idList);
  out.varint(ids.length);
  for (const id of ids) out.bytes(Buffer.from(id, "hex"));
  return Buffer.from(out.finish()).toString("hex");
}

export interface HeardMessage {
  readonly verb: string;
  readonly rest: readonly unknown[];
  readonly atMs: number;
}

interface Client {
  readonly socket: WebSocket;
  readonly subscriptions: Map<string, readonly Filter[]>;
  authenticated: boolean;
}

export class PlainRelay {
  readonly events: NostrEvent[] = [];
  readonly heard: HeardMessage[] = [];
  readonly authenticatedAs: string[] = [];
  connections = 0;
  habits: PlainHabits;
  #clients = new Set<Client>();
  #http: Server | undefined;
  #sockets = new Set<Socket>();
  #limited = 0;
  port = 0;

  constructor(habits: PlainHabits = {}) {
    this.habits = habits;
  }

  static async start(habits: PlainHabits = {}, port = 0): Promise<PlainRelay> {
    const relay = new PlainRelay(habits);
    await relay.listen(port);
    return relay;
  }

  get url(): string {
    return `ws://127.0.0.1:${this.port}`;
  }

  get key(): string {
    return `127.0.0.1:${this.port}`;
  }

  get openConnections(): number {
    return this.#clients.size;
  }

  async listen(port = this.port): Promise<void> {
    const http = createServer((request, response) => this.#information(request, response));
    const sockets = new WebSocketServer({ server: http, maxPayload: 2 ** 20 });
    sockets.on("connection", (socket) => this.#accept(socket));
    http.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
    await new Promise<void>((go) => http.listen(port, "127.0.0.1", go));
    this.port = (http.address() as AddressInfo).port;
    this.#http = http;
  }

  /** Down until `listen` is called again; the events stay. */
  async stop(): Promise<void> {
    this.drop();
    const http = this.#http;
    this.#http = undefined;
    for (const socket of this.#sockets) socket.destroy();
    if (http) await new Promise((go) => http.close(go));
  }

  /** Cuts every connection; new ones are welcome. */
  drop(): void {
    for (const { socket } of this.#clients) socket.terminate();
    this.#clients.clear();
  }

  add(...events: readonly NostrEvent[]): void {
    this.events.push(...events);
  }

  /** A new event, for those who listen too. */
  publish(event: NostrEvent): void {
    this.add(event);
    for (const client of this.#clients) {
      for (const [id, filters] of client.subscriptions) {
        if (filters.some((filter) => matcherOf(filter)(event))) this.#sendEvent(client, id, event);
      }
    }
  }

  /** Sends an event that matches nothing, under the name of an open subscription. */
  pushUnasked(event: NostrEvent): void {
    for (const client of this.#clients) {
      const [id] = client.subscriptions.keys();
      if (id !== undefined) this.#sendEvent(client, id, event);
    }
  }

  requests(verb = "REQ"): HeardMessage[] {
    return this.heard.filter((message) => message.verb === verb);
  }

  #information(_request: IncomingMessage, response: ServerResponse): void {
    if (this.habits.information === undefined) response.writeHead(404).end();
    else
      response
        .writeHead(200, { "content-type": "application/nostr+json" })
        .end(JSON.stringify(this.habits.information));
  }

  #accept(socket: WebSocket): void {
    this.connections += 1;
    socket.on("error", () => undefined);
    if (this.connections <= (this.habits.dieFirst ?? 0)) {
      socket.terminate();
      return;
    }
    const client: Client = { socket, subscriptions: new Map(), authenticated: false };
    this.#clients.add(client);
    socket.on("close", () => this.#clients.delete(client));
    socket.on("message", (data) => this.#onMessage(client, JSON.parse(String(data)) as unknown[]));
    if (this.habits.wantsAuth) this.#send(client, "AUTH", "a challenge");
  }

  #send(client: Client, ...message: unknown[]): void {
    client.socket.send(JSON.stringify(message));
  }

  #sendEvent(client: Client, id: string, event: NostrEvent): void {
    const text = `["EVENT",${JSON.stringify(id)},${event.raw}]`;
    client.socket.send(text);
    if (this.habits.repeats) client.socket.send(text);
  }

  #onMessage(client: Client, [verb, ...rest]: unknown[]): void {
    this.heard.push({ verb: String(verb), rest, atMs: performance.now() });
    const id = String(rest[0]);
    switch (verb) {
      case "REQ":
        this.#request(client, id, rest.slice(1));
        break;
      case "CLOSE":
        client.subscriptions.delete(id);
        break;
      case "NEG-OPEN":
        if (this.habits.claimedIds) this.#send(client, "NEG-MSG", id, listOfIds(this.habits.claimedIds));
        else if (this.habits.negentropyError) this.#send(client, "NEG-ERR", id, this.habits.negentropyError);
        else if (this.habits.negentropy === "error") this.#send(client, "NEG-ERR", id, "error: not today");
        else if (this.habits.negentropy !== "silent") this.#send(client, "NOTICE", "unknown message type NEG-OPEN");
        break;
      case "AUTH": {
        const parsed = parseEvent(rest[0]);
        if (!parsed.ok) break;
        client.authenticated = this.habits.refusesAuth !== true;
        this.authenticatedAs.push(parsed.event.pubkey);
        this.#send(client, "OK", parsed.event.id, client.authenticated, client.authenticated ? "" : "restricted: no");
        break;
      }
      case "EVENT": {
        const parsed = parseEvent(rest[0]);
        if (!parsed.ok) break;
        this.#send(client, "OK", parsed.event.id, true, "");
        this.publish(parsed.event);
        break;
      }
    }
  }

  #request(client: Client, id: string, given: readonly unknown[]): void {
    const { habits } = this;
    const filters = given.flatMap((value) => {
      const parsed = parseFilter(value);
      return parsed.ok ? [parsed.filter] : [];
    });
    if (habits.wantsAuth && !client.authenticated) {
      this.#send(client, "CLOSED", id, "auth-required: who are you?");
      return;
    }
    if (this.#limited < (habits.rateLimitFirst ?? 0)) {
      this.#limited += 1;
      this.#send(client, "CLOSED", id, "rate-limited: slow down there");
      return;
    }
    const values = filters.flatMap((filter) => [...(filter.tags?.values() ?? [])].flat());
    if (values.some((value) => value.length > (habits.maxValueChars ?? Number.POSITIVE_INFINITY))) {
      this.#send(client, "CLOSED", id, "invalid: a value is too long");
      return;
    }
    const most = Math.max(
      0,
      ...filters.flatMap((filter) => [...(filter.tags?.values() ?? [])].map(({ length }) => length)),
    );
    if (most > (habits.maxValues ?? Number.POSITIVE_INFINITY)) {
      this.#send(client, "CLOSED", id, `invalid: too many values, at most ${habits.maxValues}`);
      return;
    }
    if (habits.refusesLimitZero && filters.some((filter) => filter.limit === 0)) {
      this.#send(client, "CLOSED", id, "invalid: limit must be positive");
      return;
    }
    if (client.subscriptions.size >= (habits.maxSubscriptions ?? Number.POSITIVE_INFINITY)) {
      this.#send(client, "CLOSED", id, "error: no more subscriptions");
      return;
    }
    client.subscriptions.set(id, filters);
    const sent = new Set<string>();
    for (const filter of filters) {
      const limit = Math.min(filter.limit ?? Number.POSITIVE_INFINITY, habits.pageEvents ?? Number.POSITIVE_INFINITY);
      const found = this.events.filter(matcherOf(filter)).sort(compareNewestFirst).slice(0, limit);
      for (const event of found) {
        if (sent.has(event.id)) continue;
        sent.add(event.id);
        this.#sendEvent(client, id, event);
      }
    }
    this.#send(client, "EOSE", id);
  }
}
