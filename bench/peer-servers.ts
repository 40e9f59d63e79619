// The servers of `bench -- peers`: this one, other builds of it, and whatever else the command line names. They are
// started by a command (and can then be started twice, and timed), or run already and are told by port and process.

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { calledWrongly } from "../src/base/testing/program.js";
import { freePort, raisedLimits } from "./processes.js";
import { raisedSettings } from "./scene.js";

/** A server that answers now. */
export interface PeerServer {
  readonly port: number;
  readonly pid: number;
  close(): Promise<void>;
}

interface Named {
  readonly name: string;
  /** Whether it hosts git where GRASP says. */
  readonly hasGit: boolean;
}

export type Peer = Named &
  (
    | { readonly type: "command"; readonly command: string; readonly isOurs: boolean }
    | { readonly type: "running"; readonly port: number; readonly pid: number }
  );

export interface PeerOptions {
  readonly server: readonly string[];
  readonly command: readonly string[];
  readonly build: readonly string[];
}

export const peersUsage = `With peers:
  --server name[+git]=ws://127.0.0.1:<port>,pid=<n>   a server that runs already and is empty
  --command 'name[+git]=<command>'                    one to start; {port}, {folder} and {peer} are filled in ({peer}: the
                                                      WebSocket URL of the server it should follow, or nothing)
  --build name=<folder>                               another built checkout of this project
  --works <words>                                     only works whose name contains one of these (comma-separated)
+git: it hosts git at the same port, where GRASP says. All may be given several times.`;

const root = fileURLToPath(new URL("../..", import.meta.url));

export function peersOf({ server, command, build }: PeerOptions): Peer[] {
  const peers = [
    ours("holdfast", root),
    ...build.map((text) => {
      const { name, rest } = named(text, "build");
      return ours(name, resolve(rest));
    }),
    ...command.map((text): Peer => {
      const { name, hasGit, rest } = named(text, "command");
      return { type: "command", name, hasGit, command: rest, isOurs: false };
    }),
    ...server.map((text): Peer => {
      const { name, hasGit, rest } = named(text, "server");
      const found = /^ws:\/\/(?:127\.0\.0\.1|localhost):(\d+)\/?,pid=(\d+)$/.exec(rest);
      if (!found) return calledWrongly(`--server ${text}: it must be name=ws://127.0.0.1:<port>,pid=<n>`);
      return { type: "running", name, hasGit, port: Number(found[1]), pid: Number(found[2]) };
    }),
  ];
  const names = peers.map(({ name }) => name);
  if (new Set(names).size < names.length) calledWrongly("two servers have the same name");
  return peers;
}

function ours(name: string, folder: string): Peer {
  const command = `exec '${process.execPath}' '${join(folder, "bin", "holdfast")}' serve`;
  return { type: "command", name, hasGit: true, command, isOurs: true };
}

function named(text: string, option: string): { name: string; hasGit: boolean; rest: string } {
  const found = /^([\w.-]+)(\+git)?=(.+)$/.exec(text);
  if (!found) return calledWrongly(`--${option} ${text}: it must begin with name=`);
  return { name: found[1] as string, hasGit: found[2] !== undefined, rest: found[3] as string };
}

/** A checkout that is not built builds itself at its first start. */
const startWithinMs = 300_000;

/** Answers when its port is open. `follows` is the port of the server it should follow. */
export async function startPeer(
  { name, command, isOurs }: Extract<Peer, { type: "command" }>,
  folder: string,
  { port: wanted, follows }: { readonly port?: number; readonly follows?: number } = {},
): Promise<PeerServer & { readonly startMs: number }> {
  mkdirSync(folder, { recursive: true });
  const port = wanted ?? (await freePort());
  const peerUrl = follows === undefined ? "" : `ws://127.0.0.1:${follows}`;
  const filled = command
    .replaceAll("{port}", String(port))
    .replaceAll("{folder}", folder)
    .replaceAll("{peer}", peerUrl);
  const log = join(folder, "output");
  const output = openSync(log, "a");
  const environment = isOurs ? { ...process.env, ...ourSettings(port, folder, peerUrl) } : process.env;
  const began = performance.now();
  // In a group of its own: whatever it starts ends with it.
  const child = spawn("sh", ["-c", filled], { env: environment, stdio: ["ignore", output, output], detached: true });
  closeSync(output);
  const leave = (): void => signalGroup(child, "SIGKILL");
  process.once("exit", leave);
  child.once("exit", () => process.off("exit", leave));
  while (!(await isOpen(port))) {
    if (child.exitCode !== null || performance.now() - began > startWithinMs) {
      await end(child);
      throw new Error(`${name} did not open its port: ${readFileSync(log, "utf8").trim().slice(-300)}`);
    }
    await pause(2);
  }
  return { port, pid: child.pid as number, startMs: performance.now() - began, close: () => end(child) };
}

/** Everything comes from one address, which is also a private one. */
const ourSettings = (port: number, folder: string, peerUrl: string): Record<string, string> => ({
  ...raisedLimits,
  ...raisedSettings(`127.0.0.1:${port}`),
  NGIT_DATA_PATH: join(folder, "data"),
  NGIT_BIND_ADDRESS: `127.0.0.1:${port}`,
  NGIT_LOG_LEVEL: "warn",
  ...(peerUrl !== "" && { NGIT_SYNC_BOOTSTRAP_RELAY_URL: peerUrl }),
});

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

const endWithinMs = 10_000;

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  signalGroup(child, "SIGTERM");
  const late = setTimeout(() => signalGroup(child, "SIGKILL"), endWithinMs);
  await ended;
  clearTimeout(late);
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    process.kill(-(pid as number), signal);
  } catch {
    // It is gone.
  }
}
