// A machine of a cluster as a process of its own, which a test can kill or pause.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { FromNode, NodeArguments, NodeFacts, ToNode } from "./node-program.js";

const program = fileURLToPath(new URL("./node-program.js", import.meta.url));

export class NodeProcess {
  readonly acknowledged: { readonly number: number; readonly id: string }[] = [];
  readonly refused: { readonly trouble: string; readonly id: string }[] = [];
  readonly #process: ChildProcess;
  readonly #waiting = new Map<FromNode["type"], ((message: FromNode) => void)[]>();

  private constructor(process: ChildProcess) {
    this.#process = process;
    process.on("message", (message: FromNode) => {
      if (message.type === "acknowledged") this.acknowledged.push(message);
      if (message.type === "refused") this.refused.push(message);
      for (const hear of this.#waiting.get(message.type)?.splice(0) ?? []) hear(message);
    });
  }

  static async start(args: NodeArguments): Promise<NodeProcess> {
    const child = fork(program, [JSON.stringify(args)], { execArgv: ["--enable-source-maps"] });
    const node = new NodeProcess(child);
    await Promise.race([
      node.#next("started"),
      once(child, "exit").then(([code]) => Promise.reject(new Error(`a node ended at start with ${code}`))),
    ]);
    return node;
  }

  /** Resolves when they are done, or when the process has ended. */
  async write(works: number, epoch?: number): Promise<void> {
    const written = this.#next("written");
    this.#send({ type: "write", works, ...(epoch === undefined ? {} : { epoch }) });
    await Promise.race([written, this.ended()]);
  }

  arm(step: (ToNode & { type: "arm" })["step"], signal: "SIGKILL" | "SIGSTOP"): void {
    this.#send({ type: "arm", step, signal });
  }

  async facts(): Promise<NodeFacts> {
    const facts = this.#next("facts");
    this.#send({ type: "facts" });
    return ((await facts) as FromNode & { type: "facts" }).facts;
  }

  get hasEnded(): boolean {
    return this.#process.exitCode !== null || this.#process.signalCode !== null;
  }

  async ended(): Promise<void> {
    if (!this.hasEnded) await once(this.#process, "exit");
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.ended();
  }

  async end(): Promise<void> {
    if (this.hasEnded) return;
    this.#send({ type: "end" });
    await this.ended();
  }

  #send(message: ToNode): void {
    this.#process.send(message, () => undefined);
  }

  #next(type: FromNode["type"]): Promise<FromNode> {
    return new Promise((resolve) => {
      this.#waiting.set(type, [...(this.#waiting.get(type) ?? []), resolve]);
    });
  }
}
