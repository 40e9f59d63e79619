// `holdfast events import|export|scan|delete`: JSONL in and out of the event store, whether the server runs or not.

import { createReadStream } from "node:fs";
import { type FileHandle, open, rm, stat } from "node:fs/promises";
import { createInterface } from "node:readline";
import type { Command } from "commander";
import { counted, sizeText } from "../../base/text.js";
import type { Config } from "../../config/config.js";
import { rankOf, ranks } from "../../import/take-events.js";
import { kinds, type NostrEvent, parseEvent } from "../../nostr/event.js";
import type { Outcome } from "../../operator/context.js";
import type { ImportTally } from "../../operator/events.js";
import { type Abilities, CommandFailure, type Verb } from "../abilities.js";
import { acceptSettings, answering, settingsOf } from "../flags.js";
import { askRunning, operate, resultOf, withOfflineStore, withOperator } from "../operate.js";
import { addParameters, operatorVerb } from "../operator-verb.js";
import { progressBar } from "../progress.js";

export const events: Verb = (program, abilities) => {
  const parent = program.command("events").description("import, export, scan and delete events as JSONL");
  addImport(parent, abilities);
  addExport(parent, abilities);
  operatorVerb(parent, abilities, "events.scan", {
    text: ({ events: count, bytes, byKind }) =>
      [
        ...Object.entries(byKind).map(([kind, number]) => `kind ${kind.padStart(5)}  ${number}`),
        `${counted(count, "event", "events")}, ${sizeText(bytes)}`,
      ].join("\n"),
  });
  operatorVerb(parent, abilities, "events.delete", {
    check({ filters }) {
      if (filters.length === 0) throw new CommandFailure("say which events with --filter; '{}' means all of them", 2);
    },
    text: ({ matching, deleted }, { really }) =>
      really
        ? `${counted(deleted, "event", "events")} deleted`
        : `${counted(matching, "event matches", "events match")}; add --yes to delete ${matching === 1 ? "it" : "them"}`,
  });
};

