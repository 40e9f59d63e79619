// Steps of a push at which armed-program.ts can be ended or stopped, and what else it can be told.

export const pushSteps = [
  "a pack is about to be put into the store",
  "a pack was put into the store",
  "the lock is held",
  "the change is appended",
  "the change is committed",
  "the change is applied",
] as const;

export type PushStep = (typeof pushSteps)[number];

export interface Armed {
  readonly step: PushStep;
  readonly signal: "SIGKILL" | "SIGSTOP";
}

/** From now on its view cannot be written, or can again. */
export interface DiskWish {
  readonly disk: "full" | "has room";
}
