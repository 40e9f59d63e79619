// `holdfast events export`: events as they are stored, to a file or to standard output, no faster than it is read.

import { type FileHandle, open, rm } from "node:fs/promises";
import type { Command } from "commander";
import { type Abilities, CommandFailure } from "../abilities.js";
import { acceptFilters, filtersOf } from "../event-filters.js";
import { operate } from "../operate.js";
import { acceptSettings, settingsOf } from "../setting-flags.js";

export function addExport(parent: Command, abilities: Abilities): void {
  const command = parent
    .command("export")
    .description("write events, one JSON object a line, newest first")
    .option("--json", "answer as JSON");
  command.addHelpText(
    "after",
    `\nExample:\n  holdfast events export --filter '{"kinds":[30617]}' --output repos.jsonl`,
  );
  acceptFilters(acceptSettings(command))
    .option("--output <file>", "file to write, which must not exist; standard output if left out")
    .action(async () => {
      const { config } = settingsOf(command, abilities);
      const parameters = { filters: filtersOf(command.opts()) };
      const write = async (to: (text: string) => Promise<unknown>): Promise<number> => {
        const { exported } = await operate<{ exported: number }>(
          abilities,
          config,
          "events.export",
          parameters,
          async (lines) => void (await to(lines.map((line) => `${line}\n`).join(""))),
        );
        return exported;
      };
      const output = command.getOptionValue("output") as string | undefined;
      // On standard output the events are the answer.
      if (output === undefined) return void (await write((text) => abilities.terminal.out(text)));
      const exported = await intoNew(output, (file) => write((text) => file.write(text)));
      const answer = { ok: true, exported, file: output };
      await abilities.terminal.out(
        command.getOptionValue("json") ? `${JSON.stringify(answer)}\n` : `${exported} events written to ${output}\n`,
      );
    });
}

/** A file that is not whole does not stay. */
async function intoNew<T>(path: string, work: (file: FileHandle) => Promise<T>): Promise<T> {
  const file = await open(path, "wx", 0o644).catch((error: NodeJS.ErrnoException) => {
    throw new CommandFailure(`${path} cannot be created (${error.code ?? String(error)})`);
  });
  try {
    const done = await work(file);
    await file.sync();
    return done;
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}
