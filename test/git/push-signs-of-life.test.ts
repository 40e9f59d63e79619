// Clients give up after 15 s of silence (git-http.md, Serving): whoever has sent all of his push hears from us also while
// git still works on the objects.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { defaultConfig } from "../../src/config/testing/default-config.js";
import { GitServer, runProgram } from "../harness/git-server.js";

describe("while git checks the objects of a push", () => {
  let folder: string;
  let go: string;
  let server: GitServer;
  const path = process.env.PATH ?? "";

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "slow-git-"));
    go = join(folder, "go");
    const real = (await runProgram("sh", ["-c", "command -v git"])).stdout.trim();
    // As slow as the test wants it to be: it has read the whole pack and does not come to an end.
    const script = `#!/bin/sh
case " $* " in
*" index-pack "*) ${real} "$@" || exit; while [ ! -e ${go} ]; do sleep 0.05; done ;;
*) exec ${real} "$@" ;;
esac
`;
    await writeFile(join(folder, "git"), script, { mode: 0o755 });
    process.env.PATH = `${folder}:${path}`;
    server = await GitServer.start({ live: { current: defaultConfig({ gitProgressIntervalSecs: 0.05 }) } });
    process.env.PATH = path;
  });

  after(async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it("the pusher is told that work goes on, and then the report", async () => {
    const url = await server.create("slow");
    const cwd = await server.workingCopy();
    server.state({ "refs/heads/main": await server.mustGit(cwd, "rev-parse", "HEAD") });
    const pushing = spawn("git", ["push", "--progress", url, "main"], { cwd, stdio: ["ignore", "ignore", "pipe"] });
    let text = "";
    let wasTold = false;
    const letGo = (): void => void writeFile(go, "");
    let isTooLate = false;
    const giveUp = setTimeout(() => {
      isTooLate = true;
      letGo();
    }, 120_000);
    pushing.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      if (wasTold || isTooLate || !text.includes("still working on it")) return;
      wasTold = true;
      letGo();
    });
    const code = await new Promise<number | null>((resolve) => pushing.once("close", resolve));
    clearTimeout(giveUp);
    assert.equal(code, 0, text);
    assert.ok(wasTold, `nothing was heard for 120 s: ${text}`);
  });
});
