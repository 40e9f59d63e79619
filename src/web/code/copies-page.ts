// The other relays and git servers that an announcement lists: when each was last compared with this one, and whether
// they were equal. Our words only, never theirs.

import type { Document } from "../../http/routes.js";
import { count, counted, foreign, type Html, html } from "../html.js";
import { quiet, stackTable, tag, timeOr } from "../pieces.js";
import type { PeerStatus, RepositoryOutbox } from "../status-page.js";
import { repositoryFrame } from "./frame.js";
import type { Looking } from "./looking.js";

const tags: Readonly<Record<PeerStatus["result"], Html>> = {
  "in step": tag("equal", "good"),
  ok: tag("answers", "good"),
  failed: tag("out of reach", "bad"),
  "not yet": tag("not compared yet"),
  "not followed": tag("not watched"),
};

export interface CopyCount {
  readonly behind: number;
  readonly all: number;
}

export const countCopies = (peers: readonly PeerStatus[]): CopyCount => ({
  behind: peers.filter(isBehind).length,
  all: peers.length,
});

export const behindWords = ({ behind, all }: CopyCount): string =>
  `${count(behind)} of ${count(all)} copies ${behind === 1 ? "is" : "are"} behind`;

const isBehind = ({ result, theyLack = 0 }: PeerStatus): boolean => result === "failed" || theyLack > 0;

/** Numbers only: where somebody writes is told by that person's own list. */
const outboxWords = ({ participants, relays, isComplete }: RepositoryOutbox): string =>
  `Relays of participants: ${counted(participants, "person takes", "people take")} part; what they wrote only to relays of their own is gathered from ${counted(relays, "relay", "relays")}${isComplete ? "" : ", not all of which have answered yet"}.`;

export function copiesPage(
  { site, found }: Looking,
  peers: readonly PeerStatus[],
  outbox: RepositoryOutbox | undefined,
): Document {
  const copies = countCopies(peers);
  const summary =
    copies.behind === 0
      ? `${counted(peers.length, "other place is", "other places are")} listed, none is known to be behind.`
      : `${behindWords(copies)} or out of reach.`;
  return repositoryFrame(site, found, {
    tab: "copies",
    title: "Copies",
    main: html`<section id="copies" data-live><h2>Copies</h2>
${
  peers.length === 0
    ? quiet("Its announcement lists no other server: this is the only copy that is known of here.")
    : html`<p class="lead">${summary}</p>
<p class="quiet">Relays and git servers the announcement lists. A git server is asked when something is missing here. Found equal: everything it had was here.</p>
${stackTable(peers, [
  ["Where", ({ url }) => foreign(url.replace(/^(?:wss|https):\/\//, ""), 100)],
  ["What", ({ type }) => type],
  ["Last asked", ({ at, result }) => timeOr(at, result === "in step" ? "now" : "none")],
  ["Found equal", ({ lastClean }) => timeOr(lastClean, "not yet")],
  [
    "Now",
    ({ result, theyLack = 0 }) => [
      tags[result],
      theyLack > 0 && html` <span class="quiet small">lacks ${count(theyLack)}</span>`,
    ],
  ],
])}`
}
${outbox && quiet(outboxWords(outbox))}</section>`,
  });
}
