// What a fault is, and what it is done to.

import type { Random } from "../../src/store/testing/random.js";
import type { Load } from "./load.js";
import type { Victim } from "./victim.js";
import type { World } from "./world.js";

export interface Scene {
  readonly world: World;
  readonly victim: Victim;
  readonly load: Load;
  readonly random: Random;
}

export interface Struck {
  /** What exactly was tried. */
  readonly what: string;
  /** False: it could not be brought about (a point was not reached). */
  readonly isDone: boolean;
  readonly violations?: readonly string[];
}

export interface Fault {
  readonly family: string;
  /** Whether program.ts is needed around the server. */
  readonly isFaulty: boolean;
  readonly settings?: Readonly<Record<string, string>>;
  /** Waiting is short in this life. */
  readonly isExpiring?: boolean;
  /** Whether the server is gone afterwards; "perhaps": it may end by itself, with the reason in its log. */
  readonly ends: "yes" | "no" | "perhaps";
  readonly needsVolumes?: boolean;
  strike(scene: Scene): Promise<Struck>;
}
