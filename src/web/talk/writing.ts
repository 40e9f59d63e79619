// Writing on a page with a browser's extension (NIP-07): drafts of events that the page's script completes, has the extension
// sign, and sends to the relay as any client would. Without script or extension the page says which clients can write.

import { repositoryAddress } from "../../catalogue/repositories.js";
import { kinds, type Pubkey } from "../../nostr/event.js";
import { titleOfRepository } from "../code/frame.js";
import { type Html, html } from "../html.js";
import { clientUrl, copyLine, nostrUrl, type Site, threadUrl } from "../layout.js";
import type { FoundRepository } from "../repository-facts.js";
import { isOpen, type Thread } from "./thread.js";

interface Draft {
  readonly kind: number;
  readonly tags: readonly (readonly string[])[];
}

/** NIP-22. */
const commentDraft = (site: Site, { id, kind, author }: Thread): Draft => ({
  kind: kinds.comment,
  tags: [
    ["E", id, site.relayUrl, author],
    ["K", String(kind)],
    ["P", author],
    ["e", id, site.relayUrl, author],
    ["k", String(kind)],
    ["p", author],
  ],
});

const statusDraft = (found: FoundRepository, thread: Thread, kind: number): Draft => ({
  kind,
  tags: [
    ["e", thread.id, "", "root"],
    ["a", repositoryAddress(found.name)],
    ...[...new Set([found.name.owner, thread.author])].map((key) => ["p", key]),
  ],
});

const issueDraft = (found: FoundRepository): Draft => ({
  kind: kinds.issue,
  tags: [
    ["a", repositoryAddress(found.name)],
    ["p", found.name.owner],
  ],
});

/** What the script needs: the relay's address, and the drafts by the name of the button that sends them. */
const draftsOf = (site: Site, drafts: Readonly<Record<string, Draft>>, may: readonly Pubkey[] = []): string =>
  JSON.stringify({ relay: site.relayUrl, drafts, may });

/** Shown by the script where an extension is found. */
const box = (data: string, inside: Html): Html =>
  html`<form class="write" hidden data-write="${data}">${inside}<p role="status" class="quiet"></p></form>`;

/** Below an issue or a proposal. `may`: who may change its status. */
export function answerSection(site: Site, found: FoundRepository, thread: Thread, may: readonly Pubkey[]): Html {
  const client = threadUrl(site, thread);
  const isIssue = thread.kind === kinds.issue;
  // All of them: which buttons there are changes while the page is open.
  const drafts = {
    comment: commentDraft(site, thread),
    reopen: statusDraft(found, thread, 1630),
    ...(isIssue && { resolve: statusDraft(found, thread, 1631) }),
    close: statusDraft(found, thread, 1632),
  };
  return html`<section aria-labelledby="answer"><h2 id="answer">Answer</h2>
${box(
  draftsOf(site, drafts, may),
  html`<p><label for="text">Your comment, in Markdown</label><textarea id="text" name="text" rows="6" maxlength="60000"></textarea></p>
<p class="actions" id="actions" data-live><button type="submit" name="send" value="comment">Comment</button>${
    isOpen(thread)
      ? html`${isIssue && html`<button type="submit" name="send" value="resolve">Resolve</button>`}<button type="submit" name="send" value="close">Close</button>`
      : html`<button type="submit" name="send" value="reopen">Open again</button>`
  }</p>`,
)}
<p class="quiet" data-without-extension>What is said here is signed with your own key. With a Nostr extension (NIP-07) in your browser you can write on this page.${
    client !== undefined && html` Without one, <a href="${client}">answer in gitworkshop</a>,`
  } or use <a href="https://gitworkshop.dev/ngit">ngit</a>${thread.kind !== kinds.issue && ", which also checks out and merges pull requests"}.</p></section>`;
}

/** Below a list: how something new begins. */
export function startWriting(site: Site, found: FoundRepository, kind: "issues" | "pulls"): Html {
  const client = clientUrl(site, found.name);
  if (kind === "pulls") {
    return html`<section aria-labelledby="begin"><h2 id="begin">Propose a change</h2>
<p class="quiet">Clone it with <a href="https://gitworkshop.dev/ngit">ngit</a>, commit on a branch whose name begins with <code>pr/</code>, and push that:</p>
${copyLine("Clone with ngit", `git clone ${nostrUrl(site, found.name)}`)}</section>`;
  }
  return html`<section aria-labelledby="begin"><h2 id="begin">New issue</h2>
${box(
  draftsOf(site, { issue: issueDraft(found) }),
  html`<p><label for="subject">Title</label><input type="text" id="subject" name="subject" maxlength="200" required></p>
<p><label for="text">Text, in Markdown</label><textarea id="text" name="text" rows="8" maxlength="60000"></textarea></p>
<p class="actions"><button type="submit" name="send" value="issue">Publish the issue</button></p>`,
)}
<p class="quiet" data-without-extension>An issue of ${titleOfRepository(found).slice(0, 100)} is signed with your own key. With a Nostr extension (NIP-07) in your browser you can write it on this page.${
    client !== undefined && html` Or <a href="${client}">open one in gitworkshop</a>,`
  } or use <a href="https://gitworkshop.dev/ngit">ngit</a>.</p></section>`;
}
