// Starts a process that never stops writing into the launcher's directory, says where, and stays until it is killed.

import { Launcher } from "../../src/git/launcher.js";

const launcher = new Launcher();
const folder = launcher.scratchDirectory;
const script = 'i=0; while :; do i=$((i+1)); mkdir -p "$1/busy/$i"; done';
await launcher.start({
  argv: ["/bin/sh", "-c", script, "sh", folder],
  env: { PATH: process.env.PATH ?? "" },
  limits: { wallClockMs: 600_000 },
});
process.stdout.write(`${folder}\n`);
setInterval(() => undefined, 60_000);
