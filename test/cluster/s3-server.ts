// An S3 server of a test's own: versitygw over a folder that goes with it, on loopback. Its program is built once by
// scripts/test-cluster.mjs, which says so when it cannot be.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import type { BucketAccess } from "../../src/config/cluster-place.js";
import { freePort } from "../harness/free-port.js";
import { untilSo } from "../harness/server.js";

/** Where scripts/test-cluster.mjs leaves what it built. */
const built = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "holdfast-cluster", "versitygw");
const program = process.env.S3_SERVER ?? (existsSync(built) ? built : undefined);

/** Why tests with S3 do not run; false when they do. */
export const noS3: string | false = program ? false : "no S3 server could be built";

const credentials = { accessKeyId: "holdfast", secretAccessKey: "a-secret-of-the-tests" };

export class TestS3 {
  #process: ChildProcess | undefined;

  private constructor(
    readonly folder: string,
    readonly port: number,
  ) {}

  static async start(): Promise<TestS3> {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-s3-"));
    mkdirSync(join(folder, "buckets"));
    const server = new TestS3(folder, await freePort());
    await server.run();
    return server;
  }

  /** A new bucket, and how to reach it. */
  bucket(name: string): BucketAccess {
    mkdirSync(this.folderOf(name), { recursive: true });
    return { bucket: name, region: "us-east-1", endpoint: this.endpoint, credentials };
  }

  /** The same, as settings of a server. */
  settings(name: string): Record<string, string> {
    return {
      NGIT_PACK_STORE: `s3:${this.bucket(name).bucket}`,
      NGIT_S3_ENDPOINT: this.endpoint,
      NGIT_S3_ACCESS_KEY_ID: credentials.accessKeyId,
      NGIT_S3_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    };
  }

  /** The objects of a bucket are files there. */
  folderOf(bucket: string): string {
    return join(this.folder, "buckets", bucket);
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async run(): Promise<void> {
    const args = ["--port", `127.0.0.1:${this.port}`, "--quiet", "posix", join(this.folder, "buckets")];
    const env = { ROOT_ACCESS_KEY: credentials.accessKeyId, ROOT_SECRET_KEY: credentials.secretAccessKey };
    this.#process = spawn(program ?? "", args, { stdio: "ignore", cwd: this.folder, env: { ...process.env, ...env } });
    await untilSo("the S3 server listens", () =>
      fetch(this.endpoint).then(
        () => true,
        () => false,
      ),
    );
  }

  /** It takes connections and answers nothing. */
  pause(): void {
    this.#process?.kill("SIGSTOP");
  }

  goOn(): void {
    this.#process?.kill("SIGCONT");
  }

  async stop(): Promise<void> {
    const running = this.#process;
    this.#process = undefined;
    if (!running || running.exitCode !== null) return;
    const ended = once(running, "exit");
    running.kill("SIGKILL");
    await ended;
  }

  async dispose(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
