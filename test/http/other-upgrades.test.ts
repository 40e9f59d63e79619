// Whoever offers HTTP/2 on plain http, as git does with http.version=HTTP/2, is served as anybody: an offer need not be
// taken up (RFC 9110, 7.8). WebSockets are still opened.

import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, describe, it } from "node:test";
import { runProgram } from "../harness/git-server.js";
import { Person } from "../harness/grasp-people.js";
import { Story } from "../harness/grasp-story.js";

const offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n";

describe("an offer of another protocol", () => {
  let story: Story;
  before(async () => {
    story = await Story.begin();
  });
  after(() => story.end());

  it("does not keep git from pushing, listing and cloning", async () => {
    const person = new Person();
    const work = await story.workingCopy();
    const tip = await work.commit("one");
    await story.announce(person, "offered");
    await story.state(person, "offered", { "refs/heads/main": tip });
    const url = story.url(person, "offered");
    await work.must("-c", "http.version=HTTP/2", "push", "-q", url, "main");
    const listed = await runProgram("git", ["-c", "http.version=HTTP/2", "ls-remote", url]);
    assert.match(listed.stdout, new RegExp(`^${tip}\trefs/heads/main$`, "m"), listed.stderr);
    const target = `${story.server.folder}/clone`;
    const cloned = await runProgram("git", ["-c", "http.version=HTTP/2", "clone", "-q", url, target]);
    assert.equal(cloned.code, 0, cloned.stderr);
  });

  it("is read with its body, and the next request on the connection is answered too", async () => {
    const last = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    for (const [first, status] of [
      [`POST /api/nothing HTTP/1.1\r\nHost: x\r\n${offer}Content-Length: 5\r\n\r\nhello`, 401],
      [`GET /healthz HTTP/1.1\r\nHost: x\r\n${offer}\r\n`, 200],
      [`OPTIONS /x HTTP/1.1\r\nHost: x\r\n${offer}\r\n`, 204],
    ] as const) {
      const text = await inTurn(story.server.origin, first, last);
      const statuses = [...text.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, code]) => Number(code));
      assert.deepEqual(statuses, [status, 200], text);
    }
  });
});

/** The second request is sent when the first is answered, on the same connection. */
function inTurn(origin: string, first: string, second: string): Promise<string> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(Number(port), hostname, () => socket.write(first));
    socket.once("data", () => socket.write(second));
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(text));
  });
}
