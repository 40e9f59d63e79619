// Atom feeds (RFC 4287): what happens in a repository, and what a person does here. Made with the same escaping as pages;
// signs that XML cannot hold are left out.

import type { Clock } from "../base/clock.js";
import type { Document } from "../http/routes.js";
import { kinds, type Pubkey } from "../nostr/event.js";
import { npubOf } from "../nostr/nip19.js";
import { repositoriesTagged } from "../nostr/nip34.js";
import { beginningOf } from "../store/event-beginning.js";
import type { Store } from "../store/port.js";
import { titleOfRepository } from "./code/frame.js";
import type { Looking, Shown } from "./code/looking.js";
import { startPlace } from "./code/paths.js";
import type { Directory } from "./directory.js";
import { type Html, html, shortNpub } from "./html.js";
import { cloneUrl, repositoryPath, type Site } from "./layout.js";
import { peopleOf, profileOf } from "./people.js";
import { threadPath } from "./talk/list-page.js";
import type { Talk } from "./talk/talk-routes.js";
import { continuedBy, titleOf } from "./talk/thread.js";

interface FeedEntry {
  /** Absolute; also what names the entry for ever. */
  readonly url: string;
  readonly title: string;
  readonly author: string;
  readonly at: number;
}

const maxEntries = 40;
const shownCommits = 20;

// XML 1.0 has no way to write these, not even escaped.
const unwritable = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;
const plain = (text: string): string => text.replace(unwritable, "").toWellFormed().slice(0, 300);

const timeText = (seconds: number): string =>
  new Date(Math.min(Math.max(0, Number.isFinite(seconds) ? seconds : 0), 253_402_300_799) * 1000).toISOString();

function feedDocument(title: string, self: string, page: string, entries: readonly FeedEntry[]): Document {
  const newest = [...entries].sort((a, b) => b.at - a.at).slice(0, maxEntries);
  const entry = ({ url, title: said, author, at }: FeedEntry): Html =>
    html`<entry><id>${url}</id><title>${plain(said)}</title><link href="${url}"/><updated>${timeText(at)}</updated><author><name>${plain(author)}</name></author></entry>\n`;
  const body = html`<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><id>${page}</id><title>${plain(title)}</title><link href="${page}"/><link rel="self" href="${self}"/><updated>${timeText(newest[0]?.at ?? 0)}</updated>
${newest.map(entry)}</feed>
`;
  return { status: 200, contentType: "application/atom+xml; charset=utf-8", body: body.toString() };
}

const typeOf = (kind: number): string =>
  kind === kinds.issue ? "Issue" : kind === kinds.patch ? "Patch" : "Pull request";

/** The newest commits of the default branch, issues and proposals. */
export async function repositoryFeed(looking: Looking, { store, threads }: Talk): Promise<Shown> {
  const { site, found, room, visitor } = looking;
  const page = cloneUrl(site, found.name);
  const entries: FeedEntry[] = [];
  const talk = [...threads.issues.slice(0, maxEntries), ...threads.proposals.slice(0, maxEntries)];
  const people = await peopleOf(
    store,
    talk.map(({ author }) => author),
  );
  for (const thread of talk) {
    const who = people.get(thread.author);
    const author = who?.name ?? shortNpub(npubOf(thread.author));
    entries.push({
      url: threadPath(page, thread),
      title: `${typeOf(thread.kind)}: ${thread.title}`,
      author,
      at: thread.created_at,
    });
  }
  const head = startPlace(found.table)?.commit;
  if (head) {
    const question = { from: head, path: Buffer.alloc(0), skip: 0, count: shownCommits };
    const log = await room.log(found.repository, question, visitor);
    if (!log.ok) return log.code;
    for (const { oid, subject, author, time } of log.value.lines)
      entries.push({
        url: `${page}/commit/${oid}`,
        title: subject || "(no message)",
        author: author || "unknown",
        at: time,
      });
  }
  return feedDocument(titleOfRepository(found), `${page}/activity.atom`, page, entries);
}

/** Pushes to a person's repositories, and the issues and proposals they wrote. */
export async function ownerFeed(
  site: Site,
  { store, directory }: { readonly store: Store; readonly directory: Directory; readonly clock: Clock },
  pubkey: Pubkey,
): Promise<Document> {
  const npub = npubOf(pubkey);
  const author = (await profileOf(store, pubkey)).name ?? shortNpub(npub);
  const all = await directory.all();
  const entries: FeedEntry[] = [];
  for (const { name, title, push } of all) {
    if (name.owner !== pubkey || !push) continue;
    entries.push({ url: `${cloneUrl(site, name)}#${push.at}`, title: `Push to ${title}`, author, at: push.at });
  }
  const here = new Set(all.map(({ name }) => repositoryPath(site, name)));
  const filter = { kinds: [kinds.issue, kinds.pullRequest, kinds.patch], authors: [pubkey], limit: maxEntries };
  for await (const rows of store.query([filter], { pageRows: 20, passingRows: true, limit: maxEntries })) {
    for (const row of rows) {
      const event = beginningOf(row);
      if (!event || continuedBy(event)) continue;
      const target = repositoriesTagged(event)
        .map(({ pubkey: owner, identifier }) => ({ owner, identifier }))
        .find((name) => here.has(repositoryPath(site, name)));
      if (!target) continue;
      const url = threadPath(cloneUrl(site, target), event);
      entries.push({ url, title: `${typeOf(event.kind)}: ${titleOf(event)}`, author, at: event.created_at });
    }
  }
  const page = `${site.httpUrl}/${npub}`;
  return feedDocument(author, `${page}.atom`, page, entries);
}
