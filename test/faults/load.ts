// Everybody at once: maintainers who publish states and push, strangers whose pushes are refused, contributors,
// readers, a peer that has what we must hunt, new repositories, housekeeping. Each writes into the ledger before it
// asks and after it was answered. A server that dies under it is no error: then everybody stops.

import { rm } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "../harness/git-server.js";
import type { Person, SignedEvent } from "../harness/grasp-people.js";
import type { Refs } from "../harness/grasp-story.js";
import { RelayClient } from "../harness/relay-client.js";
import type { Hosted } from "./ledger.js";
import type { Victim } from "./victim.js";
import type { World } from "./world.js";

const answerWithinMs = 60_000;
const maxFoundedALife = 2;

interface Answer {
  readonly ok: boolean;
  readonly message: string;
}

/** The server is gone, or says nothing any more. */
class Gone extends Error {}

export class Load {
  /** What no check afterwards could see. */
  readonly violations: string[] = [];
  reads = 0;
  failedReads = 0;
  answers = 0;
  #going = true;
  readonly #clients = new Map<RelayClient, Promise<never>>();
  readonly #actors: Promise<void>[] = [];
  readonly #issues: { readonly person: Person; readonly id: string }[] = [];

  constructor(
    readonly world: World,
    readonly victim: Victim,
    /** Nothing waits long in this life: what waits need not be there afterwards. */
    readonly isExpiring: boolean,
  ) {
    const [first] = world.sets;
    const actors = [
      () => this.#maintain(first),
      () => this.#intrude(first),
      () => this.#contribute(first),
      () => this.#read(),
      () => this.#keepHouse(),
      () => this.#foundRepositories(),
      () => this.#maintainAtPeer(),
    ];
    for (const actor of actors) this.#actors.push(actor().catch((error) => this.#ended(error)));
  }

  #ended(error: unknown): void {
    if (error instanceof Gone || !this.victim.isAlive || !this.#going) return;
    this.violations.push(`the load failed: ${error instanceof Error ? error.stack : String(error)}`);
  }

  async stop(): Promise<void> {
    this.#going = false;
    await Promise.all(this.#actors);
    for (const client of this.#clients.keys()) client.socket.terminate();
  }

  get #goesOn(): boolean {
    return this.#going && this.victim.isAlive;
  }

  async #connect(url = `ws://127.0.0.1:${this.world.place.port}`): Promise<RelayClient> {
    const client = await RelayClient.connect(url).catch(() => {
      throw new Gone();
    });
    const gone = new Promise<never>((_, reject) => {
      client.socket.once("close", () => reject(new Gone()));
      if (client.closeCode !== undefined) reject(new Gone());
    });
    gone.catch(() => undefined);
    this.#clients.set(client, gone);
    return client;
  }

