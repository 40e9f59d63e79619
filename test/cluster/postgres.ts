// A PostgreSQL of a test's own: real, on loopback, in a folder that goes with it. Never run as root.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { freePort } from "../harness/free-port.js";
import type { ServerCertificate } from "./certificates.js";

const versions = "/usr/lib/postgresql";

/** The folder with PostgreSQL's programs: as POSTGRES_BIN says, or the newest where Debian puts them; undefined: there is none. */
export function postgresPrograms(): string | undefined {
  const wanted = process.env.POSTGRES_BIN;
  const found = existsSync(versions) ? readdirSync(versions).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = wanted === undefined ? found.map((name) => join(versions, name, "bin")) : [wanted];
  return folders.find((folder) => existsSync(join(folder, "initdb")));
}

const bin = postgresPrograms() ?? versions;

/** PostgreSQL refuses to run as root: then as the user that Debian made for it. */
function otherUser(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  for (const name of ["postgres", "nobody"]) {
    const line = readFileSync("/etc/passwd", "utf8")
      .split("\n")
      .find((text) => text.startsWith(`${name}:`));
    const [, , uid, gid] = line?.split(":") ?? [];
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error("there is no user that PostgreSQL could run as");
}

/** Where PostgreSQL looks for them. It refuses a key that others may read, or that is not its own user's. */
function offerCertificate(data: string, tls: ServerCertificate, user: { uid?: number; gid?: number }): void {
  for (const [name, text] of Object.entries({ "server.crt": tls.certificate, "server.key": tls.key })) {
    writeFileSync(join(data, name), text, { mode: 0o600 });
    if (user.uid !== undefined && user.gid !== undefined) chownSync(join(data, name), user.uid, user.gid);
  }
}

export class TestPostgres {
  #process: ChildProcess | undefined;

  private constructor(
    readonly folder: string,
    readonly port: number,
    private readonly settings: readonly string[],
    private readonly user: { uid?: number; gid?: number },
  ) {}

  /** With a certificate it speaks TLS, and goes on to take sessions without it. */
  static async start(settings: readonly string[] = [], tls?: ServerCertificate): Promise<TestPostgres> {
    const user = otherUser();
    const folder = mkdtempSync(join(tmpdir(), "holdfast-postgres-"));
    if (user.uid !== undefined && user.gid !== undefined) chownSync(folder, user.uid, user.gid);
    const args = ["-D", join(folder, "data"), "-U", "holdfast", "--auth=trust", "--encoding=UTF8", "--no-sync"];
    const made = spawnSync(join(bin, "initdb"), args, { ...user, cwd: folder, encoding: "utf8" });
    if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
    if (tls) offerCertificate(join(folder, "data"), tls, user);
    const postgres = new TestPostgres(folder, await freePort(), [...settings, ...(tls ? ["ssl=on"] : [])], user);
    await postgres.run();
    await postgres.sql("CREATE DATABASE holdfast", "postgres");
    return postgres;
  }

  /** A replica that follows this one, in a folder of its own. */
  async replica(): Promise<TestPostgres> {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-replica-"));
    if (this.user.uid !== undefined && this.user.gid !== undefined) chownSync(folder, this.user.uid, this.user.gid);
    const args = [
      "-h",
      "127.0.0.1",
      "-p",
      String(this.port),
      "-U",
      "holdfast",
      "-D",
      join(folder, "data"),
      "-R",
      "-c",
      "fast",
    ];
    const made = spawnSync(join(bin, "pg_basebackup"), [...args, "--no-sync"], {
      ...this.user,
      cwd: folder,
      encoding: "utf8",
    });
    if (made.status !== 0) throw new Error(`pg_basebackup failed: ${made.stderr}`);
    const replica = new TestPostgres(folder, await freePort(), this.settings, this.user);
    await replica.run();
    return replica;
  }

  /** PgBouncer before this server, where it is installed; undefined otherwise. */
  async bouncer(mode: "transaction" | "session"): Promise<{ url(): string; dispose(): Promise<void> } | undefined> {
    const program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].find((path) => existsSync(path));
    if (program === undefined) return undefined;
    const port = await freePort();
    const file = join(this.folder, `pgbouncer-${mode}.ini`);
    const lines = [
      "[databases]",
      `holdfast = host=127.0.0.1 port=${this.port} user=holdfast`,
      "[pgbouncer]",
      `pool_mode = ${mode}`,
      "listen_addr = 127.0.0.1",
      `listen_port = ${port}`,
      "unix_socket_dir =",
      "auth_type = any",
    ];
    writeFileSync(file, `${lines.join("\n")}\n`, { mode: 0o644 });
    const running = spawn(program, [file], { ...this.user, cwd: this.folder, stdio: "ignore" });
    const url = (): string => `postgres://holdfast@127.0.0.1:${port}/holdfast`;
    for (let isUp = false; !isUp; ) {
      if (running.exitCode !== null) throw new Error(`PgBouncer ended with ${running.exitCode}`);
      const client = new pg.Client({ connectionString: url() });
      client.on("error", () => undefined);
      isUp = await client.connect().then(
        () => true,
        () => false,
      );
      await client.end().catch(() => undefined);
      if (!isUp) await pause(50);
    }
    return {
      url,
      dispose: async () => {
        const ended = new Promise((resolve) => running.once("exit", resolve));
        running.kill("SIGKILL");
        await ended;
      },
    };
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  url(database = "holdfast", user = "holdfast"): string {
    return `postgres://${user}@127.0.0.1:${this.port}/${database}`;
  }

  /** Starts it, or starts it again. */
  async run(): Promise<void> {
    const settings = [
      "listen_addresses=127.0.0.1",
      `port=${this.port}`,
      `unix_socket_directories=${this.folder}`,
      "max_connections=200",
      "shared_buffers=32MB",
      "log_min_messages=fatal",
      ...this.settings,
    ].flatMap((setting) => ["-c", setting]);
    const started = spawn(join(bin, "postgres"), ["-D", join(this.folder, "data"), ...settings], {
      ...this.user,
      cwd: this.folder,
      stdio: "ignore",
    });
    this.#process = started;
    for (;;) {
      if (started.exitCode !== null) throw new Error(`PostgreSQL ended with ${started.exitCode}`);
      const isUp = await this.sql("SELECT 1", "postgres").then(
        () => true,
        () => false,
      );
      if (isUp) return;
      await pause(50);
    }
  }

  /** One statement in a session of its own. */
  async sql(text: string, database = "holdfast"): Promise<Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: this.url(database), connectionTimeoutMillis: 5_000 });
    client.on("error", () => undefined);
    await client.connect();
    try {
      const result = await client.query(text);
      return (result.rows ?? []) as Record<string, unknown>[];
    } finally {
      await client.end();
    }
  }

  /** Immediate: as if the machine lost its power, but for the disk's cache. */
  async stop(signal: "SIGQUIT" | "SIGINT" = "SIGQUIT"): Promise<void> {
    const running = this.#process;
    if (!running || running.exitCode !== null) return;
    const ended = new Promise((resolve) => running.once("exit", resolve));
    running.kill(signal);
    await ended;
  }

  async dispose(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
