// A data directory in which one repository is hosted already, so that events about it are admitted by the real rules.
// Written with admission's own functions; nothing of git is needed for that.

import { join } from "node:path";
import { createAdmissionPolicy } from "../src/admission/policy.js";
import { admissionSettings } from "../src/admission/settings.js";
import { applyVerdict } from "../src/admission/verdict.js";
import { catalogueRow, setCatalogueRow, withStatus } from "../src/catalogue/repositories.js";
import { removeWaiting, waitingAnnouncement, waitingEvent } from "../src/catalogue/waiting.js";
import { defaultConfig } from "../src/config/testing/default-config.js";
import { type ServiceName, serviceName } from "../src/net/url.js";
import type { Pubkey, VerifiedEvent } from "../src/nostr/event.js";
import { npubOf } from "../src/nostr/nip19.js";
import { openLmdbStore } from "../src/store/lmdb/open.js";
import { eventOf, pubkeyOf } from "../src/store/testing/events.js";

export const hostedDomain = "bench.example";
const owner: Pubkey = pubkeyOf(1);
const identifier = "hosted";
export const hostedRepository = `30617:${owner}:${identifier}`;

export const announcementOf = (author: number, name: string): VerifiedEvent =>
  eventOf({
    author,
    kind: 30_617,
    at: 1_600_000_000,
    tags: [
      ["d", name],
      ["name", name],
      ["description", "A repository that exists for a benchmark"],
      ["clone", `https://${hostedDomain}/${npubOf(pubkeyOf(author))}/${name}.git`],
      ["relays", `wss://${hostedDomain}`],
    ],
  });

export async function hostRepository(dataFolder: string): Promise<void> {
  const nowSeconds = Math.floor(Date.now() / 1_000);
  const policy = createAdmissionPolicy({
    ...admissionSettings(() => defaultConfig(), pubkeyOf(0), [serviceName(hostedDomain) as ServiceName]),
    adminKeys: () => new Set(),
  });
  const store = await openLmdbStore(join(dataFolder, "relay"));
  const event = announcementOf(1, identifier);
  const name = { owner, identifier };
  await store.transact(async (tx) => {
    const verdict = await policy(event, { reader: tx, source: { type: "import" }, nowSeconds });
    await applyVerdict(tx, event, verdict, nowSeconds);
    const entry = await waitingAnnouncement(tx, name);
    const row = await catalogueRow(tx, name);
    if (!entry || !row) throw new Error(`the announcement was not taken: ${JSON.stringify(verdict)}`);
    await removeWaiting(tx, entry.id);
    await tx.put(waitingEvent(entry));
    setCatalogueRow(tx, withStatus(row, "served", nowSeconds));
  });
  await store.close();
}
