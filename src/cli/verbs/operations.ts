// Verbs that do one operation each (operator/operations.ts describes them) and how its answer looks on a terminal:
// `lists`, `ban`, `unban`, `tokens`, `admin`, `purgatory`, `why`, `relays` and `sync`.

import { counted, sizeText, timeText } from "../../base/text.js";
import type { BanPreview } from "../../operator/ban-targets.js";
import { banSummary, comingBackWords, stillKeptWords, unbanSummary, unservedWords } from "../../operator/ban-words.js";
import type { Unbanned } from "../../operator/bans.js";
import type { WaitingLine, WaitingList } from "../../operator/purgatory.js";
import type { RelayList, SyncedRelay } from "../../operator/relays.js";
import type { Explanation } from "../../operator/status.js";
import { isSame, type Verified } from "../../operator/verified.js";
import { CommandFailure, type Verb } from "../abilities.js";
import { operate } from "../operate.js";
import { operatorVerb } from "../operator-verb.js";
import { lineText, tableText } from "../table.js";

export const lists: Verb = (program, abilities) => {
  const parent = program.command("lists").description("white- and blacklists of keys and repositories");
  operatorVerb(parent, abilities, "lists.show", {
    text: ({ entries }) =>
      tableText(
        ["LIST", "ORIGIN", "SINCE (UTC)", "ENTRY", "REASON"],
        entries.map(({ list, origin, since, entry, reason }) => [
          list,
          origin,
          since === null ? "-" : timeText(since),
          entry,
          reason,
        ]),
        "the lists are empty",
      ),
  });
  operatorVerb(parent, abilities, "lists.add", {
    text: ({ added, entry }) => (added ? `${entry} added, in force now` : `${entry} was on the list already`),
  });
  operatorVerb(parent, abilities, "lists.remove", { text: ({ entry }) => `${entry} removed, in force now` });
  operatorVerb(parent, abilities, "bans.list", {
    text: ({ bans }) =>
      tableText(
        ["TYPE", "SINCE (UTC)", "TARGET", "REASON"],
        bans.map(({ type, since, target, reason }) => [type, timeText(since), target, reason]),
        "nothing is banned",
      ),
  });
};

export const ban: Verb = (program, abilities) => {
  operatorVerb(program, abilities, "ban", {
    text: ({ target, removedEvents }) => `${target} is banned; ${counted(removedEvents, "event", "events")} removed`,
    async preview({ type, target }, config) {
      const would = await operate(abilities, config, "ban.preview", { type, target });
      return { would, text: banText(would) };
    },
  });
};

export const unban: Verb = (program, abilities) => {
  operatorVerb(program, abilities, "unban", {
    text: ({ target, restored }) => [`${target} is not banned any more`, ...restoredLines(restored)].join("\n"),
    async preview({ type, target, restore }, config) {
      const would = await operate(abilities, config, "ban.preview", { type, target });
      if (!would.isBanned && (!restore || would.restorable === 0)) {
        throw new CommandFailure(`${would.target} is not banned`, 1, { code: "unknown" });
      }
      return { would, text: unbanText(would, restore === true) };
    },
  });
};

function banText(preview: BanPreview): string {
  if (preview.type === "ip") return lineText(banSummary(preview));
  const { repositories, moreRepositories } = preview;
  return [
    banSummary(preview),
    ...(repositories.length > 0 ? [unservedWords] : []),
    ...repositories.map((name) => `  ${name}`),
    ...(moreRepositories > 0 ? [`  and ${moreRepositories} more`] : []),
    `${comingBackWords(preview)} The command is \`holdfast unban --restore\`.`,
  ]
    .map(lineText)
    .join("\n");
}

function unbanText(preview: BanPreview, restore: boolean): string {
  const { restorable } = preview;
  const [they, them] = restorable === 1 ? ["It", "it"] : ["They", "them"];
  const outcome = restore ? ` ${they} would come back.` : ` ${they} would stay away; --restore brings ${them} back.`;
  return lineText(`${unbanSummary(preview)}${restorable === 0 ? "" : outcome}`);
}

function restoredLines(restored: Unbanned["restored"]): string[] {
  if (!restored) return [];
  const { repositories, events, refused, kept } = restored;
  return [
    `${counted(events, "event", "events")} and ${counted(repositories.length, "repository", "repositories")} restored`,
    ...repositories.map((name) => `  ${lineText(name)}`),
    ...Object.entries(refused).map(([code, count]) => `  refused: ${code} ${count}`),
    ...(kept > 0 ? [stillKeptWords(kept)] : []),
  ];
}

export const tokens: Verb = (program, abilities) => {
  const parent = program.command("tokens").description("tokens with which members' programs fetch and push");
  operatorVerb(parent, abilities, "tokens.add", {
    text: ({ id, token, right, repository, ends }) =>
      [
        token,
        "",
        `This is shown once. It may ${right === "push" ? "fetch and push" : "fetch"} ${repository ?? "every repository"}${
          ends === null ? "" : ` until ${timeText(ends)} UTC`
        }; git takes it as password with any user name. Its id is ${id}.`,
      ].join("\n"),
  });
  operatorVerb(parent, abilities, "tokens.list", {
    text: ({ tokens: all }) =>
      tableText(
        ["ID", "RIGHT", "WORKS", "SINCE (UTC)", "ENDS (UTC)", "MEMBER", "REPOSITORY", "NOTE"],
        all.map(({ id, right, works, since, ends, member, repository, note }) => [
          id,
          right,
          works ? "yes" : "no",
          timeText(since),
          ends === null ? "-" : timeText(ends),
          member,
          repository ?? "all",
          note,
        ]),
        "there are no tokens",
      ),
  });
  operatorVerb(parent, abilities, "tokens.revoke", { text: ({ id }) => `token ${id} opens nothing any more` });
};

