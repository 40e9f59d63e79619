// Whole servers as one: each with a data directory of its own, on one PostgreSQL and one pack store, behind a balancer that
// sends every request to another of them. To tests it looks like one server.

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "../harness/free-port.js";
import { type Heard, RelayClient } from "../harness/relay-client.js";
import {
  type ChildServer,
  type InProcessOptions,
  newFolder,
  removeFolder,
  startChild,
  startInProcess,
  type TestServer,
  untilSo,
} from "../harness/server.js";
import { Balancer } from "./balancer.js";
import { TestPostgres } from "./postgres.js";
import { newSchema } from "./three-nodes.js";

export interface ClusterWish extends Pick<InProcessOptions, "settings" | "hasDefaultLimits" | "clock" | "timeFrom"> {
  /** Not ended with the cluster. */
  readonly postgres?: Pick<TestPostgres, "url">;
  /** Settings of the pack store, instead of a directory. */
  readonly packSettings?: Readonly<Record<string, string>>;
  readonly size?: number;
  /** Of another version. */
  readonly program?: string;
}

export const serverKey = "11".repeat(32);
const names = ["one", "two", "three", "four", "five"] as const;

class ClusterBase {
  protected constructor(
    readonly folder: string,
    readonly balancer: Balancer,
    readonly postgres: Pick<TestPostgres, "url">,
    readonly schema: string,
    protected readonly wish: ClusterWish,
  ) {}

  get port(): number {
    return this.balancer.port;
  }

  get domain(): string {
    return `127.0.0.1:${this.port}`;
  }

  get origin(): string {
    return `http://${this.domain}`;
  }

  get url(): string {
    return `ws://${this.domain}`;
  }

  /** Where the packs of all machines are, unless the wish says otherwise. */
  get packFolder(): string {
    return join(this.folder, "packs");
  }

  folderOf(name: string): string {
    return join(this.folder, name);
  }

  settingsOf(name: string): Record<string, string> {
    return {
      NGIT_DOMAIN: this.domain,
      NGIT_RELAY_OWNER_NSEC: serverKey,
      NGIT_DATABASE_URL: this.postgres.url(),
      NGIT_DATABASE_SCHEMA: this.schema,
      NGIT_NODE_NAME: name,
      NGIT_METRICS_ENABLED: "true",
      NGIT_METRICS_PUBLIC: "true",
      ...(this.wish.packSettings ?? { NGIT_PACK_STORE: `directory:${this.packFolder}` }),
      ...this.wish.settings,
    };
  }

  /** A connection to the next machine. */
  connect(): Promise<RelayClient> {
    return RelayClient.connect(this.url);
  }

  static async ground(
    wish: ClusterWish,
  ): Promise<[string, Balancer, TestPostgres | Pick<TestPostgres, "url">, string]> {
    const folder = await newFolder();
    await mkdir(join(folder, "packs"));
    return [
      folder,
      await Balancer.listen(await freePort()),
      wish.postgres ?? (await TestPostgres.start()),
      newSchema(),
    ];
  }
}

/** Whether that machine leads, as it says itself. */
export async function leads({ origin }: Pick<TestServer, "origin">): Promise<boolean> {
  const text = await fetch(`${origin}/metrics`, { signal: AbortSignal.timeout(2_000) })
    .then((answer) => answer.text())
    .catch(() => "");
  return text.includes("purgatory_sync_queue_size");
}

/** Machines in this process. */
export class WholeCluster extends ClusterBase implements TestServer {
  readonly machines: TestServer[] = [];

  static async start(wish: ClusterWish = {}): Promise<WholeCluster> {
    const cluster = new WholeCluster(...(await ClusterBase.ground(wish)), wish);
    for (const name of names.slice(0, wish.size ?? 3)) await cluster.add(name);
    return cluster;
  }

  /** One more machine. */
  async add(name: string): Promise<TestServer> {
    const folder = this.folderOf(name);
    await mkdir(folder, { recursive: true });
    const { clock, timeFrom } = this.wish;
    const machine = await startInProcess({
      ...{ backend: "postgres", folder, settings: this.settingsOf(name) },
      ...(clock && { clock }),
      ...(timeFrom && { timeFrom }),
    });
    this.machines.push(machine);
    this.balancer.machines.push(machine.port);
    return machine;
  }

