// What a step tells the operator: lines of the log and counts.

import type { Command, CounterName } from "./messages.js";
import type { Relay } from "./relay.js";
import type { Step } from "./state.js";

type Log = Extract<Command, { type: "log" }>;

export function log(
  step: Step,
  level: Log["level"],
  code: string,
  relay: Relay | undefined,
  fields?: NonNullable<Log["fields"]>,
): void {
  step.out.push({ type: "log", level, code, ...(relay && { relay: relay.key }), ...(fields && { fields }) });
}

export function tally(step: Step, counter: CounterName, relay: Relay | undefined, label?: string, by?: number): void {
  const of = { ...(relay && { relay: relay.key }), ...(label !== undefined && { label }) };
  step.out.push({ type: "count", counter, ...of, ...(by !== undefined && { by }) });
}
