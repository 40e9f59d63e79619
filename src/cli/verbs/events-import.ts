// `holdfast events import`: every line goes through intake (shape, id, signature, policy) like any other event.

import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import type { Command } from "commander";
import { createIntake, type IntakeAnswer } from "../../intake/intake.js";
import { parseEvent } from "../../nostr/event.js";
import type { refuse } from "../../nostr/refusals.js";
import type { Store } from "../../store/port.js";
import { type Abilities, CommandFailure } from "../abilities.js";
import { withOfflineStore } from "../offline-store.js";
import { startProgress } from "../progress.js";
import { settingsOf } from "../setting-flags.js";

/** Lines in work at the same time: enough to share commits, few enough to bound memory. */
const inFlight = 500;

interface Tally {
  stored: number;
  known: number;
  refused: Record<string, number>;
}

export async function importEvents(command: Command, abilities: Abilities): Promise<void> {
  const { config } = settingsOf(command, abilities);
  const path = command.args[0];
  const lines = path === undefined ? abilities.terminal.lines() : linesOf(path);
  const tally = await withOfflineStore(abilities, config, (store) =>
    importLines(lines, store, config.maxFutureSecs, abilities),
  );
  const refused = Object.values(tally.refused).reduce((sum, count) => sum + count, 0);
  const reasons = Object.entries(tally.refused).map(([code, count]) => `  ${code} ${count}\n`);
  const text = `${tally.stored} stored, ${tally.known} known already, ${refused} refused\n${reasons.join("")}`;
  await abilities.terminal.out(command.getOptionValue("json") ? `${JSON.stringify({ ok: true, ...tally })}\n` : text);
}

async function* linesOf(path: string): AsyncIterable<string> {
  try {
    yield* createInterface({ input: createReadStream(path, "utf8"), crlfDelay: Number.POSITIVE_INFINITY });
  } catch (error) {
    throw new CommandFailure(`${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)})`);
  }
}

async function importLines(
  lines: AsyncIterable<string>,
  store: Store,
  maxFutureSeconds: number,
  abilities: Abilities,
): Promise<Tally> {
  const verifier = await abilities.createVerifier();
  const intake = createIntake({
    store,
    verifier,
    policy: abilities.importPolicy,
    clock: abilities.clock,
    observer: { received: () => undefined, decided: () => undefined },
    maxFutureSeconds,
  });
  const tally: Tally = { stored: 0, known: 0, refused: {} };
  const progress = startProgress(abilities.terminal, abilities.clock, "import");
  const submit = async (line: string): Promise<void> => {
    const parsed = parseEvent(jsonOf(line));
    note(tally, parsed.ok ? await intake.submit(parsed.event, { type: "import" }) : parsed);
    progress.add(1);
  };
  try {
    let batch: Promise<void>[] = [];
    for await (const line of lines) {
      if (line.trim() === "") continue;
      batch.push(submit(line));
      if (batch.length < inFlight) continue;
      await Promise.all(batch);
      batch = [];
    }
    await Promise.all(batch);
    return tally;
  } finally {
    progress.done();
    await verifier.close();
  }
}

function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function note(tally: Tally, answer: IntakeAnswer | ReturnType<typeof refuse>): void {
  if (!answer.ok) tally.refused[answer.code] = (tally.refused[answer.code] ?? 0) + 1;
  else if (answer.stored) tally.stored++;
  else tally.known++;
}
