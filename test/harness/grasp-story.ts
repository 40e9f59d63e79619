// What people do to a GRASP server, in the words of a story: announce, publish a state, push, clone, look.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ObjectFormat } from "../../src/nostr/nip34.js";
import { type ClientResult, emptyRepository, gitScript, headOf, runProgram } from "./git-server.js";
import type { Person, SignedEvent } from "./grasp-people.js";
import { ask, pkt, pktLines } from "./raw-http.js";
import type { RelayClient } from "./relay-client.js";
import { type InProcessOptions, startInProcess, type TestServer } from "./server.js";

/** With HOLDFAST_STORIES=cluster a story's server is three machines, and each request goes to another of them. */
export const onCluster = process.env.HOLDFAST_STORIES === "cluster";

export type Refs = Readonly<Record<string, string>>;

export interface Ok {
  readonly ok: boolean;
  readonly message: string;
}

/** A clone on somebody's machine. */
export class WorkingCopy {
  constructor(readonly folder: string) {}

  git(...args: string[]): Promise<ClientResult> {
    return runProgram("git", args, { cwd: this.folder });
  }

  async must(...args: string[]): Promise<string> {
    const result = await this.git(...args);
    assert.equal(result.code, 0, `git ${args.join(" ")}: ${result.stderr}`);
    return result.stdout.trim();
  }

  async commit(text: string, file = "file"): Promise<string> {
    await writeFile(join(this.folder, file), `${text}\n`);
    await gitScript(this.folder, 'git add -A && exec git commit -q -m "$1"', text);
    return headOf(this.folder);
  }
}

export class Story {
  #count = 0;

  private constructor(
    readonly server: TestServer,
    readonly relay: RelayClient,
    /** On a cluster: a relay that asks another machine each time. */
    private readonly hopping?: Pick<RelayClient, "publish" | "ask" | "send" | "close">,
  ) {}

  /** What the server has is on one disk, where a test may look. */
  get isOnOneDisk(): boolean {
    return this.hopping === undefined;
  }

  static async begin(options: InProcessOptions = {}): Promise<Story> {
    if (!onCluster) return Story.on(await startInProcess(options));
    const { WholeCluster } = await import("../cluster/whole-cluster.js");
    const cluster = await WholeCluster.start(options);
    return new Story(cluster, await cluster.connect(), await cluster.hop());
  }

  static async on(server: TestServer): Promise<Story> {
    return new Story(server, await server.connect());
  }

  async end(): Promise<void> {
    await this.relay.close();
    await this.hopping?.close();
    await this.server.end();
  }

  url(person: Person, identifier: string): string {
    return `${this.server.origin}/${person.npub}/${encodeURIComponent(identifier)}.git`;
  }

  /** Where the specification says the repository is. */
  directory(person: Person, identifier: string): string {
    return join(this.server.gitPath, person.npub, `${identifier}.git`);
  }

  /** The same on each machine. */
  directories(person: Person, identifier: string): string[] {
    return this.#machines.map(({ gitPath }) => join(gitPath, person.npub, `${identifier}.git`));
  }

