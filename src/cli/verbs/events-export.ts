// `holdfast events export` and `scan`: reads the store page by page, so that memory stays flat.

import { type FileHandle, open } from "node:fs/promises";
import type { Command } from "commander";
import { type Abilities, CommandFailure } from "../abilities.js";
import { filtersOf } from "../event-filters.js";
import { withOfflineStore } from "../offline-store.js";
import { startProgress } from "../progress.js";
import { settingsOf } from "../setting-flags.js";

const pageRows = 500;

export async function exportEvents(command: Command, abilities: Abilities): Promise<void> {
  const { config } = settingsOf(command, abilities);
  const filters = filtersOf(command);
  const output: unknown = command.getOptionValue("output");
  const count = await withOfflineStore(abilities, config, async (store) => {
    const file = typeof output === "string" ? await createNew(output) : undefined;
    const progress = startProgress(abilities.terminal, abilities.clock, "export", await store.count(filters));
    let written = 0;
    try {
      for await (const page of store.query(filters, { pageRows })) {
        const text = page.map((row) => `${row.json.toString("utf8")}\n`).join("");
        if (file) await file.write(text);
        else await abilities.terminal.out(text);
        written += page.length;
        progress.add(page.length);
      }
      await file?.sync();
      return written;
    } finally {
      progress.done();
      await file?.close();
    }
  });
  // On standard output the events are the answer.
  if (typeof output !== "string") return;
  const answer = { ok: true, exported: count, file: output };
  await abilities.terminal.out(
    command.getOptionValue("json") ? `${JSON.stringify(answer)}\n` : `${count} events written to ${output}\n`,
  );
}

async function createNew(path: string): Promise<FileHandle> {
  try {
    return await open(path, "wx", 0o644);
  } catch (error) {
    throw new CommandFailure(`${path} cannot be created (${(error as NodeJS.ErrnoException).code ?? String(error)})`);
  }
}

export async function scanEvents(command: Command, abilities: Abilities): Promise<void> {
  const { config } = settingsOf(command, abilities);
  const filters = filtersOf(command);
  const found = await withOfflineStore(abilities, config, async (store) => {
    const progress = startProgress(abilities.terminal, abilities.clock, "scan", await store.count(filters));
    const byKind = new Map<number, number>();
    let bytes = 0;
    for await (const page of store.query(filters, { pageRows })) {
      for (const row of page) {
        byKind.set(row.event.kind, (byKind.get(row.event.kind) ?? 0) + 1);
        bytes += row.json.length;
      }
      progress.add(page.length);
    }
    progress.done();
    return { bytes, byKind: [...byKind].sort(([a], [b]) => a - b) };
  });
  const total = found.byKind.reduce((sum, [, count]) => sum + count, 0);
  if (command.getOptionValue("json")) {
    const answer = { ok: true, events: total, bytes: found.bytes, byKind: Object.fromEntries(found.byKind) };
    return abilities.terminal.out(`${JSON.stringify(answer)}\n`);
  }
  const lines = found.byKind.map(([kind, count]) => `kind ${String(kind).padStart(5)}  ${count}\n`);
  return abilities.terminal.out(`${lines.join("")}${total} events, ${found.bytes} bytes\n`);
}
