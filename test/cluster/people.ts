// What people do to a cluster while it is under attack, and what they were told: whoever was told yes must find it afterwards,
// on every machine.

import { join } from "node:path";
import { Random } from "../../src/store/testing/random.js";
import { Source } from "../faults/source.js";
import { runProgram } from "../harness/git-server.js";
import { Person, type SignedEvent } from "../harness/grasp-people.js";
import { RelayClient } from "../harness/relay-client.js";
import { until } from "../harness/server.js";

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

/** Somebody with one repository, who pushes one commit after the other. */
export class Pusher {
  readonly person = new Person();
  /** Tips in the order of their pushes; those that were acknowledged. */
  readonly tips: string[] = [];
  readonly acknowledged = new Set<string>();
  /** Events whose OK came and that nothing replaces. */
  readonly kept: string[] = [];
  #clones = 0;

  private constructor(
    readonly identifier: string,
    private readonly domain: string,
    readonly source: Source,
  ) {}

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
    const tags = [
      ["d", this.identifier],
      ["refs/heads/main", tip],
      ["HEAD", "ref: refs/heads/main"],
    ];
    const state = this.person.sign(30618, tags);
    const answer = await told(stateTo, state);
    if (!answer?.ok) return { isDone: false, said: answer?.message ?? "nobody answered" };
    this.tips.push(tip);
    const { refs, stderr } = await this.source.push(this.url(to), { "refs/heads/main": tip });
    const isDone = refs.some(({ ok }) => ok);
    if (isDone) this.acknowledged.add(tip);
    return { isDone, said: stderr };
  }

  /** Something about the repository that is never replaced. */
  async say(place: Place, text: string): Promise<boolean> {
    const about = [
      ["a", `30617:${this.person.pubkey}:${this.identifier}`],
      ["subject", text],
    ];
    const issue = this.person.sign(1621, about, text);
    const answer = await told(place, issue);
    if (answer?.ok) this.kept.push(issue.id);
    return answer?.ok === true;
  }

  /** The tip that a machine shows; undefined when it answers with an error. */
  async shown(place: Place): Promise<string | undefined> {
    const answer = await fetch(`${this.url(place)}/info/refs?service=git-upload-pack`, {
      signal: AbortSignal.timeout(answerWithinMs),
    }).catch(() => undefined);
    if (answer?.status !== 200) return undefined;
    return /([0-9a-f]{40}) refs\/heads\/main/.exec(await answer.text())?.[1] ?? "none";
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
      found.push(...(await this.cloneProblems(machine, folder)));
    }
    return found;
  }

  async cloneProblems(machine: Place, under: string): Promise<string[]> {
    if (this.acknowledged.size === 0) return [];
    const folder = join(under, `clone-${this.identifier}-${this.#clones++}`);
    const clone = await runProgram("git", ["clone", "-q", "--bare", this.url(machine), folder], { cwd: "/" });
    if (clone.code !== 0) return [`${this.identifier}: a clone failed: ${clone.stderr}`];
    const fsck = await runProgram("git", ["fsck", "--connectivity-only"], { cwd: folder });
    await runProgram("rm", ["-rf", folder], { cwd: "/" });
    return fsck.code === 0 ? [] : [`${this.identifier}: a clone is not sound: ${fsck.stderr}`];
  }
}