  get #machines(): readonly TestServer[] {
    return this.server.machines ?? [this.server];
  }

  /** Its address at each machine. */
  urls(person: Person, identifier: string): string[] {
    return this.#machines.map(({ origin }) => `${origin}/${person.npub}/${encodeURIComponent(identifier)}.git`);
  }

  /** What every machine answers to whoever wants to fetch; a text when they do not agree. */
  async status(person: Person, identifier: string): Promise<number | string> {
    const look = async (url: string): Promise<number> => (await ask(`${url}/info/refs?service=git-upload-pack`)).status;
    const all = await Promise.all(this.urls(person, identifier).map(look));
    const [first, ...others] = all;
    return first !== undefined && others.every((other) => other === first) ? first : all.join(", ");
  }

  /** By every machine. */
  async isServedByAll(event: SignedEvent): Promise<boolean> {
    // Each question goes to another one.
    for (const _ of this.#machines) if (!(await this.isServed(event))) return false;
    return true;
  }

  announcement(person: Person, identifier: string, more: readonly (readonly string[])[] = []): SignedEvent {
    return person.sign(30617, [
      ["d", identifier],
      ["clone", this.url(person, identifier)],
      ["relays", `ws://${this.server.domain}`],
      ...more,
    ]);
  }

  async publish(event: SignedEvent): Promise<Ok> {
    const [, , ok, message] = await (this.hopping ?? this.relay).publish(event);
    return { ok: ok === true, message: String(message) };
  }

  async accepted(event: SignedEvent): Promise<SignedEvent> {
    const { ok, message } = await this.publish(event);
    assert.ok(ok, message);
    return event;
  }

  announce(person: Person, identifier: string, more: readonly (readonly string[])[] = []): Promise<SignedEvent> {
    return this.accepted(this.announcement(person, identifier, more));
  }

  state(person: Person, identifier: string, refs: Refs, head?: string): Promise<SignedEvent> {
    return this.accepted(stateEvent(person, identifier, refs, head));
  }

  async served(filter: Record<string, unknown>): Promise<SignedEvent[]> {
    const id = `q${this.#count++}`;
    const relay = this.hopping ?? this.relay;
    const { events, end } = await relay.ask(id, filter);
    assert.equal(end[0], "EOSE", String(end[2]));
    relay.send("CLOSE", id);
    return events as SignedEvent[];
  }

  async isServed(event: SignedEvent): Promise<boolean> {
    return (await this.served({ ids: [event.id] })).length === 1;
  }

  async workingCopy(format: ObjectFormat = "sha1"): Promise<WorkingCopy> {
    // An earlier story on the same folder may have its own.
    let folder: string;
    do folder = join(this.server.folder, `work${this.#count++}`);
    while (existsSync(folder));
    await emptyRepository(join(folder, ".git"), false, format);
    return new WorkingCopy(folder);
  }

  /** Refs as the server advertises them (HEAD included), by name: what `git ls-remote` asks, without two processes. */
  async advertised(person: Person, identifier: string, format: ObjectFormat = "sha1"): Promise<Record<string, string>> {
    const answer = await ask(`${this.url(person, identifier)}/git-upload-pack`, {
      headers: { "Git-Protocol": "version=2", "Content-Type": "application/x-git-upload-pack-request" },
      body: Buffer.concat([
        pkt("command=ls-refs\n"),
        pkt(`object-format=${format}`),
        Buffer.from("0001"),
        pkt("peel\n"),
        Buffer.from("0000"),
      ]),
    });
    assert.equal(answer.status, 200, answer.text);
    const refs: Record<string, string> = {};
    for (const line of pktLines(answer.body)) {
      assert.doesNotMatch(line, /^ERR /);
      const [, oid = "", name = "", peeled] = /^([0-9a-f]+) (\S+)(?: peeled:([0-9a-f]+))?$/.exec(line) ?? [];
      assert.notEqual(name, "", line);
      refs[name] = oid;
      if (peeled !== undefined) refs[`${name}^{}`] = peeled;
    }
    return refs;
  }

  /** A repository with one commit on main, announced, stated and pushed. */
  async hosted(
    person: Person,
    identifier: string,
    more: readonly (readonly string[])[] = [],
  ): Promise<{ readonly work: WorkingCopy; readonly tip: string; readonly url: string }> {
    await this.announce(person, identifier, more);
    const work = await this.workingCopy();
    const tip = await work.commit(`one of ${identifier}`);
    await this.state(person, identifier, { "refs/heads/main": tip });
    const url = this.url(person, identifier);
    await work.must("push", "-q", url, "main");
    return { work, tip, url };
  }
}

export function stateEvent(person: Person, identifier: string, refs: Refs, head = "ref: refs/heads/main"): SignedEvent {
  return person.sign(30618, [["d", identifier], ...Object.entries(refs), ["HEAD", head]]);
}
