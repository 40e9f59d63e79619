// What people do to a cluster while it is under attack, and what they were told: whoever was told yes must find it afterwards,
// on every machine.

import { join } from "node:path";
import { Random } from "../../src/store/testing/random.js";
import { Source } from "../faults/source.js";
import { runProgram } from "../harness/git-server.js";
import { Person, type SignedEvent } from "../harness/grasp-people.js";
import { RelayClient } from "../harness/relay-client.js";
import { until } from "../harness/server.js";
import { RefLedger } from "./ref-ledger.js";

/** A machine, or all of them behind one address. */
export interface Place {
  readonly origin: string;
}

const answerWithinMs = 30_000;

/** Sends an event and answers what came back; undefined when nobody answered. */
export async function told(place: Place, event: SignedEvent): Promise<{ ok: boolean; message: string } | undefined> {
  const client = await RelayClient.connect(place.origin.replace("http", "ws")).catch(() => undefined);
  if (!client) return undefined;
  try {
    const late = new Promise<undefined>((resolve) => {
      client.socket.once("close", () => resolve(undefined));
      setTimeout(() => resolve(undefined), answerWithinMs).unref();
    });
    const heard = await Promise.race([client.publish(event), late]);
    return heard && { ok: heard[2] === true, message: String(heard[3]) };
  } finally {
    client.socket.terminate();
  }
}

export async function servedBy(place: Place, ids: readonly string[]): Promise<Set<string>> {
  const client = await RelayClient.connect(place.origin.replace("http", "ws"));
  try {
    const found = new Set<string>();
    for (let from = 0; from < ids.length; from += 100) {
      const { events, end } = await client.ask(`q${from}`, { ids: ids.slice(from, from + 100) });
      if (end[0] !== "EOSE") throw new Error(`a question was closed: ${String(end[2])}`);
      for (const { id } of events) found.add(id);
    }
    return found;
  } finally {
    client.socket.terminate();
  }
}

type Tags = readonly (readonly string[])[];

/** What a served state names that refs do not show. Pure. */
export function stateProblems(tags: Tags, refs: ReadonlyMap<string, string>): string[] {
  const problems: string[] = [];
  for (const [ref = "", oid] of tags) {
    if (ref.startsWith("refs/") && refs.get(ref) !== oid) {
      problems.push(`the state names ${ref} at ${oid}, refs show ${refs.get(ref) ?? "nothing"}`);
    }
    const head = ref === "HEAD" ? /^ref: (.*)$/.exec(oid ?? "")?.[1] : undefined;
    if (head !== undefined && !refs.has(head)) problems.push(`the state's HEAD names ${head}, which is not shown`);
  }
  return problems;
}

const oidsIn = (tags: Tags): string[] =>
  tags.flatMap(([ref = "", oid = ""]) => (ref.startsWith("refs/") && /^[0-9a-f]{40}$/.test(oid) ? [oid] : []));

/** Somebody with one repository, who pushes one commit after the other. */
export class Pusher {
  readonly person = new Person();
  /** Tips in the order of their pushes; those that were acknowledged. */
  readonly tips: string[] = [];
  readonly acknowledged = new Set<string>();
  /** Events whose OK came and that nothing replaces. */
  readonly kept: string[] = [];
  readonly ledger: RefLedger;
  #clones = 0;
  /** Of its newest state: each one is newer than the one before, and so many can follow before they are in the future. */
  #stateAt = Math.floor(Date.now() / 1_000) - 20_000;

  private constructor(
    readonly identifier: string,
    private readonly domain: string,
    readonly source: Source,
  ) {
    this.ledger = new RefLedger(identifier);
  }

  static async make(folder: string, domain: string, identifier: string, seed: number): Promise<Pusher> {
    const source = await Source.make(join(folder, `source-${identifier}`), new Random(seed));
    return new Pusher(identifier, domain, source);
  }

  url({ origin }: Place): string {
    return `${origin}/${this.person.npub}/${this.identifier}.git`;
  }

  announce(place: Place, ...more: (readonly string[])[]): ReturnType<typeof told> {
    const clone = [`http://${this.domain}/${this.person.npub}/${this.identifier}.git`];
    const tags = [["d", this.identifier], ["clone", ...clone], ["relays", `ws://${this.domain}`], ...more];
    return told(place, this.person.sign(30617, tags));
  }

