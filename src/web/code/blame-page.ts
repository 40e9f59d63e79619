// A file with the commit that last changed each line beside it.

import { canBeBlamed } from "../../git/reading/blame.js";
import { isBinary } from "../../git/reading/objects.js";
import { bytes, count, counted, foreign, type Html, html } from "../html.js";
import { htmlOfMany } from "../long-markup.js";
import { maxShownBytes, numberedLines } from "./blob-page.js";
import { paintedText } from "./colours/painted.js";
import { commitUrl, repositoryFrame } from "./frame.js";
import { branchPicker, type Looking, pathLine, proposalNote, type Shown, sorryPage } from "./looking.js";
import { codeUrl, joinPath, type Place, textOfName } from "./paths.js";

const maxBlamedLines = 20_000;
const shownAuthor = 18;

export async function blamePage(looking: Looking, place: Place, isProposal: boolean): Promise<Shown> {
  const { room, found, root, site, visitor, painter } = looking;
  const commit = await room.commit(found.repository, place.commit);
  const there = commit && (await room.entryAt(found.repository, commit.tree, place.path, visitor));
  if (there && !there.ok) return there.code;
  const entry = there?.value;
  const name = place.path.at(-1);
  if (!entry || !name || entry.kind === "module") return "missing";
  if (entry.kind === "folder") return { redirect: codeUrl(root, "tree", place.inAddress, place.path) };
  const at = (page: string): string => codeUrl(root, page, place.inAddress, place.path);
  const sorry = (heading: string, sentence: Html): Shown =>
    sorryPage(looking, "code", place.inAddress, 200, heading, sentence);
  const path = joinPath(place.path);
  if (!canBeBlamed(path))
    return sorry(
      "A name that is not text",
      html`git cannot be asked for it here. <code>git blame</code> in a clone can.`,
    );
  const blob = await room.blob(found.repository, entry.oid, maxShownBytes);
  if (!blob) return "missing";
  if (!blob.content)
    return sorry(
      "A large file",
      html`This file is larger than the ${bytes(maxShownBytes)} a page shows: <a href="${at("raw")}">open it raw</a>, or ask <code>git blame</code> in a clone.`,
    );
  if (isBinary(blob.content))
    return sorry("Not text", html`This file has no lines: <a href="${at("raw")}">download it</a>.`);
  const text = blob.content.toString("utf8");
  const looks = text === "" ? undefined : await painter.looksOf(entry.oid, textOfName(name), text);
  const painted = await paintedText(text, looks, maxBlamedLines);
  const total = text === "" ? 0 : painted.total;
  if (total > maxBlamedLines)
    return sorry(
      "A long file",
      html`It has ${count(total)} lines, and ${count(maxBlamedLines)} are looked at here. <code>git blame</code> in a clone looks at all. <a href="${at("blob")}">Read the file</a>.`,
    );
  const looked = await room.blame(found.repository, place.commit, path, visitor);
  if (!looked.ok) return looked.code;
  const { parts, isLate } = looked.value;
  const firsts = new Map(parts.map(({ from, commit: by }) => [from, by]));
  const who = await htmlOfMany(painted.lines, (_, index) => {
    const by = firsts.get(index + 1);
    if (!by) return "\n";
    const date =
      Number.isFinite(by.time) && by.time >= 0 && by.time < 2 ** 37
        ? new Date(by.time * 1000).toISOString().slice(0, 10)
        : "";
    const author = [...by.author].slice(0, shownAuthor).join("");
    return html`<a href="${commitUrl(root, by.oid)}" title="${by.subject}">${by.oid.slice(0, 8)}</a> <span class="by"><bdi>${author}</bdi> ${date}</span>\n`;
  });
  const content =
    total === 0
      ? html`<p class="quiet">This file is empty.</p>`
      : await numberedLines(painted.lines, html`<pre class="who">${who}</pre>`);
  const where = textOfName(path);
  return repositoryFrame(site, found, {
    tab: "code",
    ref: place.inAddress,
    title: `Blame of ${where}`.slice(0, 120),
    main: html`${isProposal && proposalNote()}<div class="bar">${branchPicker(looking, place, "blame")} ${pathLine(looking, place)}</div>
<section class="file"><h2 class="skip">Who changed ${foreign(where, 200)}</h2>
<p class="bar small"><span class="quiet">${counted(total, "line", "lines")}, each with the commit that last changed it</span>
<span class="actions"><a href="${at("blob")}">File</a><a href="${at("raw")}">Raw</a><a href="${at("commits")}">History</a></span></p>
${isLate && html`<p class="note">There was no time to look at all of its history: lines without a commit are older. <code>git blame</code> in a clone finds them.</p>`}
${content}</section>`,
  });
}
