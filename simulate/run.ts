// One seed, one run: troubled hours, two calm days, then the checks.

import { breaks } from "./breaks.js";
import { ModelRelay } from "./model-relay.js";
import { checkEnd, missingRelated } from "./properties.js";
import { Chance } from "./random.js";
import { drawManners, drawScenario, type Scenario, type Size } from "./scenario.js";
import { modelGit, Story } from "./story.js";
import { World } from "./world.js";

export interface RunOptions {
  readonly seed: number;
  readonly hours?: number;
  /** Name of a deliberate mistake. */
  readonly broken?: string;
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

export function run(options: RunOptions): RunResult {
  const chance = new Chance(options.seed);
  const drawn = drawScenario(chance, options.hours);
  const scenario: Scenario = { ...drawn, size: { ...drawn.size, ...options.size } };
  const { size } = scenario;
  const relays = Array.from(
    { length: size.relays },
    (_, at) =>
      new ModelRelay(
        `r${at}.example`,
        drawManners(new Chance(options.seed * 1000 + at)),
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
    ...(broken && { broken }),
    ...(options.trace && { trace: options.trace }),
  });
  new Story(new Chance(options.seed + 2), world, scenario).begin();
  world.runUntil(size.hours * hour);
  world.calmDown();
  world.runUntil((size.hours + calmHours) * hour);
  // A daily sync may just be running: it gets the time to end.
  for (
    let extra = 0;
    extra < 8 && world.core.snapshot(world.now()).relays.some((relay) => relay.state === "syncing");
    extra++
  ) {
    world.runUntil(world.timeline.nowMs + hour / 4);
  }
  const problems = [...world.watch.problems, ...checkEnd(world, bootstrap)];
  // A chain of layer 4 over several relays grows by one link a day.
  for (let day = 0; day < 3 && missingRelated(world, bootstrap).length > 0; day++) {
    world.runUntil(world.timeline.nowMs + 26 * hour);
  }
  problems.push(...missingRelated(world, bootstrap));
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