export const admin: Verb = (program, abilities) => {
  const parent = program.command("admin").description("log in as operator; look at the audit log");
  operatorVerb(parent, abilities, "admin.link", { text: ({ url }) => url });
  operatorVerb(parent, abilities, "audit.list", {
    text: ({ changes }) =>
      tableText(
        ["AT (UTC)", "WHO", "VIA", "WHAT", "TARGET", "REASON"],
        changes.map(({ at, who, via, what, target, reason }) => [timeText(at), who, via, what, target, reason]),
        "nothing was changed yet",
      ),
  });
};

export const purgatory: Verb = (program, abilities) => {
  const parent = program.command("purgatory").description("events that wait for their git data");
  operatorVerb(parent, abilities, "purgatory.list", { text: waitingText });
  operatorVerb(parent, abilities, "purgatory.ask", {
    text: ({ repository }) => `the git servers of ${repository} are asked again`,
  });
  operatorVerb(parent, abilities, "purgatory.drop", { text: ({ event }) => `${event} waits no more` });
};

export const why: Verb = (program, abilities) => {
  operatorVerb(program, abilities, "why", { text: explanationText });
};

function waitingText({ totals, waiting, more }: WaitingList): string {
  const sum = `${counted(totals.entries, "event waits", "events wait")} (${sizeText(totals.bytes)})`;
  if (waiting.length === 0) return sum;
  const head = ["KIND", "PHASE", "EXPIRES (UTC)", "FROM", "EVENT", "REPOSITORY", "WHY"];
  return `${tableText(head, waiting.map(cells), "")}\n${sum}${more ? "; not all are shown, raise --limit" : ""}`;
}

function cells(line: WaitingLine): string[] {
  const missing = (line.missing ?? []).slice(0, 3).map((oid) => oid.slice(0, 12));
  const rest = (line.missing?.length ?? 0) - missing.length;
  const objects = missing.length > 0 ? ` (${missing.join(" ")}${rest > 0 ? ` and ${rest} more` : ""})` : "";
  const asked = line.asked.map(({ url, answer }) => `; ${url}: ${answer}`).join("");
  return [
    line.kind,
    line.phase,
    timeText(line.expires),
    line.relay ?? line.source,
    line.id,
    line.repositories.join(" "),
    `${line.why}${objects}${asked}`,
  ];
}

function explanationText({ subject, now, decisions }: Explanation): string {
  const lines = [subject, ...now.map((sentence) => `  now: ${sentence}`)];
  for (const record of decisions) {
    const from = record.relay ? `${record.source} (${record.relay})` : record.source;
    const code = record.code === null ? "" : ` with code ${record.code}`;
    lines.push(`  ${timeText(record.at)} UTC: ${record.outcome} by rule ${record.rule}${code}`);
    lines.push(`    event ${record.id}, kind ${record.kind}, from ${from}`);
    if (record.message !== "") lines.push(`    ${record.message}`);
    const facts = Object.entries(record.facts).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
    if (facts.length > 0) lines.push(`    ${facts.join(" ")}`);
  }
  return lines.map(lineText).join("\n");
}

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
  const head = ["RELAY", "STATE", "HEALTH", "LAST FAILURE (UTC)", "NEXT ATTEMPT"];
  return tableText(head, [...rows, ...left], "no relay is followed");
}

function verifiedText({ repository, relays, gitServers }: Verified): string {
  const events = relays.map(({ relay, standing, missingHere, missingThere, waitingHere, reason }) => {
    const counts = standing === "same" || standing === "differs";
    const numbers = counts ? [missingHere, missingThere].map(String) : ["-", "-"];
    const waiting = waitingHere > 0 ? `${counted(waitingHere, "waits", "wait")} here for git data` : "";
    return [relay, "events", standing, ...numbers, reason ?? waiting];
  });
  const refs = gitServers.map(({ url, standing, differences, differing, refs: count, reason }) => {
    const lacking = (side: "here" | "there"): string =>
      standing === "not compared" ? "-" : String(differences.filter((one) => one[side] === null).length);
    const names = differences.map(({ ref }) => ref.replace(/^refs\/(?:heads|tags)\//, ""));
    const told =
      differing > 0
        ? `${counted(differing, "differs", "differ")}: ${names.slice(0, 5).join(", ")}`
        : counted(count, "branch or tag", "branches and tags");
    return [url, "refs", standing, lacking("here"), lacking("there"), reason ?? told];
  });
  const head = ["COPY", "WHAT", "RESULT", "MISSING HERE", "MISSING THERE", ""];
  return tableText(head, [...events, ...refs], `${repository} lists no other copy`);
}

function tallyText(tally: SyncedRelay): string {
  const refused = Object.entries(tally.refusedHere).map(([code, count]) => `  ${code} ${count}`);
  return [
    `missing here ${tally.missingHere}: ${tally.stored} taken, ${tally.known} known already`,
    ...refused,
    `missing there ${tally.missingThere}: ${tally.sent} sent, ${tally.refusedThere} refused`,
  ].join("\n");
}
