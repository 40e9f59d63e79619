// Settings that say they follow a reload do, without a restart (configuration.md, "reload on SIGHUP").

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Person } from "./harness/grasp-people.js";
import { RelayClient } from "./harness/relay-client.js";
import { type ChildServer, newFolder, removeFolder, startChild, until } from "./harness/server.js";

describe("after a reload the server goes by", () => {
  let folder: string;
  let file: string;
  let server: ChildServer;
  let other: Server;
  const asked: string[] = [];

  before(async () => {
    folder = await newFolder();
    file = join(folder, "holdfast.conf");
    await writeFile(file, "");
    server = await startChild({ folder, args: ["--config", file] });
    other = createServer((request, response) => {
      asked.push(request.url ?? "");
      response.writeHead(404).end();
    });
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  });

  after(async () => {
    await server.stop();
    other.close();
    await removeFolder(folder);
  });

  const reload = async (text: string): Promise<void> => {
    await writeFile(file, text);
    server.child.kill("SIGHUP");
  };
  const otherPort = (): number => (other.address() as AddressInfo).port;

  it("the new list of trusted proxies", async () => {
    const uniqueIps = async (): Promise<string | undefined> => {
      const visitors = await Promise.all(
        ["203.0.113.1", "203.0.113.2"].map((ip) =>
          RelayClient.connect(`ws://${server.domain}`, { headers: { "X-Forwarded-For": ip } }),
        ),
      );
      const text = await (await fetch(`${server.origin}/metrics`)).text();
      await Promise.all(visitors.map((visitor) => visitor.close()));
      return /^ngit_websocket_unique_ips (\d+)$/m.exec(text)?.[1];
    };
    assert.equal(await uniqueIps(), "2");
    await reload("NGIT_TRUSTED_PROXIES=10.0.0.0/8\n");
    assert.ok(await until(async () => (await uniqueIps()) === "1", 30_000), "the header is still believed");
  });

  it("the new bound on created_at", async () => {
    const client = await server.connect();
    const person = new Person();
    const tags = [
      ["d", "tomorrow"],
      ["clone", `${server.origin}/${person.npub}/tomorrow.git`],
      ["relays", `ws://${server.domain}`],
    ];
    const event = person.sign(30617, tags, "", Math.floor(Date.now() / 1_000) + 6 * 3_600);
    assert.match(String((await client.publish(event))[3]), /too far in the future/);
    await reload("NGIT_MAX_FUTURE_SECS=12h\n");
    assert.ok(await until(async () => (await client.publish(event))[2] === true, 30_000), "it is still refused");
    await client.close();
  });

  it("the new bootstrap relays", async () => {
    const relay = `127.0.0.1:${otherPort()}`;
    const relays = async (): Promise<string> => await (await fetch(`${server.origin}/api/sync`)).text();
    assert.ok(!(await relays()).includes(relay));
    await reload(`NGIT_SYNC_BOOTSTRAP_RELAY_URL=ws://${relay}\n`);
    assert.ok(await until(async () => (await relays()).includes(relay), 30_000), "it is not followed");
  });

  it("the new delay of the first hunt", async () => {
    const client = await server.connect();
    const person = new Person();
    let count = 0;
    const announce = async (): Promise<void> => {
      const identifier = `hunted-${count++}`;
      const answers = [];
      for (const event of [
        person.sign(30617, [
          ["d", identifier],
          [
            "clone",
            `${server.origin}/${person.npub}/${identifier}.git`,
            `http://127.0.0.1:${otherPort()}/${identifier}`,
          ],
          ["relays", `ws://${server.domain}`],
        ]),
        person.sign(30618, [
          ["d", identifier],
          ["refs/heads/main", "1".repeat(40)],
        ]),
      ]) {
        answers.push((await client.publish(event))[2]);
      }
      assert.deepEqual(answers, [true, true]);
    };
    const isHunted = (): boolean => asked.some((path) => path.startsWith("/hunted-"));
    await reload("NGIT_GIT_HUNT_DIRECT_DELAY_MS=0\n");
    const isTaken = await until(async () => {
      if (!isHunted()) await announce();
      return await until(isHunted, 1_000);
    }, 30_000);
    assert.ok(isTaken, "the hunt still waits for its three minutes");
    await client.close();
  });
});
