// The data as a whole. `holdfast backup <directory>`: a verified copy of everything, taken while the server runs or while
// it does not. `holdfast restore <backup>`: a backup becomes the data of a server, which then starts as if nothing had
// happened. `holdfast compact`: the event database without its holes. The rooms are loaded by the work, not by the help.

import { rm } from "node:fs/promises";
import { resolve } from "node:path";
import type { Command } from "commander";
import type { Checking } from "../../backup/check.js";
import type { Manifest } from "../../backup/files.js";
import type { Taken } from "../../backup/take.js";
import { lockFile } from "../../base/data-lock.js";
import { sharedAbort } from "../../base/shared-abort.js";
import { counted, sizeText } from "../../base/text.js";
import type { Config } from "../../config/config.js";
import { serverKeyFile } from "../../config/server-key.js";
import type { Outcome } from "../../operator/context.js";
import type { Snapshot } from "../../operator/snapshot.js";
import { askServer } from "../../operator/socket.js";
import { type Abilities, CommandFailure, type Verb } from "../abilities.js";
import { type Answer, acceptSettings, answering, sayAnswer, settingsOf, wholeNumberOption } from "../flags.js";
import { mustHaveData, underLock, withGit, withOfflineStore, withOperator } from "../operate.js";
import { progressBar } from "../progress.js";
import { lineText } from "../table.js";

export const backup: Verb = (program, abilities) => {
  const command = program
    .command("backup <directory>")
    .description("back up events, what waits, rules, repositories and the server's key, verified; the server may run")
    .option("--verify-only", "check the newest backup in the directory (or the named one) and take none")
    .option("--without-key", "leave the server's key out")
    .addOption(wholeNumberOption("--keep <count>", "afterwards remove all but so many of the newest backups there"))
    .option("--json", "answer as JSON");
  acceptSettings(command).action(async () => {
    const folder = resolve(command.args[0] ?? "");
    const answer = await expectingRefusals(() =>
      command.getOptionValue("verifyOnly") ? verify(abilities, folder) : take(abilities, command, folder),
    );
    await sayAnswer(command, abilities, answer);
  });
  command.addHelpText(
    "after",
    `
Each backup is a folder of its own below the directory, named after its time. Packs that the one before has are linked,
not copied again.

Examples:
  holdfast backup /backup/holdfast
  holdfast backup /backup/holdfast --keep 7 --json
  holdfast backup /backup/holdfast --verify-only`,
  );
};

/** What an operator can mend ends the command with a sentence. */
async function expectingRefusals<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { BackupRefusal } = await import("../../backup/files.js");
    if (error instanceof BackupRefusal) throw new CommandFailure(error.message);
    throw error;
  }
}

/** Git and a progress bar, for long work over a backup. It is ended by ending the process: nothing half looks whole. */
async function checking<T>(abilities: Abilities, work: (checking: Checking) => Promise<T>): Promise<T> {
  const bar = progressBar(abilities);
  const { signal } = sharedAbort();
  try {
    return await withGit((git) => work({ git, progress: bar.report, signal }));
  } finally {
    bar.done();
  }
}

/** The backup that is meant: the named one, or the newest in a folder of backups. */
async function openBackup(named: string): Promise<{ readonly folder: string; readonly manifest: Manifest }> {
  const { chosenBackup } = await import("../../backup/take.js");
  const { readManifest } = await import("../../backup/files.js");
  const folder = await chosenBackup(named);
  return { folder, manifest: await readManifest(folder) };
}

async function verify(abilities: Abilities, named: string): Promise<Answer> {
  const { folder: chosen, manifest } = await openBackup(named);
  const { checkContents, checkFiles } = await import("../../backup/check.js");
  const problems = await checking(abilities, async (parts) => {
    const damaged = await checkFiles(chosen, manifest, parts);
    if (damaged.length > 0) return damaged;
    const inside = manifest.repositories.map((path) => path.slice("git/".length));
    const { events, problems: found } = await checkContents(`${chosen}/relay`, `${chosen}/git`, inside, parts);
    return events === manifest.events
      ? found
      : [...found, `${counted(events, "event", "events")} instead of ${manifest.events}`];
  });
  if (problems.length > 0) {
    const lines = problems.map((problem) => `  ${lineText(problem)}`).join("\n");
    throw new CommandFailure(`${chosen} is not sound:\n${lines}`, 1, { backup: chosen, problems });
  }
  const facts = await factsOf(manifest);
  return { json: { ok: true, backup: chosen, ...facts }, text: `${lineText(chosen)} is sound: ${summary(facts)}` };
}

interface Facts {
  readonly takenAt: string;
  readonly domain: string;
  readonly events: number;
  readonly repositories: number;
  readonly files: number;
  readonly bytes: number;
  readonly serverKey: boolean;
}

async function factsOf(manifest: Manifest): Promise<Facts> {
  const { bytesIn, hasServerKey } = await import("../../backup/files.js");
  return {
    takenAt: manifest.takenAt,
    domain: manifest.domain,
    events: manifest.events,
    repositories: manifest.repositories.length,
    files: manifest.files.length,
    bytes: bytesIn(manifest.files),
    serverKey: hasServerKey(manifest),
  };
}

const summary = ({ events, repositories, bytes, serverKey }: Facts): string =>
  `${counted(events, "event", "events")}, ${counted(repositories, "repository", "repositories")}, ${sizeText(bytes)}${serverKey ? "" : ", without the server's key"}`;

