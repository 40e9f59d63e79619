// The other relays and git servers that an announcement lists: when each was last compared with this one, and whether
// they were equal. Our words only, never theirs.

import type { Document } from "../../http/routes.js";
import { count, counted, foreign, type Html, html } from "../html.js";
import { quiet, stackTable, tag, timeOr } from "../pieces.js";
import type { PeerStatus, RepositoryOutbox } from "../status-page.js";
import { repositoryFrame } from "./frame.js";
import type { Looking } from "./looking.js";

const tags: Readonly<Record<PeerStatus["result"], Html>> = {
  "in step": tag("in step", "good"),
  ok: tag("ok", "good"),
  failed: tag("failed", "bad"),
  "not yet": tag("not yet"),
  "not followed": tag("not followed"),
};

const isBehind = ({ result, theyLack = 0 }: PeerStatus): boolean => result === "failed" || theyLack > 0;

/** Numbers only: where somebody writes is told by that person's own list. */
const outboxWords = ({ participants, relays, isComplete }: RepositoryOutbox): string =>
  `Relays of participants: ${counted(participants, "person takes", "people take")} part; what they wrote only to relays of their own is gathered from ${counted(relays, "relay", "relays")}${isComplete ? "" : ", not all of which have answered yet"}.`;

export function copiesPage(
  { site, found }: Looking,
  peers: readonly PeerStatus[],
  outbox: RepositoryOutbox | undefined,
): Document {
  const behind = peers.filter(isBehind).length;
  const summary =
    behind === 0
      ? `${counted(peers.length, "other place is", "other places are")} listed, none is known to be behind.`
      : `${count(behind)} of ${count(peers.length)} copies ${behind === 1 ? "is" : "are"} behind or out of reach.`;
  return repositoryFrame(site, found, {
    tab: "copies",
    title: "Copies",
    main: html`<section><h2>Copies</h2>
${
  peers.length === 0
    ? quiet("Its announcement lists no other server: this is the only copy that is known of here.")
    : html`<p class="lead">${summary}</p>
<p class="quiet">Relays and git servers the announcement lists. A git server is asked when something is missing here. Compared clean: everything it had was here.</p>
${stackTable(peers, [
  ["Where", ({ url }) => foreign(url.replace(/^(?:wss|https):\/\//, ""), 100)],
  ["What", ({ type }) => type],
  ["Last sync", ({ at, result }) => timeOr(at, result === "in step" ? "now" : "none")],
  ["Compared clean", ({ lastClean }) => timeOr(lastClean, "not yet")],
  [
    "Result",
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