  /** Stops one; its folder stays, for a machine that is added by the same name. */
  async remove(machine: TestServer): Promise<void> {
    this.machines.splice(this.machines.indexOf(machine), 1);
    this.balancer.machines = this.balancer.machines.filter((port) => port !== machine.port);
    await machine.stop();
  }

  async leader(): Promise<TestServer | undefined> {
    for (const machine of this.machines) if (await leads(machine)) return machine;
    return undefined;
  }

  get gitPath(): string {
    return join(this.folderOf(names[0]), "git");
  }

  get faults(): readonly unknown[] {
    return this.machines.flatMap(({ faults }) => faults);
  }

  /** Asks another machine each time. */
  async hop(): Promise<HoppingRelay> {
    return new HoppingRelay(await Promise.all(this.machines.map((machine) => machine.connect())));
  }

  async stop(): Promise<void> {
    await this.balancer.close();
    for (const machine of this.machines) await machine.stop();
    if (this.wish.postgres === undefined) await (this.postgres as TestPostgres).dispose();
  }

  async end(): Promise<void> {
    await this.stop().finally(() => removeFolder(this.folder));
  }
}

/** One connection to each machine: what is sent goes to the next one, what is heard comes from any. */
export class HoppingRelay {
  #turn = 0;

  constructor(readonly clients: readonly RelayClient[]) {}

  get #next(): RelayClient {
    return this.clients[this.#turn++ % this.clients.length] as RelayClient;
  }

  publish<Sent extends { readonly id: string }>(event: Sent): Promise<Heard> {
    return this.#next.publish(event);
  }

  ask(id: string, ...filters: unknown[]): ReturnType<RelayClient["ask"]> {
    return this.#next.ask(id, ...filters);
  }

  send(...message: unknown[]): void {
    for (const client of this.clients) client.send(...message);
  }

  async close(): Promise<void> {
    for (const client of this.clients) await client.close();
  }
}

/** Machines as processes, which a test can kill, pause and start again. */
export class ClusterOfProcesses extends ClusterBase {
  readonly machines = new Map<string, ChildServer>();
  readonly #ports = new Map<string, number>();

  static async start(
    wish: ClusterWish & { readonly postgres: Pick<TestPostgres, "url"> },
  ): Promise<ClusterOfProcesses> {
    const cluster = new ClusterOfProcesses(...(await ClusterBase.ground(wish)), wish);
    for (const name of names.slice(0, wish.size ?? 3)) await cluster.run(name, wish.program);
    return cluster;
  }

  /** Starts a machine, or starts it again where it was. `program`: of another version; `more`: settings of its own. */
  async run(name: string, program?: string, more: Readonly<Record<string, string>> = {}): Promise<ChildServer> {
    const port = this.#ports.get(name) ?? (await freePort());
    this.#ports.set(name, port);
    const folder = this.folderOf(name);
    await mkdir(folder, { recursive: true });
    const options = { backend: "postgres", folder, port, settings: { ...this.settingsOf(name), ...more } } as const;
    const machine = await startChild({ ...options, ...(program === undefined ? {} : { program }) });
    this.machines.set(name, machine);
    if (!this.balancer.machines.includes(port)) this.balancer.machines.push(port);
    return machine;
  }

  machine(name: string): ChildServer {
    const machine = this.machines.get(name);
    if (!machine) throw new Error(`there is no machine ${name}`);
    return machine;
  }

  /** Which one leads, as it says itself. */
  async leader(): Promise<string | undefined> {
    for (const [name, machine] of this.machines) if (await leads(machine)) return name;
    return undefined;
  }

  allReady(): Promise<void> {
    return untilSo("all machines are ready", async () => {
      const ready = await Promise.all([...this.machines.keys()].map((name) => this.isReady(name)));
      return ready.every(Boolean);
    });
  }

  async isReady(name: string): Promise<boolean> {
    const answer = await fetch(`${this.machine(name).origin}/readyz`, { signal: AbortSignal.timeout(2_000) }).catch(
      () => undefined,
    );
    return answer?.status === 200;
  }

  async end(): Promise<void> {
    await this.balancer.close();
    for (const machine of this.machines.values()) {
      machine.child.kill("SIGCONT");
      machine.child.kill("SIGKILL");
      await machine.ended;
    }
    await removeFolder(this.folder);
  }
}
