// A git server as a process of its own, with one repository that is large enough to be killed in the middle of a clone.

import { randomBytes } from "node:crypto";
import { defaultConfig } from "../../src/config/testing/default-config.js";
import { GitServer } from "./git-server.js";

// No room to keep answers: git waits for its reader.
const server = await GitServer.start({
  live: { current: defaultConfig({ gitPackConcurrent: 4, gitPackCacheBytes: 0 }) },
});
const url = await server.create("victim");
const work = await server.workingCopy("victim");
const tip = await server.commit(work, "big", randomBytes(24 << 20));
server.state({ "refs/heads/main": tip });
await server.mustGit(work, "push", "-q", url, "main");
const { folder } = server;
process.stdout.write(`${JSON.stringify({ url, tip, helper: server.launcher.helperPid, folder })}\n`);
