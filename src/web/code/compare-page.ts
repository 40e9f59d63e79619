// `/compare/<a>...<b>`: what b has that a has not, commit by commit, and as one change since they parted.

import type { Oid } from "../../nostr/nip34.js";
import { counted, foreign, html } from "../html.js";
import { asksForSplit, diffView } from "./diff-view.js";
import { commitUrl, repositoryFrame } from "./frame.js";
import { type Looking, oidLink, proposalNote, type Shown, sorryPage } from "./looking.js";
import type { Place } from "./paths.js";

const shownCommits = 100;

/** Splits at the first `...`, which no ref name can hold. */
export function comparedOf(segments: readonly Buffer[]): readonly [Buffer[], Buffer[]] | undefined {
  const text = segments.map((segment) => segment.toString("latin1")).join("/");
  const at = text.indexOf("...");
  if (at <= 0) return undefined;
  const split = (part: string): Buffer[] => part.split("/").map((name) => Buffer.from(name, "latin1"));
  const other = text.slice(at + 3);
  return other === "" ? undefined : [split(text.slice(0, at)), split(other)];
}

/** `proposed`: those of the two that only a pull request reaches. */
export async function comparePage(
  looking: Looking,
  one: Place,
  other: Place,
  proposed: readonly Oid[],
): Promise<Shown> {
  const { room, found, visitor, root, site, query, painter } = looking;
  const { repository } = found;
  if (one.path.length > 0 || other.path.length > 0) return "missing";
  const base = await room.mergeBase(repository, one.commit, other.commit, visitor);
  if (!base.ok) return base.code;
  if (base.value === undefined) {
    const sentence = html`They have no commit in common, so there is nothing to compare.`;
    return sorryPage(looking, "branches", undefined, 200, "Nothing in common", sentence);
  }
  const question = { from: other.commit, without: base.value, path: Buffer.alloc(0), skip: 0, count: shownCommits };
  const log = await room.log(repository, question, visitor);
  if (!log.ok) return log.code;
  const diff = await room.diff(repository, base.value, other.commit, visitor);
  if (!diff.ok) return diff.code;
  const { lines, hasMore } = log.value;
  const isSplit = asksForSplit(query);
  const words = await painter.wordsOf(diff.value);
  const address = `${root}/compare/${one.inAddress}...${other.inAddress}`;
  const title = `${other.label.slice(0, 60)} against ${one.label.slice(0, 60)}`;
  const changes = { root, before: base.value, after: other.commit, address, isSplit, words };
  const view = await diffView(diff.value, changes);
  return repositoryFrame(site, found, {
    tab: "branches",
    title,
    main: html`${proposed.map((oid) => proposalNote(oid.slice(0, 8)))}<section><h2>${foreign(title, 130)}</h2>
<p class="quiet">${counted(lines.length, "commit", "commits")}${hasMore && " and more"} since they parted at ${oidLink(root, base.value)}. <a href="${root}/compare/${other.inAddress}...${one.inAddress}">The other way round</a>.</p>
${lines.length > 0 && html`<ol class="list">${lines.map(({ oid, subject, author }) => html`<li><a class="title" href="${commitUrl(root, oid)}">${foreign(subject || "(no message)", 160)}</a> <span class="quiet">${foreign(author, 60)}</span> ${oidLink(root, oid)}</li>`)}</ol>`}</section>
${view}`,
  });
}
