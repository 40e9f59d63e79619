// The entry point: this process as a terminal, and the verb its arguments name.

import { closeSync } from "node:fs";
import { isatty } from "node:tty";
import { runCommandLine } from "./cli/run.js";
import { abilitiesOn } from "./verb-abilities.js";

// Nobody else on the machine reads what the server keeps (threats row 55), whatever the umask was. Git inherits it.
const callersUmask = process.umask(0o077);

// A reader that closes the pipe early (`holdfast config show | head`) is not a fault.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));

// A terminal that was closed takes no text any more: that must not end a server without closing its rooms. Nor must it be
// left to Node at the very end: Node puts every terminal back as it was, and aborts where there is none any more.
process.stderr.on("error", () => undefined);
const terminals = [0, 1, 2].filter((descriptor) => isatty(descriptor));
process.on("exit", () => {
  for (const descriptor of terminals) if (!isatty(descriptor)) closeSync(descriptor);
});

const terminal = {
  out: (text: string) =>
    new Promise<void>((resolve) => {
      process.stdout.write(text, () => resolve());
    }),
  error: (text: string) => void process.stderr.write(text),
  showsProgress: process.stderr.isTTY === true,
  isInteractive: process.stdin.isTTY === true && process.stderr.isTTY === true,
  columns: process.stderr.columns ?? process.stdout.columns ?? 100,
  // A generator, so that reading begins when somebody listens: readline throws away what comes before that.
  async *lines() {
    const { createInterface } = await import("node:readline");
    yield* createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY });
  },
};

// Not awaited here: a module that waits cannot be part of one file. A verb that never ends is told of as Node would.
process.exitCode = 13;
void runCommandLine(process.argv, abilitiesOn(terminal, process.env, callersUmask)).then((code) => {
  process.exitCode = code;
});
