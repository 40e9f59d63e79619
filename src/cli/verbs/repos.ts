// `holdfast repos list|show|fsck|gc|delete|restore|import`: the repositories of this server.

import { counted, sizeText, timeText } from "../../base/text.js";
import { formatName } from "../../nostr/nip34.js";
import { differenceText, growthSentences } from "../../operator/naming.js";
import type {
  CheckResult,
  HousekeepingResult,
  RepositoryDetails,
  RepositoryLines,
} from "../../operator/repositories.js";
import type { Verb } from "../abilities.js";
import { operatorVerb } from "../operator-verb.js";
import { lineText, pairsText, tableText } from "../table.js";
import { addImport } from "./repos-import.js";

export const repos: Verb = (program, abilities) => {
  const parent = program
    .command("repos")
    .description("list, inspect, check, tidy, delete, restore and import repositories");
  operatorVerb(parent, abilities, "repos.list", { text: repositoriesText });
  operatorVerb(parent, abilities, "repos.show", { text: repositoryText });
  operatorVerb(parent, abilities, "repos.fsck", {
    text: checkText,
    failsOn: ({ unsound }) => unsound.length > 0,
  });
  operatorVerb(parent, abilities, "repos.gc", {
    text: tidiedText,
    failsOn: ({ failed }) => failed.length > 0,
  });
  operatorVerb(parent, abilities, "repos.delete", {
    text: ({ repository, keptUntil }) =>
      keptUntil === null
        ? `${repository} waited and had no data: it is gone`
        : `${repository} is not served any more; its data is kept until ${timeText(keptUntil)} UTC`,
  });
  operatorVerb(parent, abilities, "repos.restore", {
    text: ({ repository, status, note }) => `${repository} is ${status}${note === "" ? "" : ` (${note})`}`,
  });
  addImport(parent, abilities);
};

function tidiedText(result: HousekeepingResult): string {
  const { done, busy, failed, bytesBefore, bytesAfter } = result;
  return [
    `${counted(done, "repository", "repositories")} repacked; ${sizeText(bytesBefore)} before, ${sizeText(bytesAfter)} after`,
    ...growthSentences(result).map((sentence) => `  ${sentence}`),
    ...busy.map((name) => `busy, left alone: ${lineText(name)}`),
    ...failed.map((name) => `failed, see the log: ${lineText(name)}`),
  ].join("\n");
}

function checkText({ checked, unsound, strays }: CheckResult): string {
  const found = unsound.flatMap(({ repository, problems }) => [
    lineText(repository),
    ...problems.map((problem) => `  ${lineText(problem)}`),
  ]);
  const unknown = strays.map((name) => `not in the catalogue, not served: ${lineText(name)}`);
  return [...found, ...unknown, `${checked} checked, ${unsound.length} unsound`].join("\n");
}

function repositoriesText({ repositories, more }: RepositoryLines): string {
  const rows = repositories.map((line) => [
    line.status,
    timeText(line.since),
    String(line.pushes),
    line.governing?.slice(0, 12) ?? "-",
    line.partial ? `${line.partial.missingRefs.length} missing` : "",
    line.repository,
  ]);
  const table = tableText(
    ["STATUS", "SINCE (UTC)", "PUSHES", "STATE", "PARTIAL", "REPOSITORY"],
    rows,
    "no repository matches",
  );
  return more ? `${table}\nnot all are shown: raise --limit` : table;
}

function repositoryText(details: RepositoryDetails): string {
  const { disk, mark, partial, differences } = details;
  const pairs: [string, string][] = [
    ["repository", details.repository],
    ["status", `${details.status} since ${timeText(details.since)} UTC${details.isArchive ? ", a mirror" : ""}`],
    ["format", formatName(details.format)],
    ["announcement", details.announcement ?? "none served"],
    ["governing", details.governing ?? "none"],
    ["mark", mark ? `${mark.id} (${timeText(mark.created_at)} UTC)` : "none"],
    [
      "partial",
      partial
        ? `${counted(partial.missingRefs.length, "ref", "refs")} missing: ${partial.missingRefs.join(" ")}`
        : "no",
    ],
    ...details.standings.map(({ npub, decides, because }): [string, string] => [
      decides ? "maintainer" : "not maintainer",
      `${npub} ${because}`,
    ]),
    ["waiting", counted(details.waitingEvents, "event", "events")],
    ["pushes", `${details.pushes}, ${sizeText(details.receivedBytes)} received`],
    ["on disk", disk ? `${sizeText(disk.bytes)}, ${counted(disk.refs, "ref", "refs")}, HEAD ${disk.head}` : "nothing"],
    ...largeFilesText(details),
    ["unclaimed", disk ? counted(disk.unclaimedPushes, "push", "pushes") : "-"],
    ["refs", refsText(differences)],
    ...details.latestDecisions.map((record): [string, string] => [
      "decision",
      `${timeText(record.at)} ${record.outcome} by rule ${record.rule}, kind ${record.kind}, ${record.id}`,
    ]),
  ];
  return pairsText(pairs);
}

function largeFilesText({ largeFiles, askedForLargeFiles }: RepositoryDetails): [string, string][] {
  const { here, hereBytes, missing, missingBytes } = largeFiles;
  if (here + missing === 0) return [];
  const lacking = missing === 0 ? "" : `, ${missing} missing (${sizeText(missingBytes)})`;
  return [
    ["large files", `${here}, ${sizeText(hereBytes)}${lacking}`],
    ...askedForLargeFiles.map(({ url, at, answer }): [string, string] => [
      "asked for them",
      `${timeText(at)} ${lineText(url)} ${answer}`,
    ]),
  ];
}

function refsText(differences: RepositoryDetails["differences"]): string {
  if (differences === null) return "nothing to compare";
  return differences.length === 0 ? "as the newest signed state says" : differences.map(differenceText).join("; ");
}
