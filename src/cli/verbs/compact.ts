// `holdfast compact`: rewrites the event database without its holes.

import type { Verb } from "../abilities.js";
import { withOfflineStore } from "../offline-store.js";
import { acceptSettings, settingsOf } from "../setting-flags.js";

export const compact: Verb = (program, abilities) => {
  const command = program
    .command("compact")
    .description("rewrite the event database without its holes (the server must be stopped)")
    .option("--json", "answer as JSON");
  acceptSettings(command).action(async () => {
    const { config } = settingsOf(command, abilities);
    const answer = await withOfflineStore(abilities, config, async (store) => {
      const bytesBefore = store.stats.bytesOnDisk;
      await store.compact();
      return { ok: true, events: store.stats.events, bytesBefore, bytesAfter: store.stats.bytesOnDisk };
    });
    const text = `${answer.events} events; ${answer.bytesBefore} bytes before, ${answer.bytesAfter} after`;
    await abilities.terminal.out(`${command.getOptionValue("json") ? JSON.stringify(answer) : text}\n`);
  });
  command.addHelpText("after", "\nExample:\n  holdfast compact --data-path /var/lib/holdfast");
};
