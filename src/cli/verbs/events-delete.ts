// `holdfast events delete`: removes what filters match. Nothing refuses the events when they are sent again: to keep
// them out there are the blacklists.

import type { Command } from "commander";
import type { EventId } from "../../nostr/ids.js";
import { type Abilities, CommandFailure } from "../abilities.js";
import { filtersOf } from "../event-filters.js";
import { withOfflineStore } from "../offline-store.js";
import { startProgress } from "../progress.js";
import { settingsOf } from "../setting-flags.js";

const batchEvents = 500;

export async function deleteEvents(command: Command, abilities: Abilities): Promise<void> {
  const { config } = settingsOf(command, abilities);
  if ((command.getOptionValue("filter") as readonly string[]).length === 0) {
    throw new CommandFailure("say which events with --filter; '{}' means all of them", 2);
  }
  const filters = filtersOf(command);
  const really = command.getOptionValue("yes") === true;
  const answer = await withOfflineStore(abilities, config, async (store) => {
    const ids: EventId[] = [];
    for await (const page of store.query(filters, { pageRows: batchEvents })) ids.push(...page.map((row) => row.id));
    if (!really) return { ok: true, matching: ids.length, deleted: 0 };
    const progress = startProgress(abilities.terminal, abilities.clock, "delete", ids.length);
    let deleted = 0;
    for (let start = 0; start < ids.length; start += batchEvents) {
      const batch = ids.slice(start, start + batchEvents);
      deleted += await store.transact(async (tx) => {
        let removed = 0;
        for (const id of batch) if (await tx.remove(id, "operator")) removed++;
        return removed;
      });
      progress.add(batch.length);
    }
    progress.done();
    return { ok: true, matching: ids.length, deleted };
  });
  const text = really
    ? `${answer.deleted} events deleted`
    : `${answer.matching} events match; add --yes to delete them`;
  await abilities.terminal.out(`${command.getOptionValue("json") ? JSON.stringify(answer) : text}\n`);
}
