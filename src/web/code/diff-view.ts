// A diff as markup: a list of what changed, then each file folded or open, line by line.

import { type Diff, type DiffLine, diffBounds, type FileChange, type Hunk } from "../../git/reading/diff.js";
import { count, counted, foreign, type Html, html } from "../html.js";
import { codeUrl } from "./frame.js";
import { textOfName } from "./paths.js";

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

/** `before` and `after`: the commits whose files are linked, as they stand in addresses. */
export function diffView(
  diff: Diff,
  { root, before, after }: { readonly root: string; readonly before: string | undefined; readonly after: string },
): Html {
  const [added, removed] = diff.files.reduce(
    ([plus, minus], file) => [plus + file.added, minus + file.removed],
    [0, 0],
  );
  let shown = 0;
  const files = diff.files.map((file, index) => {
    const lines = file.added + file.removed;
    const isOpen = shown < openLines && lines <= openFileLines;
    shown += lines;
    return fileView(file, index, isOpen, root, before, after);
  });
  return html`<section class="diff"><h2 id="files">${counted(diff.files.length, "file", "files")}${diff.isCut && " and more"}</h2>
<p class="quiet">${plusMinus(added, removed)}</p>
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

function fileView(
  file: FileChange,
  index: number,
  isOpen: boolean,
  root: string,
  before: string | undefined,
  after: string,
): Html {
  const [ref, path] = file.status === "deleted" ? [before, file.from] : [after, file.to];
  const isModule = file.modes.includes("160000");
  const url = ref === undefined || isModule ? undefined : codeUrl(root, "blob", ref, segmentsOf(path));
  const mode = file.status === "changed" && file.modes[0] !== file.modes[1] && `mode ${file.modes.join(" → ")}`;
  return html`<details class="change" id="file-${index + 1}"${isOpen && html` open`}><summary><h3>${foreign(nameOf(file), 200)}</h3> <span class="quiet small">${
    file.status !== "changed" && words[file.status]
  } ${mode}</span> ${plusMinus(file.added, file.removed)}</summary>
${url && html`<p class="small"><a href="${url}">The whole file</a></p>`}${bodyOf(file)}</details>\n`;
}

function bodyOf({ hunks, isBinary, isCut }: FileChange): Html {
  if (isBinary) return html`<p class="quiet">Not text: its lines are not compared.</p>`;
  if (hunks.length === 0)
    return html`<p class="quiet">${isCut ? "Its lines are not shown." : "Its content is the same."}</p>`;
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Changed lines"><table class="lines"><tbody>${hunks.map(hunkView)}</tbody></table></div>${
    isCut && html`<p class="quiet">The rest of it is not shown.</p>`
  }`;
}

const hunkView = ({ heading, oldStart, newStart, lines }: Hunk): Html =>
  html`<tr class="hunk"><td></td><td></td><td>@@ −${oldStart} +${newStart} @@ ${heading}</td></tr>\n${lines.map(lineView)}`;

const signs: Readonly<Record<DiffLine["type"], string>> = { added: "+", removed: "−", same: " ", note: "\\" };
const looks: Readonly<Record<DiffLine["type"], string>> = { added: "add", removed: "del", same: "", note: "hunk" };

const lineView = ({ type, old, new: fresh, text }: DiffLine): Html =>
  html`<tr class="${looks[type]}"><td>${old}</td><td>${fresh}</td><td>${signs[type]}${text}</td></tr>\n`;