function take(abilities: Abilities, command: Command, collection: string): Promise<Answer> {
  const { config } = settingsOf(command, abilities);
  const inUse = (pid: number): string => `process ${pid} is writing a backup to ${collection}`;
  return underLock(collection, inUse, async () => {
    const { keepNewest, takeBackup } = await import("../../backup/take.js");
    const { taken, heldMs } = await checking(abilities, (parts) =>
      withSnapshot(abilities, config, parts, async (snapshot) => ({
        heldMs: snapshot.heldMs,
        taken: await takeBackup({
          ...parts,
          collection,
          snapshot,
          keyFile: command.getOptionValue("withoutKey") ? undefined : `${config.relayDataPath}/${serverKeyFile}`,
          program: `holdfast ${abilities.build.version}`,
          domain: config.domain,
          nowMs: abilities.clock.nowMs(),
        }),
      })),
    );
    const keep = command.getOptionValue("keep") as number | undefined;
    const removed = keep === undefined ? [] : await keepNewest(collection, keep);
    return takenAnswer(taken, heldMs, removed);
  });
}

async function takenAnswer(taken: Taken, heldMs: number, removed: readonly string[]): Promise<Answer> {
  const { folder, manifest, sharedBytes } = taken;
  const facts = await factsOf(manifest);
  const shared = sharedBytes > 0 ? ` (${sizeText(sharedBytes)} shared with the backup before)` : "";
  return {
    json: { ok: true, backup: folder, ...facts, sharedBytes, heldMs, removed },
    text: [
      `${lineText(folder)}: ${summary(facts)}${shared}, verified`,
      ...removed.map((name) => `removed ${lineText(name)}`),
    ].join("\n"),
  };
}

/** The running server makes the snapshot and keeps it while we hold the connection; else we make it ourselves. */
async function withSnapshot<T>(
  abilities: Abilities,
  config: Config,
  { progress }: Checking,
  work: (snapshot: Snapshot) => Promise<T>,
): Promise<T> {
  const request = { operation: "backup.begin", parameters: {} };
  let result: T | undefined;
  const use = async (outcome: Outcome<unknown>): Promise<void> => {
    if (outcome.ok) result = await work(outcome.result as Snapshot);
  };
  mustHaveData(config);
  let outcome = await askServer(config.relayDataPath, request, progress, { meanwhile: use });
  outcome ??= await withOfflineStore(abilities, config, async (store) => {
    const taken = await withOperator(abilities, config, store, (operator) => operator.run(request, progress));
    if (!taken.ok) return taken;
    try {
      await use(taken);
    } finally {
      const { relay, git } = taken.result as Snapshot;
      for (const folder of [relay, git]) await rm(folder, { recursive: true, force: true });
    }
    return taken;
  });
  if (!outcome.ok) throw new CommandFailure(outcome.message, 1, { code: outcome.code });
  return result as T;
}

export const restore: Verb = (program, abilities) => {
  const command = program
    .command("restore <backup>")
    .description("put a backup into empty data directories, verified (the server must be stopped)");
  answering(command, abilities, async (config) => {
    if (config.databaseBackend === "memory") {
      throw new CommandFailure("the memory backend keeps nothing on disk: set NGIT_DATABASE_BACKEND to lmdb");
    }
    const { folder, manifest } = await expectingRefusals(() => openBackup(resolve(command.args[0] ?? "")));
    const inUse = (pid: number): string =>
      `the data directory ${config.relayDataPath} is in use by process ${pid}: stop it, or name another with --data-path`;
    await underLock(config.relayDataPath, inUse, async () => {
      const { restoreBackup } = await import("../../backup/restore.js");
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
    });
    const facts = await factsOf(manifest);
    const notes = [
      ...(manifest.domain === config.domain
        ? []
        : [`it is of ${manifest.domain}, this server is ${config.domain}: set NGIT_DOMAIN if that is not meant`]),
      ...(config.databaseBackend === "postgres"
        ? ["it is a server's of its own: `holdfast cluster join` makes it the beginning of a new cluster"]
        : []),
      ...(facts.serverKey || config.relayOwnerNsec ? [] : ["it has no server key: the next start makes a new one"]),
    ];
    return {
      json: { ok: true, backup: folder, ...facts, notes },
      text: [`restored ${lineText(folder)}: ${summary(facts)}, verified`, ...notes.map(lineText)].join("\n"),
    };
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

export const compact: Verb = (program, abilities) => {
  const command = program
    .command("compact")
    .description("rewrite the event database without its holes (the server must be stopped)");
  answering(command, abilities, (config) =>
    withOfflineStore(abilities, config, async (store) => {
      const bytesBefore = store.stats.bytesOnDisk;
      const bar = progressBar(abilities);
      await store.compact((written) => bar.report(written, bytesBefore, "compacting", "bytes")).finally(bar.done);
      const { events, bytesOnDisk: bytesAfter } = store.stats;
      return {
        json: { ok: true, events, bytesBefore, bytesAfter },
        text: `${counted(events, "event", "events")}; ${sizeText(bytesBefore)} before, ${sizeText(bytesAfter)} after`,
      };
    }),
  );
  command.addHelpText("after", "\nExample:\n  holdfast compact --data-path /var/lib/holdfast");
};
