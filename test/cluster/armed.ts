// Steps of a push at which armed-program.ts can be ended or stopped.

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
