// A diff as markup: a list of what changed, then each file folded or open, line by line or old and new side by side, with
// the words that were changed marked.

import { type Diff, type DiffLine, diffBounds, type FileChange, type Hunk, splitRows } from "../../git/reading/diff.js";
import { count, counted, foreign, type Html, html } from "../html.js";
import { htmlOfMany } from "../long-markup.js";
import type { WordMarks } from "./colours/painted.js";
import { markedLine } from "./colours/painted-lines.js";
import { codeUrl, textOfName } from "./paths.js";

/** Files are open until so many lines were shown; a reader opens the others. */
const openLines = 3_000;
/** One of more lines than this begins folded. */
const openFileLines = 1_000;

const words: Readonly<Record<FileChange["status"], string>> = {
  added: "added",
  deleted: "deleted",
  changed: "changed",
  renamed: "renamed",
  copied: "copied",
};

export interface DiffShown {
  readonly root: string;
  /** The commits whose files are linked, as they stand in addresses. */
  readonly before: string | undefined;
  readonly after: string;
  /** Old and new side by side. */
  readonly isSplit?: boolean;
  /** The page's own address: the other way of showing is offered there. */
  readonly address?: string;
  /** The words that were changed within lines. */
  readonly words?: WordMarks;
}

/** Whether an address asks for old and new side by side. */
export const asksForSplit = (query: URLSearchParams): boolean => query.get("view") === "split";

export async function diffView(diff: Diff, shownAs: DiffShown): Promise<Html> {
  const { isSplit = false, address } = shownAs;
  const [added, removed] = diff.files.reduce(
    ([plus, minus], file) => [plus + file.added, minus + file.removed],
    [0, 0],
  );
  let shown = 0;
  const files: Html[] = [];
  for (const [index, file] of diff.files.entries()) {
    const lines = file.added + file.removed;
    const isOpen = shown < openLines && lines <= openFileLines;
    shown += lines;
    files.push(await fileView(file, index, isOpen, shownAs));
  }
  return html`<section class="diff"><h2 id="files">${counted(diff.files.length, "file", "files")}${diff.isCut && " and more"}</h2>
<p class="bar"><span class="quiet">${plusMinus(added, removed)}</span>${
    address !== undefined &&
    html`<span class="actions">${isSplit ? html`<a href="${address}">Unified</a>` : html`<a href="${address}?view=split">Split</a>`}</span>`
  }</p>
${
  diff.files.length > 1 &&
  html`<details class="summary"${diff.files.length <= 30 && html` open`}><summary>Changed files</summary><ul class="list">${diff.files.map(
    (file, index) =>
      html`<li><a href="#file-${index + 1}">${foreign(nameOf(file), 160)}</a> <span class="quiet">${file.status !== "changed" && `${words[file.status]} `}</span>${plusMinus(file.added, file.removed)}</li>`,
  )}</ul></details>`
}${files}
${diff.isLate && html`<p class="note">git did not come to an end in time. <code>git show</code> in a clone has all of it.</p>`}${
  diff.isCut &&
  !diff.isLate &&
  html`<p class="note">A page shows ${count(diffBounds.files)} files and ${count(diffBounds.lines)} lines of a change: there is more. <code>git show</code> in a clone has all of it.</p>`
}</section>`;
}

const plusMinus = (added: number, removed: number): Html =>
  html`<span class="plus">+${count(added)}</span> <span class="minus">−${count(removed)}</span>`;

function nameOf({ status, from, to }: FileChange): string {
  if (status === "deleted") return textOfName(from);
  return status === "renamed" || status === "copied" ? `${textOfName(from)} → ${textOfName(to)}` : textOfName(to);
}

const segmentsOf = (path: Buffer): Buffer[] =>
  path
    .toString("latin1")
    .split("/")
    .map((part) => Buffer.from(part, "latin1"));

async function fileView(file: FileChange, index: number, isOpen: boolean, shownAs: DiffShown): Promise<Html> {
  const { root, before, after } = shownAs;
  const [ref, path, shownMode] =
    file.status === "deleted" ? [before, file.from, file.modes[0]] : [after, file.to, file.modes[1]];
  const isModule = shownMode === "160000";
  const url = ref === undefined || isModule ? undefined : codeUrl(root, "blob", ref, segmentsOf(path));
  const mode = file.status === "changed" && file.modes[0] !== file.modes[1] && `mode ${file.modes.join(" → ")}`;
  const body = await bodyOf(file, shownAs);
  return html`<details class="change" id="file-${index + 1}"${isOpen && html` open`}><summary><h3>${foreign(nameOf(file), 200)}</h3> <span class="quiet small">${
    file.status !== "changed" && words[file.status]
  } ${mode}</span> ${plusMinus(file.added, file.removed)}</summary>
${url && html`<p class="small"><a href="${url}">The whole file</a></p>`}${body}</details>\n`;
}

async function bodyOf({ hunks, isBinary, isCut }: FileChange, { isSplit, words: marks }: DiffShown): Promise<Html> {
  const notText = isBinary && html`<p class="quiet">Not text: its lines are not compared.</p>`;
  if (notText && hunks.length === 0) return notText;
  if (hunks.length === 0)
    return html`<p class="quiet">${isCut ? "Its lines are not shown." : "Its content is the same."}</p>`;
  const rows: Html[] = [];
  for (const hunk of hunks) rows.push(await (isSplit ? splitHunk(hunk, marks) : hunkView(hunk, marks)));
  // A file that is not text and became a link: the link's line is shown.
  return html`${notText}<div class="scroll" tabindex="0" role="group" aria-label="Changed lines"><table class="lines${isSplit && " split"}">${isSplit && html`<colgroup><col class="number"><col><col class="number"><col></colgroup>`}<tbody>${rows}</tbody></table></div>${
    isCut && html`<p class="quiet">The rest of it is not shown.</p>`
  }`;
}

const headingOf = ({ heading, oldStart, newStart }: Hunk): string => `@@ −${oldStart} +${newStart} @@ ${heading}`;

async function hunkView(hunk: Hunk, marks: WordMarks | undefined): Promise<Html> {
  const lines = await htmlOfMany(hunk.lines, (line) => lineView(line, marks));
  return html`<tr class="hunk"><td></td><td></td><td>${headingOf(hunk)}</td></tr>\n${lines}`;
}

const signs: Readonly<Record<DiffLine["type"], string>> = { added: "+", removed: "−", same: " ", note: "\\" };
const looks: Readonly<Record<DiffLine["type"], string>> = { added: "add", removed: "del", same: "", note: "hunk" };

const lineView = (line: DiffLine, marks: WordMarks | undefined): Html =>
  html`<tr class="${looks[line.type]}"><td>${line.old}</td><td>${line.new}</td><td>${signs[line.type]}${markedLine(line.text, marks?.get(line))}</td></tr>\n`;

async function splitHunk(hunk: Hunk, marks: WordMarks | undefined): Promise<Html> {
  const side = (line: DiffLine | undefined, number: number | undefined): Html =>
    line
      ? html`<td>${number}</td><td class="${looks[line.type]}">${signs[line.type]}${markedLine(line.text, marks?.get(line))}</td>`
      : html`<td></td><td class="none"></td>`;
  const rows = await htmlOfMany(
    splitRows(hunk.lines),
    ([old, fresh]) => html`<tr>${side(old, old?.old)}${side(fresh, fresh?.new)}</tr>\n`,
  );
  return html`<tr class="hunk"><td></td><td colspan="3">${headingOf(hunk)}</td></tr>\n${rows}`;
}
