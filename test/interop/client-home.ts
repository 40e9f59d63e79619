// A home directory of its own for a real client, so that nothing of the machine's settings is used or changed.

import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Ran {
  readonly code: number | null;
  readonly output: string;
}

export class ClientHome {
  private constructor(
    readonly folder: string,
    private readonly more: Readonly<Record<string, string>>,
  ) {}

  static async make(more: Readonly<Record<string, string>>): Promise<ClientHome> {
    return new ClientHome(await mkdtemp(join(tmpdir(), "holdfast-interop-")), more);
  }

  async directory(name: string): Promise<string> {
    const path = join(this.folder, name);
    await mkdir(path, { recursive: true });
    return path;
  }

  run(cwd: string, program: string, ...args: string[]): Promise<Ran> {
    const env = {
      PATH: process.env.PATH ?? "",
      HOME: this.folder,
      GIT_AUTHOR_NAME: "Ada",
      GIT_AUTHOR_EMAIL: "ada@example.com",
      GIT_COMMITTER_NAME: "Ada",
      GIT_COMMITTER_EMAIL: "ada@example.com",
      ...this.more,
    };
    return new Promise((resolve, reject) => {
      const child = spawn(program, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
      let output = "";
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding("utf8").on("data", (text: string) => {
          output += text;
        });
      }
      child.on("error", reject);
      child.on("close", (code) => resolve({ code, output }));
    });
  }

  /** Runs to success, or fails with everything that was printed. */
  async must(cwd: string, program: string, ...args: string[]): Promise<string> {
    const { code, output } = await this.run(cwd, program, ...args);
    if (code !== 0) throw new Error(`${program} ${args.join(" ")} ended with ${code}:\n${output}`);
    return output;
  }

  remove(): Promise<void> {
    return rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
