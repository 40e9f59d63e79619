// What a started server says on a terminal: where it is and what to do next. Elsewhere the log says it.

import { escapeControls } from "../base/text.js";

export interface Greeted {
  readonly version: string;
  readonly page: string;
  readonly relay: string;
  /** Undefined with the memory backend. */
  readonly data: string | undefined;
  readonly login: string;
}

export function greetingText({ version, page, relay, data, login }: Greeted, colour: boolean): string {
  const bold = (text: string): string => (colour ? `\x1b[1m${text}\x1b[0m` : text);
  const faint = (text: string): string => (colour ? `\x1b[2m${text}\x1b[0m` : text);
  const line = (name: string, value: string, note = ""): string =>
    `  ${faint(name.padEnd(8))}${escapeControls(value)}${note && faint(note)}`;
  return `${[
    "",
    `  ${bold(`Holdfast ${version}`)}`,
    "",
    line("open", `${page}/`),
    line("relay", relay),
    line("data", data ?? "in memory, gone at the end"),
    line("admin", login, "  (once, within ten minutes)"),
    "",
    `  Next: ${bold(`holdfast init hello --server ${page.replace(/^https?:\/\//, "")}`)} in another terminal publishes a first repository here.`,
    "  Ctrl+C stops the server; --quiet starts it without these lines.",
    "",
  ].join("\n")}\n`;
}

/** https://no-color.org, and terminals that cannot. */
export const hasColour = (environment: Readonly<Record<string, string | undefined>>): boolean =>
  !environment.NO_COLOR && environment.TERM !== "dumb";