/** Events as they are stored, to a file or to standard output, no faster than it is read. */
function addExport(parent: Command, abilities: Abilities): void {
  const command = parent
    .command("export")
    .description("write events, one JSON object a line, newest first")
    .option("--json", "answer as JSON");
  command.addHelpText(
    "after",
    `\nExample:\n  holdfast events export --filter '{"kinds":[30617]}' --output repos.jsonl`,
  );
  const filtersTyped = addParameters(acceptSettings(command), "events.export");
  command
    .option("--output <file>", "file to write, which must not exist; standard output if left out")
    .action(async () => {
      const { config } = settingsOf(command, abilities);
      const parameters = filtersTyped();
      const write = async (to: (text: string) => Promise<unknown>): Promise<number> => {
        const { exported } = await operate(
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
      const exported = await intoNew(output, abilities.umask, (file) => write((text) => file.write(text)));
      const answer = { ok: true, exported, file: output };
      await abilities.terminal.out(
        command.getOptionValue("json")
          ? `${JSON.stringify(answer)}\n`
          : `${counted(exported, "event", "events")} written to ${output}\n`,
      );
    });
}

/** A file that is not whole does not stay. Once it is whole it is as open as the operator's own umask has it. */
async function intoNew<T>(path: string, umask: number, work: (file: FileHandle) => Promise<T>): Promise<T> {
  const file = await open(path, "wx", 0o600);
  try {
    const done = await work(file);
    await file.chmod(0o666 & ~umask);
    await file.sync();
    return done;
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}

/** Of one request: enough to share commits, few enough to bound memory. */
const maxBatchEvents = 500;
const maxBatchCharacters = 2 ** 18;
/** Events that stand for git data are kept to the end, so many at a time. */
const maxKept = 50_000;
const standsForGit = new Set<number>([kinds.announcement, kinds.state, kinds.pullRequest, kinds.pullRequestUpdate]);

type Send = (events: readonly NostrEvent[]) => Promise<ImportTally>;
/** Bytes read and events sent so far; `rest`: of those that were kept to the end. */
type Heard = (far: {
  readonly bytes: number;
  readonly events: number;
  readonly rest: { readonly done: number; readonly total: number } | undefined;
}) => void;

/**
 * Every line goes through intake (shape, id, signature, rules) like any other event, the running server's or one opened
 * for it. Announcements, states and pull requests come last and in this order, whatever the file's: each is judged by
 * what the ones before it made known.
 */
function addImport(parent: Command, abilities: Abilities): void {
  const command = parent
    .command("import")
    .description("read events, one JSON object a line, through the same door as everyone's")
    .argument("[file]", "file to read; standard input if left out");
  command.addHelpText("after", "\nExample:\n  holdfast events import events.jsonl");
  answering(command, abilities, async (config) => {
    const path = command.args[0];
    const lines = path === undefined ? abilities.terminal.lines() : linesOf(path);
    const fileBytes = path === undefined ? undefined : (await stat(path)).size;
    const bar = progressBar(abilities);
    const heard: Heard = ({ bytes, events, rest }) => {
      if (rest !== undefined) bar.report(rest.done, rest.total, "announcements and states");
      else if (fileBytes === undefined) bar.report(events, undefined, "import");
      else bar.report(bytes, fileBytes, "import", "bytes");
    };
    const tally = await throughTheDoor(abilities, config, (send) => importLines(lines, send, heard)).finally(bar.done);
    return { json: { ok: true, ...tally }, text: textOf(tally) };
  });
}

function textOf(tally: ImportTally): string {
  const refused = Object.values(tally.refused).reduce((sum, count) => sum + count, 0);
  const reasons = Object.entries(tally.refused).map(([code, count]) => `\n  ${code} ${count}`);
  const waiting = tally.waiting > 0 ? `, ${counted(tally.waiting, "waits for its", "wait for their")} git data` : "";
  return `${tally.stored} stored, ${tally.known} known already, ${refused} refused${waiting}${reasons.join("")}`;
}

export async function* linesOf(path: string): AsyncIterable<string> {
  // Opened first: a read of a folder does not say which.
  if ((await stat(path)).isDirectory())
    throw new CommandFailure(`${path} is a folder: name a file with one event a line`);
  yield* createInterface({ input: createReadStream(path, "utf8"), crlfDelay: Number.POSITIVE_INFINITY });
}

function requestOf(events: readonly NostrEvent[]) {
  const parameters = { events: events.map(({ raw: _, ...event }) => event) };
  return { operation: "events.import", parameters } as const;
}

async function throughTheDoor<T>(abilities: Abilities, config: Config, work: (send: Send) => Promise<T>): Promise<T> {
  // Nothing to take: only to hear whether a server is there.
  if (await askRunning(config, requestOf([]))) {
    return work(async (events) => {
      const outcome = await askRunning(config, requestOf(events));
      if (!outcome) throw new CommandFailure("the server was stopped: import the same events again when it runs");
      return resultOf(outcome);
    });
  }
  return withOfflineStore(abilities, config, (store) =>
    withOperator(abilities, config, store, (operator) =>
      work(async (events) =>
        resultOf((await operator.run(requestOf(events), () => undefined)) as Outcome<ImportTally>),
      ),
    ),
  );
}

async function importLines(lines: AsyncIterable<string>, send: Send, heard: Heard): Promise<ImportTally> {
  const tally: ImportTally = { stored: 0, waiting: 0, known: 0, refused: {} };
  let batch: NostrEvent[] = [];
  let characters = 0;
  let bytes = 0;
  let sent = 0;
  let rest: { done: number; readonly total: number } | undefined;
  const flush = async (): Promise<void> => {
    if (batch.length === 0) return;
    addTo(tally, await send(batch));
    sent += batch.length;
    if (rest) rest.done += batch.length;
    heard({ bytes, events: sent, rest });
    batch = [];
    characters = 0;
  };
  const submit = async (event: NostrEvent): Promise<void> => {
    if (batch.length === maxBatchEvents || characters + event.raw.length > maxBatchCharacters) await flush();
    batch.push(event);
    characters += event.raw.length;
  };
  const kept: NostrEvent[] = [];
  const submitKept = async (): Promise<void> => {
    rest = { done: 0, total: kept.length };
    for (const rank of ranks) {
      for (const event of kept) if (rankOf(event) === rank) await submit(event);
      await flush();
    }
    kept.length = 0;
    rest = undefined;
  };
  for await (const line of lines) {
    bytes += Buffer.byteLength(line) + 1;
    if (line.trim() === "") continue;
    const parsed = parseEvent(jsonOf(line));
    if (!parsed.ok) addTo(tally, { refused: { [parsed.code]: 1 } });
    else if (standsForGit.has(parsed.event.kind)) kept.push(parsed.event);
    else await submit(parsed.event);
    if (kept.length >= maxKept) await submitKept();
  }
  await flush();
  await submitKept();
  return tally;
}

function addTo(
  tally: ImportTally,
  { stored = 0, waiting = 0, known = 0, refused = {} }: Readonly<Partial<ImportTally>>,
): void {
  tally.stored += stored;
  tally.waiting += waiting;
  tally.known += known;
  for (const [code, count] of Object.entries(refused)) tally.refused[code] = (tally.refused[code] ?? 0) + count;
}

export function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
