// A server in a process of its own that tells which of our files something crosses on its way through it
// (docs/explanation/walks.md). Its clock stands still unless a test moves it.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type FromRecorder, socketVariable, type ToRecorder, type WalkEnd } from "./crossed-files.js";
import { RelayClient } from "./relay-client.js";
import { removeFolder, type TestServer, untilSo } from "./server.js";
import type { FromServer, ToServer } from "./walked-server-program.js";

/** The server's thread, one that verifies signatures, and the helper that starts processes. */
const recorders = 3;

const besides = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

export class WalkedServer {
  readonly #child: ChildProcess;
  readonly #listener: Server;
  readonly #recorders: Recorder[];
  readonly #stored = new Set<string>();
  readonly server: TestServer;

  private constructor(child: ChildProcess, listener: Server, recorders: Recorder[], place: Place) {
    this.#child = child;
    this.#listener = listener;
    this.#recorders = recorders;
    child.on("message", (message: FromServer) => {
      if (message.type === "stored") this.#stored.add(message.id);
    });
    const domain = `127.0.0.1:${place.port}`;
    this.server = {
      ...place,
      domain,
      gitPath: join(place.folder, "git"),
      origin: `http://${domain}`,
      url: `ws://${domain}`,
      faults: [],
      connect: () => RelayClient.connect(`ws://${domain}`),
      stop: () => this.#stop(),
      end: () => this.#stop().finally(() => removeFolder(place.folder)),
    };
  }

  static async start(settings: Readonly<Record<string, string>>): Promise<WalkedServer> {
    const path = join(tmpdir(), `holdfast-walk-${process.pid}.sock`);
    const here: Recorder[] = [];
    const listener = createServer((socket) => void here.push(new Recorder(socket)));
    listener.listen(path);
    await once(listener, "listening");
    const child = spawn(
      process.execPath,
      ["--import", besides("./crossed-files.js"), besides("./walked-server-program.js"), JSON.stringify(settings)],
      { env: { PATH: process.env.PATH, [socketVariable]: path }, stdio: ["ignore", "inherit", "inherit", "ipc"] },
    );
    const place = await said(child, "started");
    await untilSo("every thread is counted", () => here.length === recorders);
    return new WalkedServer(child, listener, here, place);
  }

  async advance(ms: number): Promise<void> {
    const advanced = said(this.#child, "advanced");
    this.#tell({ type: "advance", ms });
    await advanced;
  }

  async isStored(id: string): Promise<boolean> {
    return this.#stored.has(id);
  }

  /** What is crossed counts from now on, up to the end of the walk, or else until it is asked for. */
  async begin(end?: WalkEnd): Promise<void> {
    await this.#askAll({ type: "begin", ...(end && { end }) });
  }

  /** The files that were crossed, each with the functions that were called in it. */
  async crossed(): Promise<Map<string, string[]>> {
    const answers = await this.#askAll({ type: "take" });
    const all = new Map<string, string[]>();
    for (const { crossed } of answers) {
      for (const [file, names] of Object.entries(crossed)) all.set(file, [...(all.get(file) ?? []), ...names]);
    }
    return all;
  }

  /** Nothing runs in the server any more: its clock stands still, and nobody asks. */
  async quiet(): Promise<void> {
    let quietLooks = 0;
    await untilSo("the server is quiet", async () => {
      const answers = await this.#askAll({ type: "take" });
      quietLooks = answers.every(({ isQuiet }) => isQuiet) ? quietLooks + 1 : 0;
      return quietLooks >= 6;
    });
  }

  #askAll(message: ToRecorder): Promise<FromRecorder[]> {
    return Promise.all(this.#recorders.map((recorder) => recorder.ask(message)));
  }

  #tell(message: ToServer): void {
    this.#child.send(message);
  }

  async #stop(): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#tell({ type: "end" });
    await ended;
    this.#listener.close();
  }
}

type Said<Type extends FromServer["type"]> = Extract<FromServer, { type: Type }>;
type Place = Said<"started">;

/** The next message of that type. */
function said<Type extends FromServer["type"]>(child: ChildProcess, type: Type): Promise<Said<Type>> {
  return new Promise((resolve, reject) => {
    const ended = (): void => reject(new Error(`the walked server ended before it said "${type}"`));
    const hear = (message: FromServer): void => {
      if (message.type !== type) return;
      child.off("message", hear).off("exit", ended);
      resolve(message as Said<Type>);
    };
    child.on("message", hear).once("exit", ended);
  });
}

class Recorder {
  readonly #socket: Socket;
  #waiting: (answer: FromRecorder) => void = () => undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    createInterface({ input: socket }).on("line", (line) => this.#waiting(JSON.parse(line) as FromRecorder));
    socket.on("error", () => undefined);
  }

  ask(message: ToRecorder): Promise<FromRecorder> {
    return new Promise((resolve) => {
      this.#waiting = resolve;
      this.#socket.write(`${JSON.stringify(message)}\n`);
    });
  }
}
