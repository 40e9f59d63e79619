// Fuzz: request lines by hand against the started server. No answer is a 5xx, none contains anything from outside the
// repositories, and nothing on disk is changed by them (threats 3, 5 and 31).

import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import fc from "fast-check";
import { RelayWorld } from "../threats/relay-world.js";
import { parameters, runs, spiced } from "./runs.js";

/** The whole answer to one request, as bytes came; empty when the server only hung up. */
function exchange(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    const parts: Buffer[] = [];
    socket.setTimeout(30_000, () => socket.destroy(new Error("no answer in 30 s")));
    socket.on("data", (part: Buffer) => parts.push(part));
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "ECONNRESET" && error.code !== "EPIPE") reject(error);
    });
    socket.on("close", () => resolve(Buffer.concat(parts).toString("latin1")));
    socket.end(text, "latin1");
  });
}

const atOnce = 10;
const percentEncoded = (char: string): string => Buffer.from(char).toString("hex").replace(/../g, "%$&");

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true });
  // The database's own files may grow by themselves.
  return entries.filter((entry) => !entry.startsWith("relay")).sort();
}

describe("fuzz: HTTP paths", { timeout: 600_000 }, () => {
  test("random paths, methods and headers get no 5xx and nothing from outside the repositories", async (t) => {
    const world = await RelayWorld.start(t);
    const { folder, gitPath, domain } = world.server;
    await writeFile(join(folder, "canary"), "CANARY-OUTSIDE");
    await writeFile(join(gitPath, "canary"), "CANARY-BESIDE");
    const serverKey = (await readFile(join(folder, "relay", "server.key"), "utf8")).trim();
    const npub = world.owner.npub;
    const before = await filesBelow(folder);
    const pieces = [
      ...[
        "/",
        "//",
        "/./",
        "/../",
        "..",
        "%2e%2e",
        "%2E%2e%2f",
        "..%2f",
        "%2f",
        "%5c",
        "\\",
        "%00",
        "%0a",
        "%0d%0a",
        "%",
        "%zz",
        "%ff",
      ],
      ...[
        npub,
        `/${npub}/target.git`,
        "/target.git",
        ".git",
        "target",
        "canary",
        "relay/server.key",
        "config",
        "HEAD",
        "hooks",
      ],
      ...[
        "/info/refs",
        "?service=git-upload-pack",
        "?service=git-receive-pack",
        "/git-upload-pack",
        "/git-receive-pack",
        "/objects/pack",
      ],
      ...[
        "/prs/",
        "/api/",
        "/metrics",
        "/status",
        "/admin",
        "/badge/",
        ".svg",
        "?",
        "#",
        ";",
        "&",
        "=",
        "@",
        ":",
        "*",
        "~",
        "é",
        "\u202e",
      ],
      ...["http://x", "/assets/", "/.well-known/nostr.json", "?name=", "\x01", "\x7f", "\xff", "a".repeat(300)],
    ];
    const path = fc.oneof(
      spiced(pieces, 7).map((text) => `/${text}`),
      spiced(pieces, 4).map((text) => `/${npub}/${text}`),
      spiced(pieces, 4).map((text) => `/${npub}/target.git/${text}`),
      spiced(pieces, 5),
    );
    const method = fc.oneof(
      { weight: 6, arbitrary: fc.constant("GET") },
      fc.constantFrom("HEAD", "POST", "PUT", "OPTIONS", "DELETE", "PROPFIND", "TRACE", "get", "X"),
    );
    const header = fc.constantFrom(
      "Accept: text/html",
      "Accept: application/nostr+json",
      "Content-Type: application/x-git-upload-pack-request",
      "Git-Protocol: version=2",
      "Content-Encoding: gzip",
      "Range: bytes=0-",
      "X-Forwarded-For: 1.2.3.4",
      "Content-Length: 4",
      "Expect: 100-continue",
      "Authorization: Nostr e30=",
      "A:",
    );
    const isRaw = fc.integer({ min: 0, max: 9 }).map((roll) => roll === 0);
    const counts = new Map<string, number>();
    const one = async (verb: string, target: string, raw: boolean, headers: readonly string[]) => {
      // Mostly as a browser would encode it; now and then as bytes that no request line may have.
      const bytes = Buffer.from(raw ? target : target.replace(/[^\x21-\x7e]/g, percentEncoded)).toString("latin1");
      const lines = [`${verb} ${bytes} HTTP/1.1`, "Host: x", "Connection: close", ...headers];
      const body = headers.includes("Content-Length: 4") ? "0000" : "";
      const whole = await exchange(Number(domain.split(":")[1]), `${lines.join("\r\n")}\r\n\r\n${body}`);
      const answer = whole.replace(/^HTTP\/1\.1 100 Continue\r\n\r\n/, "");
      const status = /^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1];
      counts.set(status ?? "none", (counts.get(status ?? "none") ?? 0) + 1);
      assert.ok(status === undefined ? answer === "" : Number(status) < 500, answer.slice(0, 300));
      for (const secret of ["CANARY", serverKey, folder, "[core]", "repositoryformatversion"]) {
        assert.ok(!answer.includes(secret), `${secret} in the answer: ${answer.slice(0, 300)}`);
      }
      const end = answer.indexOf("\r\n\r\n");
      const head = end < 0 ? answer : answer.slice(0, end);
      for (const line of head.split("\r\n").slice(1))
        assert.match(line, /^[\w-]+: [\x20-\x7e\x80-\xff]*$/, "a header was split");
    };
    const request = fc.tuple(method, path, isRaw, fc.uniqueArray(header, { maxLength: 3 }));
    await fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: atOnce, maxLength: atOnce }), async (requests) => {
        await Promise.all(requests.map((asked) => one(...asked)));
      }),
      parameters(30),
    );
    t.diagnostic(
      `${runs(30) * atOnce} requests: ${[...counts].map(([status, count]) => `${status}: ${count}`).join(", ")}`,
    );
    assert.deepEqual(await filesBelow(folder), before, "nothing was made or removed");
    assert.equal(world.server.child.exitCode, null);
    assert.doesNotMatch(world.server.log(), /"level":"(?:error|fatal)"/);
    assert.ok((counts.get("200") ?? 0) > 0 && (counts.get("404") ?? 0) > 0);
  });
});
