// A file: text with numbered lines, Markdown rendered with a switch to its source, pictures shown. Nothing of it is ever
// run: the page holds escaped text, and pictures come from /raw, which says what they are.

import type { ReadObject } from "../../git/reading/object-reader.js";
import { isBinary } from "../../git/reading/objects.js";
import type { Oid } from "../../nostr/nip34.js";
import { bytes, count, foreign, type Html, html } from "../html.js";
import { htmlOfMany } from "../long-markup.js";
import { type Painter, paintedText } from "./colours/painted.js";
import { repositoryFrame } from "./frame.js";
import { branchPicker, type Looking, pathLine, proposalNote, type Shown } from "./looking.js";
import { codeUrl, joinPath, type Place, textOfName } from "./paths.js";
import { isPicture } from "./raw.js";
import { isMarkdown, renderReadme } from "./readme.js";

export const maxShownBytes = 2 ** 20;
const maxShownLines = 20_000;

export async function blobPage(looking: Looking, place: Place, isProposal: boolean): Promise<Shown> {
  const { room, found, root, site, query, visitor } = looking;
  const commit = await room.commit(found.repository, place.commit);
  const there = commit && (await room.entryAt(found.repository, commit.tree, place.path, visitor));
  if (there && !there.ok) return there.code;
  const entry = there?.value;
  const name = place.path.at(-1);
  if (!commit || !entry || entry.kind === "module") return "missing";
  if (entry.kind === "folder" || !name) return { redirect: codeUrl(root, "tree", place.inAddress, place.path) };
  const blob = await room.blob(found.repository, entry.oid, maxShownBytes);
  if (!blob) return "missing";
  const at = (page: string): string => codeUrl(root, page, place.inAddress, place.path);
  const fileName = textOfName(name);
  const showsSource = query.get("source") !== null;
  const { content, lines, switchTo } = await contentOf(looking, place, entry.oid, blob, fileName, showsSource);
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
<span class="actions">${switchTo === "source" && html`<a href="${at("blob")}?source">Source</a>`}${switchTo === "text" && html`<a href="${at("blob")}">Rendered</a>`}<a href="${at("raw")}">Raw</a>${lines !== undefined && html`<a href="${at("blame")}">Blame</a>`}<a href="${at("commits")}">History</a>${
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

async function contentOf(
  { root, painter }: Looking,
  place: Place,
  oid: Oid,
  blob: ReadObject,
  name: string,
  showsSource: boolean,
): Promise<Content> {
  const rawUrl = codeUrl(root, "raw", place.inAddress, place.path);
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
    const folder = place.path.slice(0, -1);
    const readme = { content: blob.content, text, name, root, ref: place.inAddress, folder };
    const made = await renderReadme(readme, painter);
    return { content: html`<div class="readme">${made}</div>`, switchTo: "source" };
  }
  const { made, lines } = await sourceOf(blob.content, text, oid, name, painter);
  const content = html`${made}${
    lines > maxShownLines &&
    html`<p class="note">The first ${count(maxShownLines)} of ${count(lines)} lines: ${raw("all of them")}.</p>`
  }`;
  return { content, lines, ...(isMarkdown(name) && { switchTo: "text" as const }) };
}

interface Source {
  readonly made: Html;
  readonly lines: number;
}

/** Made once for each content and not for each reader; with the name, because that says the language. */
const sources = new WeakMap<Buffer, Source & { readonly name: string }>();

async function sourceOf(content: Buffer, text: string, oid: Oid, name: string, painter: Painter): Promise<Source> {
  const known = sources.get(content);
  if (known?.name === name) return known;
  if (text === "") return { made: html`<p class="quiet">This file is empty.</p>`, lines: 0 };
  const looks = await painter.looksOf(oid, name, text);
  const { lines, total } = await paintedText(text, looks, maxShownLines);
  const source = { name, made: await numberedLines(lines), lines: total };
  // What was plain for want of time is tried again.
  if (looks) sources.set(content, source);
  return source;
}

/** Numbers beside the text, not in it: what is copied is the file. `before`: a column to the left of them. */
export async function numberedLines(lines: readonly Html[], before?: Html): Promise<Html> {
  const numbers = await htmlOfMany(
    lines,
    (_, index) => html`<a id="L${index + 1}" href="#L${index + 1}">${index + 1}</a>\n`,
  );
  const texts = await htmlOfMany(lines, (line, index) => (index === 0 ? line : ["\n", line]));
  return html`<div class="code" tabindex="0" role="group" aria-label="Content">${before}<pre class="gutter">${numbers}</pre><pre class="lines"><code>${texts}</code></pre></div>`;
}
