// A server with something to look after: a relay that works and one that does not, repositories in every condition,
// events that wait, bans, and a log. The real program in a process of its own.

import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { SecretKey } from "../../src/nostr/keys.js";
import { npubOf } from "../../src/nostr/nip19.js";
import { newKey, OperatorServer, signed } from "../harness/operator-server.js";
import type { RelayClient } from "../harness/relay-client.js";
import { PlainRelay } from "../harness/sync-plain-relay.js";
import { until } from "../harness/sync-server.js";

export interface AdminScene {
  readonly server: OperatorServer;
  readonly client: RelayClient;
  readonly relay: PlainRelay;
  readonly owner: SecretKey;
  /** npub/identifier of a served repository. */
  readonly served: string;
  /** A state that waits for this object. */
  readonly waiting: { readonly id: string; readonly missing: string };
  newLink(): Promise<string>;
  close(): Promise<void>;
}

/** A repository with so many bytes in it. */
async function hostLarge(
  server: OperatorServer,
  client: RelayClient,
  key: SecretKey,
  identifier: string,
  bytes: number,
): Promise<void> {
  const { folder } = server.commit();
  await writeFile(join(folder, "soundings.bin"), randomBytes(bytes));
  await server.git("-C", folder, "add", "--all");
  await server.git("-C", folder, "commit", "--quiet", "-m", "Soundings of the outer harbour");
  const oid = (await server.git("-C", folder, "rev-parse", "HEAD")).stdout.trim();
  await client.publish(server.announcement(key, identifier));
  await client.publish(
    signed(key, 30618, [
      ["d", identifier],
      ["refs/heads/main", oid],
      ["HEAD", "ref: refs/heads/main"],
    ]),
  );
  const pushed = await server.git("-C", folder, "push", server.repositoryUrl(key, identifier), "main");
  if (pushed.code !== 0) throw new Error(pushed.stderr);
}

const deadRelay = "ws://127.0.0.1:9";

export async function setAdminScene(): Promise<AdminScene> {
  const relay = await PlainRelay.start();
  const server = await OperatorServer.start({
    NGIT_RELAY_NAME: "harbour.example",
    NGIT_SYNC_BOOTSTRAP_RELAY_URL: relay.url,
    NGIT_SYNC_STARTUP_JITTER_MS: "0",
    NGIT_SYNC_BATCH_WINDOW_MS: "50",
    NGIT_GIT_HUNT_DIRECT_DELAY_MS: "200",
    NGIT_PARTIAL_STATE_GRACE_SECS: "1",
    NGIT_REPOSITORY_BLACKLIST: "lottery-tickets",
    NGIT_REPOSITORY_MAX_BYTES: String(8 * 2 ** 20),
    NGIT_NPUB_MAX_BYTES: String(16 * 2 ** 20),
  });
  const client = await server.connect();
  const [owner, second] = [newKey(), newKey()];
  await hostLarge(server, client, owner, "tidewater", 3 * 2 ** 20);
  await hostLarge(server, client, owner, "charts", 2 ** 20);
  await server.host(client, second, "knots");
  const newer = server.announcement(owner, "charts", Math.floor(Date.now() / 1000) + 1, [["relays", deadRelay]]);
  await client.publish(newer);

  await client.publish(server.announcement(newKey(), "sextant"));
  const waiter = newKey();
  const missing = "5e".repeat(20);
  await client.publish(
    server.announcement(waiter, "tide-tables", undefined, [["clone", "http://127.0.0.1:9/mirror/tide-tables.git"]]),
  );
  const state = signed(waiter, 30618, [
    ["d", "tide-tables"],
    ["refs/heads/main", missing],
    ["refs/heads/next", "6f".repeat(20)],
    ["HEAD", "ref: refs/heads/main"],
  ]);
  await client.publish(state);
  await server.operate("repos.delete", { repository: `${npubOf(second.pubkey)}/knots`, reason: "its owner asked" });
  await server.operate("ban", { type: "key", target: npubOf(newKey().pubkey), reason: "sells watches" });
  await server.operate("ban", { type: "ip", target: "203.0.113.0/24", reason: "scans all night" });
  await server.operate("lists.add", {
    list: "repository-blacklist",
    entry: npubOf(newKey().pubkey),
    reason: "copies of others' work",
  });
  await server.operate("kinds.set", { kind: 1985, taken: false, reason: "labels are not moderated here" });
  await server.operate("relays.ignore", { relay: "wss://noisy.example.com", reason: "sends the same again and again" });
  interface Purgatory {
    readonly waiting: readonly { readonly asked: readonly object[] }[];
  }
  interface Relays {
    readonly relays: readonly { readonly failures: number; readonly state: string }[];
  }
  const asked = async (): Promise<boolean> =>
    (await server.operate<Purgatory>("purgatory.list", {})).waiting.some((line) => line.asked.length > 0);
  const isTroubled = async (): Promise<boolean> => {
    const { relays } = await server.operate<Relays>("relays.list", {});
    return relays.some(({ failures }) => failures > 0) && relays.some(({ state: word }) => word === "live");
  };
  await until("a git server was asked", asked, 120_000);
  await until("one relay is in trouble and one is not", isTroubled, 120_000);
  return {
    server,
    client,
    relay,
    owner,
    served: `${npubOf(owner.pubkey)}/tidewater`,
    waiting: { id: state.id, missing },
    newLink: async () => (await server.operate<{ url: string }>("admin.link", {})).url,
    async close() {
      await client.close();
      await server.close();
      await relay.stop();
    },
  };
}
