// `--filter`: NIP-01 filters as JSON, one or several.

import type { Command } from "commander";
import { type Filter, parseFilter } from "../nostr/filter.js";
import { CommandFailure } from "./abilities.js";

const collect = (value: string, earlier: readonly string[]): readonly string[] => [...earlier, value];

export const acceptFilters = (command: Command): Command =>
  command.option("--filter <json>", "a NIP-01 filter; may be given several times", collect, []);

/** The filters given; all events when there is none. */
export function filtersOf(command: Command): readonly Filter[] {
  const texts = command.getOptionValue("filter") as readonly string[];
  return texts.length === 0 ? [{}] : texts.map(filterOf);
}

function filterOf(text: string): Filter {
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
  return parsed.filter;
}
