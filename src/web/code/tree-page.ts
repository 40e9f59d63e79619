// A folder: its entries with the commit that last touched each, and its README below.

import type { LastChange } from "../../git/reading/history.js";
import { canBeAsked } from "../../git/reading/history.js";
import { type Commit, type Folder, isBinary, type TreeEntry } from "../../git/reading/objects.js";
import type { Looked } from "../../git/reading/visitor.js";
import { count, counted, foreign, type Html, html, time } from "../html.js";
import { htmlOfMany } from "../long-markup.js";
import { commitUrl, repositoryFrame } from "./frame.js";
import {
  branchPicker,
  commitLine,
  type Looking,
  pageNumber,
  pager,
  pathLine,
  proposalNote,
  type Shown,
  sorryPage,
} from "./looking.js";
import { codeUrl, joinPath, type Place, textOfName } from "./paths.js";
import { renderReadme } from "./readme.js";

const entriesPerPage = 1_000;
/** Beyond so many, looking for the last commit of each takes longer than a reader waits. */
const maxWithChanges = 1_000;
const maxReadmeBytes = 256 * 1024;
const countedCommits = 5_000;

/** Everything a folder's page shows below the frame; the repository's own page shows the same. */
export async function folderView(
  looking: Looking,
  place: Place,
  tree: TreeEntry,
  commit: Commit,
): Promise<Looked<Html> | "too-large"> {
  const { room, found, visitor, root, query } = looking;
  const entries = await room.folder(found.repository, tree.oid);
  if (entries === undefined || entries === "too-large") return "too-large";
  const page = pageNumber(query, Math.max(1, Math.ceil(entries.count / entriesPerPage)));
  const shown = entries.slice((page - 1) * entriesPerPage, page * entriesPerPage);
  const folder = joinPath(place.path);
  let changes: ReadonlyMap<string, LastChange> = new Map();
  if (entries.count <= maxWithChanges && canBeAsked(folder)) {
    const names = new Set(shown.map(({ name }) => name.toString("latin1")));
    const looked = await room.lastChanges(
      found.repository,
      { commit: commit.oid, ref: place.ref, folder, names },
      visitor,
    );
    if (!looked.ok) return looked;
    changes = looked.value;
  }
  const total = await room.countCommits(found.repository, commit.oid, countedCommits, visitor);
  if (!total.ok && total.code !== "late") return total;
  const readme = await readmeIn(looking, place, entries);
  const rows = await htmlOfMany(shown, (entry) =>
    entryRow(looking, place, entry, changes.get(entry.name.toString("latin1"))),
  );
  const commitsUrl = codeUrl(root, "commits", place.inAddress);
  const said = !total.ok
    ? "All commits"
    : total.value >= countedCommits
      ? `${count(countedCommits)} or more commits`
      : counted(total.value, "commit", "commits");
  const markup = html`<section class="files" aria-label="Files">
<p class="latest">${commitLine(root, { ...commit, author: commit.author.name, time: commit.author.time })} <a class="all" href="${commitsUrl}">${said} on ${foreign(place.kind === "commit" ? place.label.slice(0, 8) : place.label, 60)}</a></p>
<table class="entries"><thead class="skip"><tr><th scope="col">Name</th><th scope="col">Last commit</th><th scope="col">When</th></tr></thead><tbody>${
    place.path.length > 0 &&
    html`<tr><th scope="row"><a href="${codeUrl(root, "tree", place.inAddress, place.path.slice(0, -1))}">.. <span class="skip">folder above</span></a></th><td></td><td></td></tr>`
  }${rows}</tbody></table>
${entries.count === 0 && html`<p class="quiet">This folder is empty.</p>`}${
  entries.count > entriesPerPage &&
  html`<p class="quiet">Entries ${count((page - 1) * entriesPerPage + 1)} to ${count((page - 1) * entriesPerPage + shown.length)} of ${count(entries.count)}.</p>`
}${pager(codeUrl(root, "tree", place.inAddress, place.path), page, page * entriesPerPage < entries.count, ["Entries before", "More entries"])}
</section>
${readme}`;
  return { ok: true, value: markup };
}

const marks: Readonly<Record<TreeEntry["kind"], readonly [sign: string, word: string]>> = {
  folder: ["▸", "folder"],
  file: ["", "file"],
  program: ["", "program"],
  link: ["↪", "link"],
  module: ["⧉", "repository within"],
};

