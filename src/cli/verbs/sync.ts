// `holdfast sync <relay>`: compares the store with one relay once and brings over what either side lacks. Works on the
// store of a server that does not run; one that runs does this by itself, and the lock says so.

import type { Command } from "commander";
import type { Config } from "../../config/config.js";
import { createIntake } from "../../intake/intake.js";
import { systemResolver } from "../../net/resolve.js";
import { normalRelayUrl, type RelayUrl } from "../../net/url.js";
import type { Store } from "../../store/port.js";
import { OneOffFailure, type OneOffSide, type OneOffTally, syncOnce } from "../../sync/one-off.js";
import { ownSide } from "../../sync/own-side.js";
import { type Abilities, CommandFailure, type Verb } from "../abilities.js";
import { acceptFilters, filtersOf } from "../event-filters.js";
import { withOfflineStore } from "../offline-store.js";
import { type Progress, startProgress } from "../progress.js";
import { acceptSettings, settingsOf } from "../setting-flags.js";

const directions = ["up", "down", "both"] as const;
type Direction = (typeof directions)[number];

export const sync: Verb = (program, abilities) => {
  const command = program
    .command("sync <relay>")
    .description("compare the store with a relay once, and bring over what is missing")
    .option("--dir <direction>", "down: fetch what we lack; up: send what it lacks; both", "down")
    .option("--json", "answer as JSON");
  acceptSettings(acceptFilters(command)).action(async () => {
    const { config } = settingsOf(command, abilities);
    const url = relayUrlOf(command.args[0] ?? "");
    const direction = directionOf(command);
    const tally = await withOfflineStore(abilities, config, (store) =>
      run(abilities, config, store, command, url, direction),
    );
    await abilities.terminal.out(
      command.getOptionValue("json") ? `${JSON.stringify({ ok: true, relay: url, ...tally })}\n` : tallyText(tally),
    );
  });
  command.addHelpText(
    "after",
    `
Examples:
  holdfast sync wss://relay.example.com
  holdfast sync relay.example.com --dir both --filter '{"kinds":[30617]}' --json`,
  );
};

export function relayUrlOf(text: string): RelayUrl {
  const url = normalRelayUrl(/^wss?:\/\//i.test(text) ? text : `wss://${text}`);
  if (!url) throw new CommandFailure(`${JSON.stringify(text)} is no relay: write wss://host[:port][/path]`, 2);
  return url;
}

function directionOf(command: Command): Direction {
  const given = String(command.getOptionValue("dir"));
  const found = directions.find((direction) => direction === given);
  if (!found) throw new CommandFailure(`--dir must be one of ${directions.join(", ")}; ${given} is not`, 2);
  return found;
}

async function run(
  abilities: Abilities,
  config: Config,
  store: Store,
  command: Command,
  url: RelayUrl,
  direction: Direction,
): Promise<OneOffTally> {
  const { clock, terminal, build } = abilities;
  const own = await storeSide(abilities, config, store, url);
  const bars = new Map<string, { bar: Progress; done: number }>();
  const progress = (phase: "down" | "up", done: number, total: number): void => {
    const shown = bars.get(phase) ?? { bar: startProgress(terminal, clock, phase, total), done: 0 };
    bars.set(phase, shown);
    shown.bar.add(done - shown.done);
    shown.done = done;
  };
  try {
    return await syncOnce({
      url,
      filters: filtersOf(command),
      direction,
      own,
      progress,
      signal: new AbortController().signal,
      dial: {
        clock,
        resolve: systemResolver(clock),
        // The operator named it.
        reach: () => "private",
        dialTimeoutMs: () => config.syncDialTimeoutSecs * 1_000,
        maxPayloadBytes: () => config.maxMessageBytes,
        userAgent: `holdfast/${build.version}`,
      },
    });
  } catch (error) {
    if (error instanceof OneOffFailure) throw new CommandFailure(error.message);
    throw error;
  } finally {
    for (const { bar } of bars.values()) bar.done();
    await own.close();
  }
}

/** The store at rest, behind the same door as always: what comes in satisfies this server's rules. */
async function storeSide(
  abilities: Abilities,
  config: Config,
  store: Store,
  relay: RelayUrl,
): Promise<OneOffSide & { close(): Promise<void> }> {
  const policy = abilities.serverPolicy(config);
  if (!policy) throw new CommandFailure("the server's key or domain cannot be used: see `holdfast config check`");
  const verifier = await abilities.createVerifier();
  const intake = createIntake({
    store,
    verifier,
    policy,
    recordDecisions: true,
    clock: abilities.clock,
    observer: { received: () => undefined, decided: () => undefined },
    maxFutureSeconds: config.maxFutureSecs,
  });
  return {
    ...ownSide(store, abilities.clock, () => config.negentropyMaxRecords),
    async events(ids) {
      const found: { id: (typeof ids)[number]; text: string }[] = [];
      for (const id of ids) {
        const stored = await store.event(id);
        if (stored) found.push({ id, text: stored.event.raw });
      }
      return found;
    },
    async take(event) {
      const answer = await intake.submit(event, { type: "sync", relay, phase: "direct" });
      if (!answer.ok) return answer.code;
      return answer.stored || answer.message.startsWith("purgatory:") ? "stored" : "known";
    },
    close: () => verifier.close(),
  };
}

function tallyText(tally: OneOffTally): string {
  const refused = Object.entries(tally.refusedHere).map(([code, count]) => `  ${code} ${count}\n`);
  return [
    `missing here ${tally.missingHere}: ${tally.stored} taken, ${tally.known} known already\n`,
    ...refused,
    `missing there ${tally.missingThere}: ${tally.sent} sent, ${tally.refusedThere} refused\n`,
  ].join("");
}
