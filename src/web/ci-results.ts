// What CI says about commits and pull requests, for every page that shows some: read from the store within bounds,
// brought down to the newest run of each workflow, and marked up. Anybody may report a result, so each is shown with
// whether a maintainer has asked that coordinator for it.

import { type CiRun, ciRunOf } from "../nostr/ci.js";
import { compareNewestFirst, type EventId, kinds, type Pubkey, tagValue } from "../nostr/event.js";
import type { Filter } from "../nostr/filter.js";
import { npubOf } from "../nostr/nip19.js";
import type { Reader } from "../store/port.js";
import { foreign, type Html, html, shortNpub } from "./html.js";
import { tag } from "./pieces.js";
import { readWithin } from "./read-within.js";

export interface CiResult extends CiRun {
  /** A maintainer reports it, or has asked its coordinator to run for this repository and has not stopped that. */
  readonly isAskedFor: boolean;
}

export interface CiResults {
  readonly byCommit: ReadonlyMap<string, readonly CiResult[]>;
  readonly byPullRequest: ReadonlyMap<EventId, readonly CiResult[]>;
}

export interface CiQuestion {
  /** `30617:<owner>:<identifier>` of each repository it is about. */
  readonly repositories: readonly string[];
  readonly commits: readonly string[];
  readonly pullRequests: readonly EventId[];
  readonly maintainers: ReadonlySet<Pubkey>;
}

const maxRuns = 500;
const maxControls = 500;
const maxBytes = 2 * 2 ** 20;
/** Results have little to say; longer ones are not looked into. */
const longest = 64 * 1024;

export async function ciResultsOf(reader: Reader, question: CiQuestion, signal?: AbortSignal): Promise<CiResults> {
  const { repositories, commits, pullRequests, maintainers } = question;
  const about = (name: string, values: readonly string[]): Filter => ({
    kinds: [kinds.ciResult, kinds.ciProgress],
    tags: new Map([
      [name, values],
      ["a", repositories],
    ]),
    limit: maxRuns,
  });
  const filters = [
    ...(commits.length > 0 ? [about("c", commits)] : []),
    ...(pullRequests.length > 0 ? [about("E", pullRequests)] : []),
  ];
  const runs: CiRun[] = [];
  if (filters.length > 0) {
    const visit: Parameters<typeof readWithin>[3] = (row) => {
      const run = row.size > longest ? undefined : ciRunOf(row.event);
      if (run) runs.push(run);
    };
    await readWithin(reader, filters, maxBytes, visit, signal);
  }
  const asked = runs.length > 0 ? await coordinatorsAsked(reader, question, signal) : new Set<Pubkey>();
  const isAskedFor = ({ coordinator }: CiRun): boolean => maintainers.has(coordinator) || asked.has(coordinator);
  return resultsOf(runs, commits, pullRequests, isAskedFor);
}

/** Coordinators that a maintainer has asked to run for the repository, and none of them stopped later. */
async function coordinatorsAsked(
  reader: Reader,
  { repositories, maintainers }: CiQuestion,
  signal?: AbortSignal,
): Promise<ReadonlySet<Pubkey>> {
  if (maintainers.size === 0) return new Set();
  const filter: Filter = {
    kinds: [kinds.ciRequest, kinds.ciStop],
    authors: [...maintainers],
    tags: new Map([["a", repositories]]),
    limit: maxControls,
  };
  const seen = new Set<string>();
  const asked = new Set<Pubkey>();
  const visit: Parameters<typeof readWithin>[3] = (row) => {
    const { kind, pubkey, ...event } = row.event;
    const coordinator = tagValue(event, "p") as Pubkey | undefined;
    // Newest first: what a maintainer said last about a coordinator counts.
    if (coordinator === undefined || seen.has(`${pubkey} ${coordinator}`)) return;
    seen.add(`${pubkey} ${coordinator}`);
    if (kind === kinds.ciRequest) asked.add(coordinator);
  };
  await readWithin(reader, [filter], maxBytes, visit, signal);
  return asked;
}

/** Of each run what ended it, of each coordinator's workflow the newest run: pure. */
export function resultsOf(
  runs: readonly CiRun[],
  commits: readonly string[],
  pullRequests: readonly EventId[],
  isAskedFor: (run: CiRun) => boolean,
): CiResults {
  const isEnded = ({ status }: CiRun): boolean => status !== "queued" && status !== "in progress";
  const byRun = new Map<string, CiRun>();
  for (const run of [...runs].sort(compareNewestFirst)) {
    const key = JSON.stringify([run.coordinator, run.run]);
    const known = byRun.get(key);
    if (!known || (!isEnded(known) && isEnded(run))) byRun.set(key, run);
  }
  const newest = [...byRun.values()].sort(compareNewestFirst);
  const of = (belongs: (run: CiRun) => boolean): CiResult[] => {
    const byWorkflow = new Map<string, CiResult>();
    for (const run of newest) {
      const key = JSON.stringify([run.coordinator, run.workflow]);
      if (belongs(run) && !byWorkflow.has(key)) byWorkflow.set(key, { ...run, isAskedFor: isAskedFor(run) });
    }
    const all = [...byWorkflow.values()];
    return [...all.filter((one) => one.isAskedFor), ...all.filter((one) => !one.isAskedFor)];
  };
  const found = <Key extends string>(keys: readonly Key[], belongs: (run: CiRun, key: Key) => boolean) =>
    new Map(
      keys.map((key) => [key, of((run) => belongs(run, key))] as const).filter(([, results]) => results.length > 0),
    );
  return {
    byCommit: found(commits, (run, commit) => run.commits.some((one) => one === commit)),
    byPullRequest: found(pullRequests, (run, id) => run.pullRequest === id),
  };
}

const shownResults = 4;

const lookOf = ({ status }: CiResult): "good" | "warn" | "bad" | undefined => {
  if (status === "success") return "good";
  if (status === "failure" || status === "timed_out" || status === "startup_failure") return "bad";
  return status === "cancelled" ? "warn" : undefined;
};

/** Marks beside a commit or a pull request. What nobody asked for has no colour: a stranger's word is only that. */
export function ciMarks(results: readonly CiResult[] | undefined): Html | undefined {
  if (!results || results.length === 0) return undefined;
  const mark = (result: CiResult): Html => {
    const { workflow, status, coordinator, isAskedFor } = result;
    const name = workflow.slice(workflow.lastIndexOf("/") + 1) || workflow;
    const by = `reported by ${shortNpub(npubOf(coordinator))}${isAskedFor ? "" : ", whom no maintainer asked"}`;
    const label = html`<span title="${`${workflow.slice(0, 200)}: ${by}`}">CI ${foreign(name, 40)}: ${status.replace("_", " ")}${!isAskedFor && " (not asked for)"}</span>`;
    return html` ${tag(label, isAskedFor ? lookOf(result) : undefined)}`;
  };
  const more = results.length - shownResults;
  return html`${results.slice(0, shownResults).map(mark)}${more > 0 && ` and ${more} more`}`;
}
