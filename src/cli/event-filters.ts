// `--filter`: NIP-01 filters as JSON, one or several.

import type { Command } from "commander";
import { parseFilter } from "../nostr/filter.js";
import { CommandFailure } from "./abilities.js";

const collect = (value: string, earlier: readonly string[]): readonly string[] => [...earlier, value];

export const acceptFilters = (command: Command): Command =>
  command.option("--filter <json>", "a NIP-01 filter; may be given several times", collect, []);

/** The filters given, as JSON; what is wrong is said before anybody is asked. None means all events. */
export const filtersOf = ({ filter }: Readonly<Record<string, unknown>>): readonly unknown[] =>
  (filter as readonly string[]).map(filterOf);

function filterOf(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new CommandFailure(
      `--filter must be JSON, for instance '{"kinds":[30617]}'; ${JSON.stringify(text)} is not`,
      2,
    );
  }
  const parsed = parseFilter(value);
  if (!parsed.ok) throw new CommandFailure(`--filter ${text}: ${parsed.message}`, 2);
  return value;
}
