// One seed, one run: troubled hours, two calm days, then the checks.

import { breaks } from "./breaks.js";
import { Misfortune } from "./hardships.js";
import { LayerFourWatch } from "./layer-four-watch.js";
import { type Manners, ModelRelay } from "./model-relay.js";
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
function runHours(world: World, until: number): void {
  while (world.timeline.nowMs < until * hour && !world.watch.isStorm) {
    world.runUntil(Math.min(until * hour, world.timeline.nowMs + hour / 12));
  }
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
  const bootstrap = scenario.bootstrap ? [relays[0]!.key] : [];
  const broken = options.broken === undefined ? undefined : breaks[options.broken]?.();
  const world = new World({
    chance: new Chance(options.seed + 1),
    trouble: scenario.trouble,
    relays,
    bootstrap,
    git: modelGit,
    config: configFor(hardships),
    ...(hardships.waitingPerOwner !== undefined && { caps: { waitingPerOwner: hardships.waitingPerOwner } }),
    ...(hardships.slowStore && { scanMs: scanTimes(new Chance(options.seed + 4)) }),
    ...(broken && { broken }),
    ...(options.trace && { trace: options.trace }),
  });
  const misfortune = new Misfortune(new Chance(options.seed + 5), world, scenario, calmHours);
  misfortune.prepare();
  const story = new Story(new Chance(options.seed + 2), world, scenario);
  story.begin();
  misfortune.plan(story.people);
  new Truth(world, new Set(bootstrap)).begin();
  new LayerFourWatch(world).begin();
  const { watch } = world;
  runHours(world, size.hours);
  world.calmDown();
  runHours(world, size.hours + calmHours);
  // A daily sync may just be running: it gets the time to end.
  for (let extra = 0; extra < 8 && world.snapshot().relays.some((relay) => relay.state === "syncing"); extra++) {
    world.runUntil(world.timeline.nowMs + hour / 4);
  }
  const problems = [...watch.problems];
  if (!watch.isStorm) problems.push(...checkEnd(world, bootstrap));
  // A chain of layer 4 over several relays grows by one link a day.
  for (let day = 0; day < 3 && !watch.isStorm && missingRelated(world, bootstrap).length > 0; day++) {
    world.runUntil(world.timeline.nowMs + 26 * hour);
  }
  if (!watch.isStorm) problems.push(...missingRelated(world, bootstrap));
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
