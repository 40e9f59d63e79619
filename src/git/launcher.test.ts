import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { openLmdbStore } from "../store/lmdb/open.js";
import { type JobLimits, Launcher, LauncherError } from "./launcher.js";

const env = { PATH: process.env.PATH ?? "/usr/bin:/bin" };
const limits: JobLimits = { wallClockMs: 10_000 };

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

async function until(condition: () => boolean, what: string, ms = 60_000): Promise<void> {
  const end = Date.now() + ms;
  while (!condition()) {
    assert.ok(Date.now() < end, `gave up waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

describe("launcher", () => {
  let launcher: Launcher;
  before(() => {
    launcher = new Launcher();
  });
  after(() => launcher.close());

  it("hands stdin and stdout through and reports exit code and stderr", async () => {
    const job = await launcher.start({
      argv: ["/bin/sh", "-c", "cat; echo oops >&2; exit 3"],
      env,
      limits,
      stdin: true,
    });
    job.stdin?.end("hello");
    assert.equal(await text(job.stdout), "hello");
    assert.deepEqual(await job.exit, { code: 3, signal: undefined, timedOut: false, stderr: "oops\n" });
  });

  it("hands on no file that the server has open, such as the store's", async () => {
    const folder = await mkdtemp(join(tmpdir(), "launcher-"));
    // LMDB opens its file so that a forked process inherits it.
    const store = await openLmdbStore(folder);
    const beside = new Launcher();
    try {
      const job = await beside.start({ argv: ["/bin/ls", "-l", "/proc/self/fd"], env, limits });
      const open = await text(job.stdout);
      assert.match(open, / 1 -> socket/);
      assert.ok(!open.includes(folder), open);
    } finally {
      await beside.close();
      await store.close();
      await rm(folder, { recursive: true });
    }
  });

  it("removes what launchers of the same owner left behind when they were killed, and nobody else's", async () => {
    const [mine, others] = [`${process.pid}-mine`, `${process.pid}-others`];
    const gone = [new Launcher({ owner: mine }), new Launcher({ owner: others })];
    const [left = "", kept = ""] = gone.map(({ scratchDirectory }) => scratchDirectory);
    await Promise.all(gone.map((one) => one.close()));
    for (const folder of [left, kept]) await mkdir(join(folder, "answers"), { recursive: true });
    const next = new Launcher({ owner: mine });
    try {
      assert.deepEqual([left, kept, next.scratchDirectory].map(existsSync), [false, true, true]);
    } finally {
      await next.close();
      await rm(kept, { recursive: true });
    }
  });

  it("carries many megabytes both ways without loss", async () => {
    const job = await launcher.start({ argv: ["cat"], env, limits, stdin: true });
    const { stdin } = job;
    assert.ok(stdin);
    const block = Buffer.alloc(1 << 20, "x");
    let got = 0;
    job.stdout.on("data", (chunk: Buffer) => {
      got += chunk.length;
    });
    for (let i = 0; i < 64; i++) {
      if (!stdin.write(block)) await new Promise((resolve) => stdin.once("drain", resolve));
    }
    stdin.end();
    assert.equal((await job.exit).code, 0);
    await until(() => got === 64 << 20, "all bytes are back");
  });

  it("keeps what a process said although it never read its input", async () => {
    const job = await launcher.start({ argv: ["/bin/echo", "early"], env, limits, stdin: true });
    await job.exit;
    job.stdin?.write(Buffer.alloc(1 << 20));
    job.stdin?.end();
    assert.equal(await text(job.stdout), "early\n");
    await job.exit;
  });

  it("lets a process write into a file, and refuses one that is not there", async () => {
    const stdoutFile = join(launcher.scratchDirectory, "said");
    const request = { argv: ["/bin/sh", "-c", "cat; echo too"], env, limits, stdin: true, stdoutFile } as const;
    await assert.rejects(launcher.start(request), LauncherError);
    await writeFile(stdoutFile, "");
    const job = await launcher.start(request);
    job.stdin?.end("this ");
    assert.equal((await job.exit).code, 0);
    assert.equal(await text(job.stdout), "");
    assert.equal(await readFile(stdoutFile, "utf8"), "this too\n");
    assert.equal(launcher.jobsInFlight, 0);
  });

  it("lets a process stand back behind others, with and without other limits", async () => {
    const plain = await launcher.start({ argv: ["nice"], env, limits });
    const own = Number(await text(plain.stdout));
    await plain.exit;
    for (const more of [{}, { memoryBytes: 2 ** 30 }]) {
      const job = await launcher.start({ argv: ["nice"], env, limits: { ...limits, ...more, niceness: 3 } });
      assert.equal(Number(await text(job.stdout)), own + 3);
      await job.exit;
    }
  });

  it("passes only the environment it is given", async () => {
    const job = await launcher.start({ argv: ["/usr/bin/env"], env: { ONLY: "this" }, limits });
    assert.equal((await text(job.stdout)).trim(), "ONLY=this");
    await job.exit;
  });

  it("rejects when the program does not exist", async () => {
    await assert.rejects(launcher.start({ argv: ["/nonexistent/program"], env, limits }), LauncherError);
    assert.equal(launcher.jobsInFlight, 0);
  });

  it("ends the whole process group", async () => {
    const job = await launcher.start({ argv: ["/bin/sh", "-c", "sleep 100 & echo $!; wait"], env, limits });
    const pid = Number(await new Promise<string>((resolve) => job.stdout.once("data", (d) => resolve(String(d)))));
    assert.ok(isAlive(pid));
    job.end();
    assert.equal((await job.exit).signal, "SIGTERM");
    await until(() => !isAlive(pid), "the grandchild is gone");
  });

  it("ends a job that runs over its wall-clock limit, even a stopped one", async () => {
    const job = await launcher.start({
      argv: ["/bin/sh", "-c", "kill -STOP $$; sleep 100"],
      env,
      limits: { wallClockMs: 200 },
    });
    assert.equal((await job.exit).timedOut, true);
  });

  it("applies memory and CPU limits", async () => {
    const job = await launcher.start({
      argv: ["/bin/sh", "-c", "ulimit -d; ulimit -t"],
      env,
      limits: { wallClockMs: 5_000, memoryBytes: 64 << 20, cpuSeconds: 7 },
    });
    assert.deepEqual((await text(job.stdout)).trim().split("\n"), ["65536", "7"]);
  });

  it("keeps stderr bounded", async () => {
    const job = await launcher.start({ argv: ["/bin/sh", "-c", "head -c 1000000 /dev/zero >&2"], env, limits });
    assert.equal((await job.exit).stderr.length, 64 * 1024);
  });

  it("fails jobs clearly, leaves none of them behind and recovers when the helper is killed", async () => {
    const job = await launcher.start({ argv: ["/bin/sh", "-c", "echo $$; sleep 100"], env, limits });
    const pid = Number(await new Promise<string>((resolve) => job.stdout.once("data", (d) => resolve(String(d)))));
    const helper = launcher.helperPid;
    assert.ok(helper);
    process.kill(helper, "SIGKILL");
    assert.equal((await job.exit).stderr, "the launcher ended");
    await until(() => !isAlive(pid), "the job is gone");
    const next = await launcher.start({ argv: ["/bin/echo", "back"], env, limits });
    assert.equal((await text(next.stdout)).trim(), "back");
  });

  it("removes its directory on close and refuses further work", async () => {
    const own = new Launcher();
    const job = await own.start({ argv: ["sleep", "100"], env, limits });
    await own.close();
    assert.equal(existsSync(own.scratchDirectory), false);
    assert.notEqual((await job.exit).signal ?? "", "");
    await assert.rejects(own.start({ argv: ["true"], env, limits }), LauncherError);
  });

  it("threat 20: when the server is killed with SIGKILL no child and no helper stays behind", async () => {
    const module = fileURLToPath(new URL("./launcher.js", import.meta.url));
    const script = `import { Launcher } from ${JSON.stringify(module)};
      const launcher = new Launcher();
      const job = await launcher.start({ argv: ["/bin/sh", "-c", "echo $$; trap '' TERM; sleep 100 & wait; sleep 100"],
        env: { PATH: process.env.PATH }, limits: { wallClockMs: 100000 } });
      job.stdout.on("data", (d) => console.log(launcher.helperPid + " " + String(d).trim() + " " + launcher.scratchDirectory));`;
    const server = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const line = await new Promise<string>((resolve) => server.stdout.once("data", (d) => resolve(String(d))));
    const [helperText, childText, directory = ""] = line.trim().split(" ");
    const [helper, child] = [Number(helperText), Number(childText)];
    assert.ok(existsSync(directory));
    assert.ok(isAlive(helper) && isAlive(child));
    server.kill("SIGKILL");
    await until(() => !isAlive(helper) && !isAlive(child), "helper and child are gone");
    assert.equal(existsSync(directory), false);
  });

  it("threat 20: also when processes end at the moment of the kill, and nobody is left to be told", async () => {
    const module = fileURLToPath(new URL("./launcher.js", import.meta.url));
    const script = `import { Launcher } from ${JSON.stringify(module)};
      const launcher = new Launcher();
      const repeat = async () => {
        const request = { argv: ["/bin/sh", "-c", "echo x"], env: {}, limits: { wallClockMs: 100000 } };
        for (let count = 0; ; count++) {
          const job = await launcher.start(request);
          job.stdout.resume();
          await job.exit;
          if (count === 2) console.log(launcher.helperPid + " " + launcher.scratchDirectory);
        }
      };
      for (let i = 0; i < 12; i++) void repeat();`;
    for (let attempt = 0; attempt < 4; attempt++) {
      const server = spawn(process.execPath, ["--input-type=module", "-e", script]);
      const line = await new Promise<string>((resolve) => server.stdout.once("data", (d) => resolve(String(d))));
      const [helper, directory = ""] = (line.split("\n")[0] ?? "").split(" ");
      let complaint = "";
      server.stderr.on("data", (d) => {
        complaint += String(d);
      });
      server.kill("SIGKILL");
      await until(() => !isAlive(Number(helper)), "the helper is gone");
      assert.equal(complaint, "");
      assert.equal(existsSync(directory), false);
    }
  });
});
