// A file: text with numbered lines, Markdown rendered with a switch to its source, pictures shown. Nothing of it is ever
// run: the page holds escaped text, and pictures come from /raw, which says what they are.

import type { ReadObject } from "../../git/reading/object-reader.js";
import { isBinary } from "../../git/reading/objects.js";
import { bytes, count, foreign, type Html, html } from "../html.js";
import { codeUrl, repositoryFrame } from "./frame.js";
import { branchPicker, type Looking, pathLine, proposalNote, type Shown } from "./looking.js";
import { joinPath, type Place, textOfName } from "./paths.js";
import { isPicture } from "./raw.js";
import { isMarkdown, renderReadme } from "./readme.js";

const maxShownBytes = 2 ** 20;
const maxShownLines = 20_000;

export async function blobPage(looking: Looking, place: Place, isProposal: boolean): Promise<Shown> {
  const { room, found, root, site, query } = looking;
  const commit = await room.commit(found.repository, place.commit);
  const entry = commit && (await room.entryAt(found.repository, commit.tree, place.path));
  const name = place.path.at(-1);
  if (!commit || !entry || entry.kind === "module") return "missing";
  if (entry.kind === "folder" || !name) return { redirect: codeUrl(root, "tree", place.inAddress, place.path) };
  const blob = await room.blob(found.repository, entry.oid, maxShownBytes);
  if (!blob) return "missing";
  const at = (page: string): string => codeUrl(root, page, place.inAddress, place.path);
  const fileName = textOfName(name);
  const showsSource = query.get("source") !== null;
  const { content, lines, switchTo } = contentOf(blob, fileName, at("raw"), showsSource);
  const facts = [lines !== undefined && `${count(lines)} ${lines === 1 ? "line" : "lines"}`, bytes(blob.bytes)];
  const kind = entry.kind === "link" ? "symbolic link" : entry.kind === "program" ? "program" : undefined;
  const where = textOfName(joinPath(place.path));
  return repositoryFrame(site, found, {
    tab: "code",
    ref: place.inAddress,
    title: where.slice(0, 100),
    main: html`${isProposal && proposalNote()}<div class="bar">${branchPicker(looking, place, "blob")} ${pathLine(looking, place)}</div>
<section class="file"><h2 class="skip">${foreign(fileName, 200)}</h2>
<p class="bar small"><span class="quiet">${[...facts, kind].filter(Boolean).join(" · ")}</span>
<span class="actions">${switchTo === "source" && html`<a href="${at("blob")}?source">Source</a>`}${switchTo === "text" && html`<a href="${at("blob")}">Rendered</a>`}<a href="${at("raw")}">Raw</a><a href="${at("commits")}">History</a>${
      place.kind !== "commit" &&
      html`<a href="${codeUrl(root, "blob", commit.oid, place.path)}" data-permanent>Permanent link</a>`
    }</span></p>
${content}</section>`,
  });
}

interface Content {
  readonly content: Html;
  readonly lines?: number;
  readonly switchTo?: "source" | "text";
}

function contentOf(blob: ReadObject, name: string, rawUrl: string, showsSource: boolean): Content {
  const raw = (label: string): Html => html`<a href="${rawUrl}">${label}</a>`;
  if (isPicture(name)) {
    return { content: html`<p class="picture"><img src="${rawUrl}" alt="${name.slice(0, 200)}"></p>` };
  }
  if (!blob.content) {
    return {
      content: html`<p class="note">This file is larger than the ${bytes(maxShownBytes)} a page shows: ${raw("open it raw")}.</p>`,
    };
  }
  if (isBinary(blob.content))
    return { content: html`<p class="note">This file is not text: ${raw("download it")}.</p>` };
  const text = blob.content.toString("utf8");
  if (isMarkdown(name) && !showsSource) {
    return { content: html`<div class="readme">${renderReadme(blob.content, name, text)}</div>`, switchTo: "source" };
  }
  const all = text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/);
  const shown = all.slice(0, maxShownLines);
  const content = html`${all.length === 0 ? html`<p class="quiet">This file is empty.</p>` : numberedLines(shown)}${
    all.length > shown.length &&
    html`<p class="note">The first ${count(maxShownLines)} of ${count(all.length)} lines: ${raw("all of them")}.</p>`
  }`;
  return { content, lines: all.length, ...(isMarkdown(name) && { switchTo: "text" as const }) };
}

/** Numbers beside the text, not in it: what is copied is the file. */
const numberedLines = (lines: readonly string[]): Html =>
  html`<div class="code" tabindex="0" role="group" aria-label="Content"><pre class="gutter">${lines.map((_, index) => html`<a id="L${index + 1}" href="#L${index + 1}">${index + 1}</a>\n`)}</pre><pre class="lines"><code>${lines.join("\n")}</code></pre></div>`;
