// `holdfast bench`: how fast a server would be on this machine, each figure beside what bounds it here.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Measured } from "../../bench/measure.js";
import type { Abilities, Verb } from "../abilities.js";
import { withGit } from "../operate.js";
import { progressBar } from "../progress.js";
import { tableText } from "../table.js";

export const bench: Verb = (program, abilities) => {
  const command = program
    .command("bench")
    .description("measure signatures, disk, store, events, pushes and clones on this machine, in about ten seconds")
    .option(
      "--folder <path>",
      "where to write (a folder in it is made and removed); the system's temporary one if left out",
    )
    .option("--quick", "a tenth of the time, for a first look")
    .option("--json", "answer as JSON")
    .action(async ({ folder = tmpdir(), quick, json }: { folder?: string; quick?: boolean; json?: boolean }) => {
      const measured = await measureAll(abilities, resolve(folder), quick === true);
      await abilities.terminal.out(`${json ? JSON.stringify({ ok: true, measured }) : textOf(measured)}\n`);
    });
  command.addHelpText(
    "after",
    `
The disk measured is the folder's: name one on the disk that is to hold the data.

Examples:
  holdfast bench
  holdfast bench --folder /var/lib/holdfast --json`,
  );
};

interface Shown extends Measured {
  readonly shareOfLimit: number | undefined;
}

async function measureAll(abilities: Abilities, parent: string, isQuick: boolean): Promise<Shown[]> {
  const { measureServer, measureSignatures, measureStore, shareOfLimit } = await import("../../bench/measure.js");
  const folder = await mkdtemp(join(parent, "holdfast-bench-"));
  const bar = progressBar(abilities);
  const forMs = isQuick ? 100 : 1_000;
  try {
    bar.report(0, 3, "measuring");
    const signatures = await measureSignatures(forMs, Math.max(1, abilities.cores - 1));
    bar.report(1, 3, "measuring");
    const store = await measureStore(folder, forMs);
    bar.report(2, 3, "measuring");
    const server = await abilities.startTemporary(folder);
    try {
      const rounds = isQuick ? 3 : 15;
      const served = await withGit((git) => measureServer(server, git, folder, rounds, signatures.value));
      return [signatures, ...store, ...served].map((row) => ({ ...row, shareOfLimit: shareOfLimit(row) }));
    } finally {
      await server.close();
    }
  } finally {
    bar.done();
    await rm(folder, { recursive: true, force: true });
  }
}

const numberText = (value: number, unit: Measured["unit"]): string =>
  unit === "ms" ? `${value.toFixed(1)} ms` : `${Math.round(value).toLocaleString("en")}/s`;

const textOf = (rows: readonly Shown[]): string =>
  tableText(
    ["", "measured", "limit here", "share", "the limit is"],
    rows.map(({ what, value, unit, limit, shareOfLimit }) => [
      what,
      numberText(value, unit),
      limit ? numberText(limit.value, unit) : "",
      shareOfLimit === undefined ? "" : `${Math.round(shareOfLimit * 100)} %`,
      limit?.what ?? "",
    ]),
    "",
  );
