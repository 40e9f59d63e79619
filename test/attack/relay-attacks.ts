// Attacks over WebSocket (security.md, rows 35–40, 46–48, 54). Each entry is one attempt; it is repeated until the run is
// over by so many workers, each attack from an address of its own.

import { randomBytes } from "node:crypto";
import { frameOf, pingOpcode } from "../../bench/raw-client.js";
import { SecretKey } from "../../src/nostr/keys.js";
import { type Stranger, writeForEver } from "./stranger.js";

export interface Attack {
  readonly name: string;
  readonly workers: number;
  readonly attempt: (stranger: Stranger) => Promise<unknown>;
}

const hex = (): string => randomBytes(32).toString("hex");
const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const maskedFrame = (first: number, payload: Buffer): Buffer =>
  Buffer.concat([Buffer.from([first, 0x80 | payload.length]), Buffer.alloc(4), payload]);

const manyTagNames = `["REQ","x",${many(40, (filter) =>
  JSON.stringify(Object.fromEntries(many(100, (name) => [`#t${filter}x${name}`, ["v"]]))),
).join(",")}]`;
const manyKeys = `["REQ","k",{${many(400_000, (at) => `"k${at}":1`).join(",")}}]`;
const brackets = "[".repeat(5_000_000);
const pings = Buffer.concat(many(500, () => maskedFrame(0x80 | pingOpcode, Buffer.alloc(125))));
const noMessages = Buffer.concat(many(500, () => frameOf('["NOTHING",{"a":[1,2')));
/** Parts of a text message, each of which says that another follows. */
const fragments = Buffer.concat(many(500, () => maskedFrame(0x00, Buffer.alloc(120, 0x20))));

export const relayAttacks: readonly Attack[] = [
  {
    name: "events with 9,900 tags against filters with thousands of tag names",
    workers: 2,
    attempt: (stranger) => {
      const tags = [
        ["a", stranger.about()],
        ["subject", "x"],
        ...many(9_900, (at) => [`t${at % 40}x${at % 100}`, "w"]),
      ];
      return stranger.talk([manyTagNames, stranger.event(1621, tags)], 3);
    },
  },
  {
    name: "pings nobody reads the answers of",
    workers: 4,
    attempt: (stranger) =>
      stranger.holdWebSocket((socket) => {
        socket.pause();
        writeForEver(socket, pings);
      }),
  },
  {
    name: "messages that are never finished",
    workers: 4,
    attempt: (stranger) =>
      stranger.holdWebSocket((socket) => {
        socket.write(maskedFrame(0x01, Buffer.from("[")));
        writeForEver(socket, fragments);
      }),
  },
  { name: "5 MB of brackets", workers: 2, attempt: (stranger) => stranger.talk([brackets], 1) },
  { name: "a filter of 400,000 keys", workers: 2, attempt: (stranger) => stranger.talk([manyKeys], 1) },
  {
    name: "frames that are no messages",
    workers: 2,
    attempt: (stranger) => stranger.holdWebSocket((socket) => writeForEver(socket, noMessages)),
  },
  {
    name: "subscriptions nobody reads, and large events for them",
    workers: 20,
    attempt: (stranger) =>
      stranger.holdWebSocket((socket) => {
        socket.pause();
        for (const at of many(20, Number)) {
          socket.write(frameOf(JSON.stringify(["REQ", `s${at}`, { "#a": [stranger.aboutOwn], kinds: [1621] }])));
        }
        socket.write(
          frameOf(
            stranger.event(
              1621,
              [
                ["a", stranger.aboutOwn],
                ["subject", "x"],
              ],
              "x".repeat(100_000),
            ),
          ),
        );
      }, 30_000),
  },
  {
    name: "deletions of 1,000 targets",
    workers: 2,
    attempt: (stranger) =>
      stranger.talk(
        many(20, () =>
          stranger.event(
            5,
            many(1_000, () => ["e", hex()]),
          ),
        ),
        20,
      ),
  },
  {
    name: "keys that write a hundred comments and vanish",
    workers: 1,
    attempt: (stranger) => {
      const key = SecretKey.generate(randomBytes);
      const written = many(100, (at) =>
        stranger.event(
          1621,
          [
            ["a", stranger.about(at)],
            ["subject", `${at}`],
          ],
          "",
          key,
        ),
      );
      return stranger.talk([...written, stranger.event(62, [["relay", "ALL_RELAYS"]], "", key)], written.length + 1);
    },
  },
  {
    name: "issues of 1 MB without end",
    workers: 4,
    attempt: (stranger) => {
      const key = SecretKey.generate(randomBytes);
      const tags = [
        ["a", stranger.aboutOwn],
        ["subject", "x"],
      ];
      return stranger.talk([stranger.event(1621, tags, "x".repeat(1_000_000), key)], 1);
    },
  },
  {
    name: "pull requests that name every repository and whose commits never come",
    workers: 1,
    attempt: async (stranger) => {
      const tags = [...stranger.target.repositories.map((_, at) => ["a", stranger.about(at)]), ["c", hex().slice(24)]];
      await stranger.talk([stranger.event(1618, tags)], 1);
      await new Promise((resolve) => setTimeout(resolve, 250));
    },
  },
  {
    name: "filters of thousands of values held open",
    workers: 10,
    attempt: (stranger) =>
      stranger.holdWebSocket((socket) => {
        for (const at of many(40, Number)) {
          socket.write(frameOf(JSON.stringify(["REQ", `f${at}`, { "#e": many(5_000, hex), limit: 0 }])));
        }
        socket.resume();
      }, 30_000),
  },
  {
    name: "an announcement that is replaced at full speed",
    workers: 1,
    attempt: (stranger) => {
      const { port, own } = stranger.target;
      const key = SecretKey.fromHex(own.secretHex);
      const tags = [
        ["d", own.identifier],
        ["name", hex()],
        ["clone", `http://127.0.0.1:${port}/${own.npub}/${own.identifier}.git`],
        ["relays", `ws://127.0.0.1:${port}`],
      ];
      return stranger.talk(
        many(20, () => stranger.event(30617, tags, "", key)),
        20,
      );
    },
  },
];
