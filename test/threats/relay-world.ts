// The started server for the tests of threats.md, rows 21 to 31: a process of its own with one hosted repository, and
// what it takes to see that an attack left nothing behind: its memory, its sockets, what it stores and serves.

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { after, afterEach, before, type TestContext } from "node:test";
import { Person } from "../harness/grasp-people.js";
import { Story } from "../harness/grasp-story.js";
import { heldBy, heldMore, mebibyte } from "../harness/held-memory.js";
import type { RelayClient } from "../harness/relay-client.js";
import { type EventWish, keyOf, sign, type TestKey } from "../harness/relay-events.js";
import { type ChildServer, removeFolder, type ServerOptions, startChild, until } from "../harness/server.js";
import { metricIn } from "../harness/sync-server.js";

export { mebibyte } from "../harness/held-memory.js";
export const nowSeconds = (): number => Math.floor(Date.now() / 1000);

export class RelayWorld {
  readonly owner = new Person();
  readonly #extra: RelayClient[] = [];
  #nextSecond = nowSeconds() - 5_000;

  #server: ChildServer;
  #story: Story;

  private constructor(
    server: ChildServer,
    story: Story,
    readonly settings: Readonly<Record<string, string>>,
  ) {
    this.#server = server;
    this.#story = story;
  }

  static async start(t: TestContext, settings: Record<string, string> = {}, more: ServerOptions = {}) {
    const world = await RelayWorld.#begin(settings, more);
    t.after(() => world.end());
    return world;
  }

  /** One for all tests of a suite, which run one after another and look only at what is their own. */
  static shared(settings: Record<string, string> = {}): () => RelayWorld {
    let world: RelayWorld | undefined;
    before(async () => {
      world = await RelayWorld.#begin(settings, {});
    });
    afterEach(() => {
      if (world) world.#dismiss();
    });
    after(() => world?.end());
    return () => world ?? assert.fail("the world has not begun");
  }

  static async #begin(settings: Record<string, string>, more: ServerOptions): Promise<RelayWorld> {
    const server = await startChild({ backend: "lmdb", settings, ...more });
    const world = new RelayWorld(server, await Story.on(server), settings);
    await world.story.hosted(world.owner, "target");
    return world;
  }

  get server(): ChildServer {
    return this.#server;
  }

  get story(): Story {
    return this.#story;
  }

  /** After the server was stopped or killed: the same data, address and settings. */
  async startAgain(): Promise<void> {
    const { folder, port } = this.#server;
    this.#dismiss();
    this.#story.relay.socket.terminate();
    this.#server = await startChild({ backend: "lmdb", settings: this.settings, folder, port });
    this.#story = await Story.on(this.#server);
  }

  /** Whoever a test let in. */
  #dismiss(): void {
    for (const client of this.#extra.splice(0)) client.socket.terminate();
  }

  async end(): Promise<void> {
    this.#dismiss();
    this.#story.relay.socket.terminate();
    await this.#server.stop();
    await removeFolder(this.#server.folder);
  }

  get coordinate(): string {
    return this.owner.coordinate("target");
  }

  get url(): string {
    return `ws://${this.server.domain}`;
  }

  async client(): Promise<RelayClient> {
    const client = await this.server.connect();
    this.#extra.push(client);
    return client;
  }

  /** An issue about the hosted repository: related, so it is taken. Each is a second newer than the one before. */
  issue(key: TestKey, content: string, wish: EventWish = {}) {
    const created_at = wish.created_at ?? this.#nextSecond++;
    const { tags = [], ...rest } = wish;
    const { raw, ...event } = sign(key, {
      kind: 1621,
      ...rest,
      created_at,
      tags: [["a", this.coordinate], ...tags],
      content,
    });
    return { event, raw };
  }

  async publish(event: { readonly id: string }, client = this.story.relay): Promise<[accepted: boolean, text: string]> {
    const [, , accepted, text] = await client.publish(event);
    return [accepted === true, String(text)];
  }

  async taken<Sent extends { readonly id: string }>(event: Sent): Promise<Sent> {
    const [accepted, text] = await this.publish(event);
    assert.ok(accepted, text);
    return event;
  }

  async ids(filter: object): Promise<string[]> {
    const { events, end } = await this.story.relay.ask("world", filter);
    assert.equal(end[0], "EOSE", String(end[2]));
    this.story.relay.send("CLOSE", "world");
    return events.map(({ id }) => id).sort();
  }

  async count(filter: object, client = this.story.relay): Promise<number> {
    const answer = client.next(([verb, id]) => (verb === "COUNT" || verb === "CLOSED") && id === "count");
    client.send("COUNT", "count", filter);
    const [verb, , body] = await answer;
    assert.equal(verb, "COUNT", String(body));
    return (body as { count: number }).count;
  }

  async metric(name: string, labels: Record<string, string> = {}): Promise<number> {
    const text = await (await fetch(`${this.server.origin}/metrics`)).text();
    return metricIn(text, name, labels) ?? 0;
  }

  /** Without garbage and the mapped database. */
  async heldBytes(): Promise<number> {
    return (await heldBy(this.server.child)) ?? Number.NaN;
  }

  /** What the server itself has worked: a bound that a busy machine does not move. */
  async cpuSeconds(): Promise<number> {
    const text = await readFile(`/proc/${this.server.child.pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) / 100;
  }

  async openFiles(): Promise<number> {
    return (await readdir(`/proc/${this.server.child.pid}/fd`)).length;
  }

  async connections(): Promise<number> {
    return this.metric("ngit_websocket_connections_active");
  }

  /** Still the same process, answering, and not much larger than it was. */
  async isUnharmed(heldBefore: number, mayGrowBytes: number): Promise<void> {
    assert.equal(this.server.child.exitCode, null, this.server.log().slice(-2_000));
    assert.equal((await this.story.relay.ask("unharmed", { limit: 1 })).end[0], "EOSE");
    const grown = await heldMore(this.server.child, heldBefore, mayGrowBytes);
    const figures = `the server holds ${(grown / mebibyte).toFixed(1)} MiB more`;
    if (process.env.TRACELESS_FIGURES) process.stderr.write(`${figures}\n`);
    assert.ok(grown < mayGrowBytes, figures);
    assert.doesNotMatch(this.server.log(), /"level":"(?:error|fatal)"/, "the server logged a fault");
  }
}

export async function eventually(what: string, isSo: () => boolean | Promise<boolean>, withinMs = 120_000) {
  assert.ok(await until(isSo, withinMs), `waited ${withinMs} ms in vain: ${what}`);
}

export const someKeys = (count: number, name = "person"): TestKey[] =>
  Array.from({ length: count }, (_, index) => keyOf(`${name} ${index}`));
