// The whole server on a real port with its data in a folder and the settings of an operator, started and stopped in this
// process, and verbs run beside it: they reach it by its socket. Keys and events are made here; git is the real one.

import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.js";
import { escapeControls } from "../../src/base/text.js";
import { LogRing, loggerTo, textLine } from "../../src/config/logging.js";
import type { NostrEvent, Tag } from "../../src/nostr/event.js";
import { SecretKey, signEvent } from "../../src/nostr/keys.js";
import { npubOf } from "../../src/nostr/nip19.js";
import type { OperationName } from "../../src/operator/operations.js";
import { askServer } from "../../src/operator/socket.js";
import { type Server, startServer } from "../../src/server.js";
import { cleanEnvironment, type Ended, endOf, holdfast } from "../cli/run.js";
import { freePort } from "./free-port.js";
import { liveConfigOf } from "./live-config.js";
import { RelayClient } from "./relay-client.js";
import { borrowVerifier } from "./shared-verifier.js";

export const newKey = (): SecretKey => SecretKey.generate(randomBytes);
export const nowSeconds = (): number => Math.floor(Date.now() / 1000);

export function signed(
  key: SecretKey,
  kind: number,
  tags: readonly Tag[],
  content = "",
  at = nowSeconds(),
): NostrEvent {
  return signEvent(key, { kind, created_at: at, tags, content }, randomBytes);
}

const run = (command: string, args: readonly string[], env: Record<string, string>, cwd?: string): Promise<Ended> =>
  endOf(spawn(command, args, { env, cwd, stdio: ["ignore", "pipe", "pipe"] }));

export class OperatorServer {
  readonly folder = mkdtempSync(join(tmpdir(), "holdfast-operator-"));
  readonly admin = newKey();
  #server: Server | undefined;
  readonly #faults: unknown[] = [];
  #log = "";

  private constructor(
    readonly port: number,
    readonly settings: Readonly<Record<string, string>>,
  ) {}

  static async start(settings: Readonly<Record<string, string>> = {}): Promise<OperatorServer> {
    const server = new OperatorServer(await freePort(), settings);
    await server.start();
    return server;
  }

  /** What it wrote to its log since the last start. */
  get log(): string {
    return this.#log;
  }

  get httpUrl(): string {
    return `http://localhost:${this.port}`;
  }

  get environment(): Record<string, string> {
    return cleanEnvironment({
      NGIT_BIND_ADDRESS: `127.0.0.1:${this.port}`,
      NGIT_DOMAIN: `localhost:${this.port}`,
      NGIT_DATA_PATH: join(this.folder, "data"),
      NGIT_ADMIN_NPUBS: npubOf(this.admin.pubkey),
      NGIT_TEST: "1",
      ...this.settings,
    });
  }

  async start(): Promise<void> {
    this.#log = "";
    const live = liveConfigOf(this.environment);
    const recentLog = new LogRing((line) => textLine(line, false).trimEnd());
    const write = (line: string): void => {
      recentLog.add(line);
      this.#log += escapeControls(line);
    };
    const logger = loggerTo(write, live.current.logLevel);
    const { verifier, giveBack } = await borrowVerifier();
    const starting = startServer({
      live,
      verifier,
      logger,
      recentLog,
      clock: systemClock,
      build: { version: "0.0.0", commit: "test" },
      cores: 2,
      onFault: (error) => void this.#faults.push(error),
    });
    starting.catch(giveBack);
    const server = await starting;
    this.#server = { ...server, close: () => server.close().finally(giveBack) };
    logger.info({ address: server.address }, "listening");
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    await server?.close();
    if (this.#faults.length > 0) throw new AggregateError(this.#faults, "the server reported faults");
  }

  async close(): Promise<void> {
    await this.stop().finally(() => rmSync(this.folder, { recursive: true, force: true }));
  }

  verb(...args: readonly string[]): Promise<Ended> {
    return holdfast(args, this.environment);
  }

  /** A verb that must succeed, with its JSON. */
  async json<T>(...args: readonly string[]): Promise<T> {
    const ended = await this.verb(...args, "--json");
    if (ended.code !== 0) throw new Error(`${args.join(" ")}: exit ${ended.code}: ${ended.stdout}${ended.stderr}`);
    return JSON.parse(ended.stdout) as T;
  }

  /** The same over the socket, without a verb: for what a test needs but does not test. */
  async operate<T>(operation: OperationName, parameters: object): Promise<T> {
    const directory = join(this.folder, "data", "relay");
    const outcome = await askServer(directory, { operation, parameters }, () => undefined);
    if (!outcome?.ok) throw new Error(`${operation}: ${outcome?.message ?? "no server"}`);
    return outcome.result as T;
  }

  connect(): Promise<RelayClient> {
    return RelayClient.connect(`ws://127.0.0.1:${this.port}`);
  }

  announcement(key: SecretKey, identifier: string, at?: number, more: readonly Tag[] = []): NostrEvent {
    const tags = [
      ...more,
      ["d", identifier],
      ["clone", `${this.httpUrl}/${npubOf(key.pubkey)}/${identifier}.git`],
      ["relays", `ws://localhost:${this.port}`],
    ];
    return signed(key, 30617, tags, "", at);
  }

  repositoryUrl(key: SecretKey, identifier: string): string {
    return `${this.httpUrl}/${npubOf(key.pubkey)}/${identifier}.git`;
  }

  async git(...args: readonly string[]): Promise<Ended> {
    const identity = { GIT_AUTHOR_NAME: "a", GIT_AUTHOR_EMAIL: "a", GIT_COMMITTER_NAME: "a", GIT_COMMITTER_EMAIL: "a" };
    return run("git", args, cleanEnvironment({ ...identity, GIT_CONFIG_NOSYSTEM: "1" }), this.folder);
  }

  /** A commit in a working copy of its own; its id and the folder. */
  commit(): { readonly folder: string; readonly oid: string } {
    const folder = mkdtempSync(join(this.folder, "work-"));
    const env = cleanEnvironment({
      GIT_AUTHOR_NAME: "a",
      GIT_AUTHOR_EMAIL: "a",
      GIT_COMMITTER_NAME: "a",
      GIT_COMMITTER_EMAIL: "a",
    });
    const git = (...args: string[]): string =>
      spawnSync("git", ["-C", folder, ...args], { env, encoding: "utf8" }).stdout;
    git("init", "-q", "-b", "main");
    git("commit", "-q", "--allow-empty", "-m", randomBytes(4).toString("hex"));
    return { folder, oid: git("rev-parse", "HEAD").trim() };
  }

  /** Announces, publishes a state and pushes: the repository is served afterwards. */
  async host(
    client: RelayClient,
    key: SecretKey,
    identifier: string,
  ): Promise<{ announcement: NostrEvent; state: NostrEvent }> {
    const announcement = this.announcement(key, identifier);
    const { folder, oid } = this.commit();
    const state = signed(key, 30618, [
      ["d", identifier],
      ["refs/heads/main", oid],
      ["HEAD", "ref: refs/heads/main"],
    ]);
    for (const event of [announcement, state]) {
      const answer = await client.publish(event);
      if (answer[2] !== true) throw new Error(`refused: ${JSON.stringify(answer)}`);
    }
    const pushed = await this.git("-C", folder, "push", this.repositoryUrl(key, identifier), "main");
    if (pushed.code !== 0) throw new Error(`push failed: ${pushed.stderr}`);
    return { announcement, state };
  }
}
