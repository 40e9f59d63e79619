// `holdfast events import`: every line goes through intake (shape, id, signature, policy) like any other event.
// Announcements, states and pull requests come last and in this order, whatever the file's: each is judged by what the
// ones before it made known.

import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import type { Command } from "commander";
import type { Config } from "../../config/config.js";
import { createIntake, type IntakeAnswer } from "../../intake/intake.js";
import { rankOf, ranks } from "../../moving/take-events.js";
import { type NostrEvent, parseEvent } from "../../nostr/event.js";
import { kinds } from "../../nostr/kinds.js";
import type { refuse } from "../../nostr/refusals.js";
import type { Store } from "../../store/port.js";
import { type Abilities, CommandFailure } from "../abilities.js";
import { withOfflineStore } from "../offline-store.js";
import { startProgress } from "../progress.js";
import { settingsOf } from "../setting-flags.js";

/** Lines in work at the same time: enough to share commits, few enough to bound memory. */
const inFlight = 500;
/** Events that stand for git data are kept to the end, so many at a time. */
const maxKept = 50_000;
const standsForGit = new Set<number>([kinds.announcement, kinds.state, kinds.pullRequest, kinds.pullRequestUpdate]);

interface Tally {
  stored: number;
  /** For their git data; hosted or hunted from the next start on. */
  waiting: number;
  known: number;
  refused: Record<string, number>;
}

export async function importEvents(command: Command, abilities: Abilities): Promise<void> {
  const { config } = settingsOf(command, abilities);
  const path = command.args[0];
  const lines = path === undefined ? abilities.terminal.lines() : linesOf(path);
  const tally = await withOfflineStore(abilities, config, (store) => importLines(lines, store, config, abilities));
  const refused = Object.values(tally.refused).reduce((sum, count) => sum + count, 0);
  const reasons = Object.entries(tally.refused).map(([code, count]) => `  ${code} ${count}\n`);
  const waiting = tally.waiting > 0 ? `, ${tally.waiting} wait for their git data` : "";
  const text = `${tally.stored} stored, ${tally.known} known already, ${refused} refused${waiting}\n${reasons.join("")}`;
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
  config: Config,
  abilities: Abilities,
): Promise<Tally> {
  const verifier = await abilities.createVerifier();
  const intake = createIntake({
    store,
    verifier,
    policy: abilities.importPolicy(config),
    clock: abilities.clock,
    observer: { received: () => undefined, decided: () => undefined },
    maxFutureSeconds: config.maxFutureSecs,
  });
  const tally: Tally = { stored: 0, waiting: 0, known: 0, refused: {} };
  const progress = startProgress(abilities.terminal, abilities.clock, "import");
  const submit = async (event: NostrEvent): Promise<void> => {
    note(tally, await intake.submit(event, { type: "import" }));
    progress.add(1);
  };
  const kept: NostrEvent[] = [];
  const submitKept = async (): Promise<void> => {
    for (const rank of ranks) {
      const events = kept.filter((event) => rankOf(event) === rank);
      for (let at = 0; at < events.length; at += inFlight) {
        await Promise.all(events.slice(at, at + inFlight).map(submit));
      }
    }
    kept.length = 0;
  };
  try {
    let batch: Promise<void>[] = [];
    for await (const line of lines) {
      if (line.trim() === "") continue;
      const parsed = parseEvent(jsonOf(line));
      if (!parsed.ok) note(tally, parsed);
      else if (standsForGit.has(parsed.event.kind)) kept.push(parsed.event);
      else batch.push(submit(parsed.event));
      if (kept.length >= maxKept) await submitKept();
      if (batch.length < inFlight) continue;
      await Promise.all(batch);
      batch = [];
    }
    await Promise.all(batch);
    await submitKept();
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
  else if (answer.message.startsWith("purgatory:")) tally.waiting++;
  else tally.known++;
}
