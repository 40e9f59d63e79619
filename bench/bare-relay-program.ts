// The least a relay on Node can cost: `ws` alone, which decides nothing, keeps nothing and answers every REQ with the
// same event, or with none. In a process of its own; says its port by message.

import "./ends-with-parent.js";
import type { AddressInfo } from "node:net";
import { WebSocketServer } from "ws";

const eventBytes = Number(process.env.BARE_EVENT_BYTES);

const event = Buffer.from(`["EVENT","q","${"x".repeat(eventBytes)}"]`);
const end = Buffer.from('["EOSE","q"]');
const asText = { binary: false };

const server = new WebSocketServer({ port: 0, host: "127.0.0.1", perMessageDeflate: false, skipUTF8Validation: true });
server.on("connection", (socket) => {
  socket.on("message", () => {
    if (eventBytes > 0) socket.send(event, asText);
    socket.send(end, asText);
  });
});
server.on("listening", () => process.send?.((server.address() as AddressInfo).port));
