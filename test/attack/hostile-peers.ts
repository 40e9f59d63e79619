// Peers that misbehave, named by an announcement of the attackers so that the server follows them: relays with every bad
// habit and one that only pings, a git server that advertises without end (security.md, rows 29, 36, 44, 49).

import { randomBytes } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { npubOf } from "../../src/nostr/nip19.js";
import { pkt } from "../harness/raw-http.js";
import { type Habit, habits, RogueRelay } from "../threats/relay-rogues.js";
import type { Stranger } from "./stranger.js";

const identifier = "bait";

/** Pings as fast as its own side takes them, and reads nothing. */
const onlyPings: Habit = {
  opened: (_say, socket) => {
    socket.pause();
    const timer = setInterval(() => {
      if (socket.bufferedAmount > 10_000_000) return;
      for (let count = 0; count < 500; count++) socket.ping(Buffer.alloc(125));
    }, 20);
    socket.on("close", () => clearInterval(timer));
  },
};

function endlessAdvertisement(host: string): Promise<Server> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { "Content-Type": "application/x-git-upload-pack-advertisement" });
    response.write(Buffer.concat([pkt("# service=git-upload-pack\n"), Buffer.from("0000")]));
    const line = (): Buffer =>
      pkt(`${randomBytes(20).toString("hex")} refs/heads/${randomBytes(100).toString("hex")}\n`);
    const more = (): void => {
      for (let count = 0; count < 100; count++) if (!response.write(line())) return;
      setImmediate(more);
    };
    response.on("drain", more);
    more();
  });
  return new Promise((resolve) => server.listen(0, host, () => resolve(server)));
}

/** Answers the function that ends them. */
export async function startHostilePeers(stranger: Stranger): Promise<() => void> {
  const { port } = stranger.target;
  const bad = Object.entries({ ...habits([], {}), "only pings": onlyPings });
  const relays = await Promise.all(bad.map(([name, habit], at) => RogueRelay.start(name, `127.0.1.${at + 1}`, habit)));
  const git = await endlessAdvertisement("127.0.2.1");
  const npub = npubOf(stranger.key.pubkey);
  const clones = [`http://127.0.0.1:${port}`, `http://127.0.2.1:${(git.address() as AddressInfo).port}`];
  const announcement = [
    ["d", identifier],
    ["clone", ...clones.map((origin) => `${origin}/${npub}/${identifier}.git`)],
    ["relays", `ws://127.0.0.1:${port}`, ...relays.map(({ url }) => url)],
  ];
  const state = [
    ["d", identifier],
    ["refs/heads/main", randomBytes(20).toString("hex")],
  ];
  await stranger.talk([stranger.event(30617, announcement), stranger.event(30618, state)], 2);
  return () => {
    for (const relay of relays) relay.stop();
    git.closeAllConnections();
    git.close();
  };
}
