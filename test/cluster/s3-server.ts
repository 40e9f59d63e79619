// An S3 server of a test's own: versitygw over a folder that goes with it, on loopback. Its program is built once by
// scripts/test-cluster.mjs, which says so when it cannot be.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BucketAccess } from "../../src/config/cluster-place.js";
import { freePort } from "../harness/free-port.js";
import { untilSo } from "../harness/server.js";

const program = process.env.S3_SERVER;

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
    mkdirSync(join(this.folder, "buckets", name), { recursive: true });
    return { bucket: name, region: "us-east-1", endpoint: this.endpoint, credentials };
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
