// Markdown as safe markup: READMEs, Markdown files, issues and comments. markdown-it reads it (CommonMark, tables, struck
// words, footnotes) and passes raw tags on; everything it answers is written anew from a list of known tags
// (markup-writer.ts). Linear in the length of the text.

import MarkdownIt from "markdown-it";
import footnotes from "markdown-it-footnote";
import type { Html } from "./html.js";
import { type CodeOf, type MarkupPlace, type WriterOptions, writeMarkup } from "./markup-writer.js";

/** A longer text is rendered up to here. */
export const maxMarkdownCharacters = 128 * 1024;
/** Each mark is looked for the end of: with more of them than anybody writes, footnotes stay text. */
const maxFootnoteMarks = 300;

export interface MarkdownOptions {
  /** The level of the heading under which the text stands. */
  readonly outerLevel: number;
  /** Where relative links and pictures lead; left out, such links are text. */
  readonly place?: MarkupPlace;
  /** Before the ids of its headings: another one for each text of a page. */
  readonly idPrefix?: string;
  /** Blocks of code with more than their text. */
  readonly codeOf?: CodeOf | undefined;
}

const plain = new MarkdownIt({ html: true });
const withFootnotes = new MarkdownIt({ html: true }).use(footnotes).disable("footnote_inline");
const withoutTables = new MarkdownIt({ html: true }).disable("table");

/** Short rows are filled up to the width of their table: a little text could ask for millions of cells. */
const maxCells = 20_000;

function cellsOf(text: string): number {
  let cells = 0;
  let columns = 0;
  for (const line of text.split("\n")) {
    if (line.trim() === "") columns = 0;
    else if (line.includes("-") && /^[\s>|:-]*$/.test(line)) columns = Math.max(columns, line.split("|").length);
    cells += columns;
  }
  return cells;
}

export function renderMarkdown(text: string, options: MarkdownOptions): Html {
  const cut = text.slice(0, maxMarkdownCharacters);
  const marks = cut.split("[^", maxFootnoteMarks + 2).length - 1;
  const usual = marks > 0 && marks <= maxFootnoteMarks ? withFootnotes : plain;
  const parser = cellsOf(cut) > maxCells ? withoutTables : usual;
  const writing: WriterOptions = { idPrefix: "md-", ...options };
  return writeMarkup(parser.render(cut, {}), writing);
}
