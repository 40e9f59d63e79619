// A server process that faults are done to: started again and again on the same folder and port, with an eye on every
// process and temporary directory it leaves.

import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { OperationName } from "../../src/operator/operations.js";
import { askServer } from "../../src/operator/socket.js";
import { RelayClient } from "../harness/relay-client.js";
import { dropInEnvironment, until } from "../harness/server.js";
import { armedText, type Order, struckText } from "./orders.js";

const plainProgram = fileURLToPath(new URL("../../src/main.js", import.meta.url));
const faultyProgram = fileURLToPath(new URL("./program.js", import.meta.url));
const maxLogChars = 2_000_000;

export interface Place {
  readonly folder: string;
  readonly port: number;
}

export interface LifeWish {
  /** With program.ts around it, so that orders can be given. */
  readonly isFaulty: boolean;
  readonly settings: Readonly<Record<string, string>>;
}

export class Victim {
  #log = "";
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;

  private constructor(
    readonly place: Place,
    readonly child: ChildProcess,
  ) {
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#log = (this.#log + text).slice(-maxLogChars);
    });
    this.ended = new Promise((resolve) => {
      child.once("close", (code, signal) => resolve({ code, signal }));
    });
  }

  static async start(place: Place, wish: LifeWish): Promise<Victim> {
    const { folder, port } = place;
    const temporary = join(folder, "tmp");
    await mkdir(temporary, { recursive: true });
    const environment = dropInEnvironment(folder, port, { backend: "lmdb", settings: wish.settings });
    const child = spawn(
      process.execPath,
      ["--enable-source-maps", wish.isFaulty ? faultyProgram : plainProgram, "serve"],
      {
        cwd: folder,
        env: { PATH: process.env.PATH ?? "", HOME: folder, TMPDIR: temporary, ...environment },
        stdio: wish.isFaulty ? ["ignore", "ignore", "pipe", "ipc"] : ["ignore", "ignore", "pipe"],
      },
    );
    const victim = new Victim(place, child);
    // A harness that is stopped leaves nothing running.
    const endWithUs = (): boolean => child.kill("SIGKILL");
    process.once("exit", endWithUs);
    void victim.ended.then(() => process.off("exit", endWithUs));
    await until(() => victim.#log.includes('"listening"') || !victim.isAlive, 180_000);
    if (!victim.isAlive || !victim.#log.includes('"listening"')) {
      child.kill("SIGKILL");
      throw new Error(`the server did not start: ${victim.log.slice(-3_000)}`);
    }
    return victim;
  }

  get log(): string {
    return this.#log;
  }

  get isAlive(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  get hasStruck(): boolean {
    return this.#log.includes(struckText);
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.place.port}`;
  }

  connect(): Promise<RelayClient> {
    return RelayClient.connect(`ws://127.0.0.1:${this.place.port}`);
  }

  /** Resolves when the server has understood. */
  async order(order: Order): Promise<void> {
    const from = this.#log.length;
    this.child.send?.(order);
    await until(() => this.#log.indexOf(`${armedText}: ${order.type}`, from) >= 0 || !this.isAlive, 120_000);
  }

  async operate<T>(operation: OperationName, parameters: object): Promise<T> {
    const request = { operation, parameters };
    const outcome = await askServer(join(this.place.folder, "relay"), request, () => undefined);
    if (!outcome?.ok) throw new Error(`${operation}: ${outcome?.message ?? "no server"}`);
    return outcome.result as T;
  }

  launchers(): number[] {
    return childrenOf(this.pid).filter((pid) => commandOf(pid).includes("holdfast-launcher"));
  }

  /** git processes it has running; a copy of the launcher between fork and exec is none yet. */
  gitProcesses(): number[] {
    const children = this.launchers().flatMap(childrenOf);
    return children.filter((pid) => !commandOf(pid).includes("holdfast-launcher"));
  }

  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    this.child.kill(signal);
    await this.ended;
  }
}

/** Processes that work on this folder although no server runs there. */
export const orphansOf = (folder: string): string[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((pid) => `${pid} ${commandOf(Number(pid))}`)
    .filter((text) => text.includes(`${folder}/git/`) || text.includes(`${folder}/tmp/`));

export function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    return "";
  }
}
