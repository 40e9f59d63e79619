// `holdfast mirror <npub | naddr | wss://relay>`: sets up an archive (GRASP-05) from the command line and shows how far
// each repository is, until all are there, nothing more happens, or nobody waits.

import { setTimeout as delay } from "node:timers/promises";
import { counted } from "../../base/text.js";
import { refusalPrefixes } from "../../nostr/refusals.js";
import type { MirrorLine, MirrorStanding, MirrorStarted } from "../../operator/mirror.js";
import { type Abilities, CommandFailure, type Verb } from "../abilities.js";
import { acceptSettings, settingsOf, wholeNumberOption } from "../flags.js";
import { askRunning, operate } from "../operate.js";
import { type ProgressBar, progressBar } from "../progress.js";
import { lineText } from "../table.js";

const lookAgainMs = 500;
/** Some were refused because too many of their owner wait: asked for again when others are there. */
const askAgainMs = 10_000;
const collect = (value: string, earlier: readonly string[]): readonly string[] => [...earlier, value];

const words: Readonly<Record<MirrorStanding, string>> = {
  there: "fetched",
  partial: "fetched in part",
  waiting: "waiting for git data",
  "no-state": "found",
  failed: "failed",
};

export const mirror: Verb = (program, abilities) => {
  const command = program
    .command("mirror")
    .description("keep a read-only copy of what a key announces, of one repository, or of a whole GRASP service")
    .argument("<target>", "npub; naddr or npub/identifier; wss://host of a GRASP service")
    .option("--relay <url>", "also ask this relay for announcements; may be given several times", collect, [])
    .option("--reason <text>", "why, shown in the list")
    .option("--no-wait", "do not wait for git data")
    .addOption(wholeNumberOption("--timeout <seconds>", "end when nothing has happened for so long").default(60))
    .option("--json", "answer as JSON, one object a line");
  command.addHelpText(
    "after",
    `
What is named is added to the archive lists (\`holdfast lists show\`) and followed from then on; \`holdfast lists remove\`
ends it. Relays that are asked: those of the naddr, --relay, and NGIT_SYNC_BOOTSTRAP_RELAY_URL. When no server runs,
announcements are fetched now and git data at the next start. Exit code 0: everything is here; 1: something is not.

Examples:
  holdfast mirror npub1… --relay wss://relay.example.com
  holdfast mirror naddr1…
  holdfast mirror wss://git.example.com --no-wait
  holdfast mirror npub1…/my-project --relay wss://git.example.com --json`,
  );
  acceptSettings(command).action(async () => {
    const { config } = settingsOf(command, abilities);
    const { relay: relays, reason, wait, timeout, json } = command.opts();
    const target = command.args[0] ?? "";
    const report = new Report(abilities, json === true);
    const start = (): Promise<MirrorStarted> => operate(abilities, config, "mirror.start", { target, relays, reason });
    const started = await start();
    await report.started(started);
    if (started.running && wait) {
      const show = async (): Promise<readonly MirrorLine[]> => {
        const answer = await askRunning(config, { operation: "mirror.show", parameters: { target } });
        if (!answer?.ok) throw new CommandFailure(answer?.message ?? "the server has stopped");
        return answer.result.repositories;
      };
      await follow(abilities, report, Number(timeout) * 1_000, show, start);
    }
    await report.end(started.running && wait === true, started);
  });
};

async function follow(
  { clock }: Abilities,
  report: Report,
  timeoutMs: number,
  show: () => Promise<readonly MirrorLine[]>,
  start: () => Promise<MirrorStarted>,
): Promise<void> {
  let movedMs = clock.monotonicMs();
  let startedMs = movedMs;
  while (!report.isSettled && clock.monotonicMs() - movedMs < timeoutMs) {
    // Not the clock's: its timers do not keep a process alive, and this is all there is to do.
    await delay(lookAgainMs);
    if (await report.lines(await show())) movedMs = clock.monotonicMs();
    report.showProgress();
    if (report.hasTooMany && movedMs > startedMs && clock.monotonicMs() - startedMs > askAgainMs) {
      startedMs = clock.monotonicMs();
      await report.lines((await start()).repositories);
    }
  }
}

const isSettled = ({ standing }: MirrorLine): boolean => standing === "there" || standing === "failed";

/** Says each thing once, and again when it has changed. */
class Report {
  readonly #known = new Map<string, MirrorLine>();
  readonly #bar: ProgressBar;

  constructor(
    private readonly abilities: Abilities,
    private readonly asJson: boolean,
  ) {
    this.#bar = progressBar(abilities);
  }

  /** Nothing more is to be expected soon. */
  get isSettled(): boolean {
    return [...this.#known.values()].every(isSettled);
  }

  get hasTooMany(): boolean {
    return [...this.#known.values()].some(({ code }) => code && refusalPrefixes[code] === "rate-limited");
  }

  /** How many are settled, below what was said. */
  showProgress(): void {
    const settled = [...this.#known.values()].filter(isSettled).length;
    this.#bar.report(settled, this.#known.size, "repositories");
  }

  async #say(fields: object, text: string): Promise<void> {
    this.#bar.done();
    await this.abilities.terminal.out(`${this.asJson ? JSON.stringify(fields) : lineText(text)}\n`);
  }

  async started({ list, entry, added, running, relays, repositories }: MirrorStarted): Promise<void> {
    await this.#say({ type: "list", list, entry, added }, `${entry} ${added ? "added to" : "is on"} the ${list}`);
    for (const { relay, taken, elsewhere, problem } of relays) {
      const parts = [
        ...(taken === null ? [] : [counted(taken, "new event", "new events")]),
        ...(elsewhere > 0
          ? [counted(elsewhere, "announcement of another repository", "announcements of other repositories")]
          : []),
        ...(problem === "" ? [] : [problem]),
      ];
      await this.#say({ type: "relay", relay, taken, elsewhere, problem }, `${relay}: ${parts.join("; ")}`);
    }
    await this.lines(repositories);
    if (!running) await this.#say({ type: "note", running }, "no server runs: git data is fetched at the next start");
  }

  /** Whether anything changed. */
  async lines(lines: readonly MirrorLine[]): Promise<boolean> {
    let changed = false;
    for (const line of lines) {
      const { repository, standing, reason } = line;
      const before = this.#known.get(repository);
      this.#known.set(repository, line);
      if (before?.standing === standing && before.reason === reason) continue;
      changed ||= before?.standing !== standing;
      await this.#say(
        { type: "repository", repository, standing, reason },
        `${repository}: ${words[standing]}${reason === "" ? "" : `: ${reason}`}`,
      );
    }
    return changed;
  }

  async end(waited: boolean, { relays, entry, list }: MirrorStarted): Promise<void> {
    const all = [...this.#known.values()];
    const there = all.filter(({ standing }) => standing === "there").length;
    const failed = all.filter(({ standing }) => standing === "failed").length;
    const isReached = relays.some(({ taken }) => taken !== null);
    const ok = waited ? there > 0 && there === all.length : isReached && failed === 0;
    const counts = { repositories: all.length, there, failed, waiting: all.length - there - failed };
    const text =
      all.length === 0
        ? `no repository ${list === "archive-grasp-services" ? "with a clone URL on" : "of"} ${entry} was found`
        : `${there} of ${counted(all.length, "repository is", "repositories are")} here${failed > 0 ? `, ${failed} failed` : ""}`;
    await this.#say({ type: "end", ok, ...counts }, text);
    if (!ok) throw new CommandFailure("", 1);
  }
}
