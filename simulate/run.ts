// One seed, one run: troubled hours, two calm days, then the checks.

import { breaks } from "./breaks.js";
import { Misfortune } from "./hardships.js";
import { LayerFourWatch } from "./layer-four-watch.js";
import { type Manners, ModelRelay } from "./model-relay.js";
import { drawOutboxes, Outboxes } from "./outboxes.js";
import { checkEnd, missingRelated } from "./properties.js";
import { Chance } from "./random.js";
import {
  configFor,
  drawHabits,
  drawHardships,
  drawManners,
  drawScenario,
  type Hardships,
  type Scenario,
  type Size,
} from "./scenario.js";
import { modelGit, Story } from "./story.js";
import { Truth } from "./truth.js";
import { World } from "./world.js";

export interface RunOptions {
  readonly seed: number;
  readonly hours?: number;
  /** Name of a deliberate mistake. */
  readonly broken?: string;
  /** Instead of those the seed draws. */
  readonly hardships?: Hardships;
  /** What every relay does, whatever the seed draws. */
  readonly manners?: Partial<Manners>;
  /** Smaller than the seed says: for finding a short failure. */
  readonly size?: Partial<Size>;
  readonly trace?: (line: string) => void;
  /** The run ends soon after the watch has seen such a problem. */
  readonly endsAt?: (problem: string) => boolean;
}

export interface RunResult {
  readonly seed: number;
  readonly problems: readonly string[];
  readonly size: Size;
  readonly simulatedHours: number;
  readonly steps: number;
  readonly requests: number;
  readonly dials: number;
  readonly offers: number;
  readonly stored: number;
  readonly confirmedBatches: number;
}

const hour = 60 * 60 * 1000;
const calmHours = 48;

/** Mostly at once, now and then longer than a relay may be silent. */
const scanTimes = (chance: Chance) => (): number => (chance.once(0.7) ? 0 : chance.between(1, 30_000));

/** A storm would go on for longer than anybody wants to wait: it is broken already. */
function runHours(world: World, until: number, isFound: () => boolean): void {
  while (world.timeline.nowMs < until * hour && !world.watch.isStorm && !isFound()) {
    world.runUntil(Math.min(until * hour, world.timeline.nowMs + hour / 12));
  }
}

/** Whether such a problem is among them by now; each is looked at once. */
function finderOf(problems: readonly string[], isWanted: RunOptions["endsAt"]): () => boolean {
  let looked = 0;
  let isFound = false;
  return () => {
    while (isWanted && !isFound && looked < problems.length) isFound = isWanted(problems[looked++]!);
    return isFound;
  };
}

export function run(options: RunOptions): RunResult {
  const chance = new Chance(options.seed);
  const hardships = options.hardships ?? drawHardships(new Chance(options.seed + 3));
  const drawn = drawScenario(chance, options.hours, hardships);
  const scenario: Scenario = { ...drawn, size: { ...drawn.size, ...options.size } };
  const { size } = scenario;
  const relays = Array.from(
    { length: size.relays },
    (_, at) =>
      new ModelRelay(
        `r${at}.example`,
        {
          ...drawManners(new Chance(options.seed * 1000 + at)),
          ...drawHabits(new Chance(options.seed * 1000 + at + 500)),
          ...options.manners,
        },
        new Chance(options.seed * 7 + at),
      ),
  );
  const outboxWorld = drawOutboxes(options.seed);
  const bootstrap = scenario.bootstrap ? [relays[0]!.key] : [];
  const broken = options.broken === undefined ? undefined : breaks[options.broken]?.();
  const world = new World({
    chance: new Chance(options.seed + 1),
    trouble: scenario.trouble,
    relays: [...relays, ...outboxWorld.relays],
    bootstrap,
    git: modelGit,
    config: { ...configFor(hardships), ...outboxWorld.config },
    ...(hardships.waitingPerOwner !== undefined && { caps: { waitingPerOwner: hardships.waitingPerOwner } }),
    ...(hardships.slowStore && { scanMs: scanTimes(new Chance(options.seed + 4)) }),
    ...(broken && { broken }),
    ...(options.trace && { trace: options.trace }),
  });
  const misfortune = new Misfortune(new Chance(options.seed + 5), world, scenario, calmHours);
  misfortune.prepare();
  const listed = relays.map(({ key }) => key);
  const story = new Story(new Chance(options.seed + 2), world, scenario, listed);
  story.begin();
  const outboxes = new Outboxes(options.seed, outboxWorld, world, story, scenario);
  outboxes.begin();
  misfortune.plan(story.people);
  new Truth(world, new Set(bootstrap)).begin();
  new LayerFourWatch(world).begin();
  const { watch } = world;
  const isFound = finderOf(watch.problems, options.endsAt);
  runHours(world, size.hours, isFound);
  world.calmDown();
  runHours(world, size.hours + calmHours, isFound);
  // A daily sync may just be running: it gets the time to end.
  const isSyncing = (): boolean => world.snapshot().relays.some((relay) => relay.state === "syncing");
  for (let extra = 0; extra < 8 && !isFound() && isSyncing(); extra++) {
    world.runUntil(world.timeline.nowMs + hour / 4);
  }
  const problems = [...watch.problems];
  const isEnded = watch.isStorm || isFound();
  if (!isEnded) problems.push(...checkEnd(world, bootstrap));
  // A chain of layer 4 over several relays grows by one link a day.
  for (let day = 0; day < 3 && !isEnded && !watch.isStorm && missingRelated(world, bootstrap).length > 0; day++) {
    world.runUntil(world.timeline.nowMs + 26 * hour);
  }
  if (!isEnded && !watch.isStorm) problems.push(...missingRelated(world, bootstrap), ...outboxes.missing());
  return {
    seed: options.seed,
    problems,
    size,
    simulatedHours: world.timeline.nowMs / hour,
    steps: world.steps,
    requests: world.watch.requests,
    dials: world.watch.dials,
    offers: world.watch.offers,
    stored: world.server.stored.size,
    confirmedBatches: world.watch.confirmedBatches,
  };
}

/** Runs, each of them once: one seed is one run, and many mistakes are looked for in the same worlds. */
export function runsKept(): (options: Omit<RunOptions, "trace" | "endsAt">) => RunResult {
  const kept = new Map<string, RunResult>();
  return (options) => {
    const key = JSON.stringify(options);
    const result = kept.get(key) ?? run(options);
    kept.set(key, result);
    return result;
  };
}
