// `holdfast doctor`: looks at the machine a server is to run on and says what is missing and how to get it.

import { lookup } from "node:dns/promises";
import { existsSync, statSync } from "node:fs";
import { mkdir, statfs } from "node:fs/promises";
import { createServer } from "node:net";
import type { Config } from "../../config/config.js";
import { type HostPort, hostPortText } from "../../config/kinds.js";
import type { Abilities, Verb } from "../abilities.js";
import { CommandFailure } from "../abilities.js";
import { ask, serverUrl } from "../server-address.js";
import { acceptSettings, settingsOf } from "../setting-flags.js";

interface Finding {
  readonly check: string;
  readonly result: "ok" | "note" | "bad";
  readonly detail: string;
}

export const doctor: Verb = (program, abilities) => {
  const command = program
    .command("doctor")
    .description("check this machine: Node, git, signature verification, port, disk, clock, DNS")
    .option("--json", "answer as JSON");
  acceptSettings(command).action(async () => {
    const { config } = settingsOf(command, abilities);
    const findings = await examine(config, abilities);
    const ok = findings.every((finding) => finding.result !== "bad");
    if (command.getOptionValue("json")) await abilities.terminal.out(`${JSON.stringify({ ok, findings }, null, 2)}\n`);
    else {
      const lines = findings.map(
        ({ check, result, detail }) => `${result.padEnd(4)}  ${check.padEnd(12)}  ${detail}\n`,
      );
      await abilities.terminal.out(lines.join(""));
    }
    if (!ok) throw new CommandFailure("");
  });
  command.addHelpText("after", "\nExample:\n  holdfast doctor --config /etc/holdfast.conf");
};

async function examine(config: Config, abilities: Abilities): Promise<Finding[]> {
  return [
    node(),
    await git(abilities),
    await verification(abilities),
    await port(config),
    await disk("git data", config.gitDataPath, config),
    ...(config.databaseBackend === "memory" ? [] : [await disk("relay data", config.relayDataPath, config)]),
    clock(abilities),
    ...(await names(config)),
  ];
}

const finding = (check: string, result: Finding["result"], detail: string): Finding => ({ check, result, detail });

function node(): Finding {
  const major = Number(process.versions.node.split(".")[0]);
  if (major < 20) return finding("node", "bad", `${process.versions.node} is too old: install Node 20 or newer`);
  if (major < 24) return finding("node", "ok", `${process.versions.node} (24 is faster at JSON and hashing)`);
  return finding("node", "ok", process.versions.node);
}

async function git(abilities: Abilities): Promise<Finding> {
  const found = await abilities.gitVersion();
  if (!found.ok) return finding("git", "bad", `${found.reason}: install git 2.38 or newer`);
  const [major = 0, minor = 0] = found.version.split(".").map(Number);
  const isNewEnough = major > 2 || (major === 2 && minor >= 38);
  if (isNewEnough) return finding("git", "ok", found.version);
  return finding("git", "bad", `${found.version} lacks settings that protect this server: install git 2.38 or newer`);
}

async function verification(abilities: Abilities): Promise<Finding> {
  const verifier = await abilities.createVerifier();
  await verifier.close();
  if (verifier.engine.startsWith("native")) return finding("verification", "ok", verifier.engine);
  const advice = "for about seven times the speed install libsecp256k1 (Debian: apt install libsecp256k1-1)";
  return finding("verification", "note", `${verifier.engine}; ${advice}`);
}

async function port(config: Config): Promise<Finding> {
  const address = hostPortText(config.bindAddress);
  const failure = await tryListening(config.bindAddress);
  if (failure === undefined) return finding("port", "ok", `${address} is free`);
  const reply = await ask(`${serverUrl(config)}/healthz`);
  if (failure === "EADDRINUSE" && reply?.status === 200)
    return finding("port", "note", `a server answers at ${address}`);
  return finding("port", "bad", `${address} cannot be used (${failure}): choose another with NGIT_BIND_ADDRESS`);
}

function tryListening({ host, port: number }: HostPort): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen(number, host, () => server.close(() => resolve(undefined)));
  });
}

async function disk(check: string, path: string, config: Config): Promise<Finding> {
  try {
    await mkdir(path, { recursive: true });
    const { blocks, bavail, bsize } = await statfs(path);
    const usedPercent = blocks > 0 ? Math.round((1 - bavail / blocks) * 100) : 0;
    const detail = `${path}: ${Math.round((bavail * bsize) / 2 ** 20)} MiB free, ${usedPercent} % used`;
    if (usedPercent >= config.diskEventsMaxPercent) return finding(check, "bad", `${detail}: events are refused`);
    if (usedPercent >= config.diskPushMaxPercent) return finding(check, "note", `${detail}: pushes are refused`);
    return finding(check, "ok", detail);
  } catch (error) {
    return finding(check, "bad", `${path} cannot be used (${(error as NodeJS.ErrnoException).code ?? String(error)})`);
  }
}

/** A clock far in the past refuses everybody's events as coming from the future. The program itself is a witness. */
function clock(abilities: Abilities): Finding {
  const nowMs = abilities.clock.nowMs();
  const now = new Date(nowMs).toISOString();
  const builtMs = statSync(new URL(import.meta.url)).mtimeMs;
  if (nowMs < builtMs - 86_400_000)
    return finding("clock", "bad", `${now} is before this program was built: set the clock`);
  const isKept = existsSync("/run/systemd/timesync/synchronized") || existsSync("/run/chrony/chronyd.pid");
  return finding(
    "clock",
    isKept ? "ok" : "note",
    isKept ? `${now}, synchronised` : `${now}; is a time service running?`,
  );
}

async function names(config: Config): Promise<Finding[]> {
  const relays = config.syncBootstrapRelayUrl.map((url) => new URL(url).hostname);
  const hosts = new Set([new URL(`http://${config.domain}`).hostname, ...relays]);
  hosts.delete("localhost");
  return Promise.all(
    [...hosts].map(async (host) => {
      try {
        const { address } = await lookup(host.replace(/^\[|\]$/g, ""));
        return finding("dns", "ok", `${host} is ${address}`);
      } catch (error) {
        return finding("dns", "bad", `${host} does not resolve (${(error as NodeJS.ErrnoException).code ?? "error"})`);
      }
    }),
  );
}