  /** States and pushes the next commit, to two places. Answers what git said; a yes is remembered. */
  async push(stateTo: Place, to: Place): Promise<{ readonly isDone: boolean; readonly said: string }> {
    const tip = await this.source.next();
    this.ledger.made(tip);
    const tags = [
      ["d", this.identifier],
      ["refs/heads/main", tip],
      ["HEAD", "ref: refs/heads/main"],
    ];
    this.#stateAt += 1;
    const state = this.person.sign(30618, tags, "", this.#stateAt);
    const answer = await told(stateTo, state);
    if (!answer?.ok) return { isDone: false, said: answer?.message ?? "nobody answered" };
    this.tips.push(tip);
    const { refs, stderr } = await this.source.push(this.url(to), { "refs/heads/main": tip });
    const isDone = refs.some(({ ok }) => ok);
    if (isDone) {
      this.acknowledged.add(tip);
      this.ledger.acknowledged(to.origin, tip);
    }
    return { isDone, said: stderr };
  }

  /** Something about the repository that is never replaced. */
  async say(place: Place, text: string): Promise<boolean> {
    const about = [
      ["a", `30617:${this.person.pubkey}:${this.identifier}`],
      ["subject", text],
    ];
    const issue = this.person.sign(1621, about, text, Math.floor(Date.now() / 1_000));
    const answer = await told(place, issue);
    if (answer?.ok) this.kept.push(issue.id);
    return answer?.ok === true;
  }

  /** The tip that a machine shows; undefined when it answers with an error. */
  async shown(place: Place): Promise<string | undefined> {
    const refs = await this.refs(place);
    return refs && (refs.get("refs/heads/main") ?? "none");
  }

  /** What a machine advertises; undefined when it answers with an error, or not at all. */
  async refs(place: Place): Promise<ReadonlyMap<string, string> | undefined> {
    try {
      const url = `${this.url(place)}/info/refs?service=git-upload-pack`;
      const answer = await fetch(url, { signal: AbortSignal.timeout(answerWithinMs) });
      if (answer.status !== 200) return undefined;
      const lines = (await answer.text()).matchAll(/([0-9a-f]{40}) (refs\/[^\0\n]*)/g);
      return new Map([...lines].map(([, oid = "", ref = ""]) => [ref, oid]));
    } catch {
      // A machine that is killed while it answers.
      return undefined;
    }
  }

  /** The state that a machine serves, none, or undefined when it does not answer. */
  async state(place: Place): Promise<SignedEvent | "none" | undefined> {
    const client = await RelayClient.connect(place.origin.replace("http", "ws")).catch(() => undefined);
    if (!client) return undefined;
    try {
      const late = new Promise<undefined>((resolve) => {
        client.socket.once("close", () => resolve(undefined));
        setTimeout(() => resolve(undefined), answerWithinMs).unref();
      });
      const filter = { kinds: [30618], authors: [this.person.pubkey], "#d": [this.identifier] };
      const heard = await Promise.race([client.ask("state", filter), late]);
      if (heard?.end[0] !== "EOSE") return undefined;
      return (heard.events[0] as SignedEvent | undefined) ?? "none";
    } finally {
      client.socket.terminate();
    }
  }

  /** Writes down what a machine shows now: its state, then its refs, which must not be behind that state. */
  async observe(place: Place): Promise<void> {
    const readState = this.ledger.reading(place.origin, "state");
    const state = await this.state(place);
    if (state !== undefined) readState(state === "none" ? state : (oidsIn(state.tags)[0] ?? "none"));
    const readRefs = this.ledger.reading(place.origin, "refs");
    const tip = await this.shown(place);
    if (tip !== undefined) readRefs(tip);
  }

  /** Whether that tip may be the one: nothing that was acknowledged is lost. */
  isRight(tip: string | undefined): boolean {
    const last = this.tips.findLastIndex((one) => this.acknowledged.has(one));
    return tip !== undefined && (last < 0 ? tip === "none" || this.tips.includes(tip) : this.tips.indexOf(tip) >= last);
  }

  /** What is wrong about it on these machines, which answer again. */
  async problems(machines: readonly Place[], folder: string): Promise<string[]> {
    const found: string[] = [];
    const shown = async (): Promise<(string | undefined)[]> => Promise.all(machines.map((one) => this.shown(one)));
    let tips = await shown();
    await until(async () => {
      tips = await shown();
      return new Set(tips).size === 1 && this.isRight(tips[0]);
    }, 60_000);
    if (new Set(tips).size !== 1) found.push(`${this.identifier}: machines show ${tips.join(", ")}`);
    if (!tips.every((tip) => this.isRight(tip))) {
      const last = this.tips.findLast((tip) => this.acknowledged.has(tip));
      found.push(
        `${this.identifier}: ${tips.join(", ")} is shown, ${last} was acknowledged of ${this.tips.join(", ")}`,
      );
    }
    for (const [index, machine] of machines.entries()) {
      const answers = await servedBy(machine, this.kept);
      const lost = this.kept.filter((id) => !answers.has(id));
      if (lost.length > 0)
        found.push(`${this.identifier}: ${lost.length} acknowledged events are not on machine ${index}`);
      const state = await this.state(machine);
      const refs = await this.refs(machine);
      const tags = state === undefined || state === "none" ? [] : state.tags;
      const untrue = refs ? stateProblems(tags, refs) : ["refs are not answered"];
      found.push(...untrue.map((problem) => `${this.identifier}: machine ${index}: ${problem}`));
      if (state === undefined || (state === "none" && this.acknowledged.size > 0)) {
        found.push(`${this.identifier}: machine ${index} serves no state`);
      }
      found.push(...(await this.cloneProblems(machine, folder, oidsIn(tags))));
    }
    return found;
  }

  /** `named`: objects that a clone must hold. */
  async cloneProblems(machine: Place, under: string, named: readonly string[] = []): Promise<string[]> {
    if (this.acknowledged.size === 0) return [];
    const folder = join(under, `clone-${this.identifier}-${this.#clones++}`);
    const clone = await runProgram("git", ["clone", "-q", "--bare", this.url(machine), folder], { cwd: "/" });
    if (clone.code !== 0) return [`${this.identifier}: a clone failed: ${clone.stderr}`];
    const fsck = await runProgram("git", ["fsck", "--connectivity-only"], { cwd: folder });
    const problems = fsck.code === 0 ? [] : [`${this.identifier}: a clone is not sound: ${fsck.stderr}`];
    for (const oid of named) {
      const { code } = await runProgram("git", ["cat-file", "-e", oid], { cwd: folder });
      if (code !== 0) problems.push(`${this.identifier}: the state names ${oid}, and a clone lacks it`);
    }
    await runProgram("rm", ["-rf", folder], { cwd: "/" });
    return problems;
  }
}
