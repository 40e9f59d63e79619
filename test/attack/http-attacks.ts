// Attacks over HTTP: paths, pages, health endpoints, git requests that stop, dribble or are never read (security.md, rows
// 32, 33, 41–43, 45, 53).

import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { nameOf } from "../../bench/traffic.js";
import { handMadePack, packHeader } from "../harness/git-packs.js";
import { pkt } from "../harness/raw-http.js";
import type { Attack } from "./relay-attacks.js";
import type { Stranger } from "./stranger.js";

const zeroId = "0".repeat(40);
const hexOf = (bytes: number): string => randomBytes(bytes).toString("hex");

function post(socket: Socket, path: string, service: string, length: number, headers: readonly string[] = []): void {
  const lines = [
    `POST ${path}/git-${service} HTTP/1.1`,
    "Host: 127.0.0.1",
    `Content-Type: application/x-git-${service}-request`,
    `Content-Length: ${length}`,
    ...headers,
  ];
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
}

const command = (ref: string, tip = hexOf(20)): Buffer =>
  Buffer.concat([pkt(`${zeroId} ${tip} ${ref}\0 report-status side-band-64k`), Buffer.from("0000")]);

const theirs = (stranger: Stranger): string => {
  const [repository = stranger.target.own] = stranger.target.repositories;
  return `/${nameOf(repository)}.git`;
};

const zeros = gzipSync(Buffer.alloc(64 * 2 ** 20), { level: 9 });

export const httpAttacks: readonly Attack[] = [
  { name: "a path of 15,700 slashes", workers: 4, attempt: (stranger) => stranger.get("/".repeat(15_700)) },
  {
    name: "readers of a page with 1 MB issues and a README that is slow to render",
    workers: 20,
    attempt: (stranger) => stranger.get(stranger.path),
  },
  {
    name: "health, readiness and metrics without end",
    workers: 3,
    attempt: async (stranger) => {
      for (const path of ["/readyz", "/healthz", "/metrics"]) await stranger.get(path);
    },
  },
  {
    name: "pushes that stop after PACK",
    workers: 40,
    attempt: (stranger) =>
      stranger.hold((socket) => {
        const head = command(`refs/nostr/${hexOf(32)}`);
        post(socket, theirs(stranger), "receive-pack", head.length + 1_000_000);
        socket.write(Buffer.concat([head, packHeader(1_000)]));
      }),
  },
  {
    name: "refused pushes that dribble",
    workers: 8,
    attempt: (stranger) =>
      stranger.hold((socket) => {
        const head = command("refs/heads/main");
        post(socket, theirs(stranger), "receive-pack", head.length + 1_000_000);
        socket.write(head);
        const drip = setInterval(() => socket.write("x"), 500);
        socket.on("close", () => clearInterval(drip));
      }),
  },
  {
    name: "refused pushes with gzip bombs",
    workers: 2,
    attempt: (stranger) =>
      stranger.hold((socket) => {
        post(socket, theirs(stranger), "receive-pack", zeros.length, ["Content-Encoding: gzip", "Connection: close"]);
        socket.end(zeros);
        socket.resume();
      }),
  },
  {
    name: "clones nobody reads",
    workers: 8,
    attempt: (stranger) =>
      stranger.hold((socket) => {
        socket.pause();
        const want = pkt(`want ${stranger.target.ownTip} ofs-delta no-progress\n`);
        const body = Buffer.concat([want, Buffer.from("0000"), pkt("done\n")]);
        post(socket, `${stranger.path}.git`, "upload-pack", body.length);
        socket.write(body);
      }),
  },
  {
    name: "fetch requests that are never finished",
    workers: 20,
    attempt: (stranger) =>
      stranger.hold((socket) => {
        post(socket, theirs(stranger), "upload-pack", 16_000_000);
        socket.write(Buffer.alloc(15_000_000, pkt(`have ${hexOf(20)}\n`)));
      }),
  },
  {
    name: "data for events nobody knows",
    workers: 2,
    attempt: (stranger) =>
      stranger.hold((socket) => {
        const pack = handMadePack([{ type: "blob", data: randomBytes(500_000) }]);
        const head = command(`refs/nostr/${hexOf(32)}`);
        post(socket, theirs(stranger), "receive-pack", head.length + pack.length, ["Connection: close"]);
        socket.end(Buffer.concat([head, pack]));
        socket.resume();
      }),
  },
];
