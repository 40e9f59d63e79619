// Files by parts of their names: a form that works without script; with it, the list follows what is typed, and `t` on any
// code page leads here.

import { othersFirst } from "../../base/others-first.js";
import type { FileList } from "../../git/reading/files.js";
import { count, counted, foreign, html } from "../html.js";
import { repositoryFrame } from "./frame.js";
import { branchPicker, type Looking, proposalNote, type Shown } from "./looking.js";
import { codeUrl, type Place, textOfName } from "./paths.js";

const shownFiles = 100;
const maxWords = 8;
const pathsATime = 500;

/** Most paths are plain, and as long a list as there may be is looked through for each question. */
const textOf = (path: string): string => (/[\x80-\xff]/.test(path) ? textOfName(Buffer.from(path, "latin1")) : path);

/** Whose path holds all words; those whose own name holds the last one first, then the shorter ones. */
export async function foundFiles({ paths }: Pick<FileList, "paths">, query: string): Promise<string[]> {
  const words = query.slice(0, 200).toLowerCase().split(/\s+/).filter(Boolean).slice(0, maxWords);
  const last = words.at(-1);
  if (last === undefined) return paths.slice(0, shownFiles);
  const named: string[] = [];
  const others: string[] = [];
  for (const [index, path] of paths.entries()) {
    if (index % pathsATime === 0) await othersFirst();
    const text = textOf(path).toLowerCase();
    if (!words.every((word) => text.includes(word))) continue;
    (text.indexOf(last, text.lastIndexOf("/") + 1) >= 0 ? named : others).push(path);
  }
  return [...shortest(named), ...shortest(others)].slice(0, shownFiles);
}

/** As many as are shown, without sorting all that were found. */
function shortest(paths: readonly string[]): string[] {
  const byLength = new Map<number, string[]>();
  for (const path of paths) {
    const same = byLength.get(path.length);
    if (!same) byLength.set(path.length, [path]);
    else if (same.length < shownFiles) same.push(path);
  }
  return [...byLength].sort(([a], [b]) => a - b).flatMap(([, same]) => same);
}

export async function findPage(looking: Looking, place: Place, isProposal: boolean): Promise<Shown> {
  const { room, found, root, site, visitor, query } = looking;
  if (place.path.length > 0) return "missing";
  const commit = await room.commit(found.repository, place.commit);
  if (!commit) return "missing";
  const looked = await room.files(found.repository, commit.tree, visitor);
  if (!looked.ok) return looked.code;
  const asked = (query.get("q") ?? "").slice(0, 200);
  const files = await foundFiles(looked.value, asked);
  const { paths, isCut } = looked.value;
  return repositoryFrame(site, found, {
    tab: "code",
    ref: place.inAddress,
    title: "Find a file",
    main: html`${isProposal && proposalNote()}<section class="find"><h2>Find a file</h2>
<div class="bar">${branchPicker(looking, place, "find")}</div>
<form class="search" method="get" role="search" data-find><label for="q">Parts of its name, of ${isCut && "more than "}${counted(paths.length, "file", "files")}</label>
<input type="search" id="q" name="q" value="${asked}" maxlength="200" autocomplete="off" autofocus><button type="submit">Find</button></form>
<div id="found">${
      files.length === 0
        ? html`<p class="quiet">No file has that in its name.</p>`
        : html`<ul class="list">${files.map((path) => {
            const names = path.split("/").map((name) => Buffer.from(name, "latin1"));
            return html`<li><a class="title" href="${codeUrl(root, "blob", place.inAddress, names)}">${foreign(textOf(path), 300)}</a></li>`;
          })}</ul>${files.length === shownFiles && html`<p class="quiet">The first ${count(shownFiles)}: say more of the name.</p>`}`
    }</div></section>`,
  });
}
