// Holds the contract against a server that has been started again (or went on): every acknowledged event and ref is
// there, states served and refs held agree, repositories are sound, nothing is left over.

import { readdirSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { WaitingList } from "../../src/operator/purgatory.js";
import type { RepositoryLines } from "../../src/operator/repositories.js";
import { runProgram } from "../harness/git-server.js";
import type { Person, SignedEvent } from "../harness/grasp-people.js";
import type { RelayClient } from "../harness/relay-client.js";
import { until } from "../harness/server.js";
import type { Found, Hosted } from "./ledger.js";
import type { Victim } from "./victim.js";
import type { World } from "./world.js";

const idsAQuestion = 200;
/** Background work (a partial state's grace, a hunt) gets this long. */
const settleWithinMs = 30_000;
/** What our own trouble lost is fetched again after two minutes. */
const followWithinMs = 180_000;

type ShownRefs = ReadonlyMap<string, string>;
type Partial = { readonly state: string; readonly missingRefs: readonly string[] } | null;

interface Look extends Found {
  readonly states: readonly SignedEvent[];
  readonly partials: ReadonlyMap<string, Partial>;
}

export async function check(world: World, victim: Victim): Promise<string[]> {
  const relay = await victim.connect();
  try {
    let problems = await look(world, victim, relay);
    // Seen while something moved between two questions: what is broken stays broken.
    if (problems.length > 0) {
      const again = new Set(await look(world, victim, relay));
      problems = problems.filter((problem) => again.has(problem));
    }
    problems.push(...(await followsPeer(world, relay)));
    for (const set of world.sets) {
      for (const owner of set.owners) problems.push(...(await unsoundness(world, owner, set)));
    }
    problems.push(...(await leftovers(world)));
    return problems;
  } finally {
    relay.socket.terminate();
  }
}

async function asked(relay: RelayClient, filter: Record<string, unknown>): Promise<SignedEvent[]> {
  const { events, end } = await relay.ask("check", filter);
  if (end[0] !== "EOSE") throw new Error(`the relay closed a question: ${String(end[2])}`);
  return events as SignedEvent[];
}

async function look(world: World, victim: Victim, relay: RelayClient): Promise<string[]> {
  const { ids } = world.ledger;
  const served = new Set<string>();
  for (let from = 0; from < ids.length; from += idsAQuestion) {
    const events = await asked(relay, { ids: ids.slice(from, from + idsAQuestion) });
    for (const { id } of events) served.add(id);
  }
  const list = await victim.operate<WaitingList>("purgatory.list", { limit: 10_000 });
  const waiting = new Set<string>(list.waiting.filter(({ kind }) => kind !== "placeholder").map(({ id }) => id));
  const claimable = new Set<string>(list.waiting.filter(({ kind }) => kind === "placeholder").map(({ id }) => id));
  const rows = await victim.operate<RepositoryLines>("repos.list", { limit: 10_000 });
  const partials = new Map(rows.repositories.map(({ repository, partial }) => [repository, partial as Partial]));
  const identifiers = world.sets.map(({ identifier }) => identifier);
  const states = await asked(relay, { kinds: [30618], "#d": identifiers });
  const problems = world.ledger.broken({ served, waiting });
  const unclaimed = filesBelow(world).flatMap((path) => /\/unclaimed\/([^/]+)$/.exec(path)?.[1] ?? []);
  for (const id of unclaimed) if (!claimable.has(id)) problems.push(`unclaimed data for ${id} that nobody knows of`);
  for (const set of world.sets) {
    for (const owner of set.owners) {
      problems.push(...(await repositoryProblems(world, owner, set, { served, waiting, states, partials }, relay)));
    }
  }
  return problems;
}

async function shownRefs(world: World, owner: Person, set: Hosted): Promise<ShownRefs | undefined> {
  const response = await fetch(`${world.url(owner, set)}/info/refs?service=git-upload-pack`);
  const text = await response.text();
  if (response.status === 404) return undefined;
  if (response.status !== 200) throw new Error(`info/refs of ${set.identifier}: ${response.status}`);
  const lines = [...text.matchAll(/([0-9a-f]{40}) (refs\/[^\0\n]+)/g)];
  return new Map(lines.flatMap(([, oid = "", ref = ""]) => (ref.endsWith("^{}") ? [] : [[ref, oid]])));
}

const newestOf = (set: Hosted, states: readonly SignedEvent[]): number =>
  Math.max(-1, ...states.map(({ id }) => set.states.findIndex(({ event }) => event.id === id)));

const isGoverned = (ref: string): boolean => ref.startsWith("refs/heads/") || ref.startsWith("refs/tags/");

async function repositoryProblems(
  world: World,
  owner: Person,
  set: Hosted,
  found: Look,
  relay: RelayClient,
): Promise<string[]> {
  const name = `${owner.npub}/${set.identifier}`;
  const shown = await shownRefs(world, owner, set);
  if (!shown) return set.isOptional && set.floor < 0 ? [] : [`${name} is not served`];
  const problems: string[] = [];
  const governing = newestOf(set, found.states);
  if (governing < set.floor) {
    problems.push(`${name}: state ${set.floor} was acknowledged as released, ${governing} is the newest served`);
  }
  const last = new Map(set.acknowledgedRefs.filter((one) => one.owner === owner).map((one) => [one.ref, one]));
  for (const { ref, value, index } of last.values()) {
    if (isGoverned(ref) && index > governing && shown.get(ref) !== value) {
      problems.push(`${name}: ${ref} was acknowledged at ${value} under state ${index}, and is at ${shown.get(ref)}`);
    }
  }
  const adrift = differences(set, governing, shown, found.partials.get(name) ?? null);
  const pushedUnder = [...set.acknowledgedRefs.map(({ index }) => index), ...set.unanswered];
  const isPartlyPushed = pushedUnder.some((index) => index > governing);
  if (adrift.length > 0 && !(isPartlyPushed && (await settles(world, owner, set, relay)))) {
    problems.push(`${name}: refs are not what the served state ${governing} says: ${adrift.join(", ")}`);
  }
  if (owner === set.owners[0]) problems.push(...pullRequestProblems(world, name, set, found, shown));
  return problems;
}

/** Refs that the served state does not explain. */
function differences(set: Hosted, governing: number, shown: ShownRefs, partial: Partial): string[] {
  const state = set.states[governing];
  const missing = new Set(partial && partial.state === state?.event.id ? partial.missingRefs : []);
  const refs = state?.refs ?? {};
  const names = new Set([...Object.keys(refs), ...[...shown.keys()].filter(isGoverned)]);
  return [...names]
    .filter((ref) => shown.get(ref) !== refs[ref] && !missing.has(ref))
    .map((ref) => `${ref} at ${shown.get(ref) ?? "nothing"} instead of ${refs[ref] ?? "nothing"}`);
}

/** A push brought part of a state that waits: after its grace the state is served, with what is missing recorded. */
function settles(world: World, owner: Person, set: Hosted, relay: RelayClient): Promise<boolean> {
  return until(async () => {
    const governing = newestOf(set, await asked(relay, { kinds: [30618], "#d": [set.identifier] }));
    const shown = await shownRefs(world, owner, set);
    const missing = ["refs/heads/absent"];
    const partial = { state: set.states[governing]?.event.id ?? "", missingRefs: missing };
    return shown !== undefined && differences(set, governing, shown, partial).length === 0;
  }, settleWithinMs);
}

function pullRequestProblems(world: World, name: string, set: Hosted, found: Found, shown: ShownRefs): string[] {
  return set.pullRequests.flatMap(({ event, tip, isPushed }) => {
    if (!isPushed || !world.ledger.isAcknowledged(event.id)) return [];
    if (!found.served.has(event.id)) {
      return world.ledger.mayHaveExpired(event.id)
        ? []
        : [`${name}: pull request ${event.id} and its data were acknowledged, and it is not served`];
    }
    const value = shown.get(`refs/nostr/${event.id}`);
    return value === tip ? [] : [`${name}: refs/nostr/${event.id} is at ${value} instead of ${tip}`];
  });
}

/** What the peer serves arrives here too, by sync and hunt. */
async function followsPeer(world: World, relay: RelayClient): Promise<string[]> {
  const { shared, peer } = world;
  if (!shared) return [];
  const other = await peer.connect();
  try {
    const filter = { kinds: [30618], "#d": [shared.identifier] };
    const wanted = newestOf(shared, await asked(other, filter));
    let governing = -1;
    const follows = await until(async () => {
      governing = newestOf(shared, await asked(relay, filter));
      return governing >= wanted;
    }, followWithinMs);
    return follows ? [] : [`the peer serves state ${wanted} of ${shared.identifier}, ${governing} is the newest here`];
  } finally {
    other.socket.terminate();
  }
}

async function unsoundness(world: World, owner: Person, set: Hosted): Promise<string[]> {
  const directory = world.directory(owner, set);
  if (!(await readdir(directory).catch(() => undefined))) return [];
  const problems: string[] = [];
  const check = () => runProgram("git", [`--git-dir=${directory}`, "fsck", "--strict", "--no-dangling"]);
  let fsck = await check();
  // The server goes on: a repack may have taken a pack away while git looked at it. What is broken stays broken.
  for (let again = 0; fsck.code !== 0 && again < 3; again++) fsck = await check();
  if (fsck.code !== 0) problems.push(`${set.identifier} is unsound: ${fsck.stdout}${fsck.stderr}`);
  const refused = [...set.refused].filter(([, where]) => where === owner).map(([oid]) => oid);
  if (refused.length === 0) return problems;
  const input = `${refused.join("\n")}\n`;
  const found = await runProgram("git", [`--git-dir=${directory}`, "cat-file", "--batch-check"], { input });
  const kept = found.stdout.split("\n").filter((line) => line !== "" && !line.endsWith(" missing"));
  return [...problems, ...kept.map((line) => `${set.identifier}: a refused push left ${line}`)];
}

function filesBelow(world: World): string[] {
  try {
    return readdirSync(world.path("git"), { recursive: true }).map(String);
  } catch {
    // A directory went while it was being read.
    return filesBelow(world);
  }
}

const isLeftover = (path: string): boolean =>
  /(^|\/)(tmp_|\.tmp-|\.holdfast-)|\.lock$|packed-refs\.new$/.test(path) || /\/unclaimed\/[^/]+\/tmp_/.test(path);

/** Locks, quarantines, temporary files; and directories under the launcher's name that nobody owns. */
async function leftovers(world: World): Promise<string[]> {
  let found: string[] = [];
  await until(() => {
    const files = new Set(filesBelow(world));
    const invisible = [...files].filter((path) => path.endsWith(".pack") && !files.has(path.replace(/pack$/, "idx")));
    const scratch = readdirSync(join(world.place.folder, "tmp")).filter((name) => name.startsWith("holdfast-"));
    found = [...[...files].filter(isLeftover), ...invisible, ...scratch.slice(1)];
    return found.length === 0;
  }, settleWithinMs / 3);
  return found.map((path) => `left over: ${path}`);
}
