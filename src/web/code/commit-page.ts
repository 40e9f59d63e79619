// One commit: what its message says, who made it and when, its parents, whether it carries a signature, what CI
// said of it, and its changes.

import type { Commit } from "../../git/reading/objects.js";
import type { Oid } from "../../nostr/nip34.js";
import { foreign, type Html, html, time } from "../html.js";
import { asksForSplit, diffView } from "./diff-view.js";
import { commitUrl, repositoryFrame } from "./frame.js";
import { type Looking, oidLink, proposalNote, type Shown } from "./looking.js";
import { codeUrl } from "./paths.js";

const maxMessageCharacters = 20_000;

export async function commitPage(
  looking: Looking,
  oid: Oid,
  isProposal: boolean,
  ciMarks: Html | undefined,
): Promise<Shown> {
  const { room, found, visitor, root, site, query, painter } = looking;
  const commit = await room.commit(found.repository, oid);
  if (!commit) return "missing";
  const [parent] = commit.parents;
  const looked = await room.diff(found.repository, parent, oid, visitor);
  if (!looked.ok) return looked.code;
  const isSplit = asksForSplit(query);
  const words = await painter.wordsOf(looked.value);
  const subject = commit.subject || "(no message)";
  const changes = { root, before: parent, after: oid, address: commitUrl(root, oid), isSplit, words };
  const view = await diffView(looked.value, changes);
  return repositoryFrame(site, found, {
    tab: "commits",
    title: subject.slice(0, 100),
    description: subject,
    main: html`${isProposal && proposalNote()}<section class="commit"><h2>${foreign(subject, 500)}</h2>
${commit.body !== "" && html`<pre class="message">${cut(commit.body)}</pre>`}
<dl class="facts">${facts(commit, root)}${ciMarks && html`\n<dt>Checks</dt><dd>${ciMarks}</dd>`}</dl>
<p><a href="${codeUrl(root, "tree", oid)}">Files at this commit</a></p>${
      commit.parents.length > 1 && html`<p class="quiet">A merge: its changes are those against its first parent.</p>`
    }</section>
${view}`,
  });
}

const cut = (text: string): string =>
  text.length > maxMessageCharacters ? `${text.slice(0, maxMessageCharacters)}…` : text;

function facts({ oid, author, committer, parents, signature }: Commit, root: string): Html {
  const isOther = committer.name !== author.name || committer.time !== author.time;
  return html`<dt>Commit</dt><dd><code>${oid}</code></dd>
<dt>Author</dt><dd>${foreign(author.name, 100)} ${time(author.time)}</dd>
${isOther && html`<dt>Committed</dt><dd>${committer.name !== author.name && html`by ${foreign(committer.name, 100)} `}${time(committer.time)}</dd>`}
<dt>${parents.length === 1 ? "Parent" : "Parents"}</dt><dd>${
    parents.length === 0
      ? "none: a first commit"
      : parents.slice(0, 50).map((parent) => html`${oidLink(root, parent)} `)
  }</dd>
${signature && html`<dt>Signature</dt><dd>carries an ${signature} signature, which is not checked here: what is signed on this server is the branch</dd>`}`;
}
