// `holdfast restore <backup>`: a backup becomes the data of a server, which then starts as if nothing had happened.

import { resolve } from "node:path";
import { chosenBackup } from "../../backup/collection.js";
import { hasServerKey, readManifest } from "../../backup/manifest.js";
import { restoreBackup } from "../../backup/restore.js";
import { CommandFailure, type Verb } from "../abilities.js";
import { lockDataDirectory, lockFile } from "../data-lock.js";
import { acceptSettings, settingsOf } from "../setting-flags.js";
import { lineText } from "../table.js";
import { checking, expectingRefusals, factsOf, summary } from "./backup.js";

export const restore: Verb = (program, abilities) => {
  const command = program
    .command("restore <backup>")
    .description("put a backup into empty data directories, verified (the server must be stopped)")
    .option("--json", "answer as JSON");
  acceptSettings(command).action(async () => {
    const { config } = settingsOf(command, abilities);
    if (config.databaseBackend === "memory") {
      throw new CommandFailure("the memory backend keeps nothing on disk: set NGIT_DATABASE_BACKEND to lmdb");
    }
    const { folder, manifest } = await expectingRefusals(async () => {
      const chosen = await chosenBackup(resolve(command.args[0] ?? ""));
      return { folder: chosen, manifest: await readManifest(chosen) };
    });
    const lock = lockDataDirectory(config.relayDataPath);
    if (!lock.ok) {
      throw new CommandFailure(
        `the data directory ${config.relayDataPath} is in use by process ${lock.holderPid}: stop it, or name another with --data-path`,
      );
    }
    try {
      await expectingRefusals(() =>
        checking(abilities, (parts) =>
          restoreBackup({
            ...parts,
            backup: folder,
            manifest,
            relayDataPath: resolve(config.relayDataPath),
            gitDataPath: resolve(config.gitDataPath),
            ignored: [lockFile],
          }),
        ),
      );
    } finally {
      lock.release();
    }
    const notes = [
      ...(manifest.domain === config.domain
        ? []
        : [`it is of ${manifest.domain}, this server is ${config.domain}: set NGIT_DOMAIN if that is not meant`]),
      ...(hasServerKey(manifest) || config.relayOwnerNsec
        ? []
        : ["it has no server key: the next start makes a new one"]),
    ];
    const answer = { ok: true, backup: folder, ...factsOf(manifest), notes };
    const text = [`restored ${lineText(folder)}: ${summary(manifest)}, verified`, ...notes.map(lineText)].join("\n");
    await abilities.terminal.out(`${command.getOptionValue("json") ? JSON.stringify(answer) : text}\n`);
  });
  command.addHelpText(
    "after",
    `
A folder of backups means its newest one.

Examples:
  holdfast restore /backup/holdfast
  holdfast restore /backup/holdfast/2026-03-01T12-00-00Z --data-path /var/lib/holdfast`,
  );
};
