// The other side of a bare socket, in a thread of its own: reads a length and as many bytes, answers with one byte.

import { connect } from "node:net";
import { workerData } from "node:worker_threads";

const socket = connect(workerData as number, "127.0.0.1");
socket.setNoDelay(true);
let left = 0;
socket.on("data", (bytes: Buffer) => {
  // A length comes in the first write, and nothing follows an answer before its byte has been sent back.
  left += left === 0 ? bytes.readUInt32BE(0) + 4 - bytes.length : -bytes.length;
  if (left === 0) socket.write(Buffer.of(1));
});