  async #ask(client: RelayClient, event: SignedEvent): Promise<Answer> {
    const gone = this.#clients.get(client) as Promise<never>;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer to event ${event.id}`)), answerWithinMs);
    });
    const [, , ok, message] = await Promise.race([client.publish(event), gone, late]).finally(() =>
      clearTimeout(timer),
    );
    this.answers++;
    return { ok: ok === true, message: String(message) };
  }

  async #publish(client: RelayClient, event: SignedEvent): Promise<Answer> {
    this.world.ledger.sending(event);
    const answer = await this.#ask(client, event);
    this.world.ledger.answered(event, answer);
    return answer;
  }

  // ---- maintainers -------------------------------------------------------------------------------------------------

  async #maintain(set: Hosted | undefined): Promise<void> {
    if (!set) return;
    const client = await this.#connect();
    while (this.#goesOn) await this.#work(client, set);
  }

  /** One state and the push that belongs to it. */
  async #work(client: RelayClient, set: Hosted): Promise<void> {
    const { random } = this.world;
    const before = set.newest?.refs ?? {};
    const refs: Record<string, string> = { "refs/heads/main": await set.source.next() };
    if (before["refs/heads/main"] && random.chance(0.5)) refs["refs/heads/side"] = before["refs/heads/main"];
    if (random.chance(0.3)) refs[`refs/tags/v${random.below(3)}`] = refs["refs/heads/main"] as string;
    const isPartial = !this.isExpiring && random.chance(0.1);
    if (isPartial) refs["refs/heads/absent"] = await set.source.stray();
    const wasReleased = set.floor === set.states.length - 1;
    const event = set.newState(random.pick(set.owners), refs);
    const index = set.states.length - 1;
    const { ok, message } = await this.#publish(client, event);
    if (!ok) return;
    if (!message.startsWith("purgatory:")) set.released(index);
    const pushed: Record<string, string | undefined> = { ...refs };
    delete pushed["refs/heads/absent"];
    if (wasReleased && !isPartial && random.chance(0.5)) {
      for (const ref of Object.keys(before)) if (!refs[ref]) pushed[ref] = undefined;
    }
    await this.#push(set, index, random.pick(set.owners), pushed, refs);
  }

  async #push(
    set: Hosted,
    index: number,
    owner: Person,
    pushed: Readonly<Record<string, string | undefined>>,
    wanted: Refs,
  ): Promise<void> {
    const options = this.world.random.chance(0.3) ? ["--atomic"] : [];
    const report = await set.source.push(this.world.url(owner, set), pushed, ...options);
    this.answers += report.refs.length > 0 ? 1 : 0;
    if (report.refs.length === 0) set.unanswered.add(index);
    const accepted = report.refs.filter(({ ok }) => ok).map(({ ref }) => ref);
    for (const ref of accepted) set.acknowledgedRefs.push({ owner, ref, value: pushed[ref], index });
    if (Object.keys(wanted).every((ref) => accepted.includes(ref))) set.released(index);
  }

  async #foundRepositories(): Promise<void> {
    const { world } = this;
    const client = await this.#connect();
    for (let count = 0; count < maxFoundedALife && this.#goesOn; count++) {
      const set = await world.found([world.newPerson()]);
      set.isOptional = true;
      const answer = await this.#publish(client, world.announcement(set.owners[0], set));
      if (answer.ok && !this.isExpiring) set.isOptional = false;
      // Half of those that may expire are left to it.
      if (!answer.ok || (this.isExpiring && world.random.chance(0.5))) continue;
      await this.#work(client, set);
      if (set.floor >= 0) set.isOptional = false;
    }
  }

  async #maintainAtPeer(): Promise<void> {
    const { peer, shared: set, random, url } = { ...this.world, url: this.world.url.bind(this.world) };
    if (!set) return;
    const client = await this.#connect(`ws://${peer.domain}`);
    while (this.#goesOn) {
      const oid = await set.source.next();
      const refs: Record<string, string> = { "refs/heads/main": oid };
      if (random.chance(0.5)) refs["refs/tags/peer"] = oid;
      const [owner] = set.owners;
      const event = set.newState(owner, refs);
      if (!(await this.#ask(client, event)).ok) throw new Error("the peer refused a state");
      await set.source.push(url(owner, set, peer.origin), refs);
      await pause(100 + random.below(200));
    }
  }

  // ---- strangers ---------------------------------------------------------------------------------------------------

  async #intrude(set: Hosted | undefined): Promise<void> {
    while (set && this.#goesOn) {
      const oid = await set.source.stray();
      const owner = this.world.random.pick(set.owners);
      set.refused.set(oid, owner);
      const report = await set.source.push(this.world.url(owner, set), { "refs/heads/main": oid });
      if (report.refs.some(({ ok }) => ok)) this.violations.push(`a push of ${oid} that nobody signed was accepted`);
      await pause(50);
    }
  }

  async #contribute(set: Hosted | undefined): Promise<void> {
    if (!set) return;
    const client = await this.#connect();
    const { random, ledger } = this.world;
    // What was pushed before its event in an earlier life.
    for (const { event } of set.pullRequests) {
      if (!this.#goesOn) return;
      if (!ledger.isAcknowledged(event.id)) await this.#publish(client, event);
    }
    while (this.#goesOn) {
      const person = this.world.newPerson();
      const [owner] = set.owners;
      const at = set.nextSecond();
      const about = ["a", owner.coordinate(set.identifier)];
      const chosen = random.below(10);
      if (chosen < 5) {
        const issue = person.sign(1621, [about, ["subject", "s"]], `issue ${random.below(1e9)}`, at);
        if ((await this.#publish(client, issue)).ok) this.#issues.push({ person, id: issue.id });
      } else if (chosen < 6) {
        const victim = this.#issues.shift();
        if (victim)
          await this.#publish(
            client,
            victim.person.sign(
              5,
              [
                ["e", victim.id],
                ["k", "1621"],
              ],
              "",
              at,
            ),
          );
      } else if (chosen < 7) await this.#publish(client, this.world.announcement(random.pick(set.owners), set));
      else await this.#requestPull(client, set, owner, person, chosen < 9);
    }
  }

  async #requestPull(
    client: RelayClient,
    set: Hosted,
    owner: Person,
    person: Person,
    isGitFirst: boolean,
  ): Promise<void> {
    const tip = await set.source.stray();
    const url = this.world.url(owner, set);
    const tags = [
      ["a", owner.coordinate(set.identifier)],
      ["c", tip],
      ["clone", url],
      ["subject", "please"],
    ];
    const event = person.sign(1618, tags, "", set.nextSecond());
    if (!isGitFirst && !(await this.#publish(client, event)).ok) return;
    const record = { event, tip, isPushed: false };
    const report = await set.source.push(url, { [`refs/nostr/${event.id}`]: tip });
    record.isPushed = report.refs.some(({ ok }) => ok) && !this.isExpiring;
    set.pullRequests.push(record);
    // Some of them come after the next start only.
    if (isGitFirst && this.world.random.chance(0.7)) await this.#publish(client, event);
  }

  // ---- readers and the operator --------------------------------------------------------------------------------------

  async #read(): Promise<void> {
    const { world } = this;
    for (let turn = 0; this.#goesOn; turn++) {
      const set = world.random.pick(world.sets.filter(({ floor }) => floor >= 0));
      const [owner] = set.owners;
      const isGood = turn % 5 === 4 ? await this.#clone(owner, set) : await this.#look(owner, set);
      if (isGood) this.reads++;
      else if (this.#goesOn) this.failedReads++;
      await pause(20);
    }
  }

  async #look(owner: Person, set: Hosted): Promise<boolean> {
    const url = `${this.world.url(owner, set)}/info/refs?service=git-upload-pack`;
    const answer = await fetch(url, { signal: AbortSignal.timeout(answerWithinMs) }).catch(() => undefined);
    return answer?.status === 200 && (await answer.text().catch(() => "")).includes("refs/heads/main");
  }

  /** What comes must be whole: git checks each object it receives against its name. */
  async #clone(owner: Person, set: Hosted): Promise<boolean> {
    const folder = join(this.world.place.folder, "work", "clone");
    await rm(folder, { recursive: true, force: true });
    const cloned = await runProgram("git", ["clone", "-q", "--bare", this.world.url(owner, set), folder]);
    if (cloned.code !== 0) return false;
    const checked = await runProgram("git", ["fsck", "--strict", "--no-dangling"], { cwd: folder });
    if (checked.code !== 0) this.violations.push(`a clone of ${set.identifier} is unsound: ${checked.stderr}`);
    return true;
  }

  async #keepHouse(): Promise<void> {
    while (this.#goesOn) {
      const cruft = this.world.random.chance(0.3);
      await this.victim.operate("repos.gc", { cruft }).catch(() => undefined);
      await pause(100);
    }
  }
}

/** So that one actor does not take the processor from the others; nothing is waited for. */
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
