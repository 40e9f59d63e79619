// The least a relay on Node can cost: `ws` alone, which decides nothing, keeps nothing and answers every REQ with the
// same event, or with none. An EVENT goes to all other sockets as it came, by one bare write each; or, with BARE_TAKES, it
// is parsed, its signature is checked, and it is answered. In a process of its own; says its port by message.

import "./ends-with-parent.js";
import type { AddressInfo, Socket } from "node:net";
import { WebSocketServer } from "ws";
import type { NostrEvent } from "../src/nostr/event.js";
import { packSignatures, type SchnorrEngine, verifyPacked } from "../src/nostr/verify/engines.js";
import { eventPrefix } from "../src/relay/messages.js";
import { eventFrame } from "../src/relay/outbox.js";
import { bareEngine } from "./ingest.js";

const eventBytes = Number(process.env.BARE_EVENT_BYTES);

const event = Buffer.from(`["EVENT","q","${"x".repeat(eventBytes)}"]`);
const end = Buffer.from('["EOSE","q"]');
const asText = { binary: false };
const beginningOfEvent = '["EVENT",';
const prefix = eventPrefix("s");

const listening = new Set<Socket>();

const engine = process.env.BARE_TAKES === undefined ? undefined : await bareEngine();

/** The OK of an event, if its signature is good. */
function taken(frame: Buffer, by: SchnorrEngine): string {
  const [, event] = JSON.parse(frame.toString()) as [string, Pick<NostrEvent, "id" | "pubkey" | "sig">];
  const [isGood] = verifyPacked(by, packSignatures([event]));
  return JSON.stringify(["OK", event.id, isGood === 1, ""]);
}

const server = new WebSocketServer({ port: 0, host: "127.0.0.1", perMessageDeflate: false, skipUTF8Validation: true });
server.on("connection", (socket, { socket: stream }) => {
  listening.add(stream);
  socket.on("close", () => listening.delete(stream));
  socket.on("message", (data: Buffer) => {
    if (data.toString("latin1", 0, beginningOfEvent.length) === beginningOfEvent) {
      if (engine) {
        socket.send(taken(data, engine));
        return;
      }
      const frame = eventFrame(prefix, data.subarray(beginningOfEvent.length, -1));
      for (const other of listening) if (other !== stream) other.write(frame);
      return;
    }
    if (eventBytes > 0) socket.send(event, asText);
    socket.send(end, asText);
  });
});
server.on("listening", () => process.send?.((server.address() as AddressInfo).port));
