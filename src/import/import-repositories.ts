// Moves another server's repositories into this one (`repos import`): events through intake, objects through quarantine and
// release, and for each repository whether it is ready, what it needs, or that nobody knows what it is.
//   1. announcements and states   2. objects the states name, from the directory   3. everything else
//   4. objects the pull requests name   5. the report
// A dry run does 1 and 3 against an empty store in memory and only looks whether the objects are there.

import { counted } from "../base/text.js";
import {
  catalogueRow,
  catalogueRows,
  isReleased,
  type RepositoryName,
  repositoryKey,
} from "../catalogue/repositories.js";
import { diskAddress } from "../git/address.js";
import type { PackBudgets } from "../git/push-types.js";
import { lackingWith, takeForeignObjects } from "../git/receive-pack.js";
import type { Repositories } from "../git/repositories.js";
import type { Intake } from "../intake/intake.js";
import { npubOf } from "../nostr/nip19.js";
import type { Oid } from "../nostr/nip34.js";
import { canDecide, decidingStates } from "../purgatory/plan.js";
import { waitingTips } from "../purgatory/pull-requests.js";
import type { Purgatory } from "../purgatory/purgatory.js";
import type { Store } from "../store/port.js";
import { type ForeignRepository, foreignRepositories } from "./foreign-repositories.js";
import { type EventSource, EventTaking, type EventTally } from "./take-events.js";

export interface ImportHouse {
  readonly store: Store;
  readonly intake: Intake;
  readonly repositories: Repositories;
  readonly purgatory: Purgatory;
  readonly budgets: PackBudgets;
  readonly pushWallClockMs: number;
}

export interface ImportedRepository {
  readonly repository: string;
  readonly verdict: "ready" | "needs action" | "unknown";
  /** Why, and what to do; empty when ready. */
  readonly why: string;
}

export interface Imported {
  readonly repositories: readonly ImportedRepository[];
  readonly events: EventTally;
  readonly bytes: number;
}

export interface ImportOptions {
  readonly directory: string;
  readonly source: EventSource;
  readonly dryRun: boolean;
  readonly progress: (done: number, total: number | undefined, label: string) => void;
  readonly signal: AbortSignal;
}

export async function importRepositories(house: ImportHouse, options: ImportOptions): Promise<Imported> {
  const found = await foreignRepositories(options.directory);
  const bringing = new Bringing(house, options, found);
  const taking = new EventTaking(house.intake, (done, label) => options.progress(done, undefined, label));
  await taking.take(options.source, "announcements");
  await taking.take(options.source, "states");
  await bringing.all("git data");
  await taking.take(options.source, "others");
  await bringing.all("pull requests");
  const reported = new Set(found.flatMap(({ name }) => (name ? [repositoryKey(name)] : [])));
  const withoutData: RepositoryName[] = [];
  for await (const row of catalogueRows(house.store)) if (!reported.has(repositoryKey(row))) withoutData.push(row);
  const repositories = [
    ...(await Promise.all(found.map((foreign) => verdictOf(house, bringing, taking, foreign)))),
    ...(await Promise.all(withoutData.map((name) => verdictWithoutData(house, name)))),
  ];
  return { repositories, events: taking.tally, bytes: bringing.bytes };
}

class Bringing {
  bytes = 0;
  readonly lacking = new Map<string, number>();
  readonly refused = new Map<string, string>();

  constructor(
    private readonly house: ImportHouse,
    private readonly options: ImportOptions,
    private readonly found: readonly ForeignRepository[],
  ) {}

  /** In a dry run nothing is released: its objects are all there. */
  wouldRelease(key: string): boolean {
    return this.options.dryRun && this.lacking.has(key);
  }

  async all(label: string): Promise<void> {
    for (const [index, foreign] of this.found.entries()) {
      this.options.signal.throwIfAborted();
      if (foreign.name) await this.#bring(foreign.name, foreign.objects);
      this.options.progress(index + 1, this.found.length, label);
    }
  }

  async #bring(name: RepositoryName, objects: readonly string[]): Promise<void> {
    const { store, repositories, purgatory, budgets, pushWallClockMs } = this.house;
    if (!(await catalogueRow(store, name)) || !(await repositories.exists(diskAddress(name)))) return;
    const wanted = await this.#wanted(name);
    if (wanted.length === 0) return;
    const repository = repositories.open(diskAddress(name));
    const key = repositoryKey(name);
    if (this.options.dryRun) {
      this.lacking.set(key, (await lackingWith(repository, objects, wanted)).size);
      return;
    }
    const { signal } = this.options;
    const taken = await takeForeignObjects(repository, objects, wanted, budgets, {
      wallClockMs: pushWallClockMs,
      signal,
    });
    if (!taken.ok) this.refused.set(key, taken.reason);
    else {
      this.bytes += taken.bytes;
      this.lacking.set(key, taken.lacking.size);
    }
    await purgatory.fetched(name);
  }

  async #wanted(name: RepositoryName): Promise<Oid[]> {
    const { store } = this.house;
    const newest = (await decidingStates(store, name)).find(canDecide);
    const tips = [...(await waitingTips(store, name)).values()];
    return [...new Set([...(newest ? newest.refs.values() : []), ...tips])];
  }
}

const textOf = ({ owner, identifier }: RepositoryName): string => `${npubOf(owner)}/${identifier}`;
const needs = (repository: string, why: string): ImportedRepository => ({ repository, verdict: "needs action", why });
const laterFromOthers = "the server looks for them on the servers its announcement lists after its start";

async function verdictOf(
  { store }: ImportHouse,
  bringing: Bringing,
  taking: EventTaking,
  { name, path, lost }: ForeignRepository,
): Promise<ImportedRepository> {
  if (!name) return { repository: path, verdict: "unknown", why: "it is no repository at <npub>/<identifier>.git" };
  const repository = textOf(name);
  const key = repositoryKey(name);
  const row = await catalogueRow(store, name);
  if (!row) {
    const refused = taking.refusedAnnouncements.get(key)?.refusal;
    if (refused) return needs(repository, `its announcement is refused (${refused.code}): ${refused.message}`);
    const why = "no announcement of it was found: name a relay that has it, or have its owner announce it";
    return { repository, verdict: "unknown", why };
  }
  const refused = bringing.refused.get(key);
  if (refused !== undefined) return needs(repository, `its git data is refused: ${refused}`);
  if (!(await decidingStates(store, name)).some(canDecide)) {
    return needs(repository, "no state of it was found: one of its maintainers has to push to it once");
  }
  const lacking = bringing.lacking.get(key) ?? 0;
  const isReady = isReleased(row) || bringing.wouldRelease(key);
  if (isReady && lacking === 0 && row.partial === null) return { repository, verdict: "ready", why: "" };
  const gone = lost.length === 0 ? "" : `; it borrows objects from ${lost[0]}, which is not there: copy that too`;
  return needs(
    repository,
    `${counted(Math.max(1, lacking), "commit that was signed is", "commits that were signed are")} not in the directory${gone}: ${laterFromOthers}`,
  );
}

async function verdictWithoutData({ store }: ImportHouse, name: RepositoryName): Promise<ImportedRepository> {
  const row = await catalogueRow(store, name);
  if (isReleased(row) && row?.partial === null) return { repository: textOf(name), verdict: "ready", why: "" };
  return needs(textOf(name), `it is announced here and the directory has no data of it: ${laterFromOthers}`);
}
