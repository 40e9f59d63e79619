// Other servers: `holdfast relays` for the relays sync follows; `holdfast sync <relay>` compares the store with one relay
// once and brings over what either side lacks; `holdfast sync verify <repository>` compares one repository with every
// copy it lists, and changes nothing.

import type { RelayList, SyncedRelay } from "../../operator/relays.js";
import { isSame, type Verified } from "../../operator/verified.js";
import type { Verb } from "../abilities.js";
import { operatorVerb } from "../operator-verb.js";
import { tableText, timeText } from "../table.js";

export const relays: Verb = (program, abilities) => {
  const parent = program.command("relays").description("relays the server keeps in step with");
  operatorVerb(parent, abilities, "relays.list", { text: relaysText });
  operatorVerb(parent, abilities, "relays.reconnect", { text: ({ relay }) => `${relay} is dialled now` });
  operatorVerb(parent, abilities, "relays.ignore", { text: ({ relay }) => `${relay} is left alone from now on` });
  operatorVerb(parent, abilities, "relays.unignore", {
    text: ({ relay }) => `${relay} is followed again, if a repository here lists it`,
  });
};

export const sync: Verb = (program, abilities) => {
  const command = operatorVerb(program, abilities, "sync.relay", { text: tallyText });
  operatorVerb(command, abilities, "sync.verify", {
    text: verifiedText,
    failsOn: (verified) => !isSame(verified),
  }).addHelpText(
    "after",
    `
Nothing is fetched, sent or changed. Missing here: what is there and not here, without events that wait here or were
refused here. Missing there: what is here and not there. A copy that cannot be compared counts as a difference.`,
  );
};

function relaysText({ relays: followed, ignored }: RelayList): string {
  const rows = followed
    .filter((relay) => !relay.ignored)
    .map(({ url, relay, state, health, lastFailure, nextAttemptSeconds }) => [
      url ?? relay,
      state,
      health,
      lastFailure ? `${lastFailure.kind}, ${timeText(lastFailure.at)}` : "-",
      nextAttemptSeconds === null ? "-" : `in ${nextAttemptSeconds} s`,
    ]);
  const left = ignored.map(({ relay, since, reason }) => [relay, "ignored", "-", `since ${timeText(since)}`, reason]);
  if (rows.length + left.length === 0) return "no relay is followed";
  return tableText(["RELAY", "STATE", "HEALTH", "LAST FAILURE (UTC)", "NEXT ATTEMPT"], [...rows, ...left]);
}

function verifiedText({ repository, relays, gitServers }: Verified): string {
  if (relays.length + gitServers.length === 0) return `${repository} lists no other copy`;
  const events = relays.map(({ relay, standing, missingHere, missingThere, waitingHere, reason }) => {
    const counts = standing === "same" || standing === "differs";
    const numbers = counts ? [missingHere, missingThere].map(String) : ["-", "-"];
    const waiting = waitingHere > 0 ? `${waitingHere} wait here for git data` : "";
    return [relay, "events", standing, ...numbers, reason ?? waiting];
  });
  const refs = gitServers.map(({ url, standing, differences, differing, refs: count, reason }) => {
    const lacking = (side: "here" | "there"): string =>
      standing === "not compared" ? "-" : String(differences.filter((one) => one[side] === null).length);
    const names = differences.map(({ ref }) => ref.replace(/^refs\/(?:heads|tags)\//, ""));
    const told = differing > 0 ? `${differing} differ: ${names.slice(0, 5).join(", ")}` : `${count} branches and tags`;
    return [url, "refs", standing, lacking("here"), lacking("there"), reason ?? told];
  });
  return tableText(["COPY", "WHAT", "RESULT", "MISSING HERE", "MISSING THERE", ""], [...events, ...refs]);
}

function tallyText(tally: SyncedRelay): string {
  const refused = Object.entries(tally.refusedHere).map(([code, count]) => `  ${code} ${count}`);
  return [
    `missing here ${tally.missingHere}: ${tally.stored} taken, ${tally.known} known already`,
    ...refused,
    `missing there ${tally.missingThere}: ${tally.sent} sent, ${tally.refusedThere} refused`,
  ].join("\n");
}
