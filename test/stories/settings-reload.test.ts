// Limits and lists that say they reload really do, without a restart (configuration.md).

import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it, test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import { Domains } from "../../src/hunt/core/domains.js";
import { huntConfig } from "../../src/hunt/core/testing/config.js";
import { until as untilHunted } from "../harness/hunt-house.js";
import { huntWorld } from "../harness/hunt-world.js";
import { keyOf, sign } from "../harness/relay-events.js";
import { type ChildServer, newFolder, removeFolder, startChild, until } from "../harness/server.js";

const small = "NGIT_MAX_CONNECTIONS_PER_IP=2\nNGIT_MAX_EVENT_BYTES=32KiB\n";

describe("after SIGHUP", () => {
  let folder: string;
  let file: string;
  let server: ChildServer;

  before(async () => {
    folder = await newFolder();
    file = join(folder, "holdfast.conf");
    await writeFile(file, `${small}NGIT_MAX_MESSAGE_BYTES=64KiB\n`);
    server = await startChild({ folder, args: ["--config", file] });
  });
  after(async () => {
    await server.stop();
    await removeFolder(folder);
  });

  const reload = async (settings: string): Promise<void> => {
    await writeFile(file, settings);
    server.child.kill("SIGHUP");
  };

  it("events may be as far ahead of the clock as the new setting says", async () => {
    const client = await server.connect();
    const publish = async (): Promise<boolean> => {
      const created_at = Math.floor(Date.now() / 1000) + 3_000;
      const event = sign(keyOf("ahead"), { kind: 10317, created_at, tags: [["g", "wss://relay.example.com"]] });
      const [, , accepted] = await client.publish(event);
      return accepted === true;
    };
    assert.equal(await publish(), false);
    await reload(`${small}NGIT_MAX_MESSAGE_BYTES=64KiB\nNGIT_MAX_FUTURE_SECS=2h\n`);
    assert.ok(await until(publish, 120_000));
    await client.close();
  });

  it("a larger message is read on a new connection", async () => {
    const isRead = async (): Promise<boolean> => {
      const client = await server.connect();
      const heard = client.next(([verb]) => verb === "NOTICE").then(() => true);
      const closed = once(client.socket, "close").then(() => false);
      client.send("NOT-KNOWN", "x".repeat(200_000));
      const isHeard = await Promise.race([heard, closed]);
      await client.close();
      return isHeard;
    };
    assert.equal(await isRead(), false);
    await reload(`${small}NGIT_MAX_MESSAGE_BYTES=1MiB\n`);
    assert.ok(await until(isRead, 120_000));
  });

  it("a relay that joined the bootstrap list is followed", async () => {
    const relay = new WebSocketServer({ host: "127.0.0.1", port: 0 });
    await once(relay, "listening");
    const dialled = once(relay, "connection");
    await reload(`${small}NGIT_SYNC_BOOTSTRAP_RELAY_URL=ws://127.0.0.1:${(relay.address() as AddressInfo).port}\n`);
    await dialled;
    for (const socket of relay.clients) socket.terminate();
    relay.close();
  });

  it("another list of trusted proxies decides who a client is", async () => {
    const url = server.origin.replace("http", "ws");
    const open = new Set<WebSocket>();
    const mayEnter = (forwardedFor: string): Promise<boolean> =>
      new Promise((resolve) => {
        const socket = new WebSocket(url, { headers: { "X-Forwarded-For": forwardedFor } });
        open.add(socket);
        socket.once("open", () => resolve(true));
        socket.once("error", () => resolve(false));
      });
    for (const address of ["192.0.2.1", "192.0.2.2", "192.0.2.3"]) assert.equal(await mayEnter(address), true);
    await reload(`${small}NGIT_TRUSTED_PROXIES=198.51.100.0/24\n`);
    // All of them are this machine now: it has its two places, then no more.
    assert.ok(await until(async () => !(await mayEnter("192.0.2.9")), 120_000));
    for (const socket of open) socket.terminate();
  });
});

test("a hunt follows its settings when they change", async (context) => {
  const environment = { NGIT_GIT_HUNT_SYNC_DELAY_MS: "3600000" };
  const { house, work, remote } = await huntWorld(context, { environment });
  const owner = keyOf("reload owner");
  const tip = await work.commitFile("a", "one");
  await remote.publish("demo", work.path, { "refs/heads/main": tip });
  await house.announce(owner, "demo", [remote.url("demo")]);
  house.reload({ NGIT_GIT_HUNT_SYNC_DELAY_MS: "100", NGIT_GIT_HUNT_MAX_REQUESTS: "11" });
  const state = await house.state(owner, "demo", { "refs/heads/main": tip });
  await untilHunted("the state is served", () => house.isServed(state), 120_000);
  assert.deepEqual(house.faults, []);
});

test("a host that is known already gets new limits too", () => {
  const config = huntConfig({ gitDomainConcurrent: 1, gitDomainRate: 1 });
  const { throttle } = new Domains(config, () => undefined).get("git.example", 0);
  throttle.start(0);
  assert.equal(throttle.hasCapacity(0), false);
  Object.assign(config, { gitDomainConcurrent: 2, gitDomainRate: 2 });
  assert.equal(throttle.hasCapacity(0), true);
});
