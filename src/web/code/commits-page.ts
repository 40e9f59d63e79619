// The log of a branch, tag or commit, of everything or of one path: fifty commits a page.

import { canBeAsked } from "../../git/reading/history.js";
import type { Oid } from "../../nostr/nip34.js";
import { type CiResults, ciMarks } from "../ci-results.js";
import { foreign, type Html, html, time } from "../html.js";
import { commitUrl, repositoryFrame } from "./frame.js";
import { graphColumn } from "./graph.js";
import {
  branchPicker,
  type Looking,
  oidLink,
  pageNumber,
  pager,
  pathLine,
  proposalNote,
  type Shown,
  sorryPage,
} from "./looking.js";
import { codeUrl, joinPath, type Place, textOfName } from "./paths.js";

const commitsPerPage = 50;
/** git counts from the newest each time: further back is a matter for `git log`. */
const maxPages = 400;

export async function commitsPage(
  looking: Looking,
  place: Place,
  isProposal: boolean,
  ciOf: (commits: readonly Oid[]) => Promise<CiResults["byCommit"]>,
): Promise<Shown> {
  const { room, found, visitor, root, site, query } = looking;
  const path = joinPath(place.path);
  if (!canBeAsked(path)) {
    const sentence = html`Its name holds a line break, and git cannot be asked for it here. <code>git log</code> can.`;
    return sorryPage(looking, "commits", place.inAddress, 200, "A name with a line break", sentence);
  }
  const page = pageNumber(query, maxPages);
  const question = { from: place.commit, path, skip: (page - 1) * commitsPerPage, count: commitsPerPage };
  const looked = await room.log(found.repository, question, visitor);
  if (!looked.ok) return looked.code;
  const { lines, hasMore, isLate } = looked.value;
  if (lines.length === 0 && page === 1 && !isLate) return "missing";
  const address = codeUrl(root, "commits", place.inAddress, place.path);
  // Of one path only some commits are here: they are not each other's parents.
  const graph = place.path.length === 0 ? graphColumn(lines) : undefined;
  const ci = await ciOf(lines.map(({ oid }) => oid));
  const where = place.path.length === 0 ? place.label : textOfName(path);
  return repositoryFrame(site, found, {
    tab: "commits",
    ref: place.inAddress,
    title: `Commits of ${where}`.slice(0, 120),
    main: html`${isProposal && proposalNote()}<div class="bar">${branchPicker(looking, place, "commits")} ${place.path.length > 0 && pathLine(looking, place)}</div>
<section class="log" id="log" data-live><h2>Commits</h2>
<ol class="list${graph && ` graphed lanes${graph.lanes}`}">${lines.map(
      ({ oid, subject, author, time: seconds, parents }, index): Html =>
        html`<li>${graph?.rows[index]}<a class="title" href="${commitUrl(root, oid)}">${foreign(subject || "(no message)", 160)}</a>${parents.length > 1 && html` <span class="tag">merge</span>`}${ciMarks(ci.get(oid))}
<span class="meta">${foreign(author, 60)} ${time(seconds)} ${oidLink(root, oid)} <a href="${codeUrl(root, "tree", oid)}">Files</a></span></li>\n`,
    )}</ol>
${isLate && html`<p class="note">This took too long. <code>git log</code> in a clone has all of it.</p>`}${hasMore && page === maxPages && html`<p class="note">Older commits are in a clone: <code>git log</code>.</p>`}
${pager(address, page, hasMore && page < maxPages, ["Newer", "Older"])}</section>`,
  });
}
