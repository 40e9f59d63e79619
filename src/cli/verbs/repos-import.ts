// `holdfast repos import <directory>`: moves another GRASP server here, and says of each repository how it stands. Its rooms
// are loaded when it runs, because the other verbs of `holdfast repos` load this file.

import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { sharedAbort } from "../../base/shared-abort.js";
import { counted } from "../../base/text.js";
import type { Config } from "../../config/config.js";
import type { Imported } from "../../import/import-repositories.js";
import type { EventSource, Rank } from "../../import/take-events.js";
import type { RelayUrl } from "../../net/url.js";
import { kinds, type NostrEvent, parseEvent } from "../../nostr/event.js";
import { relayNamed } from "../../operator/naming.js";
import type { Store } from "../../store/port.js";
import { type Abilities, CommandFailure } from "../abilities.js";
import { answering } from "../flags.js";
import { withOfflineStore } from "../operate.js";
import { progressBar } from "../progress.js";
import { lineText, tableText } from "../table.js";
import { jsonOf, linesOf } from "./events.js";

const linesAPage = 500;

export function addImport(parent: Command, abilities: Abilities): void {
  const command = parent
    .command("import <directory>")
    .description("move another GRASP server's repositories here (the server must be stopped)")
    .option("--relay <url>", "where its events are: its own relay, or any that has them")
    .option("--events <file>", "its events, one JSON object a line")
    .option("--dry-run", "only say what would come of it; writes nothing");
  answering(command, abilities, async (config) => {
    const directory = resolve(command.args[0] ?? "");
    if (!(await stat(directory).catch(() => undefined))?.isDirectory()) {
      throw new CommandFailure(`${directory} is no directory: name the one that holds <npub>/<identifier>.git`);
    }
    const source = sourceOf(command, abilities, config);
    const work = (settings: Config, store: Store): Promise<Imported> =>
      run(abilities, settings, store, { directory, source, dryRun: command.getOptionValue("dryRun") === true });
    const imported = command.getOptionValue("dryRun")
      ? await inScratch(abilities, config, work)
      : await withOfflineStore(abilities, config, (store) => work(config, store));
    return { json: { ok: true, ...imported }, text: reportText(imported) };
  });
  command.addHelpText(
    "after",
    `
The directory holds bare repositories at <npub>/<identifier>.git. Only what signed events name is taken from it.

Examples:
  holdfast repos import /srv/old/git --relay ws://127.0.0.1:8080 --dry-run
  holdfast repos import /srv/old/git --relay wss://relay.example.com
  holdfast repos import /srv/old/git --events events.jsonl --json`,
  );
}

function sourceOf(command: Command, abilities: Abilities, config: Config): EventSource {
  const relay = command.getOptionValue("relay") as string | undefined;
  const file = command.getOptionValue("events") as string | undefined;
  if ((relay === undefined) === (file === undefined)) {
    throw new CommandFailure("say where the events are: --relay <url> or --events <file>", 2);
  }
  return file === undefined ? fromRelay(relayOf(relay ?? ""), abilities, config) : () => pagesOfFile(file);
}

const filters: Readonly<Record<Rank, object>> = {
  announcements: { kinds: [kinds.announcement] },
  states: { kinds: [kinds.state] },
  others: {},
};

function fromRelay(url: RelayUrl, { clock, build }: Abilities, config: Config): EventSource {
  return async function* (rank) {
    const { pagesOf } = await import("../../sync/conversation.js");
    const { RelayDialer } = await import("../../net/relay-dialer.js");
    const settings = (): Config => config;
    // The operator named the relay: it may be anywhere.
    const { loadServerKey } = await import("../../config/server-key.js");
    const { SecretKey } = await import("../../nostr/keys.js");
    // A private server answers its members only: this one must be among them, as the server it becomes.
    const key = loadServerKey(config);
    const own = key.ok ? SecretKey.fromHex(key.secretHex) : undefined;
    const dialer = new RelayDialer(clock, settings, () => "private", `holdfast/${build.version}`, undefined, own);
    yield* pagesOf(url, filters[rank], dialer, sharedAbort().signal);
  };
}

async function* pagesOfFile(path: string): AsyncGenerator<readonly NostrEvent[]> {
  let page: NostrEvent[] = [];
  for await (const line of linesOf(path)) {
    const parsed = parseEvent(jsonOf(line));
    if (parsed.ok) page.push(parsed.event);
    if (page.length < linesAPage) continue;
    yield page;
    page = [];
  }
  yield page;
}

function relayOf(text: string): RelayUrl {
  const url = relayNamed(text);
  if (!url) throw new CommandFailure(`${JSON.stringify(text)} is no relay: write wss://host[:port][/path]`, 2);
  return url;
}

async function run(
  abilities: Abilities,
  config: Config,
  store: Store,
  options: { readonly directory: string; readonly source: EventSource; readonly dryRun: boolean },
): Promise<Imported> {
  const house = await abilities.openImport(config, store);
  if (!house) throw new CommandFailure("the server's key or domain cannot be used: see `holdfast config check`");
  const bar = progressBar(abilities);
  const { importRepositories } = await import("../../import/import-repositories.js");
  const { OneOffFailure } = await import("../../sync/conversation.js");
  try {
    const { signal } = sharedAbort();
    return await importRepositories(house, { ...options, progress: bar.report, signal });
  } catch (error) {
    throw error instanceof OneOffFailure ? new CommandFailure(error.message) : error;
  } finally {
    bar.done();
    await house.close();
  }
}

/** A store in memory and repositories in a folder of their own, gone afterwards. */
async function inScratch<T>(
  abilities: Abilities,
  config: Config,
  work: (config: Config, store: Store) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-dry-run-"));
  const { createMemoryStore } = await import("../../store/memory/memory-store.js");
  const store = createMemoryStore({ clock: abilities.clock });
  try {
    return await work({ ...config, gitDataPath: folder, databaseBackend: "memory" }, store);
  } finally {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  }
}

function reportText({ repositories, events }: Imported): string {
  const count = (verdict: string): number => repositories.filter((one) => one.verdict === verdict).length;
  const refused = Object.entries(events.refused).map(([code, number]) => `  ${code} ${number}`);
  return [
    ...(repositories.length === 0
      ? []
      : [
          tableText(
            ["", "repository", ""],
            repositories.map(({ verdict, repository, why }) => [verdict, repository, why]),
            "",
          ),
          "",
        ]),
    `${count("ready")} ready, ${counted(count("needs action"), "needs action", "need action")}, ${count("unknown")} unknown`,
    lineText(`events: ${events.taken} taken, ${events.known} known already, ${total(events.refused)} refused`),
    ...refused,
  ].join("\n");
}

const total = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, count) => sum + count, 0);