function entryRow({ root }: Looking, place: Place, entry: TreeEntry, change: LastChange | undefined): Html {
  const [sign, word] = marks[entry.kind];
  const label = foreign(textOfName(entry.name), 120);
  const path = [...place.path, entry.name];
  const url = codeUrl(root, entry.kind === "folder" ? "tree" : "blob", place.inAddress, path);
  const named =
    entry.kind === "module"
      ? html`${label} <code>${entry.oid.slice(0, 8)}</code>`
      : html`<a href="${url}">${label}</a>`;
  return html`<tr><th scope="row"><span class="kind" title="${word}" aria-hidden="true">${sign}</span>${named}${entry.kind === "folder" && "/"}</th><td>${
    change && html`<a href="${commitUrl(root, change.oid)}">${foreign(change.subject || "(no message)", 100)}</a>`
  }</td><td>${change && time(change.time)}</td></tr>\n`;
}

const readmeName = /^readme(?:\.(?:md|markdown|txt|rst|adoc|org))?$/i;
/** Markdown before others. */
const readmeRank = (name: string): number => (/\.(?:md|markdown)$/i.test(name) ? 0 : name.includes(".") ? 2 : 1);

async function readmeIn(
  { room, found, root, painter }: Looking,
  place: Place,
  entries: Folder,
): Promise<Html | undefined> {
  const [readme] = entries
    .readmes()
    .filter(({ kind, name }) => (kind === "file" || kind === "program") && readmeName.test(textOfName(name)))
    .sort((a, b) => readmeRank(textOfName(a.name)) - readmeRank(textOfName(b.name)));
  const blob = readme && (await room.blob(found.repository, readme.oid));
  if (!readme || !blob?.content || isBinary(blob.content)) return undefined;
  const text = blob.content.subarray(0, maxReadmeBytes).toString("utf8");
  if (text.trim() === "") return undefined;
  const name = textOfName(readme.name);
  const url = codeUrl(root, "blob", place.inAddress, [...place.path, readme.name]);
  const isCut = blob.bytes > maxReadmeBytes;
  const shown = { content: blob.content, text, name, root, ref: place.inAddress, folder: place.path };
  const made = await renderReadme(shown, painter);
  return html`<section aria-labelledby="readme"><h2 id="readme"><a href="${url}">${name}</a></h2>
<div class="readme">${made}</div>
${isCut && html`<p class="quiet">It goes on: <a href="${url}">the whole file</a>.</p>`}</section>`;
}

export async function treePage(looking: Looking, place: Place, isProposal: boolean): Promise<Shown> {
  const { room, found, root, site, visitor } = looking;
  const commit = await room.commit(found.repository, place.commit);
  const there = commit && (await room.entryAt(found.repository, commit.tree, place.path, visitor));
  if (there && !there.ok) return there.code;
  const entry = there?.value;
  if (!commit || !entry) return "missing";
  if (entry.kind === "module") return "missing";
  if (entry.kind !== "folder") return { redirect: codeUrl(root, "blob", place.inAddress, place.path) };
  const view = await folderView(looking, place, entry, commit);
  if (view === "too-large") {
    const sentence = html`This folder has more entries than a page can show. <code>git clone</code> has them all.`;
    return sorryPage(looking, "code", place.inAddress, 200, "A very large folder", sentence);
  }
  if (!view.ok) return view.code;
  const where = place.path.length === 0 ? place.label : textOfName(joinPath(place.path));
  return repositoryFrame(site, found, {
    tab: "code",
    ref: place.inAddress,
    title: where.slice(0, 100),
    main: html`${isProposal && proposalNote()}<h2 class="skip">${foreign(where, 200)}</h2><div class="bar">${branchPicker(looking, place, "tree")} ${pathLine(looking, place)}<span class="actions small"><a href="${codeUrl(root, "find", place.inAddress)}">Find a file</a>${
      place.kind !== "commit" &&
      html`<a href="${codeUrl(root, "tree", commit.oid, place.path)}" data-permanent>Permanent link</a>`
    }<a href="${codeUrl(root, "archive", `${place.inAddress}.tar.gz`)}" rel="nofollow">tar.gz</a><a href="${codeUrl(root, "archive", `${place.inAddress}.zip`)}" rel="nofollow">zip</a></span></div>
${view.value}`,
  });
}
