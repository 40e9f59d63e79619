// Pushes a commit to refs/nostr/<id> with a stock git, as a contributor does before publishing the event.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { npubOf } from "../../src/nostr/nip19.js";
import { runProgram } from "./git-server.js";
import type { TestKey } from "./relay-events.js";
import type { SyncServer } from "./sync-server.js";

export async function pushPlaceholder(
  server: SyncServer,
  owner: TestKey,
  identifier: string,
  eventId: string,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "sync-push-"));
  const url = `http://${server.domain}/${npubOf(owner.pubkey)}/${identifier}.git`;
  try {
    for (const args of [
      ["init", "-q"],
      ["commit", "-q", "--allow-empty", "-m", "one"],
      ["push", "-q", url, `HEAD:refs/nostr/${eventId}`],
    ]) {
      const { code, stderr } = await runProgram("git", args, { cwd: folder });
      if (code !== 0) throw new Error(`git ${args.join(" ")}: ${stderr}`);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
